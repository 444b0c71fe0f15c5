//! Domains on the hungriest hardware: whatever the policy, no page, no address and no table is given
//! back before its invalidation.
#![allow(unsafe_code, reason = "wraps an allocator, whose trait is unsafe")]

use std::cell::{Cell, RefCell};
use std::ops::Range;

use barewire_iommu::{
    Attributes, Bounds, ClaimError, Config, Context, Deferred, Domain, DomainMapError,
    DomainUnmapError, FlushError, Granule, Held, Invalidate, Iova, IovaAllocator, IovaWindow,
    MapError, Mapped, PhysAddr, Policy, Segment, Stage, Strategy as Flushing, Tlbi, Walks,
};
use barewire_iommu_model::{FlushFailure, Machine, Naive, Shape, Shortage, Violation};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError};

use crate::bench::{Kind, machine};
use crate::random::flushing;

const CONTEXT: Context = Context::Asid(21);

/// An allocator that tells the judge of mappings before they are made, and of released addresses.
struct WatchedAllocator<'m> {
    machine: &'m Machine,
    context: Context,
    window: IovaWindow<Vec<u64>>,
    map: RefCell<Naive>,
    /// The mappings about to be made.
    wanted: RefCell<Vec<(u64, u64, Kind)>>,
    stage: Stage,
    given_back: Cell<u64>,
}

impl WatchedAllocator<'_> {
    fn announce(&self, iova: u64) {
        let mut next = self.map.borrow().clone();
        let mut at = iova;
        for (phys, len, kind) in self.wanted.borrow().iter() {
            next.map(at, *phys, *len, kind.meaning(self.stage)).expect("these addresses are free");
            at += len;
        }
        self.machine.begin(self.context, next);
    }
}

// SAFETY: every method is the window's.
unsafe impl IovaAllocator for WatchedAllocator<'_> {
    fn alloc(&self, size: u64) -> Option<Iova> {
        let iova = self.window.alloc(size)?;
        self.announce(iova.0);
        Some(iova)
    }

    fn claim(&self, range: Range<Iova>) -> Result<(), ClaimError> {
        // These tests claim nothing. It is the domain, which looks for empty tables.
        self.window.claim(range)
    }

    unsafe fn release(&self, range: Range<Iova>) {
        self.given_back.set(self.given_back.get() + 1);
        self.machine.given_back(self.context, range.start.0..range.end.0);
        // SAFETY: the caller's promise is the same.
        unsafe { self.window.release(range) };
    }
}

/// Hardware that may say that it has invalidated when it has not.
struct Hardware<'m> {
    machine: &'m Machine,
    lies: Cell<bool>,
}

impl Invalidate for &Hardware<'_> {
    fn flush(&self, context: Context, operations: &[Tlbi]) -> Result<(), FlushError> {
        if self.lies.get() { Ok(()) } else { self.machine.flush(context, operations) }
    }

    fn has_ranges(&self) -> bool {
        self.machine.has_ranges()
    }
}

type Watching<'w, 'm> = Domain<&'m Machine, &'w Hardware<'m>, &'w WatchedAllocator<'m>, 8>;

/// A domain, its mappings, and the ranges whose flush failed.
struct Owner<'w, 'm> {
    machine: &'m Machine,
    watched: &'w WatchedAllocator<'m>,
    domain: Watching<'w, 'm>,
    context: Context,
    page: u64,
    mapped: Vec<Mapped>,
    held: Vec<Held>,
    next_phys: u64,
}

fn context(config: &Config) -> Context {
    match config.stage {
        Stage::One => CONTEXT,
        Stage::Two => Context::Vmid(21),
    }
}

