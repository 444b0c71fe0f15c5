//! Priority inheritance: the kernel lends the owner of a word the priority of its waiters.
//!
//! Read first: futex(2), "Priority-inheritance futexes"; the protocol in
//! [`barewire::bus::platform::Inheritance`].
//!
//! # How it works
//! The word holds the owner's thread id. The core acquires and releases an uncontended word by
//! compare-and-swap. A thread that finds it owned asks the kernel (`FUTEX_LOCK_PI`). The kernel
//! sets `FUTEX_WAITERS`, sorts the waiters by priority, and gives the owner the highest of their
//! priorities until it releases the word through the kernel too (`FUTEX_UNLOCK_PI`).
//!
//! # Not supported
//! A thread that ends while it owns the word: the next waiter panics, since the state of the bus is
//! unknown. (Between processes [`shared`](crate::shared) recovers from that.) Kernels without
//! `CONFIG_FUTEX_PI`.

#![allow(unsafe_code, reason = "it promises that its locks exclude threads from each other")]

use std::cell::Cell;
use std::sync::atomic::Ordering;

use barewire::bus::Platform;
use barewire::bus::platform::{AtomicU32, Inheritance, WaitWord};
use rustix::io::Errno;
use rustix::thread::futex;

use super::{SPINS, context, wait};
use crate::sys;

/// [`Futex`](super::Futex) with priority inheritance.
#[derive(Clone, Copy, Debug, Default)]
pub struct FutexPi;

/// The instance of [`FutexPi`].
pub static FUTEX_PI: FutexPi = FutexPi;

thread_local! {
    /// The thread's id, and the process's number when it was asked for: a child has another id, but a
    /// copy of this.
    static ID: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

#[cold]
fn ask_id() -> u32 {
    let id = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    ID.set((id, sys::process_number()));
    id
}

impl Platform for FutexPi {
    fn context(&self) -> usize {
        context()
    }

    fn spins(&self) -> u32 {
        SPINS
    }

    fn wait(&self, word: WaitWord<'_>, expected: u32) {
        wait(word, expected);
    }

    fn wake(&self, word: *const AtomicU32) {
        sys::futex::wake_all(word);
    }

    fn inheritance(&self) -> Option<&dyn Inheritance> {
        Some(self)
    }
}

// SAFETY: ids are thread ids, which the kernel gives to one live thread each; its PI futexes are the protocol.
unsafe impl Inheritance for FutexPi {
    /// The thread's id, asked for once per thread.
    fn id(&self) -> u32 {
        match ID.get() {
            (id, process) if id != 0 && process == sys::process_number() => id,
            _ => ask_id(),
        }
    }

    /// # Panics
    /// If the caller already owns the word; if its owner ended without releasing it; if the kernel
    /// has no PI futexes, or no memory for one.
    fn lock(&self, word: &AtomicU32) {
        loop {
            match futex::lock_pi(word, futex::Flags::PRIVATE, None) {
                // If the owner ended while we waited, the kernel gives us the word with a mark.
                Ok(()) if word.load(Ordering::Relaxed) & futex::OWNER_DIED == 0 => return,
                Ok(()) => panic!("the bus cannot be taken: {}", lock_failure(Errno::SRCH)),
                // A signal; or the owner is just ending, and the kernel asks to try again.
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => panic!("the bus cannot be taken: {}", lock_failure(errno)),
            }
        }
    }

    /// # Panics
    /// If the caller does not own the word.
    fn unlock(&self, word: &AtomicU32) {
        loop {
            match futex::unlock_pi(word, futex::Flags::PRIVATE) {
                Ok(()) => return,
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => {
                    panic!("the bus cannot be given back by who does not hold it: {errno}")
                }
            }
        }
    }
}

/// The meaning of an errno of `FUTEX_LOCK_PI`.
fn lock_failure(errno: Errno) -> String {
    match errno {
        Errno::DEADLK => "this thread holds it already".into(),
        Errno::SRCH => "the thread that held it has ended without giving it back".into(),
        Errno::NOSYS => {
            "the kernel has no priority-inheritance futexes (CONFIG_FUTEX_PI): use FUTEX".into()
        }
        errno => format!("{errno}"),
    }
}

#[cfg(test)]
mod tests;
