//! A pool that detects misuse: tables and queues in the machine's memory, filled with traps when
//! free.
//!
//! # How it works
//! 1. Reuse first: memory that was freed is handed out again first, so that a use after free soon
//!    hits the next owner.
//! 2. Traps: free memory is full of *traps*, descriptors that are valid at every level and lead to
//!    a page full of traps. So a walk through a freed table, or through one that was never zeroed,
//!    does not fault but ends in that page, and the device reads traps.
//! 3. Panics: freeing or accessing memory that is not allocated panics, and so does a wrong size.
//!
//! # Safety
//! No memory is handed out twice: each piece is in `taken`, or in a free list, or above `next`. The
//! mapping belongs to the pool, so no other code of this process accesses it.
#![allow(unsafe_code, reason = "it is a pool, and gives pointers into a mapping")]

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use barewire_iommu::{PhysAddr, Pool};

use crate::ram::GuestRam;

/// The smallest alignment.
const SMALLEST: usize = 64;
/// The size of the trap page: the largest granule, so that a walk of any granule ends in it.
const TRAP_BYTES: usize = 64 << 10;
/// A valid table or page descriptor (D8.3): access flag set, readable at stage 1, all permitted at
/// stage 2.
const TRAP_BITS: u64 = 0b11 | 0b11 << 6 | 0b11 << 8 | 1 << 10;

/// Memory for tables and queues in the machine.
#[derive(Debug)]
pub struct GuestPool {
    ram: GuestRam,
    trap: u64,
    books: Mutex<Books>,
}

#[derive(Debug)]
struct Books {
    /// The first address that was never handed out.
    next: u64,
    end: u64,
    /// Free pieces by size, the last freed at the end.
    free: BTreeMap<usize, Vec<u64>>,
    /// Pieces in use and their sizes.
    taken: BTreeMap<u64, usize>,
    /// The number of allocations that will still succeed.
    left: usize,
}

impl GuestPool {
    /// Creates a pool over all of `ram` except a page of traps.
    ///
    /// # Panics
    /// If there is no room for it.
    pub(crate) fn new(ram: GuestRam) -> Self {
        let (start, bytes) = (ram.base().0, ram.bytes());
        let page = start.next_multiple_of(TRAP_BYTES as u64);
        let end = start + bytes as u64;
        let next = page + TRAP_BYTES as u64;
        assert!(next <= end, "{bytes} bytes have no room for a page of traps");
        let books =
            Books { next, end, free: BTreeMap::new(), taken: BTreeMap::new(), left: usize::MAX };
        let pool = Self { ram, trap: page | TRAP_BITS, books: Mutex::new(books) };
        pool.set_traps(page, TRAP_BYTES);
        pool
    }

    /// The bytes that a device reads when a wrong walk leads it to the trap page.
    #[must_use]
    pub fn trap(&self) -> [u8; 8] {
        self.trap.to_le_bytes()
    }

    /// The number of pieces in use.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.books().taken.len()
    }

    /// Makes all allocations after the next `allocations` fail.
    pub fn limit(&self, allocations: usize) {
        self.books().left = allocations;
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        // The books are consistent even after a panic: each change is complete or not made.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_traps(&self, at: u64, bytes: usize) {
        for word in (at..at + bytes as u64).step_by(8) {
            self.ram.word(PhysAddr(word)).store(self.trap, Ordering::Relaxed);
        }
    }
}

// SAFETY: a piece has one owner until it is freed (Safety), is initialised with traps, aligned to
// its size, and has an address of 32 bits. The mapping outlives the pool.
unsafe impl Pool for GuestPool {
    fn alloc(&self, bytes: usize) -> Option<PhysAddr> {
        assert!(bytes.is_power_of_two(), "{bytes} bytes are no power of two");
        let bytes = bytes.max(SMALLEST);
        let mut books = self.books();
        books.left = books.left.checked_sub(1)?;
        let at = match books.free.get_mut(&bytes).and_then(Vec::pop) {
            Some(at) => at,
            None => {
                let at = books.next.next_multiple_of(bytes as u64);
                let next = at + bytes as u64;
                if next > books.end {
                    return None;
                }
                books.next = next;
                self.set_traps(at, bytes);
                at
            }
        };
        books.taken.insert(at, bytes);
        Some(PhysAddr(at))
    }

    unsafe fn free(&self, table: PhysAddr, bytes: usize) {
        let bytes = bytes.max(SMALLEST);
        let mut books = self.books();
        let taken = books.taken.remove(&table.0);
        assert_eq!(taken, Some(bytes), "{table} is freed with {bytes} bytes");
        self.set_traps(table.0, bytes);
        books.free.entry(bytes).or_default().push(table.0);
    }

    fn pointer(&self, table: PhysAddr) -> NonNull<u64> {
        let bytes = self.books().taken.get(&table.0).copied();
        let bytes = bytes.unwrap_or_else(|| panic!("{table} is used, and is free"));
        self.ram.pointer(table, bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use barewire_qtest::PrivateDir;

    use super::*;

    #[test]
    fn what_is_free_is_full_of_traps_that_lead_to_traps() {
        let dir = PrivateDir::new().expect("a directory");
        let path = dir.join("ram");
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        let file = file.expect("a file");
        file.set_len(1 << 20).expect("grows");
        let map = || GuestRam::map(&file, &path, 0x4000_0000, 0, 1 << 20).expect("mapped");
        let (pool, ram) = (GuestPool::new(map()), map());
        let trap = u64::from_le_bytes(pool.trap());
        let page = PhysAddr(trap & 0xffff_ffff_0000);
        assert_eq!(ram.word(page).load(Ordering::Relaxed), trap);

        let (small, large) = (pool.alloc(8).expect("room"), pool.alloc(16 << 10).expect("room"));
        assert_eq!(large.0 % (16 << 10), 0);
        assert_eq!((small.0 % 64, pool.taken()), (0, 2));
        // SAFETY: allocated just now.
        unsafe { pool.store(large, 5, 7) };
        // SAFETY: as above, and not used again.
        unsafe { pool.free(large, 16 << 10) };
        assert_eq!(ram.word(PhysAddr(large.0 + 40)).load(Ordering::Relaxed), trap);
        let used = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pool.pointer(large)));
        assert!(used.is_err(), "it is free");
        assert_eq!(pool.alloc(16 << 10), Some(large));
        assert_eq!(pool.alloc(1 << 20), None);
        pool.limit(1);
        assert!(pool.alloc(64).is_some() && pool.alloc(64).is_none());
    }
}
