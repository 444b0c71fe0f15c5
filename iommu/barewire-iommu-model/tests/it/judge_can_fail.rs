//! Every kind of violation is committed on purpose, by hand-written stores, and must be reported;
//! beside each stands the same done well, which must not be.
#![allow(unsafe_code, reason = "a pool is reached by unsafe methods; the machine checks each call")]

use barewire_iommu::{
    Access, Attributes, Config, Context, FlushError, Invalidate, Iova, PhysAddr, Pool, Stage, Tlbi,
};
use barewire_iommu_model::{
    Fetching, Flaw, FlushFailure, Machine, Meaning, Naive, Options, Shape, Violation,
};

const CONTEXT: Context = Context::Asid(7);
const PAGE: u64 = 0x1000;
const BLOCK: u64 = 0x20_0000;
const TABLE: u64 = 0b11;
const LEAF: u64 = Attributes::new(Stage::One, Access::ReadWrite).bits();

/// 32 bits, 4 KiB: a root of level 1 with four entries, and a table of level 2 in its first.
struct Actor<'m> {
    machine: &'m Machine,
    root: PhysAddr,
    level_2: PhysAddr,
    map: Naive,
}

fn meaning() -> Meaning {
    Meaning::normal(Stage::One, Access::ReadWrite)
}

fn store(machine: &Machine, table: PhysAddr, index: usize, value: u64) {
    // SAFETY: the machine checks tables and entries, and reports what it does not know.
    unsafe { machine.store(table, index, value) }
}

fn free(machine: &Machine, table: PhysAddr, bytes: usize) {
    // SAFETY: as in `store`.
    unsafe { machine.free(table, bytes) }
}

/// A table with these entries, which no walker can reach yet, and whose words are clean.
fn table(machine: &Machine, bytes: usize, entries: &[(usize, u64)]) -> PhysAddr {
    let table = machine.alloc(bytes).expect("there is memory");
    let fill = |words: &mut [u64]| {
        words.fill(0);
        for (index, value) in entries {
            words[*index] = *value;
        }
    };
    // SAFETY: as in `store`; no other code knows the table.
    unsafe { machine.unpublished(table, bytes, fill) };
    machine.clean(table, 0..bytes / 8);
    machine.barrier();
    table
}

impl<'m> Actor<'m> {
    fn new(machine: &'m Machine) -> Self {
        let level_2 = table(machine, 4096, &[]);
        let root = table(machine, 32, &[(0, level_2.0 | TABLE)]);
        let config = Config { input_bits: 32, ..Config::default() };
        machine.attach(CONTEXT, root, Shape::new(&config), Attributes::MAIR);
        machine.assert_sound();
        Self { machine, root, level_2, map: Naive::new() }
    }

    /// An entry of level 2, cleaned.
    fn set(&self, index: usize, value: u64) {
        self.put(self.level_2, index, value);
    }

    fn put(&self, table: PhysAddr, index: usize, value: u64) {
        store(self.machine, table, index, value);
        self.machine.clean(table, index..index + 1);
    }

    fn mapping(&mut self, iova: u64, phys: u64, len: u64, act: impl FnOnce(&Self)) {
        self.map.map(iova, phys, len, meaning()).expect("it is free");
        self.operation(act);
    }

    fn unmapping(&mut self, iova: u64, len: u64, act: impl FnOnce(&Self)) {
        self.map.unmap(iova..iova + len);
        self.operation(act);
    }

    fn operation(&self, act: impl FnOnce(&Self)) {
        self.machine.begin(CONTEXT, self.map.clone());
        act(self);
        self.machine.barrier();
        self.machine.end(CONTEXT, self.map.clone());
    }

    /// Maps page 5 of a new table at entry 1 of level 2. Returns the table.
    fn page_in_table(&mut self) -> PhysAddr {
        let level_3 = table(self.machine, 4096, &[(5, 0x5000 | LEAF | 3)]);
        self.mapping(BLOCK + 5 * PAGE, 0x5000, PAGE, |actor| actor.set(1, level_3.0 | TABLE));
        self.machine.settle(CONTEXT);
        self.machine.assert_sound();
        level_3
    }

    fn flush(&self, context: Context, operation: Tlbi) {
        self.machine.flush(context, &[operation]).expect("nothing fails unasked");
    }

