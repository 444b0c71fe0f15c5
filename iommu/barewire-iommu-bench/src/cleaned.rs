//! Table memory for a walker that does not snoop the caches: changed lines are cleaned to memory.
//!
//! # How it works
//! The memory is [`Tables`]'. [`Pool::clean`] executes DC CVAC for each line of 64 bytes and then a
//! DSB, which waits for the lines (Arm ARM, DDI 0487, chapter D7, on the completion of
//! cache maintenance).
//! On other processors it does nothing: there this pool only compiles.
#![allow(unsafe_code, reason = "cache maintenance by instructions, and a pool over another")]

use core::ops::Range;
use core::ptr::NonNull;

use barewire_iommu::{Chain, PhysAddr, Pool};

use crate::pool::Tables;

/// The bytes of a cache line.
#[cfg(target_arch = "aarch64")]
const LINE: usize = 64;

/// The pool.
#[derive(Clone, Copy, Debug)]
pub struct CleaningPool;

// SAFETY: every method but `clean` is the other pool's, and `clean` changes nothing that a
// processor sees.
unsafe impl Pool for CleaningPool {
    const DIRECT: bool = true;

    #[inline]
    fn alloc(&self, bytes: usize) -> Option<PhysAddr> {
        Tables.alloc(bytes)
    }

    #[inline]
    unsafe fn free(&self, table: PhysAddr, bytes: usize) {
        // SAFETY: the caller's promise is the same.
        unsafe { Tables.free(table, bytes) };
    }

    #[inline]
    fn alloc_chain(&self, bytes: usize, count: usize) -> Chain {
        Tables.alloc_chain(bytes, count)
    }

    #[inline]
    unsafe fn free_chain(&self, chain: Chain, bytes: usize) {
        // SAFETY: the caller's promise is the same.
        unsafe { Tables.free_chain(chain, bytes) };
    }

    #[inline]
    fn pointer(&self, table: PhysAddr) -> NonNull<u64> {
        Tables.pointer(table)
    }

    #[cfg(target_arch = "aarch64")]
    #[inline]
    fn clean(&self, table: PhysAddr, entries: Range<usize>) {
        let start = table.0 as usize + entries.start * 8;
        let end = table.0 as usize + entries.end * 8;
        for line in (start & !(LINE - 1)..end).step_by(LINE) {
            // SAFETY: cleaning writes a line back and changes no value.
            unsafe { core::arch::asm!("dc cvac, {}", in(reg) line, options(nostack)) };
        }
        // SAFETY: a barrier only waits.
        unsafe { core::arch::asm!("dsb sy", options(nostack, preserves_flags)) };
    }

    #[cfg(not(target_arch = "aarch64"))]
    #[inline]
    fn clean(&self, _: PhysAddr, _: Range<usize>) {}
}
