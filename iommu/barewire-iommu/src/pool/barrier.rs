//! What stands between stores to tables and a store to a device.
#![allow(unsafe_code, reason = "a barrier instruction")]

/// All stores before are seen by a walker before any store after.
#[inline]
pub(super) fn stores() {
    // A device's doorbell is device memory: on Arm nothing but DSB makes stores to normal memory
    // complete before it for an observer outside the inner shareable domain.
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier has no effect but to wait.
    unsafe {
        core::arch::asm!("dsb st", options(nostack, preserves_flags));
    }
    #[cfg(target_arch = "arm")]
    // SAFETY: a barrier has no effect but to wait.
    unsafe {
        core::arch::asm!("dsb", options(nostack, preserves_flags));
    }
    core::sync::atomic::fence(core::sync::atomic::Ordering::Release);
}