    fn violations(&self) -> Vec<Violation> {
        self.machine.take_violations()
    }
}

fn page(iova: u64, leaf: bool, level: Option<u8>) -> Tlbi {
    Tlbi::Pages { iova: Iova(iova), stride: 12, count: 1, leaf, level }
}

fn ways() -> [Machine; 2] {
    [true, false].map(|coherent| Machine::new(Options { coherent, ..Options::default() }))
}

macro_rules! assert_reports {
    ($violations:expr, $($kind:pat),+ $(,)?) => {{
        let violations = $violations;
        $(
            let found = violations.iter().any(|violation| matches!(violation, $kind));
            assert!(found, "no {} in {violations:#?}", stringify!($kind));
        )+
    }};
}

#[test]
fn a_page_mapped_and_unmapped_well_is_sound() {
    for machine in ways() {
        let mut actor = Actor::new(&machine);
        let level_3 = actor.page_in_table();
        assert_eq!(machine.access(CONTEXT, BLOCK + 5 * PAGE).unwrap().output, 0x5000);
        actor.unmapping(BLOCK + 5 * PAGE, PAGE, |actor| actor.put(level_3, 5, 0));
        actor.flush(CONTEXT, page(BLOCK + 5 * PAGE, true, Some(3)));
        machine.settle(CONTEXT);
        machine.given_back(CONTEXT, BLOCK..2 * BLOCK);
        assert_eq!(machine.access(CONTEXT, BLOCK + 5 * PAGE), None);
        // And the table too.
        actor.operation(|actor| actor.set(1, 0));
        actor.flush(CONTEXT, granules(BLOCK, 512, false));
        free(&machine, level_3, 4096);
        machine.settle(CONTEXT);
        machine.assert_sound();
        machine.detach(CONTEXT);
        actor.flush(CONTEXT, Tlbi::Context);
        assert!(machine.tlb_is_empty(CONTEXT));
        free(&machine, actor.level_2, 4096);
        free(&machine, actor.root, 32);
        machine.assert_sound();
        assert_eq!((machine.tables(), machine.hooked()), (0, 0));
    }
}

/// An invalidation of `count` granules, one by one.
fn granules(iova: u64, count: u64, leaf: bool) -> Tlbi {
    Tlbi::Pages { iova: Iova(iova), stride: 12, count, leaf, level: None }
}

/// A page is unmapped, and only `operations` are flushed, in `context`: is it still reached?
fn stale_after(context: Context, operations: &[Tlbi]) -> bool {
    let machine = Machine::new(Options { ranges: true, ..Options::default() });
    let mut actor = Actor::new(&machine);
    let level_3 = actor.page_in_table();
    let other = table(&machine, 32, &[]);
    let config = Config { input_bits: 32, ..Config::default() };
    machine.attach(Context::Asid(8), other, Shape::new(&config), Attributes::MAIR);
    machine.attach(Context::Vmid(7), table(&machine, 64, &[]), Shape::new(&config), 0);
    let pages = BLOCK + 5 * PAGE..BLOCK + 6 * PAGE;
    actor.unmapping(pages.start, PAGE, |actor| actor.put(level_3, 5, 0));
    machine.flush(context, operations).unwrap();
    machine.settle(CONTEXT);
    let violations = actor.violations();
    machine.given_back(CONTEXT, pages.clone());
    let given_back = Violation::GivenBack { context: CONTEXT, iova: pages.start };
    let raw = 0x5000 | LEAF | 3;
    let stale = Violation::Stale { context: CONTEXT, iova: pages.start, level: 3, raw };
    if violations.is_empty() {
        machine.assert_sound();
        assert_eq!(machine.access(CONTEXT, pages.start), None);
        return false;
    }
    assert_eq!(violations, std::slice::from_ref(&stale));
    assert_eq!(actor.violations(), [given_back]);
    assert_eq!(machine.access(CONTEXT, pages.start).unwrap().output, 0x5000);
    assert_eq!(actor.violations(), [stale], "an access is judged too");
    true
}

