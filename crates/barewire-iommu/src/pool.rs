//! Where tables come from, and the only way to their memory.
//!
//! # How it works
//! A table is a physical address. Nobody keeps a reference to memory that a walker may read: a live
//! entry is read and written by [`Pool::load`], [`Pool::store`] and [`Pool::publish`], one at a time
//! and whole. A table that no walker can reach yet may be filled by plain stores, in
//! [`Pool::unpublished`]. Hardware, models and model checkers differ in these methods alone.
//!
//! # Safety
//! The provided methods dereference what [`Pool::pointer`] returns.
#![allow(unsafe_code, reason = "table memory is reached by pointer, one atomic access at a time")]

use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::address::PhysAddr;

/// Tables linked to each other through their entry 0: unhooked, waiting to be freed.
///
/// A link is the next table's address, an even number, hence an invalid descriptor: a walker that
/// still comes by sees a fault, which is what the unmapped addresses there now are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Chain {
    pub(crate) ends: Option<(PhysAddr, PhysAddr)>,
    pub(crate) count: usize,
}

/// Memory for tables.
///
/// # Safety
/// `alloc` hands out memory that nobody else has until it is freed, initialised (with anything),
/// aligned to its size (to 64 bytes if smaller), its address below the table's `output_bits`;
/// `pointer` gives the same memory's place in this address space as long as it is allocated. An
/// implementor that replaces provided methods keeps their promises.
pub unsafe trait Pool {
    /// A table of `bytes`, a power of two; `None` if there is no memory.
    fn alloc(&self, bytes: usize) -> Option<PhysAddr>;

    /// Takes a table back.
    ///
    /// # Safety
    /// It came from `alloc` with the same `bytes`, no walker can reach it, and it is not used again.
    unsafe fn free(&self, table: PhysAddr, bytes: usize);

    /// Where a table lies in this address space.
    fn pointer(&self, table: PhysAddr) -> NonNull<u64>;

    /// Writes cached lines of `entries` back, so that a walker that does not snoop sees them.
    /// Nothing to do for a coherent one.
    fn clean(&self, table: PhysAddr, entries: Range<usize>) {
        let _ = (table, entries);
    }

    /// All stores before are seen by a walker before any store, to a device's doorbell say, after.
    fn barrier(&self) {
        core::sync::atomic::fence(Ordering::Release);
    }

    /// Reads an entry; later reads through a table found there see it as it was published.
    ///
    /// # Safety
    /// `table` is allocated and `index` within it.
    unsafe fn load(&self, table: PhysAddr, index: usize) -> u64 {
        // SAFETY: the caller promises that the entry is within an allocated table.
        unsafe { entry(self.pointer(table), index) }.load(Ordering::Acquire)
    }

    /// Writes an entry whole.
    ///
    /// # Safety
    /// As for `load`.
    unsafe fn store(&self, table: PhysAddr, index: usize, value: u64) {
        // SAFETY: the caller promises that the entry is within an allocated table.
        unsafe { entry(self.pointer(table), index) }.store(value, Ordering::Release);
    }

    /// Writes an entry if it is still `current`; else tells what it is.
    ///
    /// # Errors
    /// What stands there.
    ///
    /// # Safety
    /// As for `load`.
    unsafe fn publish(
        &self,
        table: PhysAddr,
        index: usize,
        current: u64,
        new: u64,
    ) -> Result<(), u64> {
        // SAFETY: the caller promises that the entry is within an allocated table.
        let entry = unsafe { entry(self.pointer(table), index) };
        entry.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).map(drop)
    }

    /// Lets `fill` write a table that no walker can reach yet.
    ///
    /// # Safety
    /// `table` came from `alloc` with `bytes`, is not published, and nobody else touches it.
    unsafe fn unpublished<R>(
        &self,
        table: PhysAddr,
        bytes: usize,
        fill: impl FnOnce(&mut [u64]) -> R,
    ) -> R
    where
        Self: Sized,
    {
        // SAFETY: the memory is ours alone, initialised and aligned, by the caller's promise.
        fill(unsafe { core::slice::from_raw_parts_mut(self.pointer(table).as_ptr(), bytes / 8) })
    }
}

/// # Safety
/// `index` lies within the table at `base`.
unsafe fn entry<'a>(base: NonNull<u64>, index: usize) -> &'a AtomicU64 {
    // SAFETY: within the table, by the caller's promise.
    let entry = unsafe { base.add(index) };
    // SAFETY: an aligned u64 that is only accessed atomically while published.
    unsafe { AtomicU64::from_ptr(entry.as_ptr()) }
}
