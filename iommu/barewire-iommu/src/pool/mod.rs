//! Allocates tables, and is the only way to their memory.
//!
//! # How it works
//! A table is identified by its physical address. No code keeps a reference to memory that a walker
//! may read: a live entry is accessed by [`Pool::load`], [`Pool::store`] and [`Pool::publish`],
//! each a single access to the whole entry. A table that no walker can reach yet may be filled by
//! plain stores, in [`Pool::unpublished`]. Hardware, models and model checkers differ in these
//! methods only.
//!
//! - [`arena`]: a pool over a stretch of memory, ready to use.
//! - [`chain`]: a linked list of tables.
//! - [`words`]: writes descriptors on processors without 64-bit atomics.
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

/// Allocates memory for tables.
///
/// Only the first three methods are required. Override the others as follows:
///
/// - `link` and `next`, if the links are kept elsewhere than in the tables;
/// - `alloc_chain` and `free_chain`, if several tables can be allocated or freed at once;
/// - `end`, if it is known where the memory ends;
/// - `place`, if `pointer` does more than a sum;
/// - `clean`, for a walker that does not snoop the caches;
/// - `COHERENT`, for a walker that does.
///
/// # Safety
/// `alloc` hands out memory that has no other user until it is freed. It is initialised (with
/// anything) and aligned to its size, or to 64 bytes if smaller, and its address is below the
/// table's `output_bits`. `pointer` returns the same memory's address in this address space for as
/// long as it is allocated. An implementor that replaces provided methods keeps their promises.
pub unsafe trait Pool {
    /// Whether `load`, `store`, `publish` and `unpublished` are the provided ones. If so, the
    /// pointer to a table is asked for once and its entries are accessed directly, which makes
    /// loops over entries tight.
    const DIRECT: bool = false;

    /// Whether walkers snoop the processors' caches, so that `clean` does nothing. Then no work is
    /// done for walkers that do not: no barrier before a table is published, and no mark on the
    /// entry that leads to it (see `table/mod.rs`, *Ordering*).
    ///
    /// `false` is right for every walker and costs time. `true` for a walker that does not snoop is
    /// a bug: it reads old entries, and memory that was never a table. So `true` is what an
    /// implementor has to say.
    const COHERENT: bool = false;

    /// The first address above all its memory, if it knows that. A table whose output addresses end
    /// before is refused.
    fn end(&self) -> Option<PhysAddr> {
        None
    }

    /// Allocates a table of `bytes`, a power of two. `None` if there is no memory.
    fn alloc(&self, bytes: usize) -> Option<PhysAddr>;

    /// Frees a table.
    ///
    /// # Safety
    /// It came from `alloc` with the same `bytes`, no walker can reach it, and it is not used again.
    unsafe fn free(&self, table: PhysAddr, bytes: usize);

    /// The address of a table in this address space.
    fn pointer(&self, table: PhysAddr) -> NonNull<u64>;

    /// [`pointer`](Self::pointer) of a table that is known to be allocated. Each level of a walk asks, so a
    /// pool that checks there need not check here.
    ///
    /// # Safety
    /// `table` came from `alloc` and is not freed.
    #[inline]
    unsafe fn place(&self, table: PhysAddr) -> NonNull<u64> {
        self.pointer(table)
    }

    /// Allocates up to `count` tables at once, for a call that will need about that many: at least
    /// one, unless there is no memory. The caller returns unused ones by `free_chain`.
    ///
    /// The provided method allocates a single table, so that a pool which counts allocations counts
    /// the tables that are used.
    fn alloc_chain(&self, bytes: usize, count: usize) -> Chain {
        let _ = count;
        let mut chain = Chain::new();
        if let Some(table) = self.alloc(bytes) {
            // SAFETY: allocated just now, and in no other chain.
            unsafe { chain.push(self, table) };
        }
        chain
    }

    /// Frees all tables of a chain.
    ///
    /// # Safety
    /// As for `free`, for each table.
    unsafe fn free_chain(&self, mut chain: Chain, bytes: usize) {
        // SAFETY: the caller promises that the chain's tables are of this pool.
        while let Some(table) = unsafe { chain.pop(self) } {
            // SAFETY: promised by the caller for each.
            unsafe { self.free(table, bytes) };
        }
    }

    /// Stores `next` as the table after `table` in a chain. The provided method stores it in entry
    /// 0. The address is even and so an invalid descriptor: a walker that still reads it faults.
    ///
    /// # Safety
    /// `table` is allocated, and unhooked or not yet published.
    unsafe fn link(&self, table: PhysAddr, next: PhysAddr) {
        // SAFETY: entry 0 is within the table, which is allocated.
        unsafe { self.store(table, 0, next.0) };
    }