#[test]
fn skipped_wrong_and_short_invalidations_leave_stale_pages() {
    let at = BLOCK + 5 * PAGE;
    let range = |iova, pages, level| Tlbi::Range {
        iova: Iova(iova),
        page_shift: 12,
        pages,
        leaf: true,
        level,
    };
    assert!(stale_after(CONTEXT, &[]), "skipped");
    for wrong in [Context::Asid(8), Context::Vmid(7)] {
        for operation in [Tlbi::Context, page(at, false, None)] {
            assert!(stale_after(wrong, &[operation]), "{wrong:?}");
        }
    }
    assert!(stale_after(CONTEXT, &[page(at - PAGE, true, None)]), "the page before");
    assert!(stale_after(CONTEXT, &[page(at + PAGE, false, None)]), "the page after");
    assert!(stale_after(CONTEXT, &[page(at, true, Some(2))]), "wrong level");
    assert!(stale_after(CONTEXT, &[range(at, 1, Some(2))]), "wrong level");
    assert!(stale_after(CONTEXT, &[range(at - 2 * PAGE, 2, None)]), "ends before");
    assert!(stale_after(CONTEXT, &[range(at + PAGE, 64, None)]), "begins after");
    let pages =
        |stride, count| Tlbi::Pages { iova: Iova(BLOCK), stride, count, leaf: true, level: None };
    assert!(stale_after(CONTEXT, &[pages(21, 1)]), "a stride for blocks where pages were");
    assert!(stale_after(CONTEXT, &[pages(12, 5)]), "one too few");

    for right in [
        Tlbi::Context,
        page(at, true, Some(3)),
        page(at, true, None),
        page(at, false, None),
        range(at, 1, Some(3)),
        range(at - PAGE, 2, None),
        pages(12, 6),
    ] {
        assert!(!stale_after(CONTEXT, &[right]), "{right:?}");
    }
}

/// A table with a page in it is unhooked, and only `operations` are flushed before it is freed.
fn after_unhooking(operations: &[Tlbi]) -> Vec<Violation> {
    let machine = Machine::new(Options::default());
    let mut actor = Actor::new(&machine);
    let level_3 = actor.page_in_table();
    actor.unmapping(BLOCK, BLOCK, |actor| actor.set(1, 0));
    machine.flush(CONTEXT, operations).unwrap();
    free(&machine, level_3, 4096);
    machine.settle(CONTEXT);
    actor.violations()
}

#[test]
fn a_table_is_not_freed_while_walks_are_cached() {
    let all = |leaf| granules(BLOCK, 512, leaf);
    assert_reports!(
        after_unhooking(&[]),
        Violation::FreedCached { iova: BLOCK, .. },
        Violation::Stale { .. },
        Violation::StaleWalk { level: 3, .. },
    );
    // The leaves are gone, were fetched again through the cached walk, and are stale as well.
    assert_reports!(
        after_unhooking(&[all(true)]),
        Violation::FreedCached { .. },
        Violation::Stale { .. },
        Violation::StaleWalk { .. },
    );
    // One address for the table, without the leaf hint: the walks of its other granules stay, and through
    // them the leaf.
    assert_reports!(
        after_unhooking(&[page(BLOCK, false, None)]),
        Violation::FreedCached { .. },
        Violation::Stale { .. },
        Violation::StaleWalk { .. },
    );
    // All granules but the page's, and all but one that has no page.
    let without = |n| [granules(BLOCK, n, false), granules(BLOCK + (n + 1) * PAGE, 511 - n, false)];
    assert_reports!(
        after_unhooking(&without(5)),
        Violation::FreedCached { .. },
        Violation::Stale { .. },
        Violation::StaleWalk { .. },
    );
    let violations = after_unhooking(&without(400));
    assert_reports!(&violations, Violation::FreedCached { .. }, Violation::StaleWalk { .. });
    assert!(!violations.iter().any(|found| matches!(found, Violation::Stale { .. })));
    assert_eq!(after_unhooking(&[all(false)]), []);
    assert_eq!(after_unhooking(&[Tlbi::Context]), []);
}

