//! A pool over one stretch of memory: a lock-free free list, and a mark above which memory was
//! never used.
//!
//! # How it works
//! The free list is a Treiber stack. Its links are beside the memory, not in it, because a thread
//! that is about to take a table may read the link of one that another thread has just taken and is
//! filling. The head is one word: an index, and a tag that changes with every exchange. A chain of
//! tables is allocated or freed with one exchange, whatever its length.
//!
//! Memory above the mark was never handed out and is not in the list. Roots of several adjacent
//! tables come only from there.
//!
//! # Safety
//! [`Arena::new`] is promised the memory. The free list never hands out a table twice.
#![allow(unsafe_code, reason = "it is a pool")]

use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::{Chain, Pool};
use crate::address::PhysAddr;
use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The index of the next table, in the free list or in a chain.
#[derive(Debug)]
pub struct Link(AtomicU32);

impl Link {
    /// The link of a table that is in neither.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// The link of a table that is in neither.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::new()
    }
}

/// Allocates tables from one stretch of memory, for a walker that snoops the caches.
///
/// Safe to share by reference between threads, and between page tables of the same granule.
#[derive(Debug)]
pub struct Arena<'m> {
    /// The tag in the high bits, and below it the index of the first free table plus 1, or 0 if
    /// none.
    head: AtomicUsize,
    /// The mark: tables below it were handed out at least once.
    used: AtomicUsize,
    memory: NonNull<u64>,
    phys: u64,
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
    /// Creates an arena with one table of `table_bytes` per link. `table_bytes` should be the
    /// granule: larger tables come only from memory that was never used.
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
            head: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            memory: memory.cast(),
            phys: phys.0,
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

    /// Removes one to `count` tables from the free list. Returns the first and the last.
    #[inline]
    fn pop(&self, count: usize) -> Option<(usize, usize)> {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let first = self.free_index(head)?;
            let (mut last, mut taken) = (first, 1);
            // A link read here may belong to a table that another thread took meanwhile. Then the
            // tag differs, and the exchange below fails.
            let mut rest = self.links[last].0.load(Ordering::Relaxed);
            while taken < count && rest != 0 && rest as usize <= self.links.len() {
                last = rest as usize - 1;
                taken += 1;
                rest = self.links[last].0.load(Ordering::Relaxed);
            }
            let new = self.replaced(head, rest);
            match self.head.compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some((first, last)),
                Err(now) => head = now,
            }
        }
    }

    /// Puts linked tables on the free list.
    #[inline]
    fn push(&self, first: usize, last: usize) {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            let next = self.free_index(head).map_or(0, |index| index as u32 + 1);
            self.links[last].0.store(next, Ordering::Relaxed);
            let new = self.replaced(head, first as u32 + 1);
            match self.head.compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Relaxed) {
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
                        self.push(used, first - 1);
                    }
                    return Some((first, taken));
                }
                Err(now) => used = now,
            }
        }
    }

    /// Links `count` adjacent tables, beginning with `first`.
    fn connect(&self, first: usize, count: usize) {
        for index in first..first + count - 1 {
            self.links[index].0.store(index as u32 + 2, Ordering::Relaxed);
        }
    }
}

