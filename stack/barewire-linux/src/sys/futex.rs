//! Threads that sleep on a word, and are woken by its address when the word may be gone.
//!
//! `rustix` takes a reference to the word. Here the word may be gone, and only its address remains;
//! the kernel compares the address with those on which threads sleep, and does not read it.
//!
//! # Safety
//! `FUTEX_WAKE` of a private futex neither reads nor writes its address. A stale address can at
//! worst wake a thread early, which [`Platform::wait`] allows.
//!
//! [`Platform::wait`]: barewire::bus::Platform::wait
#![allow(unsafe_code, reason = "a futex whose word may be gone, so by its address alone")]

use std::sync::atomic::AtomicU32;

use barewire::bus::platform::WaitWord;
use rustix::thread::futex;

/// Sleeps while `word` holds `expected`, or until a signal.
pub(crate) fn wait(word: WaitWord<'_>, expected: u32) {
    // SAFETY: the word lives as long as this borrow of it, and the kernel reads it.
    let word = unsafe { &*word.as_ptr() };
    let _ = futex::wait(word, futex::Flags::PRIVATE, expected, None);
}

/// Wakes every thread of this process that sleeps on `word`. May be called from a signal handler:
/// it makes one system call and restores `errno`.
pub(crate) fn wake_all(word: *const AtomicU32) {
    // SAFETY: it has no preconditions; its result belongs to this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: `errno` of this thread, which no other code writes meanwhile.
    let before = unsafe { errno.read() };
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel takes the address as a number (module, Safety).
    let woken = unsafe { libc::syscall(libc::SYS_futex, word, operation, i32::MAX) };
    debug_assert!(woken >= 0, "an aligned address can be woken");
    // SAFETY: as for the read above.
    unsafe { errno.write(before) };
}