#[test]
fn a_table_is_not_freed_while_it_is_hooked() {
    for machine in ways() {
        let mut actor = Actor::new(&machine);
        let level_3 = actor.page_in_table();
        actor.flush(CONTEXT, Tlbi::Context);
        free(&machine, level_3, 4096);
        assert_reports!(
            actor.violations(),
            Violation::FreedHooked { iova: BLOCK, .. },
            Violation::FreedCached { .. },
        );
        actor.flush(CONTEXT, page(BLOCK, true, None));
        assert_reports!(actor.violations(), Violation::NoTable { iova: BLOCK, .. });
    }
    // Unhooked, but only in the processor's cache.
    let machine = Machine::new(Options { coherent: false, ..Options::default() });
    let mut actor = Actor::new(&machine);
    let level_3 = actor.page_in_table();
    actor.unmapping(BLOCK, BLOCK, |actor| store(&machine, actor.level_2, 1, 0));
    actor.flush(CONTEXT, Tlbi::Context);
    free(&machine, level_3, 4096);
    assert_reports!(
        actor.violations(),
        Violation::FreedHooked { .. },
        Violation::NotCleaned { .. }
    );
}

#[test]
fn frees_and_accesses_are_watched() {
    let machine = Machine::new(Options::default());
    let actor = Actor::new(&machine);
    let spare = table(&machine, 4096, &[]);
    free(&machine, spare, 8192);
    free(&machine, spare, 4096);
    free(&machine, spare, 4096);
    free(&machine, PhysAddr(0x1000), 4096);
    store(&machine, spare, 0, 0);
    store(&machine, PhysAddr(0x1000), 0, 0);
    store(&machine, actor.root, 4, 0);
    assert_eq!(
        actor.violations(),
        [
            Violation::FreeOfUnknown { table: spare.0, bytes: 8192 },
            Violation::FreeOfFreed { table: spare.0 },
            Violation::FreeOfUnknown { table: 0x1000, bytes: 4096 },
            Violation::AccessToFreed { table: spare.0 },
            Violation::AccessToUnknown { table: 0x1000 },
            Violation::OutOfTable { table: actor.root.0, index: 4 },
        ]
    );
    // SAFETY: the machine checks the call, which is a wrong one.
    unsafe { machine.unpublished(actor.level_2, 4096, |words| words.fill(0)) };
    assert_eq!(actor.violations(), [Violation::Unpublished { table: actor.level_2.0 }]);
}

#[test]
fn valid_to_valid_needs_a_break() {
    for machine in ways() {
        let mut actor = Actor::new(&machine);
        let level_3 = actor.page_in_table();
        // A page becomes another page.
        actor.map.unmap(BLOCK + 5 * PAGE..BLOCK + 6 * PAGE);
        actor.mapping(BLOCK + 5 * PAGE, 0x9000, PAGE, |actor| {
            actor.put(level_3, 5, 0x9000 | LEAF | 3);
        });
        let reported = actor.violations();
        assert_reports!(
            &reported,
            Violation::Replaced { level: 3, .. },
            Violation::Conflict { .. }
        );
        actor.flush(CONTEXT, page(BLOCK + 5 * PAGE, true, None));
        // Broken, but not invalidated before it is made.
        actor.unmapping(BLOCK + 5 * PAGE, PAGE, |actor| actor.put(level_3, 5, 0));
        assert_eq!(actor.violations(), []);
        actor.mapping(BLOCK + 5 * PAGE, 0x5000, PAGE, |actor| {
            actor.put(level_3, 5, 0x5000 | LEAF | 3);
        });
        assert_reports!(
            actor.violations(),
            Violation::Conflict { cached: (3, _), made: (3, _), .. }
        );
        // A table becomes another table.
        let other = table(&machine, 4096, &[(5, 0x5000 | LEAF | 3)]);
        actor.operation(|actor| actor.set(1, other.0 | TABLE));
        assert_reports!(
            actor.violations(),
            Violation::Replaced { level: 2, .. },
            Violation::Conflict { .. }
        );
        // The table is broken, not invalidated, and a block is made there.
        actor.unmapping(BLOCK, BLOCK, |actor| actor.set(1, 0));
        actor.mapping(BLOCK, BLOCK, BLOCK, |actor| actor.set(1, BLOCK | LEAF | 1));
        assert_reports!(actor.violations(), Violation::Conflict { made: (2, _), .. });
    }
}

