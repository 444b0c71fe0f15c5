//! The worker: a bell, and a loop that serves the queue.
//!
//! # Ordering
//! The bell counts rings in its upper bits; its lowest bit says whether the worker sleeps. The
//! worker reads the bell, then the bus word, and sleeps only if the bell has not changed. A
//! submitter pushes first and rings afterwards. So either the worker sees the push, or the ring
//! keeps it awake.

use super::Bus;
use super::atomic::Ordering;
use super::panics::Panics;
use super::platform::Platform;
use super::uses::Uses;
use super::word::{BACKLOG, INHERITS, TENDED, is_free, pushed, tags};
use crate::controller::Controller;

/// The bit of the bell that says that the worker sleeps.
const SLEEPS: u32 = 1;
/// One ring.
const RING: u32 = 2;

impl<C: ?Sized, U: Uses> Bus<C, U> {
    /// Wakes the worker to look at the queue or at its `stop` flag.
    pub fn ring(&self) {
        let mut panics = Panics::none();
        self.ring_quietly(&mut panics);
        panics.raise();
    }

    /// [`Bus::ring`]; panics are kept in `panics` for the caller to raise.
    pub(super) fn ring_quietly(&self, panics: &mut Panics) {
        let ring = |seen: u32| Some((seen & !SLEEPS).wrapping_add(RING));
        let rung = self.bell.fetch_update(Ordering::Release, Ordering::Relaxed, ring);
        if rung.is_ok_and(|seen| seen & SLEEPS != 0) {
            panics.insist(|| self.platform().wake(&self.bell));
        }
    }

    /// Whether something is queued and no thread serves it.
    fn has_work(&self) -> bool {
        let word = self.word.load(Ordering::Acquire);
        let unattended = is_free(word) || tags(word) & (INHERITS | TENDED) == INHERITS;
        unattended && (!pushed(word).is_null() || tags(word) & BACKLOG != 0)
    }
}

impl<C: Controller + ?Sized, U: Uses> Bus<C, U> {
    /// Serves the queue until `stop` is set and the bell [rung](Bus::ring): the body of a worker
    /// thread. While there is no work it sleeps through the platform. Messages that are queued when
    /// it stops stay queued.
    ///
    /// Returns how many messages it ran.
    pub fn serve(&self, stop: &core::sync::atomic::AtomicBool) -> u64 {
        const { assert!(U::QUEUE, "the bus's type says that nothing is queued") }
        self.worker.store(self.context(), core::sync::atomic::Ordering::Relaxed);
        let mut ran = 0;
        let mut spins = self.platform().spins();
        loop {
            let bell = self.bell.load(Ordering::Acquire);
            if stop.load(core::sync::atomic::Ordering::Relaxed) {
                return ran;
            }
            let served = if self.has_work() { self.pump() } else { 0 };
            if served > 0 {
                ran += served as u64;
                spins = self.platform().spins();
                continue;
            }
            if spins > 0 {
                spins -= 1;
                self.platform().relax();
                continue;
            }
            let asleep = bell | SLEEPS;
            if bell == asleep
                || self
                    .bell
                    .compare_exchange(bell, asleep, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            {
                self.platform().wait((&self.bell).into(), asleep);
                spins = self.platform().spins();
            }
        }
    }
}
