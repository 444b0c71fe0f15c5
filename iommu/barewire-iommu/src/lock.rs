//! A spin lock, held for a few dozen instructions, for the flush queue and the IOVA allocator.
//!
//! # Ordering
//! Locking is an acquire and unlocking a release. So a holder sees everything that earlier holders
//! did, including the table stores of unmaps that are in the flush queue.
//!
//! # Not supported
//! - Fairness.
//! - Locking in an interrupt handler whose processor may hold the lock: the handler would wait for
//!   ever. Map and unmap with those interrupts masked, or outside handlers.
//!
//! # Safety
//! The value is in a cell that only the holder of the lock touches.
#![allow(unsafe_code, reason = "the value lies in a cell that only the lock's holder touches")]

use crate::sync::atomic::{AtomicBool, Ordering};

#[cfg(not(loom))]
use self::cell::UnsafeCell;
#[cfg(loom)]
use loom::cell::UnsafeCell;

/// A value that only the holder of the lock can reach.
#[derive(Debug)]
pub(crate) struct Lock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only the holder of the lock reaches the value. Sharing the lock at most moves the value
// from holder to holder.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Releases the lock on drop, also when unwinding.
struct SpinGuard<'l>(&'l AtomicBool);

impl Drop for SpinGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<T> Lock<T> {
    /// Creates the lock, free.
    pub(crate) fn new(value: T) -> Self {
        Self { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Acquires the lock and calls `work` with the value.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        while self
            .held
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            // Wait with plain loads: a failing exchange would take the cache line from the holder
            // each time.
            relax();
            // To the model checker each load is a branch; the yield above is enough for it.
            while !cfg!(loom) && self.held.load(Ordering::Relaxed) {
                relax();
            }
        }
        let _held = SpinGuard(&self.held);
        self.value.with_mut(|value| {
            // SAFETY: we hold the lock, so there is no other reference to the value.
            let value = unsafe { &mut *value };
            work(value)
        })
    }
}

/// Pauses the processor briefly inside a spin loop.
pub(crate) fn relax() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    // The model checker must be told that another thread has to run.
    #[cfg(loom)]
    loom::thread::yield_now();
}

#[cfg(not(loom))]
mod cell {
    /// Has the interface of the model checker's cell, so that the code above is the same for both.
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