/// A block of 2 MiB becomes 512 pages, of which one leads `wrong` bytes elsewhere.
fn split(bbml2: bool, wrong: u64) -> Vec<Violation> {
    let machine = Machine::new(Options { bbml2, ..Options::default() });
    let mut actor = Actor::new(&machine);
    actor.mapping(BLOCK, BLOCK, BLOCK, |actor| actor.set(1, BLOCK | LEAF | 1));
    machine.settle(CONTEXT);
    machine.assert_sound();
    let mut entries: Vec<(usize, u64)> =
        (0..512).map(|page| (page, (BLOCK + page as u64 * PAGE) | LEAF | 3)).collect();
    entries[77].1 += wrong;
    let level_3 = table(&machine, 4096, &entries);
    actor.operation(|actor| actor.set(1, level_3.0 | TABLE));
    actor.violations()
}

#[test]
fn a_block_may_become_a_table_only_with_bbml2() {
    assert_eq!(split(true, 0), []);
    assert_reports!(
        split(false, 0),
        Violation::Replaced { level: 2, .. },
        Violation::Conflict { .. }
    );
    assert_reports!(
        split(true, PAGE),
        Violation::Replaced { .. },
        Violation::Conflict { .. },
        Violation::Torn { level: 3, .. },
        Violation::Lost { .. },
        Violation::Differs { .. },
    );
    // A page is missing in the table that takes the block's place, and should not be.
    let machine = Machine::new(Options { bbml2: true, ..Options::default() });
    let mut actor = Actor::new(&machine);
    actor.mapping(BLOCK, BLOCK, BLOCK, |actor| actor.set(1, BLOCK | LEAF | 1));
    let level_3 = table(&machine, 4096, &[(1, (BLOCK + PAGE) | LEAF | 3)]);
    actor.unmapping(BLOCK, PAGE, |actor| actor.set(1, level_3.0 | TABLE));
    assert_reports!(actor.violations(), Violation::Lost { .. }, Violation::Differs { .. });
}

#[test]
fn while_devices_are_silent_a_block_may_be_split_if_it_is_flushed_before_they_speak() {
    for flushed in [true, false] {
        let machine = Machine::new(Options::default());
        let mut actor = Actor::new(&machine);
        actor.mapping(BLOCK, BLOCK, BLOCK, |actor| actor.set(1, BLOCK | LEAF | 1));
        machine.settle(CONTEXT);
        machine.quiesce(CONTEXT, true);
        let level_3 = table(&machine, 4096, &[(0, BLOCK | LEAF | 3)]);
        actor.unmapping(BLOCK + PAGE, BLOCK - PAGE, |actor| actor.set(1, level_3.0 | TABLE));
        if flushed {
            actor.flush(CONTEXT, Tlbi::Context);
        }
        assert_eq!(actor.violations(), []);
        machine.quiesce(CONTEXT, false);
        machine.settle(CONTEXT);
        let reported = actor.violations();
        if flushed {
            assert_eq!(reported, []);
        } else {
            assert_reports!(reported, Violation::Conflict { .. }, Violation::Stale { .. });
        }
    }
}

#[test]
fn stores_in_between_are_seen() {
    for machine in ways() {
        let mut actor = Actor::new(&machine);
        // A table that is hooked before it is filled.
        let level_3 = machine.alloc(4096).expect("there is memory");
        actor.mapping(BLOCK, 0x5000, PAGE, |actor| {
            actor.set(1, level_3.0 | TABLE);
            for index in 0..512 {
                actor.put(level_3, index, if index == 0 { 0x5000 | LEAF | 3 } else { 0 });
            }
        });
        assert_reports!(actor.violations(), Violation::Malformed { flaw: Flaw::BlockHere, .. });
    }
    let machine = Machine::new(Options::default());
    let mut actor = Actor::new(&machine);
    let level_3 = actor.page_in_table();
    // The address before the attributes; another page for a moment; a neighbour gone for a moment.
    actor.mapping(BLOCK, 0x8000, PAGE, |actor| {
        actor.put(level_3, 0, 0x8000 | 3);
        actor.put(level_3, 0, 0);
        actor.put(level_3, 0, 0x8000 | LEAF | 3);
        actor.put(level_3, 6, 0x8000 | LEAF | 3);
        actor.put(level_3, 6, 0);
        actor.put(level_3, 5, 0);
        actor.put(level_3, 5, 0x5000 | LEAF | 3);
    });
    let neighbour = BLOCK + 5 * PAGE;
    assert_eq!(
        actor.violations(),
        [
            Violation::Malformed {
                context: CONTEXT,
                iova: BLOCK,
                level: 3,
                raw: 0x8003,
                flaw: Flaw::AccessFlag
            },
            Violation::Torn {
                context: CONTEXT,
                iova: BLOCK + 6 * PAGE,
                level: 3,
                raw: 0x8000 | LEAF | 3
            },
            Violation::Lost { context: CONTEXT, iova: neighbour },
        ]
    );
    // And the result is compared.
    actor.mapping(2 * BLOCK, 0x8000, PAGE, |_| ());
    assert_eq!(
        actor.violations(),
        [Violation::Differs {
            context: CONTEXT,
            iova: 2 * BLOCK,
            expected: Some(0x8000),
            found: None
        }]
    );
}