// SAFETY: a table is in the free list, or above the mark, or handed out. The tag makes an exchange
// fail if the list changed since its head was read.
unsafe impl Pool for Arena<'_> {
    const DIRECT: bool = true;
    const COHERENT: bool = true;

    fn alloc(&self, bytes: usize) -> Option<PhysAddr> {
        let tables = bytes >> self.shift;
        if tables > 1 {
            return self.fresh(tables, true).map(|(first, _)| self.at(first));
        }
        let (index, _) = self.pop(1).or_else(|| self.fresh(1, false))?;
        Some(self.at(index))
    }

    unsafe fn free(&self, table: PhysAddr, bytes: usize) {
        let first = self.index(table);
        let tables = (bytes >> self.shift).max(1);
        self.connect(first, tables);
        self.push(first, first + tables - 1);
    }

    #[inline]
    fn pointer(&self, table: PhysAddr) -> NonNull<u64> {
        let offset = table.0.wrapping_sub(self.phys);
        assert!(offset < (self.links.len() as u64) << self.shift, "a table of another pool");
        // SAFETY: within the memory that `new` was promised.
        unsafe { self.memory.byte_add(offset as usize) }
    }

    fn alloc_chain(&self, bytes: usize, count: usize) -> Chain {
        if bytes >> self.shift > 1 {
            let Some(table) = self.alloc(bytes) else { return Chain::new() };
            // SAFETY: a chain of one has no links.
            return unsafe { Chain::of(table, table) };
        }
        let (first, last) = match self.pop(count) {
            Some(taken) => taken,
            None => match self.fresh(count.max(1), false) {
                Some((first, taken)) => {
                    self.connect(first, taken);
                    (first, first + taken - 1)
                }
                None => return Chain::new(),
            },
        };
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
            self.push(self.index(first), self.index(last));
        }
    }

    #[inline]
    unsafe fn link(&self, table: PhysAddr, next: PhysAddr) {
        self.links[self.index(table)].0.store(self.index(next) as u32 + 1, Ordering::Relaxed);
    }

    #[inline]
    unsafe fn next(&self, table: PhysAddr) -> PhysAddr {
        let next = self.links[self.index(table)].0.load(Ordering::Relaxed) as usize;
        self.at(next.wrapping_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::format::Granule;
    use crate::testing::{BASE, drained, with_arena};

    #[test]
    fn every_table_once_and_again() {
        with_arena(Granule::Size4K, 5, |arena| {
            let mut tables: Vec<PhysAddr> = core::iter::from_fn(|| arena.alloc(4096)).collect();
            assert_eq!(arena.alloc(4096), None);
            assert!(arena.alloc_chain(4096, 3).is_empty());
            let last = tables.pop().expect("five");
            for table in tables.drain(..).chain([last]) {
                // SAFETY: allocated, and freed once.
                unsafe { arena.free(table, 4096) };
            }
            assert_eq!(arena.alloc(4096), Some(last), "the one that is still in a cache");
            // SAFETY: allocated just now.
            unsafe { arena.free(last, 4096) };
            assert_eq!(drained(arena, 4096), 5);
            // A smaller table takes a whole one.
            assert_eq!(drained(arena, 64), 5);
        });
    }

    #[test]
    fn chains_come_and_go_at_once() {
        with_arena(Granule::Size4K, 8, |arena| {
            let count = |chain: &Chain| {
                let Some((first, last)) = chain.ends() else { return 0 };
                let mut at = first;
                let mut count = 1;
                while at != last {
                    // SAFETY: one of the chain, and not the last.
                    at = unsafe { arena.next(at) };
                    count += 1;
                }
                count
            };
            // From unused memory, and no more tables than there are.
            let (three, five) = (arena.alloc_chain(4096, 3), arena.alloc_chain(4096, 9));
            assert_eq!((count(&three), count(&five)), (3, 5));
            assert!(arena.alloc_chain(4096, 1).is_empty());
            // From freed tables.
            for chain in [three, five] {
                // SAFETY: the tables are not in use.
                unsafe { arena.free_chain(chain, 4096) };
            }
            for asked in [1, 7, 8, 9] {
                let chain = arena.alloc_chain(4096, asked);
                assert_eq!(count(&chain), asked.min(8));
                // SAFETY: as above.
                unsafe { arena.free_chain(chain, 4096) };
            }
            assert_eq!(drained(arena, 4096), 8);
        });
    }

    #[test]
    fn several_tables_side_by_side_are_aligned() {
        with_arena(Granule::Size4K, 16, |arena| {
            let one = arena.alloc(4096).expect("room");
            assert_eq!(one, PhysAddr(BASE));
            let four = arena.alloc(4 * 4096).expect("room");
            assert_eq!(four, PhysAddr(BASE + 4 * 4096));
            // Tables skipped for alignment are not lost: three of them, and eight behind.
            assert_eq!(drained(arena, 4096), 3 + 8);
            assert_eq!(arena.alloc(2 * 4096), None, "all was used once");
            // SAFETY: allocated, and freed once.
            unsafe { arena.free(four, 4 * 4096) };
            assert_eq!(drained(arena, 4096), 15);
        });
    }

    #[test]
    fn memory_that_is_no_arena() {
        let links = [(), ()].map(|()| Link::new());
        let mut memory = [0_u64; 2 * 512];
        let start = NonNull::from(&mut memory).cast();
        let arena = |phys, bytes| {
            // SAFETY: the memory has that many bytes, or `new` refuses before that matters.
            unsafe { Arena::new(start, PhysAddr(phys), bytes, &links) }.map(drop).err()
        };
        assert_eq!(arena(BASE, 32), Some(ArenaError::TableBytes(32)));
        assert_eq!(arena(BASE, 4095), Some(ArenaError::TableBytes(4095)));
        assert_eq!(arena(BASE + 64, 4096), Some(ArenaError::Unaligned(PhysAddr(BASE + 64))));
        assert_eq!(arena(BASE, 4096), None);
    }

    #[test]
    #[should_panic(expected = "a table of another pool")]
    fn tables_of_others_are_not_reached() {
        with_arena(Granule::Size4K, 2, |arena| arena.pointer(PhysAddr(BASE + 2 * 4096)));
    }
}
