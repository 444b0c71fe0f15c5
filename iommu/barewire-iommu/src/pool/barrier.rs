//! The barrier between stores to tables and a store to a device.
#![allow(unsafe_code, reason = "a barrier instruction")]

/// A walker sees all earlier stores before any later store.
#[inline]
pub(super) fn stores() {
    // A device's doorbell is device memory. On Arm, only DSB guarantees that an observer outside
    // the inner shareable domain sees the stores to normal memory before the doorbell.
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier only waits.
    unsafe {
        core::arch::asm!("dsb st", options(nostack, preserves_flags));
    }
    #[cfg(target_arch = "arm")]
    // SAFETY: a barrier only waits.
    unsafe {
        core::arch::asm!("dsb", options(nostack, preserves_flags));
    }
    core::sync::atomic::fence(core::sync::atomic::Ordering::Release);
}

/// [`stores`], and completes this processor's cache maintenance before.
///
/// DSB ST does not wait for cache maintenance: only a DSB for loads and stores does (Arm ARM DDI
/// 0487, *Data Synchronization Barrier*). It is a fence for threads too.
#[inline]
pub(super) fn stores_and_cleans() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier only waits.
    unsafe {
        core::arch::asm!("dsb sy", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "aarch64"))]
    stores();
}
