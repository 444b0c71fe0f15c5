//! Whether a sweep for empty tables is under way: its claims make other claims fail.
//!
//! A call that failed tries again while no sweep is under way. It must keep the next sweep from beginning:
//! threads that reclaim all the time leave no gap between two sweeps that a second try could rely on.

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

    /// Calls `again` after the sweep that was under way since `before` was counted. No other sweep begins
    /// before `again` has returned. Returns `None` if no sweep was under way.
    #[cold]
    pub(super) fn after<T>(&self, before: usize, again: impl FnOnce() -> T) -> Option<T> {
        if before.is_multiple_of(2) && self.count() == before {
            return None;
        }
        let _sweep = self.begin();
        Some(again())
    }

    /// Begins a sweep, after the end of one that is under way.
    pub(super) fn begin(&self) -> Sweep<'_> {
        loop {
            match self.try_begin() {
                Some(sweep) => break sweep,
                None => relax(),
            }
        }
    }

    fn try_begin(&self) -> Option<Sweep<'_>> {
        let now = self.count();
        let free = now.is_multiple_of(2)
            && self
                .0
                .compare_exchange(now, now.wrapping_add(1), Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        // Made only then: its drop ends a sweep.
        free.then(|| Sweep(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(loom))]
    #[test]
    fn a_second_try_is_made_after_a_sweep_and_no_sweep_begins_meanwhile() {
        let sweeps = Sweeps::new();
        let before = sweeps.count();
        assert_eq!(sweeps.after(before, || unreachable!("no sweep was under way")), None::<()>);
        let sweep = sweeps.begin();
        let during = sweeps.count();
        drop(sweep);
        for counted in [before, during] {
            assert_eq!(sweeps.after(counted, || sweeps.try_begin().is_none()), Some(true));
        }
        assert!(sweeps.try_begin().is_some(), "it ended");
    }

    /// One thread's sweeps claim everything, one after the other.
    #[cfg(loom)]
    #[test]
    fn loom_a_second_try_meets_no_sweep() {
        use crate::sync::atomic::AtomicBool;
        use loom::sync::Arc;

        loom::model(|| {
            let shared = Arc::new((Sweeps::new(), AtomicBool::new(false)));
            let sweeper = {
                let shared = Arc::clone(&shared);
                loom::thread::spawn(move || {
                    let (sweeps, claimed) = &*shared;
                    for _ in 0..2 {
                        let _sweep = sweeps.begin();
                        claimed.store(true, Ordering::Release);
                        claimed.store(false, Ordering::Release);
                    }
                })
            };
            let (sweeps, claimed) = &*shared;
            let before = sweeps.count();
            if claimed.load(Ordering::Acquire) {
                let again = sweeps.after(before, || claimed.load(Ordering::Acquire));
                assert_eq!(again, Some(false), "another sweep began");
            }
            sweeper.join().expect("it does not panic");
        });
    }
}