#[test]
fn a_forgotten_clean_is_seen() {
    // Of an entry.
    let machine = Machine::new(Options { coherent: false, ..Options::default() });
    let mut actor = Actor::new(&machine);
    let level_3 = actor.page_in_table();
    actor.mapping(BLOCK, 0x8000, PAGE, |_| store(&machine, level_3, 0, 0x8000 | LEAF | 3));
    assert_reports!(
        actor.violations(),
        Violation::NotCleaned { index: 0, .. },
        Violation::Differs { found: None, .. },
    );
    // The zero that unmaps is not cleaned: the walker reads the page again after the invalidation.
    let machine = Machine::new(Options { coherent: false, ..Options::default() });
    let mut actor = Actor::new(&machine);
    let level_3 = actor.page_in_table();
    actor.unmapping(BLOCK + 5 * PAGE, PAGE, |_| store(&machine, level_3, 5, 0));
    actor.flush(CONTEXT, page(BLOCK + 5 * PAGE, true, Some(3)));
    machine.settle(CONTEXT);
    assert_reports!(actor.violations(), Violation::NotCleaned { .. }, Violation::Stale { .. });
    // The table's contents were not cleaned before it was hooked, so the walker reads the old bytes
    // in memory.
    let machine = Machine::new(Options { coherent: false, ..Options::default() });
    let mut actor = Actor::new(&machine);
    let level_3 = machine.alloc(4096).expect("there is memory");
    let fill = |words: &mut [u64]| {
        words.fill(0);
        words[0] = 0x8000 | LEAF | 3;
    };
    // SAFETY: nobody else knows the table.
    unsafe { machine.unpublished(level_3, 4096, fill) };
    actor.mapping(BLOCK, 0x8000, PAGE, |actor| {
        actor.set(1, level_3.0 | TABLE);
        machine.clean(level_3, 0..512);
    });
    assert_reports!(actor.violations(), Violation::Malformed { .. });
}

/// A clean is complete after a barrier: a table that is hooked before that may be read as it was.
#[test]
fn a_clean_without_a_barrier_is_seen() {
    for barrier in [true, false] {
        let machine = Machine::new(Options { coherent: false, ..Options::default() });
        let mut actor = Actor::new(&machine);
        let level_3 = machine.alloc(4096).expect("there is memory");
        let fill = |words: &mut [u64]| {
            words.fill(0);
            words[0] = 0x8000 | LEAF | 3;
        };
        // SAFETY: nobody else knows the table.
        unsafe { machine.unpublished(level_3, 4096, fill) };
        machine.clean(level_3, 0..512);
        if barrier {
            machine.barrier();
        }
        actor.mapping(BLOCK, 0x8000, PAGE, |actor| actor.set(1, level_3.0 | TABLE));
        assert_eq!(actor.violations().is_empty(), barrier);
    }
}

/// The bit of a table descriptor that hardware ignores.
const MARK: u64 = 1 << 55;

/// The second processor's case: the entry it finds on the way to its table, and its reaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Second {
    /// The first processor has not cleaned the entry, and the second does.
    Cleans,
    /// The second does not either: the flaw.
    CleansNothing,
    /// The entry is marked, and its clean is complete.
    Trusts,
    /// The entry was marked before its clean was complete.
    TrustsTooEarly,
}