/// Runs `test` on a domain, then tears everything down and looks for what is left.
fn with_owner<R>(
    config: Config,
    coherent: bool,
    tables: u64,
    test: impl FnOnce(&mut Owner<'_, '_>, &Hardware<'_>) -> R,
) -> R {
    let machine = machine(&config, coherent);
    let (context, shape) = (context(&config), Shape::new(&config));
    // Two tables of the last level before a boundary of the level above, and `tables` behind it.
    let middle = if shape.start < 2 { shape.span(1) } else { 6 * shape.span(2) };
    let (start, end) = (middle - 2 * shape.span(2), middle + tables * shape.span(2));
    let storage = vec![0; ((end - start) / shape.span(3)).div_ceil(64) as usize];
    let watched = WatchedAllocator {
        machine: &machine,
        context,
        window: IovaWindow::new(Iova(start)..Iova(end), config.granule, storage),
        map: RefCell::default(),
        wanted: RefCell::default(),
        stage: config.stage,
        given_back: Cell::new(0),
    };
    let hardware = Hardware { machine: &machine, lies: Cell::new(false) };
    let domain =
        Domain::with_queue(config, context, &machine, &hardware, &watched).expect("it is valid");
    machine.attach(context, domain.root(), shape, Attributes::MAIR);
    let mut owner = Owner {
        machine: &machine,
        watched: &watched,
        domain,
        context,
        page: shape.span(3),
        mapped: Vec::new(),
        held: Vec::new(),
        next_phys: 1 << 34,
    };
    let result = test(&mut owner, &hardware);
    let Owner { domain, .. } = owner;
    machine.detach(context);
    drop(domain);
    result
}

impl Owner<'_, '_> {
    /// Maps pieces of that many pages each; a piece continues the one before or not.
    fn map(&mut self, pieces: &[(u64, bool)], kind: Kind) -> bool {
        let mut segments = Vec::new();
        let mut wanted = Vec::new();
        for &(pages, continues) in pieces {
            self.next_phys += if continues { 0 } else { 3 * self.page };
            let len = pages * self.page;
            segments.push(Segment { phys: PhysAddr(self.next_phys), len });
            wanted.push((self.next_phys, len, kind));
            self.next_phys += len;
        }
        *self.watched.wanted.borrow_mut() = wanted;
        let done = self.domain.map_sg(&segments, kind.attributes(self.watched.stage));
        self.after_mapping(done, kind)
    }

    /// Maps one piece where blocks can be used.
    fn map_block(&mut self, bytes: u64, kind: Kind) -> bool {
        self.next_phys = self.next_phys.next_multiple_of(bytes.next_power_of_two());
        let phys = self.next_phys;
        self.next_phys += bytes;
        *self.watched.wanted.borrow_mut() = vec![(phys, bytes, kind)];
        let done = self.domain.map(PhysAddr(phys), bytes, kind.attributes(self.watched.stage));
        self.after_mapping(done, kind)
    }

    fn after_mapping(&mut self, done: Result<Mapped, DomainMapError>, kind: Kind) -> bool {
        let result = match done {
            Ok(mapped) => {
                let mut map = self.watched.map.borrow_mut();
                let mut at = mapped.iova().0;
                for (phys, len, _) in self.watched.wanted.borrow().iter() {
                    map.map(at, *phys, *len, kind.meaning(self.watched.stage)).expect("it is free");
                    at += len;
                }
                self.mapped.push(mapped);
                true
            }
            Err(DomainMapError::Held { error: MapError::OutOfMemory(_), held }) => {
                self.held.push(held);
                false
            }
            Err(DomainMapError::Exhausted(_) | DomainMapError::Table(MapError::OutOfMemory(_))) => {
                false
            }
            Err(other) => panic!("{other:?}"),
        };
        self.machine.end(self.context, self.watched.map.borrow().clone());
        result
    }

    fn unmap(&mut self, which: usize) {
        if self.mapped.is_empty() {
            return;
        }
        let mapped = self.mapped.swap_remove(which % self.mapped.len());
        let range = mapped.range().start.0..mapped.range().end.0;
        self.watched.map.borrow_mut().unmap(range.clone());
        self.machine.begin(self.context, self.watched.map.borrow().clone());
        match self.domain.unmap(mapped) {
            Ok(unmapped) => {
                assert_eq!(unmapped.bytes, range.end - range.start);
                if self.domain.completed(unmapped.ticket) {
                    // The memory belongs to its owner again, so no TLB may hold an entry for it.
                    self.machine.given_back(self.context, range);
                }
            }
            Err(DomainUnmapError::Held(held)) => self.held.push(held),
            Err(other) => panic!("{other:?}"),
        }
        self.machine.end(self.context, self.watched.map.borrow().clone());
    }

    fn reclaim(&mut self) {
        if let Err(held) = self.domain.reclaim() {
            self.held.push(held);
        }
    }

    fn retry(&mut self) {
        for held in std::mem::take(&mut self.held) {
            if let Err(held) = self.domain.retry(held) {
                self.held.push(held);
            }
        }
    }

    /// If nothing waits, checks that exactly the mapped entries are cached, and that all tables are
    /// hooked.
    fn settle(&self) {
        if self.domain.waiting() == (0, 0) && self.held.is_empty() {
            self.machine.settle(self.context);
            assert_eq!(self.machine.tables(), self.machine.hooked(), "tables are lost");
        }
    }

    /// Unmaps all, and asserts that all tables and addresses were released.
    fn clear(&mut self) {
        self.machine.set_shortage(Shortage::Never);
        while !self.mapped.is_empty() {
            self.unmap(0);
        }
        // An injected failure may still occur here.
        for _ in 0..2 {
            self.retry();
            let _ = self.domain.flush();
        }
        assert!(self.held.is_empty());
        self.settle();
        assert_eq!(self.domain.waiting(), (0, 0));
        assert_eq!(self.domain.live_leaves(), 0);
        // All empty tables are freed but the root: no other is used or reserved.
        for _ in 0..2 {
            self.reclaim();
            self.retry();
        }
        assert!(self.held.is_empty());
        self.settle();
        assert_eq!(self.machine.tables(), 1);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Map(Vec<(u64, bool)>, Kind),
    Block(u64, Kind),
    Unmap(usize),
    Flush,
    Poll(u64),
    Policy(Policy),
    FailFlush(u64, FlushFailure),
    Retry,
    Reclaim,
    Shortage(u64),
}

fn policy() -> impl Strategy<Value = Policy> {
    let walks = prop_oneof![2 => Just(Walks::Gathered), 1 => Just(Walks::EachTable)];
    let deferred = prop::option::of((flushing(), 1..10_usize, 1..4_u64).prop_map(
        |(strategy, entries, age_ticks)| Deferred {
            bounds: Bounds { entries, bytes: 1 << 26, age_ticks },
            strategy,
        },
    ));
    (flushing(), walks, deferred).prop_map(|(strategy, walks, deferred)| Policy {
        strategy,
        walks,
        deferred,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![5 => Just(Kind::Plain), 1 => Just(Kind::ReadOnly)];
    let pages = prop_oneof![8 => 1..6_u64, 2 => 1..200_u64, 1 => 500..520_u64];
    prop_oneof![
        8 => (prop::collection::vec((pages, any::<bool>()), 1..12), kind.clone())
            .prop_map(|(pieces, kind)| Step::Map(pieces, kind)),
        2 => (1..4_u64, kind).prop_map(|(tables, kind)| Step::Block(tables, kind)),
        11 => any::<usize>().prop_map(Step::Unmap),
        1 => Just(Step::Flush),
        2 => (0..3_u64).prop_map(Step::Poll),
        1 => policy().prop_map(Step::Policy),
        1 => (0..3_u64, prop_oneof![Just(FlushFailure::Before), Just(FlushFailure::After)])
            .prop_map(|(after, how)| Step::FailFlush(after, how)),
        2 => Just(Step::Retry),
        1 => Just(Step::Reclaim),
        1 => (0..4_u64).prop_map(Step::Shortage),
    ]
}

fn run(config: Config, coherent: bool, steps: &[Step]) -> Result<(), TestCaseError> {
    with_owner(config, coherent, 4, |owner, _| {
        let table = Shape::new(&config).span(2);
        let mut now_ticks = 0;
        for step in steps {
            match step {
                Step::Map(pieces, kind) => drop(owner.map(pieces, *kind)),
                Step::Block(tables, kind) => drop(owner.map_block(tables * table, *kind)),
                Step::Unmap(which) => owner.unmap(*which),
                Step::Flush => drop(owner.domain.flush()),
                Step::Poll(more) => {
                    now_ticks += more;
                    let _ = owner.domain.poll(now_ticks);
                }
                Step::Policy(policy) => drop(owner.domain.set_policy(*policy)),
                Step::FailFlush(after, how) => owner.machine.fail_flush(*after, *how),
                Step::Retry => owner.retry(),
                Step::Reclaim => owner.reclaim(),
                Step::Shortage(after) => owner.machine.set_shortage(Shortage::Once(*after)),
            }
            owner.settle();
            let first = owner.machine.violations().first().map(ToString::to_string);
            prop_assert!(first.is_none(), "{}, by {:?}", first.unwrap_or_default(), step);
        }
        owner.clear();
        owner.machine.assert_sound();
        Ok(())
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 12,
        rng_seed: RngSeed::Fixed(0xd0),
        failure_persistence: None,
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    })]

    /// A thousand calls, policies changing under way, flushes failing, memory running out.
    #[test]
    #[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
    fn nothing_is_given_back_before_its_invalidation(
        steps in prop::collection::vec(step(), 1000..=1000),
        first in policy(),
        coherent: bool,
        two: bool,
    ) {
        let (stage, input_bits) = if two { (Stage::Two, 40) } else { (Stage::One, 39) };
        let config = Config { stage, input_bits, ..Config::default() };
        let mut all = vec![Step::Policy(first)];
        all.extend(steps);
        run(config, coherent, &all)?;
    }

    #[test]
    #[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
    fn nor_with_larger_granules(
        steps in prop::collection::vec(step(), 60..=60),
        first in policy(),
        coherent: bool,
        large: bool,
    ) {
        let granule = if large { Granule::Size64K } else { Granule::Size16K };
        let config = Config { granule, ..Config::default() };
        let mut all = vec![Step::Policy(first)];
        all.extend(steps);
        run(config, coherent, &all)?;
    }
}

/// 32 MiB of pages from all over: what the thread counted, on hardware that would notice.
#[test]
#[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
fn thirty_two_mebibytes_cost_8192_invalidations_16_or_1() {
    let tables: u64 = 16;
    let cases = [
        (Flushing::ByPage, Walks::EachTable, 512 * tables, tables),
        (Flushing::ByPage, Walks::Gathered, 512 * tables, 1),
        (Flushing::ByContext, Walks::EachTable, tables, tables),
        (Flushing::ByContext, Walks::Gathered, 1, 1),
        (Flushing::ByRange, Walks::Gathered, 1, 1),
    ];
    let config = Config { input_bits: 39, ..Config::default() };
    for (strategy, walks, commands, flushes) in cases {
        with_owner(config, true, 16, |owner, _| {
            owner.domain.set_policy(Policy { strategy, walks, deferred: None }).expect("no flush");
            assert!(owner.map(&vec![(1, false); 512 * tables as usize], Kind::Plain));
            let before = owner.machine.counts();
            owner.unmap(0);
            let after = owner.machine.counts();
            let counted = (after.commands - before.commands, after.flushes - before.flushes);
            assert_eq!(counted, (commands, flushes), "{strategy:?} {walks:?}");
            owner.clear();
            owner.machine.assert_sound();
        });
    }
}

/// A page leaves an empty table, and a block follows there: with memory running out at every
/// allocation, and with each flush failing.
#[test]
#[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
fn a_block_takes_the_place_of_an_empty_table() {
    for granule in [Granule::Size4K, Granule::Size16K, Granule::Size64K] {
        for coherent in [true, false] {
            let config = Config { granule, ..Config::default() };
            let (shape, kind) = (Shape::new(&config), Kind::Plain);
            let levels = |flush: Option<FlushFailure>, shortage| {
                with_owner(config, coherent, 4, |owner, _| {
                    assert!(owner.map(&[(1, false)], kind));
                    let at = owner.mapped[0].iova().0;
                    owner.unmap(0);
                    owner.machine.set_shortage(shortage);
                    if let Some(how) = flush {
                        owner.machine.fail_flush(0, how);
                    }
                    let tables = owner.machine.tables();
                    let done = owner.map_block(shape.span(2), kind);
                    assert!(done || shortage != Shortage::Never);
                    let leaf = owner.machine.walk(owner.context, at).ok();
                    if flush.is_none() {
                        assert_eq!(leaf.map(|leaf| leaf.level), Some(2), "no table is needed");
                        assert_eq!(owner.machine.tables(), tables - 1, "the table is freed");
                    }
                    owner.settle();
                    owner.clear();
                    owner.machine.assert_sound();
                    leaf.map(|leaf| leaf.level)
                })
            };
            for shortage in [Shortage::Never, Shortage::From(0)] {
                assert_eq!(levels(None, shortage), Some(2));
                for how in [FlushFailure::Before, FlushFailure::After] {
                    assert_eq!(
                        levels(Some(how), shortage),
                        Some(3),
                        "the pages lie in the same table"
                    );
                }
            }
        }
    }
}

/// A map runs out of tables while an empty one is left: it is freed, and the map tries again. Each of
/// the flushes on the way may fail.
#[test]
#[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
fn tables_that_run_out_are_reclaimed() {
    let failures = [FlushFailure::Before, FlushFailure::After];
    let failures = || failures.into_iter().flat_map(|how| (0..3).map(move |after| (after, how)));
    let mut held = 0;
    for coherent in [true, false] {
        for shortage in 0..4 {
            for failure in [None].into_iter().chain(failures().map(Some)) {
                with_owner(Config::default(), coherent, 8, |owner, _| {
                    // An empty table, and a block so that the next addresses are elsewhere.
                    assert!(owner.map(&[(1, false)], Kind::Plain));
                    assert!(owner.map_block(owner.page << 9, Kind::Plain));
                    owner.unmap(0);
                    let before = owner.machine.tables();
                    owner.machine.set_shortage(Shortage::Once(shortage));
                    if let Some((after, how)) = failure {
                        owner.machine.fail_flush(after, how);
                    }
                    // Beyond the boundary: two tables, and one of the level above.
                    let done = owner.map(&[(1, false); 513], Kind::Plain);
                    if failure.is_none() {
                        assert!(done, "there was an empty table");
                        let freed = usize::from(shortage < 3);
                        assert_eq!(owner.machine.tables(), before + 3 - freed);
                    }
                    assert_eq!(done, owner.held.is_empty());
                    held += usize::from(!done);
                    owner.settle();
                    owner.retry();
                    owner.clear();
                    owner.machine.assert_sound();
                });
            }
        }
    }
    assert!(held >= 8, "{held}");
}

/// Hardware that does not invalidate is found out when an empty table becomes a block, and when it
/// is freed.
#[test]
#[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
fn a_skipped_invalidation_of_an_empty_table_is_found() {
    for block in [true, false] {
        for lies in [true, false] {
            with_owner(Config::default(), true, 2, |owner, hardware| {
                assert!(owner.map(&[(1, false)], Kind::Plain));
                owner.unmap(0);
                owner.machine.assert_sound();
                hardware.lies.set(lies);
                if block {
                    assert!(owner.map_block(owner.page << 9, Kind::Plain));
                } else {
                    assert!(owner.domain.reclaim().expect("it says so") > 0);
                }
                hardware.lies.set(false);
                let found = owner.machine.take_violations();
                let freed = |v: &Violation| matches!(v, Violation::FreedCached { .. });
                let conflict = |v: &Violation| matches!(v, Violation::Conflict { .. });
                assert_eq!(found.iter().any(freed), lies, "{found:?}");
                assert_eq!(found.iter().any(conflict), lies && block, "{found:?}");
            });
        }
    }
}

/// With every policy the judge notices hardware that ignores invalidations: these tests can fail.
#[test]
#[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
fn a_skipped_invalidation_is_found_under_every_policy() {
    let deferred = Some(Deferred::default());
    for strategy in [Flushing::ByPage, Flushing::ByRange, Flushing::ByContext] {
        for walks in [Walks::Gathered, Walks::EachTable] {
            for deferred in [None, deferred] {
                for pages in [1, 512] {
                    with_owner(Config::default(), true, 2, |owner, hardware| {
                        let policy = Policy { strategy, walks, deferred };
                        owner.domain.set_policy(policy).expect("nothing waits");
                        assert!(owner.map(&vec![(1, false); pages], Kind::Plain));
                        owner.machine.assert_sound();
                        hardware.lies.set(true);
                        owner.unmap(0);
                        if deferred.is_some() {
                            // Each table is still flushed by itself if that is the policy.
                            if walks == Walks::Gathered {
                                owner.machine.assert_sound();
                            }
                            owner.domain.flush().expect("it says so");
                        }
                        let found = owner.machine.take_violations();
                        let back = |v: &Violation| matches!(v, Violation::GivenBack { .. });
                        assert!(found.iter().any(back), "{policy:?}: {found:?}");
                        let freed = |v: &Violation| matches!(v, Violation::FreedCached { .. });
                        assert_eq!(found.iter().any(freed), pages == 512, "{policy:?}: {found:?}");
                        hardware.lies.set(false);
                    });
                }
            }
        }
    }
}
