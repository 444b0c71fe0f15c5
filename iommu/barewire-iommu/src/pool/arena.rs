//! A pool over one stretch of memory: lock-free free lists, and a mark above which memory was never
//! used.
//!
//! # How it works
//! A free list is a Treiber stack. Its links are beside the memory, not in it, because a thread
//! that is about to take a table may read the link of one that another thread has just taken and is
//! filling. The head is one word: an index, and a tag that changes with every exchange. A chain of
//! tables is allocated or freed with one exchange, whatever its length.
//!
//! Memory above the mark was never handed out and is in no list. A single table comes from the free
//! list, or from above the mark. A run of 2, 4, 8 or 16 adjacent tables, which a root of stage 2 may
//! be, has a free list of its own length. It comes from there, or from above the mark. If both are
//! empty, [`assemble`] searches all free tables for adjacent ones. If single tables are short,
//! free runs are broken up.
//!
//! # Ordering
//! 1. No lock is taken to allocate or free single tables and chains of them, nor to free a run. An
//!    interrupt handler may do that while the code that it interrupted does it too.
//! 2. Allocating a run may take a spin lock, against other threads that do the same. An interrupt
//!    handler creates no table whose root is a run.
//! 3. While a run is assembled, up to as many free tables as it has are out of reach of other
//!    threads. They may be told that there is no memory when no more than these are left.
//!
//! # Not supported
//! Moving live tables. A run needs as many adjacent free tables, aligned to their number: in an
//! arena that is nearly full, one live table in each such place is enough to prevent it. Create
//! tables with such roots early, or give them an arena of their own.
//!
//! # Safety
//! [`Arena::new`] is promised the memory. The free lists never hand out a table twice.
#![allow(unsafe_code, reason = "it is a pool")]

mod assemble;

use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::{Chain, Pool};
use crate::address::PhysAddr;
use crate::lock::Lock;
use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The arena's record of a table.
#[derive(Debug)]
pub struct Link {
    /// The index plus 1 of the next table in a free list or a chain, or 0.
    next: AtomicU32,
    /// The search that last saw the table free.
    seen: AtomicU32,
}

impl Link {
    /// The link of a table that is in no list.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { next: AtomicU32::new(0), seen: AtomicU32::new(0) }
    }

    /// The link of a table that is in no list.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { next: AtomicU32::new(0), seen: AtomicU32::new(0) }
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::new()
    }
}

/// Lengths of runs with a free list of their own. The architecture's largest root has 16 tables.
const RUNS: usize = 4;

/// Allocates tables from one stretch of memory, for a walker that snoops the caches.
///
/// Safe to share by reference between threads, and between page tables of the same granule.
#[derive(Debug)]
pub struct Arena<'m> {
    /// The free tables. A head has a tag in the high bits, and below it the index of the first table
    /// plus 1, or 0 if there is none.
    free: AtomicUsize,
    /// Free tables that a search has put aside, which are allocated if no others are left.
    aside: AtomicUsize,
    /// Free runs of 2, 4, 8 and 16 tables, each by its first.
    runs: [AtomicUsize; RUNS],
    /// How often a search began to move tables the other way, or ended.
    moves: AtomicUsize,
    /// The number of the last search. Its lock is held by the thread that searches.
    search: Lock<u32>,
    /// The mark: tables below it were handed out at least once.
    used: AtomicUsize,
    phys: u64,
    /// The length of the memory.
    bytes: u64,
    /// Where physical address 0 would lie: a table is one addition from here.
    origin: *mut u64,
    /// log2 of a table's bytes.
    shift: u32,
    /// The width of the index in `head`.
    index_bits: u32,
    links: &'m [Link],
    _memory: PhantomData<&'m mut [u64]>,
}

// SAFETY: the memory is only accessed through the pool's methods. Their callers own what they
// access or access it atomically.
unsafe impl Send for Arena<'_> {}
// SAFETY: as for Send; everything else is atomic.
unsafe impl Sync for Arena<'_> {}

/// Why memory cannot be an arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ArenaError {
    /// The size of a table must be a power of two of at least 64 bytes.
    TableBytes(usize),
    /// The physical address must be a multiple of the table's size.
    Unaligned(PhysAddr),
    /// There are more tables than an index can number.
    TooMany(usize),
}

impl fmt::Display for ArenaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TableBytes(bytes) => {
                write!(f, "tables of {bytes} bytes: make it a power of two of at least 64")
            }
            Self::Unaligned(phys) => {
                write!(
                    f,
                    "memory at {phys} is not aligned: begin it at a multiple of the table size"
                )
            }
            Self::TooMany(tables) => {
                write!(f, "{tables} tables are too many for one arena: make several")
            }
        }
    }
}

