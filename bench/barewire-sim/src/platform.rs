//! The bus's platform on simulated threads: a waiting thread yields its processor, in virtual time.
//!
//! *Read first*: `barewire::bus::platform` for what is promised, [`crate::engine`] for what it
//! costs.
//!
//! # How it works
//! Both platforms act on the engine whose simulated thread calls, so they have no state of
//! their own: `&SimPlatform` is `&'static`. Outside any simulated thread they wait by polling, as
//! `barewire::bus::platform::Spin` does.
//!
//! ```
//! use barewire::bus::Platform;
//! use barewire_sim::SimPlatform;
//!
//! let plain: &'static dyn Platform = &SimPlatform;
//! let lending: &'static dyn Platform = &SimPlatform::WITH_INHERITANCE;
//! assert!(plain.inheritance().is_none() && lending.inheritance().is_some());
//! ```
//!
//! # Not supported
//! Words shared between engines or with other threads of the host.

#![allow(unsafe_code, reason = "it promises that its locks exclude threads from each other")]

use std::sync::atomic::Ordering;

use barewire::bus::Platform;
use barewire::bus::platform::{AtomicU32, Inheritance, WaitWord};

use crate::engine::{self, relax_current};

/// How often a thread with a processor of its own looks before it sleeps: about the time of a short
/// message, with the engine's usual relax.
const SPINS: u32 = 100;

/// Simulated threads that wait for each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimPlatform;

impl SimPlatform {
    /// The simulated platform with priority inheritance.
    pub const WITH_INHERITANCE: InheritingPlatform = InheritingPlatform;
}

/// [`SimPlatform`] with priority inheritance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InheritingPlatform;

impl Platform for SimPlatform {
    /// The number of the simulated thread, from 1; 0 outside.
    fn context(&self) -> usize {
        engine::current().and_then(|engine| engine.running_index()).map_or(0, |index| index + 1)
    }

    fn relax(&self) {
        relax_current();
    }

    /// 0 on a shared processor, because the awaited thread may need that processor.
    fn spins(&self) -> u32 {
        if engine::current().is_some_and(|engine| engine.shares_processor()) { 0 } else { SPINS }
    }

    fn wait(&self, word: WaitWord<'_>, expected: u32) {
        match engine::current() {
            Some(engine) => engine.wait(word, expected),
            None => self.relax(),
        }
    }

    fn wake(&self, word: *const AtomicU32) {
        if let Some(engine) = engine::current() {
            engine.wake(word);
        }
    }

    fn masked(&self, f: &mut dyn FnMut()) {
        match engine::current() {
            Some(engine) => engine.masked(f),
            None => f(),
        }
    }
}

impl Platform for InheritingPlatform {
    fn context(&self) -> usize {
        SimPlatform.context()
    }

    fn relax(&self) {
        SimPlatform.relax();
    }

    fn spins(&self) -> u32 {
        SimPlatform.spins()
    }

    fn wait(&self, word: WaitWord<'_>, expected: u32) {
        SimPlatform.wait(word, expected);
    }

    fn wake(&self, word: *const AtomicU32) {
        SimPlatform.wake(word);
    }

    fn masked(&self, f: &mut dyn FnMut()) {
        SimPlatform.masked(f);
    }

    fn inheritance(&self) -> Option<&dyn Inheritance> {
        Some(self)
    }
}

// SAFETY: a simulated thread has its own id, and one runs at a time; a word is taken when it is 0.
unsafe impl Inheritance for InheritingPlatform {
    fn id(&self) -> u32 {
        engine::current().map_or(engine::OUTSIDE_ID, |engine| engine.lock_id())
    }

    fn lock(&self, word: &AtomicU32) {
        if let Some(engine) = engine::current() {
            engine.lock(word);
            return;
        }
        let id = self.id();
        while word.compare_exchange(0, id, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.relax();
        }
    }

    fn unlock(&self, word: &AtomicU32) {
        match engine::current() {
            Some(engine) => engine.unlock(word),
            None => word.store(0, Ordering::Release),
        }
    }
}
