//! Memory, walker and TLB in one, and the judge beside them.

mod bus;
mod fetch;
mod invalidate;
mod judge;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use barewire_iommu::{Context, PhysAddr};

use crate::descriptor::Leaf;
use crate::memory::{Memory, Shortage};
use crate::naive::Naive;
use crate::shape::Shape;
use crate::tlb::Tlb;
use crate::violation::Violation;
use crate::walker::{Fault, Root, walk};

/// When the TLB reads tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fetching {
    /// After every store, all that it made reachable: the worst there can be.
    #[default]
    Always,
    /// Only where [`Machine::access`] goes.
    OnDemand,
}

/// What hardware it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whether the walker snoops the processor's caches.
    pub coherent: bool,
    /// When the TLB reads tables.
    pub fetching: Fetching,
    /// Whether a block and a table of the same translation may replace each other (FEAT_BBM
    /// level 2).
    pub bbml2: bool,
    /// Whether there are invalidations by range.
    pub ranges: bool,
    /// Where memory for tables lies.
    pub memory: Range<u64>,
}

impl Default for Options {
    /// Coherent, always fetching, without FEAT_BBM or ranges, memory in the second GiB.
    fn default() -> Self {
        Self {
            coherent: true,
            fetching: Fetching::Always,
            bbml2: false,
            ranges: false,
            memory: 1 << 30..2 << 30,
        }
    }
}

/// What was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Entries stored one at a time.
    pub stores: u64,
    /// Calls to clean.
    pub cleans: u64,
    /// Tables allocated.
    pub allocations: u64,
    /// Calls to flush, failed ones too.
    pub flushes: u64,
    /// Commands in them: each address of [`Tlbi::Pages`](barewire_iommu::Tlbi::Pages) is one, and
    /// each [`Tlbi::Range`](barewire_iommu::Tlbi::Range), however many hardware makes of it.
    pub commands: u64,
    /// Those by context.
    pub contexts: u64,
    /// Those by address.
    pub pages: u64,
    /// Those by range.
    pub ranges: u64,
}

/// How a flush fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlushFailure {
    /// Nothing was dropped.
    Before,
    /// All was dropped, but nobody said so.
    After,
}

/// An IOMMU.
pub struct Machine {
    state: Mutex<State>,
}

/// Where a table is hooked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    slot: usize,
    level: u32,
    base: u64,
}

/// A context: its registers, its part of the TLB, and what the judge knows about it.
struct Slot {
    context: Context,
    root: Root,
    /// The registers point at the root.
    live: bool,
    tlb: Tlb,
    /// What is mapped, or was before the operation that is going on.
    reference: Naive,
    /// What will be mapped after it.
    next: Option<Naive>,
    /// All is invalidated: the TLB agrees with the reference.
    settled: bool,
    /// Its devices are silent, and nothing is fetched.
    quiet: bool,
}

struct State {
    options: Options,
    memory: Memory,
    slots: Vec<Slot>,
    /// Every table that a walk from a root can reach.
    places: BTreeMap<u64, Place>,
    violations: Vec<Violation>,
    counts: Counts,
    failing: Option<(u64, FlushFailure)>,
    /// Something was stored since the last barrier.
    unordered: bool,
}

/// More are not told: the first ones say it all.
const VIOLATIONS_MAX: usize = 64;

impl State {
    fn report(&mut self, violation: Violation) {
        if self.violations.len() < VIOLATIONS_MAX && !self.violations.contains(&violation) {
            self.violations.push(violation);
        }
    }

    fn slot(&self, context: Context) -> usize {
        let found = self.slots.iter().position(|slot| slot.context == context);
        found.unwrap_or_else(|| panic!("{context:?} was never attached"))
    }
}