/// One processor hooks a table. Before its call ends another maps a page in the table, cleans the
/// page, and returns: does a walk find it in memory?
fn beside_an_installer(second: Second) -> Vec<Violation> {
    let machine = Machine::new(Options { coherent: false, ..Options::default() });
    let actor = Actor::new(&machine);
    let level_3 = table(&machine, 4096, &[]);
    let (machine, entry) = (&machine, level_3.0 | TABLE);
    let map = |map: &mut Naive| map.map(BLOCK, 0x8000, PAGE, meaning()).expect("it is free");
    machine.update(CONTEXT, |_, next| map(next));
    store(machine, actor.level_2, 1, entry);
    if matches!(second, Second::Trusts | Second::TrustsTooEarly) {
        machine.clean(actor.level_2, 1..2);
        if second == Second::Trusts {
            machine.barrier();
        }
        store(machine, actor.level_2, 1, entry | MARK);
    }
    let level_2 = actor.level_2;
    let other = move || {
        if second == Second::Cleans {
            machine.clean(level_2, 1..2);
        }
        store(machine, level_3, 0, 0x8000 | LEAF | 3);
        machine.clean(level_3, 0..1);
        machine.barrier();
        machine.update(CONTEXT, |now, _| map(now));
        machine.ended(CONTEXT, BLOCK..BLOCK + PAGE);
    };
    std::thread::scope(|scope| scope.spawn(other).join()).expect("it does not panic");
    actor.violations()
}

#[test]
fn a_way_that_is_not_clean_is_seen_when_a_call_beside_it_ends() {
    for second in [Second::Cleans, Second::Trusts] {
        assert_eq!(beside_an_installer(second), [], "{second:?}");
    }
    for second in [Second::CleansNothing, Second::TrustsTooEarly] {
        let expected = Some(0x8000);
        let differs = Violation::Differs { context: CONTEXT, iova: BLOCK, expected, found: None };
        assert_eq!(beside_an_installer(second), [differs], "{second:?}");
    }
}

/// A mark is no change to hardware: it needs no break and no clean. On a leaf it is a flaw.
#[test]
fn a_mark_is_for_tables() {
    for machine in ways() {
        let mut actor = Actor::new(&machine);
        let level_3 = actor.page_in_table();
        actor.operation(|actor| store(&machine, actor.level_2, 1, level_3.0 | TABLE | MARK));
        assert_eq!(machine.access(CONTEXT, BLOCK + 5 * PAGE).unwrap().output, 0x5000);
        machine.settle(CONTEXT);
        machine.assert_sound();
        actor.operation(|actor| actor.set(1, level_3.0 | TABLE | MARK << 1));
        assert_reports!(actor.violations(), Violation::Malformed { flaw: Flaw::Bits(_), .. });
        actor.mapping(BLOCK, 0x8000, PAGE, |actor| {
            actor.put(level_3, 0, 0x8000 | LEAF | MARK | 3);
        });
        assert_reports!(actor.violations(), Violation::Malformed { flaw: Flaw::Bits(MARK), .. });
    }
}

#[test]
fn a_forgotten_barrier_is_seen() {
    let machine = Machine::new(Options::default());
    let mut actor = Actor::new(&machine);
    actor.map.map(BLOCK, BLOCK, BLOCK, meaning()).expect("it is free");
    machine.begin(CONTEXT, actor.map.clone());
    machine.barrier();
    actor.set(1, BLOCK | LEAF | 1);
    machine.end(CONTEXT, actor.map.clone());
    assert_eq!(actor.violations(), [Violation::NoBarrier { context: CONTEXT }]);
}

#[test]
fn a_table_in_two_places_is_reported() {
    let machine = Machine::new(Options::default());
    let actor = Actor::new(&machine);
    let level_3 = table(&machine, 4096, &[]);
    actor.set(1, level_3.0 | TABLE);
    machine.assert_sound();
    actor.set(2, level_3.0 | TABLE);
    assert_eq!(actor.violations(), [Violation::HookedTwice { table: level_3.0, iova: 2 * BLOCK }]);
}

#[test]
fn commands_that_hardware_lacks_are_reported() {
    let machine = Machine::new(Options::default());
    let actor = Actor::new(&machine);
    let range =
        |page_shift| Tlbi::Range { iova: Iova(0), page_shift, pages: 1, leaf: true, level: None };
    let reported = |operation| {
        actor.flush(CONTEXT, operation);
        actor.violations().len()
    };
    assert_eq!(reported(range(12)), 1);
    assert_eq!(reported(range(16)), 2);
    assert_eq!(reported(page(0, false, Some(3))), 1);
    assert_eq!(reported(page(0, true, Some(0))), 1);
    assert_eq!(reported(page(0x800, true, None)), 1);
    assert_eq!(reported(page(1 << 32, true, None)), 1);
    assert_eq!(reported(page(0, true, Some(1))), 0);
    let counts = machine.counts();
    assert_eq!((counts.flushes, counts.commands, counts.pages, counts.ranges), (7, 7, 5, 2));
}