impl core::error::Error for ArenaError {}

impl<'m> Arena<'m> {
    /// Creates an arena with one table of `table_bytes` per link. `table_bytes` is the granule: larger
    /// tables are runs of adjacent ones.
    ///
    /// # Errors
    /// See [`ArenaError`].
    ///
    /// # Safety
    /// `memory` has `links.len() * table_bytes` bytes, initialised (with anything) and aligned to
    /// 8. They are physically contiguous from `phys` on. For `'m` only this arena, and hardware
    /// that walks its tables, accesses them.
    pub unsafe fn new(
        memory: NonNull<u8>,
        phys: PhysAddr,
        table_bytes: usize,
        links: &'m [Link],
    ) -> Result<Self, ArenaError> {
        if !table_bytes.is_power_of_two() || table_bytes < 64 {
            return Err(ArenaError::TableBytes(table_bytes));
        }
        if phys.0 & (table_bytes as u64 - 1) != 0 {
            return Err(ArenaError::Unaligned(phys));
        }
        let index_bits = usize::BITS - links.len().leading_zeros();
        // At least half of the word is the tag.
        if index_bits > usize::BITS / 2 {
            return Err(ArenaError::TooMany(links.len()));
        }
        Ok(Self {
            free: AtomicUsize::new(0),
            aside: AtomicUsize::new(0),
            runs: [(); RUNS].map(|()| AtomicUsize::new(0)),
            moves: AtomicUsize::new(0),
            search: Lock::new(0),
            used: AtomicUsize::new(0),
            phys: phys.0,
            bytes: (links.len() as u64) << table_bytes.trailing_zeros(),
            origin: memory.as_ptr().cast::<u64>().wrapping_byte_sub(phys.0 as usize),
            shift: table_bytes.trailing_zeros(),
            index_bits,
            links,
            _memory: PhantomData,
        })
    }

    /// The index of a table.
    #[inline]
    fn index(&self, table: PhysAddr) -> usize {
        (table.0.wrapping_sub(self.phys) >> self.shift) as usize
    }

    #[inline]
    fn at(&self, index: usize) -> PhysAddr {
        PhysAddr(self.phys + ((index as u64) << self.shift))
    }

    #[inline]
    fn free_index(&self, head: usize) -> Option<usize> {
        (head & ((1 << self.index_bits) - 1)).checked_sub(1)
    }

    /// A head with a new tag.
    #[inline]
    fn replaced(&self, head: usize, first: u32) -> usize {
        let tag = (head >> self.index_bits).wrapping_add(1);
        tag << self.index_bits | first as usize
    }

    /// Removes one to `count` tables from a list. Returns the first and the last.
    #[inline]
    fn pop(&self, list: &AtomicUsize, count: usize) -> Option<(usize, usize)> {
        let mut head = list.load(Ordering::Acquire);
        loop {
            let first = self.free_index(head)?;
            let (mut last, mut taken) = (first, 1);
            // A link read here may belong to a table that another thread took meanwhile. Then the
            // tag differs, and the exchange below fails.
            let mut rest = self.links[last].next.load(Ordering::Relaxed);
            while taken < count && rest != 0 && rest as usize <= self.links.len() {
                last = rest as usize - 1;
                taken += 1;
                rest = self.links[last].next.load(Ordering::Relaxed);
            }
            let new = self.replaced(head, rest);
            match list.compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some((first, last)),
                Err(now) => head = now,
            }
        }
    }

    /// Puts linked tables on a list.
    #[inline]
    fn push(&self, list: &AtomicUsize, first: usize, last: usize) {
        let mut head = list.load(Ordering::Relaxed);
        loop {
            let next = self.free_index(head).map_or(0, |index| index as u32 + 1);
            self.links[last].next.store(next, Ordering::Relaxed);
            let new = self.replaced(head, first as u32 + 1);
            match list.compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Allocates up to `count` adjacent tables above the mark. If `aligned`, the first one's
    /// address is a multiple of `count` tables.
    fn fresh(&self, count: usize, aligned: bool) -> Option<(usize, usize)> {
        let mut used = self.used.load(Ordering::Relaxed);
        loop {
            let mut first = used;
            if aligned {
                let frame = self.phys >> self.shift;
                let over = (frame.wrapping_add(used as u64) & (count as u64 - 1)) as usize;
                first += if over == 0 { 0 } else { count - over };
            }
            let room = self.links.len().checked_sub(first)?;
            let taken = room.min(count);
            if taken == 0 || (aligned && taken < count) {
                return None;
            }
            match self.used.compare_exchange_weak(
                used,
                first + taken,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    if used < first {
                        self.connect(used, first - used);
                        self.push(&self.free, used, first - 1);
                    }
                    return Some((first, taken));
                }
                Err(now) => used = now,
            }
        }
    }

    /// Takes one to `count` tables, linked to each other. Returns the first and the last.
    #[inline]
    fn take(&self, count: usize) -> Option<(usize, usize)> {
        self.pop(&self.free, count).or_else(|| self.take_others(count))
    }

    /// The same from everywhere else.
    fn take_others(&self, count: usize) -> Option<(usize, usize)> {
        loop {
            let moves = self.moves.load(Ordering::Acquire);
            if let Some((first, taken)) = self.fresh(count, false) {
                self.connect(first, taken);
                return Some((first, first + taken - 1));
            }
            // A search moves tables aside, then back: with the free list asked before and after, none
            // is missed on its way.
            let found = self
                .pop(&self.free, count)
                .or_else(|| self.pop(&self.aside, count))
                .or_else(|| self.pop(&self.free, count))
                .or_else(|| self.break_run(count));
            if found.is_some() || self.moves.load(Ordering::Acquire) == moves {
                return found;
            }
        }
    }

    /// Links `count` adjacent tables, beginning with `first`.
    fn connect(&self, first: usize, count: usize) {
        for index in first..first + count - 1 {
            self.links[index].next.store(index as u32 + 2, Ordering::Relaxed);
        }
    }
}