impl Machine {
    /// Hardware out of reset.
    pub fn new(options: Options) -> Self {
        let memory = Memory::new(options.memory.clone(), options.coherent);
        Self {
            state: Mutex::new(State {
                options,
                memory,
                slots: Vec::new(),
                places: BTreeMap::new(),
                violations: Vec::new(),
                counts: Counts::default(),
                failing: None,
                unordered: false,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Points the context's registers at a root. Its TLB entries of earlier days are still there.
    pub fn attach(&self, context: Context, root: PhysAddr, shape: Shape, mair: u64) {
        self.state().attach(context, Root { table: root.0, shape, mair });
    }

    /// Points the context's registers nowhere. What is cached stays cached.
    pub fn detach(&self, context: Context) {
        self.state().detach(context);
    }

    /// Nothing is fetched for the context while its devices are silent.
    pub fn quiesce(&self, context: Context, silent: bool) {
        self.state().quiesce(context, silent);
    }

    /// An operation begins that will leave `next` mapped.
    pub fn begin(&self, context: Context, next: Naive) {
        self.state().begin(context, next);
    }

    /// The operation is over and `outcome` should be mapped: walks are compared with it.
    pub fn end(&self, context: Context, outcome: Naive) {
        self.state().end(context, outcome);
    }

    /// Several operations at once, on ranges of their own: `change` gets what is mapped, and what
    /// will be. One that begins changes the second, one that ends the first.
    pub fn update(&self, context: Context, change: impl FnOnce(&mut Naive, &mut Naive)) {
        self.state().update(context, change);
    }

    /// Everything is invalidated: what the device can reach must be what is mapped, by any way.
    pub fn settle(&self, context: Context) {
        self.state().settle(context);
    }

    /// Whoever the pages at these input addresses belong to has them back.
    pub fn given_back(&self, context: Context, range: Range<u64>) {
        self.state().given_back(context, range);
    }

    /// What should be mapped.
    pub fn reference(&self, context: Context) -> Naive {
        let state = self.state();
        state.slots[state.slot(context)].reference.clone()
    }

    /// A device reads: where it gets, through the worst of what is cached.
    pub fn access(&self, context: Context, iova: u64) -> Option<Leaf> {
        self.state().access(context, iova)
    }

    /// What a walk from the root finds, whatever is cached; the processor's view.
    ///
    /// # Errors
    /// See [`Fault`].
    pub fn walk(&self, context: Context, iova: u64) -> Result<Leaf, Fault> {
        let state = self.state();
        let root = state.slots[state.slot(context)].root;
        walk(&root, iova, |table, index| state.memory.load(table, index).ok())
    }

    /// Whether nothing at all is cached for the context.
    pub fn tlb_is_empty(&self, context: Context) -> bool {
        let state = self.state();
        state.slots[state.slot(context)].tlb.is_empty()
    }

    /// From now on, which allocation finds no memory.
    pub fn set_shortage(&self, shortage: Shortage) {
        self.state().memory.shortage = shortage;
    }

    /// The flush after so many more fails.
    pub fn fail_flush(&self, after: u64, how: FlushFailure) {
        self.state().failing = Some((after, how));
    }

    /// Tables that are allocated.
    pub fn tables(&self) -> usize {
        self.state().memory.tables()
    }

    /// Tables that a walk from a root can reach, roots included.
    pub fn hooked(&self) -> usize {
        self.state().places.len()
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        let state = self.state();
        Counts { allocations: state.memory.allocations, ..state.counts }
    }

    /// What was reported so far, the first 64 of it.
    pub fn violations(&self) -> Vec<Violation> {
        self.state().violations.clone()
    }

    /// As `violations`, and forgets them.
    pub fn take_violations(&self) -> Vec<Violation> {
        std::mem::take(&mut self.state().violations)
    }

    /// # Panics
    /// If anything was reported; says what.
    #[track_caller]
    pub fn assert_sound(&self) {
        let violations = self.violations();
        if !violations.is_empty() {
            let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
            panic!("{} violations:\n{}", lines.len(), lines.join("\n"));
        }
    }
}
