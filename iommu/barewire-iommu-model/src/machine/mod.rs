//! Memory, walker and TLB in one, with a judge.

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
    /// After every store, everything that the store made reachable: the worst case.
    #[default]
    Always,
    /// Only on an access by [`Machine::access`].
    OnDemand,
}

/// The properties of the hardware.
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
    /// The addresses of memory for tables.
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

/// Counts of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Entries stored one at a time.
    pub stores: u64,
    /// Calls of `clean`.
    pub cleans: u64,
    /// Tables allocated.
    pub allocations: u64,
    /// Calls of `flush`, including failed ones.
    pub flushes: u64,
    /// Commands in them. Each address of [`Tlbi::Pages`](barewire_iommu::Tlbi::Pages) counts as
    /// one. Each [`Tlbi::Range`](barewire_iommu::Tlbi::Range) counts as one, however many commands
    /// hardware needs.
    pub commands: u64,
    /// Walks for accesses ([`Machine::access`]) that found no leaf in the TLB.
    pub walks: u64,
    /// Commands by context.
    pub contexts: u64,
    /// Commands by address.
    pub pages: u64,
    /// Commands by range.
    pub ranges: u64,
}

/// How a flush fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlushFailure {
    /// Nothing was dropped.
    Before,
    /// Everything was dropped, but completion was not reported.
    After,
}

/// An IOMMU.
pub struct Machine {
    state: Mutex<State>,
}

/// The entry that leads to a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    slot: usize,
    level: u32,
    base: u64,
}

/// A context: its registers, its part of the TLB, and the judge's knowledge of it.
struct Slot {
    context: Context,
    root: Root,
    /// The registers point to the root.
    live: bool,
    tlb: Tlb,
    /// The present mappings; during an operation, those before it.
    reference: Naive,
    /// During an operation, the mappings after it.
    next: Option<Naive>,
    /// Everything is invalidated: the TLB must agree with the reference.
    settled: bool,
    /// Its devices make no accesses, and nothing is fetched.
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
    /// There was a store since the last barrier.
    unordered: bool,
}

/// The largest number of violations kept: the first ones are enough.
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
    /// Creates hardware just out of reset.
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

    /// Points the context's registers to a root. Entries in its TLB from before stay.
    pub fn attach(&self, context: Context, root: PhysAddr, shape: Shape, mair: u64) {
        self.state().attach(context, Root { table: root.0, shape, mair });
    }

    /// Clears the context's registers. Cached entries stay.
    pub fn detach(&self, context: Context) {
        self.state().detach(context);
    }

    /// While `silent`, the context's devices make no accesses and nothing is fetched.
    pub fn quiesce(&self, context: Context, silent: bool) {
        self.state().quiesce(context, silent);
    }

    /// Begins an operation after which `next` will be mapped.
    pub fn begin(&self, context: Context, next: Naive) {
        self.state().begin(context, next);
    }

    /// Ends the operation. `outcome` should be mapped now: walks are compared with it.
    pub fn end(&self, context: Context, outcome: Naive) {
        self.state().end(context, outcome);
    }

    /// For several operations at once on separate ranges. `change` gets the present mappings
    /// and the future mappings. An operation changes the future mappings when it begins, and
    /// the present ones when it ends.
    pub fn update(&self, context: Context, change: impl FnOnce(&mut Naive, &mut Naive)) {
        self.state().update(context, change);
    }

    /// Checks after an operation on `range`, while others may run: each walk must find exactly the
    /// present mappings of the range.
    pub fn ended(&self, context: Context, range: Range<u64>) {
        self.state().judge_walks(context, &range);
    }

    /// Everything is invalidated: from now on devices must reach exactly what is mapped.
    pub fn settle(&self, context: Context) {
        self.state().settle(context);
    }

    /// The pages at these input addresses were returned to their owners.
    pub fn given_back(&self, context: Context, range: Range<u64>) {
        self.state().given_back(context, range);
    }

    /// The mappings that should exist.
    pub fn reference(&self, context: Context) -> Naive {
        let state = self.state();
        state.slots[state.slot(context)].reference.clone()
    }

    /// A device reads `iova`. Returns the leaf it uses, the worst one that the cached entries
    /// allow.
    pub fn access(&self, context: Context, iova: u64) -> Option<Leaf> {
        self.state().access(context, iova)
    }

    /// The leaf that a walk from the root finds in the processor's view, without the TLB.
    ///
    /// # Errors
    /// See [`Fault`].
    pub fn walk(&self, context: Context, iova: u64) -> Result<Leaf, Fault> {
        let state = self.state();
        let root = state.slots[state.slot(context)].root;
        walk(&root, iova, |table, index| state.memory.load(table, index).ok())
    }

    /// Whether nothing is cached for the context.
    pub fn tlb_is_empty(&self, context: Context) -> bool {
        let state = self.state();
        state.slots[state.slot(context)].tlb.is_empty()
    }

    /// Chooses which allocations fail from now on.
    pub fn set_shortage(&self, shortage: Shortage) {
        self.state().memory.shortage = shortage;
    }

    /// Makes one flush fail, after `after` more successful ones.
    pub fn fail_flush(&self, after: u64, how: FlushFailure) {
        self.state().failing = Some((after, how));
    }

    /// The number of allocated tables.
    pub fn tables(&self) -> usize {
        self.state().memory.tables()
    }

    /// The number of tables reachable from a root, roots included.
    pub fn hooked(&self) -> usize {
        self.state().places.len()
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        let state = self.state();
        Counts { allocations: state.memory.allocations, ..state.counts }
    }

    /// The violations so far, at most 64.
    pub fn violations(&self) -> Vec<Violation> {
        self.state().violations.clone()
    }

    /// Returns the violations and forgets them.
    pub fn take_violations(&self) -> Vec<Violation> {
        std::mem::take(&mut self.state().violations)
    }

    /// Asserts that there are no violations.
    ///
    /// # Panics
    /// If there is one; the message lists them.
    #[track_caller]
    pub fn assert_sound(&self) {
        let violations = self.violations();
        if !violations.is_empty() {
            let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
            panic!("{} violations:\n{}", lines.len(), lines.join("\n"));
        }
    }
}