// SAFETY: a table is in one free list, or above the mark, or handed out, or held by a search. The tag
// makes an exchange fail if the list changed since its head was read.
unsafe impl Pool for Arena<'_> {
    const DIRECT: bool = true;
    const COHERENT: bool = true;

    fn end(&self) -> Option<PhysAddr> {
        Some(PhysAddr(self.phys.saturating_add(self.bytes)))
    }

    fn alloc(&self, bytes: usize) -> Option<PhysAddr> {
        let tables = bytes >> self.shift;
        let first = if tables > 1 { self.alloc_run(tables)? } else { self.take(1)?.0 };
        Some(self.at(first))
    }

    unsafe fn free(&self, table: PhysAddr, bytes: usize) {
        let first = self.index(table);
        let tables = bytes >> self.shift;
        if tables > 1 {
            self.free_run(first, tables);
        } else {
            self.push(&self.free, first, first);
        }
    }

    #[inline]
    fn pointer(&self, table: PhysAddr) -> NonNull<u64> {
        assert!(table.0.wrapping_sub(self.phys) < self.bytes, "a table of another pool");
        let table = self.origin.wrapping_byte_add(table.0 as usize);
        // SAFETY: within the memory that `new` was promised.
        unsafe { NonNull::new_unchecked(table) }
    }

    fn alloc_chain(&self, bytes: usize, count: usize) -> Chain {
        if bytes >> self.shift > 1 {
            let Some(table) = self.alloc(bytes) else { return Chain::new() };
            // SAFETY: a chain of one has no links.
            return unsafe { Chain::of(table, table) };
        }
        let Some((first, last)) = self.take(count.max(1)) else { return Chain::new() };
        // SAFETY: taken just now, and linked to each other.
        unsafe { Chain::of(self.at(first), self.at(last)) }
    }

    unsafe fn free_chain(&self, mut chain: Chain, bytes: usize) {
        if bytes >> self.shift > 1 {
            // SAFETY: the chain is of tables of this pool, by the caller's promise.
            while let Some(table) = unsafe { chain.pop(self) } {
                // SAFETY: promised by the caller for each.
                unsafe { self.free(table, bytes) };
            }
        } else if let Some((first, last)) = chain.take().ends() {
            self.push(&self.free, self.index(first), self.index(last));
        }
    }

    #[inline]
    unsafe fn link(&self, table: PhysAddr, next: PhysAddr) {
        self.links[self.index(table)].next.store(self.index(next) as u32 + 1, Ordering::Relaxed);
    }

    #[inline]
    unsafe fn next(&self, table: PhysAddr) -> PhysAddr {
        let next = self.links[self.index(table)].next.load(Ordering::Relaxed) as usize;
        self.at(next.wrapping_sub(1))
    }
}

#[cfg(test)]
mod churn_tests;
#[cfg(test)]
mod tests;
