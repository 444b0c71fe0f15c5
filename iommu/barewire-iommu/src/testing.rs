//! What the unit tests share: memory for an arena, and a pool that runs dry.
#![allow(unsafe_code, reason = "an arena is promised its memory")]

use core::cell::Cell;
use core::ptr::NonNull;
use std::vec::Vec;

use crate::address::PhysAddr;
use crate::format::{Access, Attributes, Config, Granule, Stage};
use crate::pool::{Arena, Chain, Link, Pool};

/// Where the arenas' memory lies for a walker: unlike the pointers to it.
pub(crate) const BASE: u64 = 0x10_0000_0000;

/// Lets `test` use an arena of `tables` tables of a granule, full of rubbish.
pub(crate) fn with_arena<R>(
    granule: Granule,
    tables: usize,
    test: impl FnOnce(&Arena<'_>) -> R,
) -> R {
    let bytes = granule.bytes() as usize;
    let mut memory = std::vec![0xdead_beef_dead_beef_u64; tables * bytes / 8];
    let links: Vec<Link> = (0..tables).map(|_| Link::new()).collect();
    let start = NonNull::from(&mut memory[..]).cast();
    // SAFETY: as many bytes as links say, and the arena is gone before the memory is.
    let arena = unsafe { Arena::new(start, PhysAddr(BASE), bytes, &links) };
    test(&arena.expect("aligned"))
}

/// A pool that counts what is out, and has no table left after some.
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

// SAFETY: memory is the other pool's; its own chains link through entry 0.
unsafe impl<P: Pool> Pool for Counting<'_, P> {
    fn alloc(&self, bytes: usize) -> Option<PhysAddr> {
        let left = self.left.get().checked_sub(1)?;
        let table = self.pool.alloc(bytes)?;
        self.left.set(left);
        self.out.set(self.out.get() + 1);
        Some(table)
    }

    unsafe fn free(&self, table: PhysAddr, bytes: usize) {
        self.out.set(self.out.get() - 1);
        // SAFETY: the caller's promise is the same.
        unsafe { self.pool.free(table, bytes) };
    }

    fn pointer(&self, table: PhysAddr) -> NonNull<u64> {
        self.pool.pointer(table)
    }
}

/// How many tables a pool still has.
pub(crate) fn drained<P: Pool>(pool: &P, bytes: usize) -> usize {
    let mut all = Chain::new();
    let mut count = 0;
    while let Some(table) = pool.alloc(bytes) {
        // SAFETY: allocated just now.
        unsafe { all.push(pool, table) };
        count += 1;
    }
    // SAFETY: nobody else has them.
    unsafe { pool.free_chain(all, bytes) };
    count
}

pub(crate) const fn config(granule: Granule, stage: Stage, input_bits: u8) -> Config {
    Config { granule, stage, input_bits, output_bits: 48, bbml2: false }
}

pub(crate) fn rw(stage: Stage) -> Attributes {
    Attributes::new(stage, Access::ReadWrite)
}