    /// The address that `link` last stored for `table`.
    ///
    /// # Safety
    /// As for `link`, which was called before.
    unsafe fn next(&self, table: PhysAddr) -> PhysAddr {
        // SAFETY: entry 0 is within the table, which is allocated.
        PhysAddr(unsafe { self.load(table, 0) })
    }

    /// Begins to write cached lines of `entries` back to memory, including those that other
    /// processors wrote. When this thread's next `barrier` returns, a walker that does not snoop
    /// sees them. (On Arm: a clean to the point of coherency of each line, DC CVAC. It may complete
    /// them itself.) Does nothing for a coherent walker, and is not needed if
    /// [`COHERENT`](Self::COHERENT).
    fn clean(&self, table: PhysAddr, entries: Range<usize>) {
        let _ = (table, entries);
    }

    /// Orders stores for walkers: a walker sees all earlier stores before any later store, for
    /// example to a device's doorbell. Completes this thread's earlier cleans. (On Arm: DSB.)
    fn barrier(&self) {
        if Self::COHERENT {
            barrier::stores();
        } else {
            barrier::stores_and_cleans();
        }
    }

    /// Reads an entry. Later reads through a table found there see it as it was published.
    ///
    /// # Safety
    /// `table` is allocated and `index` within it.
    #[inline]
    unsafe fn load(&self, table: PhysAddr, index: usize) -> u64 {
        // SAFETY: the caller promises that the table is allocated.
        let place = unsafe { self.place(table) };
        // SAFETY: and that the entry is within it.
        unsafe { entry::load(place, index) }
    }

    /// Writes a whole entry. No other thread may write it at the same time.
    ///
    /// # Safety
    /// As for `load`.
    #[inline]
    unsafe fn store(&self, table: PhysAddr, index: usize, value: u64) {
        // SAFETY: the caller promises that the table is allocated.
        let place = unsafe { self.place(table) };
        // SAFETY: and that the entry is within it.
        unsafe { entry::store(place, index, value) };
    }

    /// Writes an entry if its value is still `current`, an invalid descriptor.
    ///
    /// # Errors
    /// The value of the entry, if it is another one.
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
        // SAFETY: the caller promises that the table is allocated.
        let place = unsafe { self.place(table) };
        // SAFETY: and that the entry is within it.
        unsafe { entry::publish(place, index, current, new) }
    }

    /// Calls `fill` with the words of a table that no walker can reach yet.
    ///
    /// # Safety
    /// `table` came from `alloc` with `bytes`, is not published, and has no other user.
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
        // SAFETY: the caller promises that the table is allocated.
        let start = unsafe { self.place(table) }.as_ptr();
        // SAFETY: the caller promises that the memory is ours only, initialised and aligned.
        fill(unsafe { core::slice::from_raw_parts_mut(start, bytes / 8) })
    }
}

// SAFETY: every method calls the other pool's.
unsafe impl<P: Pool> Pool for &P {
    const DIRECT: bool = P::DIRECT;
    const COHERENT: bool = P::COHERENT;

    fn end(&self) -> Option<PhysAddr> {
        (**self).end()
    }

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

    #[inline]
    unsafe fn place(&self, table: PhysAddr) -> NonNull<u64> {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).place(table) }
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

/// An entry as one 64-bit atomic.
#[cfg(target_has_atomic = "64")]
pub(crate) mod entry {
    use core::ptr::NonNull;
    use core::sync::atomic::{AtomicU64, Ordering};

    /// # Safety
    /// `index` is within the table at `base`.
    #[inline]
    unsafe fn at<'a>(base: NonNull<u64>, index: usize) -> &'a AtomicU64 {
        // SAFETY: the caller promises that the entry is within the table.
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

    /// `store` for a leaf: not ordered after earlier stores, which on Arm is cheaper.
    ///
    /// # Safety
    /// As for `at`.
    #[inline]
    pub(crate) unsafe fn store_leaf(base: NonNull<u64>, index: usize, value: u64) {
        // SAFETY: as for `at`.
        unsafe { at(base, index) }.store(value, Ordering::Relaxed);
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

/// Leaves, which lead to no table: nothing that a walker reads must be written before them.
pub(crate) mod leaf {
    use super::{PhysAddr, Pool, entry};

    /// Writes a whole leaf entry, or clears it. Other stores may be seen before it, until
    /// [`Pool::barrier`]. No other thread may write the entry at the same time.
    ///
    /// # Safety
    /// As for [`Pool::load`].
    #[inline]
    pub(crate) unsafe fn store<P: Pool>(pool: &P, table: PhysAddr, index: usize, value: u64) {
        if P::DIRECT {
            // SAFETY: the caller promises that the table is allocated.
            let place = unsafe { pool.place(table) };
            // SAFETY: and that the entry is within it.
            unsafe { entry::store_leaf(place, index, value) };
        } else {
            // SAFETY: promised by the caller.
            unsafe { pool.store(table, index, value) };
        }
    }
}
