//! Waking whoever sleeps on an address that may be gone.
//!
//! `rustix` takes a reference to the word; here there may be no word any more, only its address,
//! which the kernel compares with those that threads sleep on and does not read.
//!
//! # Safety
//! `FUTEX_WAKE` of a private futex reads and writes nothing at its address, whatever that is: the
//! worst that a stale one does is to wake a thread early, which [`Platform::wait`] allows for.
//!
//! [`Platform::wait`]: barewire::bus::Platform::wait
#![allow(unsafe_code, reason = "a futex whose word may be gone, so by its address alone")]

use std::sync::atomic::AtomicU32;

/// Wakes every thread of this process that sleeps on `word`. May be called from a signal handler:
/// one system call, and `errno` is as it was.
pub(crate) fn wake_all(word: *const AtomicU32) {
    // SAFETY: it has no preconditions, and its result is this thread's own.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: `errno` of this thread, which nobody else writes while we are here.
    let before = unsafe { errno.read() };
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel takes the address as a number (module, Safety).
    let woken = unsafe { libc::syscall(libc::SYS_futex, word, operation, i32::MAX) };
    debug_assert!(woken >= 0, "an aligned address can be woken");
    // SAFETY: as the read above.
    unsafe { errno.write(before) };
}
