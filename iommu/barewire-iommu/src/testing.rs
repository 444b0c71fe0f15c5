//! Shared by the unit tests: memory for an arena, and a pool that runs out of tables.
#![allow(unsafe_code, reason = "an arena is promised its memory")]

use core::cell::{Cell, RefCell};
use core::ops::Range;
use core::ptr::NonNull;
use std::vec::Vec;

use crate::address::PhysAddr;
use crate::format::{Access, Attributes, Config, Descriptor, Granule, Stage};
use crate::pool::{Arena, Chain, Link, Pool};

/// The physical address of the arenas' memory; it differs from the pointers on purpose.
pub(crate) const BASE: u64 = 0x8_0000_0000;

/// Calls `test` with an arena of `tables` tables of one granule, filled with garbage.
pub(crate) fn with_arena<R>(
    granule: Granule,
    tables: usize,
    test: impl FnOnce(&Arena<'_>) -> R,
) -> R {
    with_arena_at(0, granule, tables, test)
}

/// [`with_arena`] whose memory begins at an address of the form 16 n + `offset`, which is 0 or 8.
pub(crate) fn with_arena_at<R>(
    offset: usize,
    granule: Granule,
    tables: usize,
    test: impl FnOnce(&Arena<'_>) -> R,
) -> R {
    let bytes = granule.bytes() as usize;
    let mut memory = garbage(tables * bytes / 8 + 1);
    let links: Vec<Link> = (0..tables).map(|_| Link::new()).collect();
    let skipped = usize::from(memory.as_ptr().addr() % 16 != offset);
    let start = NonNull::from(&mut memory[skipped..]).cast();
    // SAFETY: the memory has as many bytes as `links` says and outlives the arena.
    let arena = unsafe { Arena::new(start, PhysAddr(BASE), bytes, &links) };
    test(&arena.expect("aligned"))
}

/// So many words that are no empty entries. Copied in doubling runs: word by word, this would be half of
/// what Miri does in a short test.
fn garbage(count: usize) -> Vec<u64> {
    let mut words = Vec::with_capacity(count);
    words.push(0xdead_beef_dead_beef);
    while words.len() < count {
        words.extend_from_within(..words.len().min(count - words.len()));
    }
    words
}

/// A pool that counts its allocated tables and fails after a set number.
pub(crate) struct Counting<'a, P: Pool> {
    pub(crate) pool: &'a P,
    pub(crate) out: Cell<isize>,
    pub(crate) left: Cell<usize>,
}

impl<'a, P: Pool> Counting<'a, P> {
    pub(crate) fn new(pool: &'a P) -> Self {
        Self { pool, out: Cell::new(0), left: Cell::new(usize::MAX) }
    }
}

// SAFETY: the memory is the other pool's. Chains built here link through entry 0.
unsafe impl<P: Pool> Pool for Counting<'_, P> {
    fn alloc(&self, bytes: usize) -> Option<PhysAddr> {
        let left = self.left.get().checked_sub(1)?;
        let table = self.pool.alloc(bytes)?;
        self.left.set(left);
        self.out.set(self.out.get() + 1);
        Some(table)
    }

    fn alloc_chain(&self, bytes: usize, count: usize) -> Chain {
        let mut chain = Chain::new();
        for table in (0..count).map_while(|_| self.alloc(bytes)) {
            // SAFETY: allocated just now, and in no other chain.
            unsafe { chain.push(self, table) };
        }
        chain
    }

    unsafe fn free(&self, table: PhysAddr, bytes: usize) {
        self.out.set(self.out.get() - 1);
        // SAFETY: the caller promises the same to us.
        unsafe { self.pool.free(table, bytes) };
    }

    fn pointer(&self, table: PhysAddr) -> NonNull<u64> {
        self.pool.pointer(table)
    }
}

/// The effects of a call on memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    Store(usize, u64),
    Clean(Range<usize>),
    Barrier,
}

/// A pool that records what is stored in published tables, cleaned and waited for. Its accesses go
/// through the trait's methods, or as `DIRECT` says around them: then only the rest is recorded.
pub(crate) struct Recorder<'a, P: Pool, const DIRECT: bool> {
    pub(crate) pool: &'a P,
    pub(crate) events: RefCell<Vec<Event>>,
    /// Whether the marks of published tables are stored. If not, the tables look as another
    /// processor leaves them before it has cleaned them.
    pub(crate) marks: Cell<bool>,
}

impl<'a, P: Pool, const DIRECT: bool> Recorder<'a, P, DIRECT> {
    pub(crate) fn new(pool: &'a P) -> Self {
        Self { pool, events: RefCell::new(Vec::new()), marks: Cell::new(true) }
    }

    fn record(&self, event: Event) {
        self.events.borrow_mut().push(event);
    }
}

// SAFETY: the memory is the other pool's, and so are all accesses.
unsafe impl<P: Pool, const DIRECT: bool> Pool for Recorder<'_, P, DIRECT> {
    const DIRECT: bool = DIRECT;

    fn alloc(&self, bytes: usize) -> Option<PhysAddr> {
        self.pool.alloc(bytes)
    }

    unsafe fn free(&self, table: PhysAddr, bytes: usize) {
        // SAFETY: the caller promises the same to us.
        unsafe { self.pool.free(table, bytes) };
    }

    fn pointer(&self, table: PhysAddr) -> NonNull<u64> {
        self.pool.pointer(table)
    }

    unsafe fn store(&self, table: PhysAddr, index: usize, value: u64) {
        // SAFETY: the caller promises the same to us.
        let before = Descriptor(unsafe { self.pool.load(table, index) });
        if !self.marks.get() && before.marked().0 == value {
            return;
        }
        self.record(Event::Store(index, value));
        // SAFETY: the caller promises the same to us.
        unsafe { self.pool.store(table, index, value) };
    }

    fn clean(&self, _: PhysAddr, entries: Range<usize>) {
        self.record(Event::Clean(entries));
    }

    fn barrier(&self) {
        self.record(Event::Barrier);
    }
}

/// The number of tables left in a pool.
pub(crate) fn drained<P: Pool>(pool: &P, bytes: usize) -> usize {
    let mut all = Chain::new();
    let mut count = 0;
    while let Some(table) = pool.alloc(bytes) {
        // SAFETY: allocated just now.
        unsafe { all.push(pool, table) };
        count += 1;
    }
    // SAFETY: nothing else uses them.
    unsafe { pool.free_chain(all, bytes) };
    count
}

pub(crate) const fn config(granule: Granule, stage: Stage, input_bits: u8) -> Config {
    Config { granule, stage, input_bits, output_bits: 48, bbml2: false }
}

pub(crate) fn rw(stage: Stage) -> Attributes {
    Attributes::new(stage, Access::ReadWrite)
}
