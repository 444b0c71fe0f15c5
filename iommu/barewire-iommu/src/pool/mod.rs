//! Where tables come from, and the only way to their memory.
//!
//! # How it works
//! A table is a physical address. Nobody keeps a reference to memory that a walker may read: a live
//! entry is read and written by [`Pool::load`], [`Pool::store`] and [`Pool::publish`], one at a time
//! and whole. A table that no walker can reach yet may be filled by plain stores, in
//! [`Pool::unpublished`]. Hardware, models and model checkers differ in these methods alone.
//!
//! [`arena`] is a pool over a stretch of memory, ready to use; [`chain`] links tables that wait to
//! be freed; [`words`] is how descriptors are written where no atomic has 64 bits.
//!
//! # Safety
//! The provided methods dereference what [`Pool::pointer`] returns.
#![allow(unsafe_code, reason = "table memory is reached by pointer, one atomic access at a time")]

mod arena;
mod barrier;
mod chain;
#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(any(test, not(target_has_atomic = "64")))]
mod words;

pub use arena::{Arena, ArenaError, Link};
pub use chain::Chain;

use core::ops::Range;
use core::ptr::NonNull;

use crate::address::PhysAddr;

/// Memory for tables.
///
/// Only the first three methods must be written. A pool that hands out memory whose links lie
/// elsewhere also overrides `link` and `next`; one that can take or give several tables at once,
/// `alloc_chain` and `free_chain`; one for a walker that does not snoop, `clean`.
///
/// # Safety
/// `alloc` hands out memory that nobody else has until it is freed, initialised (with anything),
/// aligned to its size (to 64 bytes if smaller), its address below the table's `output_bits`;
/// `pointer` gives the same memory's place in this address space as long as it is allocated. An
/// implementor that replaces provided methods keeps their promises.
pub unsafe trait Pool {
    /// Whether `load`, `store`, `publish` and `unpublished` are the provided ones. Then a table's place
    /// is asked for once, and its entries are accessed there: loops over entries become tight.
    const DIRECT: bool = false;

    /// A table of `bytes`, a power of two; `None` if there is no memory.
    fn alloc(&self, bytes: usize) -> Option<PhysAddr>;

    /// Takes a table back.
    ///
    /// # Safety
    /// It came from `alloc` with the same `bytes`, no walker can reach it, and it is not used again.
    unsafe fn free(&self, table: PhysAddr, bytes: usize);

    /// Where a table lies in this address space.
    fn pointer(&self, table: PhysAddr) -> NonNull<u64>;

    /// Up to `count` tables at once, for a call that will need so many: at least one, unless there
    /// is no memory. What is not needed comes back by `free_chain`.
    ///
    /// One by one unless a pool knows better, so that whoever counts allocations counts needs.
    fn alloc_chain(&self, bytes: usize, count: usize) -> Chain {
        let _ = count;
        let mut chain = Chain::new();
        if let Some(table) = self.alloc(bytes) {
            // SAFETY: allocated just now, and in no other chain.
            unsafe { chain.push(self, table) };
        }
        chain
    }

    /// Takes all tables of a chain back.
    ///
    /// # Safety
    /// As for `free`, for each.
    unsafe fn free_chain(&self, mut chain: Chain, bytes: usize) {
        // SAFETY: the chain is of tables of this pool, by the caller's promise.
        while let Some(table) = unsafe { chain.pop(self) } {
            // SAFETY: promised by the caller for each.
            unsafe { self.free(table, bytes) };
        }
    }

    /// Remembers `next` as what follows `table` in a chain; in entry 0 unless overridden. It is an
    /// even number there, an invalid descriptor: a walker that still comes by sees a fault.
    ///
    /// # Safety
    /// `table` is allocated, and unhooked or not published yet.
    unsafe fn link(&self, table: PhysAddr, next: PhysAddr) {
        // SAFETY: entry 0 is within the table, which is allocated.
        unsafe { self.store(table, 0, next.0) };
    }

    /// What `link` last remembered for `table`.
    ///
    /// # Safety
    /// As for `link`, which was called.
    unsafe fn next(&self, table: PhysAddr) -> PhysAddr {
        // SAFETY: entry 0 is within the table, which is allocated.
        PhysAddr(unsafe { self.load(table, 0) })
    }

    /// Writes cached lines of `entries` back, so that a walker that does not snoop sees them, and
    /// sees them before any later store. Nothing to do for a coherent one.
    fn clean(&self, table: PhysAddr, entries: Range<usize>) {
        let _ = (table, entries);
    }

    /// All stores before are seen by a walker before any store, to a device's doorbell say, after.
    fn barrier(&self) {
        barrier::stores();
    }

    /// Reads an entry; later reads through a table found there see it as it was published.
    ///
    /// # Safety
    /// `table` is allocated and `index` within it.
    #[inline]
    unsafe fn load(&self, table: PhysAddr, index: usize) -> u64 {
        // SAFETY: the caller promises that the entry is within an allocated table.
        unsafe { entry::load(self.pointer(table), index) }
    }

