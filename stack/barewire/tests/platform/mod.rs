//! The platforms on which the bus is tested: threads that spin, that sleep, or that lend their
//! priority.
//!
//! The test program says in its module `sleep` how threads sleep: threads of the system
//! (`threads/sleep.rs`), or those of the model checker (`shuttle/sleep.rs`).
#![allow(dead_code, reason = "each test file uses some of it")]
#![allow(unsafe_code, reason = "it promises that its locks exclude threads from each other")]

use std::sync::atomic::Ordering;

use barewire::bus::Platform;
use barewire::bus::platform::{AtomicU32, Inheritance, WAITERS, WaitWord};

use crate::sleep::{me, sleep_while, wake, yield_now};

/// What a test adds to the calls of a platform.
pub(crate) trait Interpose: Sync {
    /// The thread is about to wait, spinning, asleep or for a lock.
    fn waits(&self) {}

    /// The thread is to sleep. Returns whether it does: a wait may return early, without a reason.
    fn sleeps(&self) -> bool {
        true
    }

    /// Sleeping threads are to be woken.
    fn wakes(&self) {}

    fn masked(&self, f: &mut dyn FnMut()) {
        f();
    }
}

impl Interpose for () {}

/// Threads, each a context of its own.
pub(crate) struct Threads<I = ()> {
    pub(crate) spins: u32,
    pub(crate) sleeps: bool,
    pub(crate) inherits: bool,
    pub(crate) interposed: I,
}

impl<I> Threads<I> {
    pub(crate) const fn spinning(interposed: I) -> Self {
        Self { spins: 3, sleeps: false, inherits: false, interposed }
    }

    pub(crate) const fn parking(interposed: I) -> Self {
        Self { spins: 0, sleeps: true, inherits: false, interposed }
    }

    /// As parking ones, with a lock that would lend priorities if these threads had any.
    pub(crate) const fn inheriting(interposed: I) -> Self {
        Self { spins: 0, sleeps: true, inherits: true, interposed }
    }
}

pub(crate) static SPINNING: Threads = Threads::spinning(());
pub(crate) static PARKING: Threads = Threads::parking(());
pub(crate) static INHERITING: Threads = Threads::inheriting(());

/// Every platform on which a bus must keep its promises.
pub(crate) static PLATFORMS: [&dyn Platform; 3] = [&SPINNING, &PARKING, &INHERITING];

/// The platform's name in a failure.
pub(crate) fn name_of(platform: &dyn Platform) -> &'static str {
    match (platform.inheritance(), platform.spins()) {
        (Some(_), _) => "inheriting",
        (None, 0) => "parking",
        (None, _) => "spinning",
    }
}

impl<I: Interpose> Platform for Threads<I> {
    fn context(&self) -> usize {
        me()
    }

    fn spins(&self) -> u32 {
        self.spins
    }

    fn relax(&self) {
        self.interposed.waits();
        yield_now();
    }

    fn wait(&self, word: WaitWord<'_>, expected: u32) {
        self.interposed.waits();
        if !self.interposed.sleeps() {
            return;
        }
        if self.sleeps {
            sleep_while(word, expected);
        } else {
            yield_now();
        }
    }

    fn wake(&self, word: *const AtomicU32) {
        self.interposed.wakes();
        if self.sleeps {
            wake(word);
        }
    }

    fn masked(&self, f: &mut dyn FnMut()) {
        self.interposed.masked(f);
    }

    fn inheritance(&self) -> Option<&dyn Inheritance> {
        self.inherits.then_some(self as &dyn Inheritance)
    }
}

// SAFETY: a thread has its own number; a word is taken by a compare-and-swap from 0.
unsafe impl<I: Interpose> Inheritance for Threads<I> {
    fn id(&self) -> u32 {
        me() as u32
    }

    fn lock(&self, word: &AtomicU32) {
        self.interposed.waits();
        loop {
            let seen = word.load(Ordering::Relaxed);
            assert_ne!(seen & !WAITERS, self.id(), "locked twice by one thread");
            // Others may wait: with WAITERS set, unlocking has to look.
            let wanted = if seen == 0 { self.id() | WAITERS } else { seen | WAITERS };
            match word.compare_exchange(seen, wanted, Ordering::Acquire, Ordering::Relaxed) {
                Ok(0) => return,
                Ok(_) => sleep_while(word.into(), wanted),
                Err(_) => {}
            }
        }
    }

    fn unlock(&self, word: &AtomicU32) {
        assert_eq!(word.load(Ordering::Relaxed), self.id() | WAITERS, "ours, and somebody waits");
        word.store(0, Ordering::Release);
        wake(word);
    }
}
