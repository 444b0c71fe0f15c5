//! A spin lock for a few dozen instructions at a time: the flush queue's and the IOVA allocator's.
//!
//! # Ordering
//! Taking it is an acquire, giving it back a release: whoever holds it sees everything that was
//! done before under it, tables written by unmaps in the flush queue included.
//!
//! # Not supported
//! Fairness, and being taken in an interrupt handler whose processor may hold it: the handler would
//! wait for ever. Map and unmap with those interrupts masked, or not in handlers.
//!
//! # Safety
//! The value lies in a cell that only the holder touches.
#![allow(unsafe_code, reason = "the value lies in a cell that only the lock's holder touches")]

use crate::sync::atomic::{AtomicBool, Ordering};

#[cfg(not(loom))]
use self::cell::UnsafeCell;
#[cfg(loom)]
use loom::cell::UnsafeCell;

/// A value for whoever holds the lock.
#[derive(Debug)]
pub(crate) struct Lock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached by the one holder of the lock, so sharing the lock moves the
// value from holder to holder at most.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Gives the lock back, on unwinding too.
struct Held<'l>(&'l AtomicBool);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<T> Lock<T> {
    /// A lock nobody holds.
    pub(crate) fn new(value: T) -> Self {
        Self { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock and lets `work` have the value.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        while self
            .held
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            // Waiting reads alone: a failing exchange would take the line from the holder each time.
            relax();
            // To the model checker each look is a branch, and it takes the yield above for enough.
            while !cfg!(loom) && self.held.load(Ordering::Relaxed) {
                relax();
            }
        }
        let _held = Held(&self.held);
        self.value.with_mut(|value| {
            // SAFETY: we hold the lock, so nobody else has a reference to the value.
            let value = unsafe { &mut *value };
            work(value)
        })
    }
}

/// Waits a moment.
pub(crate) fn relax() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    // The model checker has to be told that another thread must go on.
    #[cfg(loom)]
    loom::thread::yield_now();
}

#[cfg(not(loom))]
mod cell {
    /// As the model checker's, so that the code above is the same for both.
    #[derive(Debug)]
    pub(super) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(super) fn new(value: T) -> Self {
            Self(core::cell::UnsafeCell::new(value))
        }

        pub(super) fn with_mut<R>(&self, work: impl FnOnce(*mut T) -> R) -> R {
            work(self.0.get())
        }
    }
}
