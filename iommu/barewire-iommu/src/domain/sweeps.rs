//! Whether a sweep for empty tables is under way: its claims make other claims fail.

use crate::lock::relax;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Counts the beginnings and ends of sweeps: odd while one is under way.
#[derive(Debug)]
pub(super) struct Sweeps(AtomicUsize);

/// A sweep under way; it ends on drop, also when unwinding.
pub(super) struct Sweep<'s>(&'s Sweeps);

impl Drop for Sweep<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::Release);
    }
}

impl Sweeps {
    pub(super) fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// The count, to be compared after a failure.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    /// Waits for the end of a sweep. Returns whether one was under way since `before` was counted.
    #[cold]
    pub(super) fn passed(&self, before: usize) -> bool {
        while self.count() % 2 == 1 {
            relax();
        }
        before % 2 == 1 || self.count() != before
    }

    /// Begins a sweep, unless one is under way.
    pub(super) fn begin(&self) -> Option<Sweep<'_>> {
        let now = self.count();
        let free = now.is_multiple_of(2)
            && self
                .0
                .compare_exchange(now, now.wrapping_add(1), Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        free.then_some(Sweep(self))
    }
}