#[test]
fn a_flush_that_fails_has_dropped_nothing_or_all() {
    for (how, stale) in [(FlushFailure::Before, true), (FlushFailure::After, false)] {
        let machine = Machine::new(Options::default());
        let mut actor = Actor::new(&machine);
        let level_3 = actor.page_in_table();
        actor.unmapping(BLOCK + 5 * PAGE, PAGE, |actor| actor.put(level_3, 5, 0));
        machine.fail_flush(1, how);
        let flush = || machine.flush(CONTEXT, &[Tlbi::Context]);
        assert_eq!(machine.flush(CONTEXT, &[]), Ok(()), "only the flush after the next fails");
        assert_eq!(flush(), Err(FlushError::Timeout));
        machine.settle(CONTEXT);
        assert_eq!(!actor.violations().is_empty(), stale);
        assert_eq!(flush(), Ok(()), "only once");
        machine.settle(CONTEXT);
        machine.assert_sound();
    }
}

/// An ASID that is used again while the TLB still knows its last owner.
#[test]
fn an_asid_is_not_used_again_before_it_is_invalidated() {
    for flushed in [true, false] {
        let machine = Machine::new(Options::default());
        let mut actor = Actor::new(&machine);
        actor.page_in_table();
        machine.detach(CONTEXT);
        if flushed {
            actor.flush(CONTEXT, Tlbi::Context);
        }
        let other = table(&machine, 32, &[]);
        let config = Config { input_bits: 32, ..Config::default() };
        machine.attach(CONTEXT, other, Shape::new(&config), Attributes::MAIR);
        machine.settle(CONTEXT);
        assert_eq!(actor.violations().is_empty(), flushed);
    }
}

/// nG is clear: no ASID, so an invalidation of the ASID leaves it.
#[test]
fn a_global_page_outlives_its_asid() {
    let machine = Machine::new(Options::default());
    let mut actor = Actor::new(&machine);
    let global = 0x5000 | LEAF & !(1 << 11) | 3;
    let level_3 = table(&machine, 4096, &[(5, global)]);
    actor.mapping(BLOCK + 5 * PAGE, 0x5000, PAGE, |actor| actor.set(1, level_3.0 | TABLE));
    machine.assert_sound();
    actor.unmapping(BLOCK, BLOCK, |actor| actor.set(1, 0));
    actor.flush(CONTEXT, Tlbi::Context);
    machine.settle(CONTEXT);
    assert_reports!(actor.violations(), Violation::Stale { .. });
}

/// Hardware that fetches entries only on demand keeps them until they are invalidated, too.
#[test]
fn what_was_accessed_once_stays_until_it_is_invalidated() {
    let machine = Machine::new(Options { fetching: Fetching::OnDemand, ..Options::default() });
    let mut actor = Actor::new(&machine);
    let level_3 = actor.page_in_table();
    assert!(machine.tlb_is_empty(CONTEXT));
    actor.unmapping(BLOCK + 5 * PAGE, PAGE, |actor| actor.put(level_3, 5, 0));
    machine.settle(CONTEXT);
    machine.assert_sound();
    actor.mapping(BLOCK + 5 * PAGE, 0x5000, PAGE, |actor| {
        actor.put(level_3, 5, 0x5000 | LEAF | 3);
    });
    assert!(machine.access(CONTEXT, BLOCK + 5 * PAGE + 17).is_some());
    actor.unmapping(BLOCK, BLOCK, |actor| actor.set(1, 0));
    assert!(machine.access(CONTEXT, BLOCK + 5 * PAGE).is_some(), "nobody has flushed");
    actor.flush(CONTEXT, page(BLOCK + 5 * PAGE, true, None));
    assert!(
        machine.access(CONTEXT, BLOCK + 5 * PAGE).is_some(),
        "the cached walk still leads there"
    );
    machine.settle(CONTEXT);
    assert_reports!(actor.violations(), Violation::Stale { .. }, Violation::StaleWalk { .. });
}