    /// Writes an entry whole; nobody else writes it at the same time.
    ///
    /// # Safety
    /// As for `load`.
    #[inline]
    unsafe fn store(&self, table: PhysAddr, index: usize, value: u64) {
        // SAFETY: the caller promises that the entry is within an allocated table.
        unsafe { entry::store(self.pointer(table), index, value) };
    }

    /// Writes an entry if it is still `current`, an invalid descriptor; else tells what it is.
    ///
    /// # Errors
    /// What stands there.
    ///
    /// # Safety
    /// As for `load`.
    #[inline]
    unsafe fn publish(
        &self,
        table: PhysAddr,
        index: usize,
        current: u64,
        new: u64,
    ) -> Result<(), u64> {
        // SAFETY: the caller promises that the entry is within an allocated table.
        unsafe { entry::publish(self.pointer(table), index, current, new) }
    }

    /// Lets `fill` write a table that no walker can reach yet.
    ///
    /// # Safety
    /// `table` came from `alloc` with `bytes`, is not published, and nobody else touches it.
    #[inline]
    unsafe fn unpublished<R>(
        &self,
        table: PhysAddr,
        bytes: usize,
        fill: impl FnOnce(&mut [u64]) -> R,
    ) -> R
    where
        Self: Sized,
    {
        let start = self.pointer(table).as_ptr();
        // SAFETY: the memory is ours alone, initialised and aligned, by the caller's promise.
        fill(unsafe { core::slice::from_raw_parts_mut(start, bytes / 8) })
    }
}

// SAFETY: every method is the other pool's.
unsafe impl<P: Pool> Pool for &P {
    const DIRECT: bool = P::DIRECT;

    fn alloc(&self, bytes: usize) -> Option<PhysAddr> {
        (**self).alloc(bytes)
    }

    unsafe fn free(&self, table: PhysAddr, bytes: usize) {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).free(table, bytes) }
    }

    #[inline]
    fn pointer(&self, table: PhysAddr) -> NonNull<u64> {
        (**self).pointer(table)
    }

    fn alloc_chain(&self, bytes: usize, count: usize) -> Chain {
        (**self).alloc_chain(bytes, count)
    }

    unsafe fn free_chain(&self, chain: Chain, bytes: usize) {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).free_chain(chain, bytes) }
    }

    #[inline]
    unsafe fn link(&self, table: PhysAddr, next: PhysAddr) {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).link(table, next) }
    }

    #[inline]
    unsafe fn next(&self, table: PhysAddr) -> PhysAddr {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).next(table) }
    }

    #[inline]
    fn clean(&self, table: PhysAddr, entries: Range<usize>) {
        (**self).clean(table, entries);
    }

    #[inline]
    fn barrier(&self) {
        (**self).barrier();
    }

    #[inline]
    unsafe fn load(&self, table: PhysAddr, index: usize) -> u64 {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).load(table, index) }
    }

    #[inline]
    unsafe fn store(&self, table: PhysAddr, index: usize, value: u64) {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).store(table, index, value) }
    }

    #[inline]
    unsafe fn publish(
        &self,
        table: PhysAddr,
        index: usize,
        current: u64,
        new: u64,
    ) -> Result<(), u64> {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).publish(table, index, current, new) }
    }

    #[inline]
    unsafe fn unpublished<R>(
        &self,
        table: PhysAddr,
        bytes: usize,
        fill: impl FnOnce(&mut [u64]) -> R,
    ) -> R {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).unpublished(table, bytes, fill) }
    }
}

/// An entry as one word of 64 bits.
#[cfg(target_has_atomic = "64")]
pub(crate) mod entry {
    use core::ptr::NonNull;
    use core::sync::atomic::{AtomicU64, Ordering};

    /// # Safety
    /// `index` lies within the table at `base`.
    #[inline]
    unsafe fn at<'a>(base: NonNull<u64>, index: usize) -> &'a AtomicU64 {
        // SAFETY: within the table, by the caller's promise.
        let entry = unsafe { base.add(index) };
        // SAFETY: an aligned u64 that is only accessed atomically while published.
        unsafe { AtomicU64::from_ptr(entry.as_ptr()) }
    }

    /// # Safety
    /// As for `at`.
    #[inline]
    pub(crate) unsafe fn load(base: NonNull<u64>, index: usize) -> u64 {
        // SAFETY: as for `at`.
        unsafe { at(base, index) }.load(Ordering::Acquire)
    }

    /// # Safety
    /// As for `at`.
    #[inline]
    pub(crate) unsafe fn store(base: NonNull<u64>, index: usize, value: u64) {
        // SAFETY: as for `at`.
        unsafe { at(base, index) }.store(value, Ordering::Release);
    }

    /// # Safety
    /// As for `at`.
    #[inline]
    pub(crate) unsafe fn publish(
        base: NonNull<u64>,
        index: usize,
        current: u64,
        new: u64,
    ) -> Result<(), u64> {
        // SAFETY: as for `at`.
        let entry = unsafe { at(base, index) };
        entry.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).map(drop)
    }
}

#[cfg(not(target_has_atomic = "64"))]
pub(crate) use words::entry;
