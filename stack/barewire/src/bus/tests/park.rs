//! A platform for tests: threads that sleep, and a lock that lends priorities, in the standard
//! library's terms.

#![allow(unsafe_code, reason = "it promises that its locks exclude threads from each other")]

use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crate::bus::platform::{AtomicU32, Inheritance, Platform, WAITERS, WaitWord};

/// One condition variable for all words: it wakes too often, never too seldom.
static SLEEP: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

fn sleep_while(word: WaitWord<'_>, expected: u32) {
    let mut guard = SLEEP.0.lock().expect("no panic while locked");
    while word.load() == expected {
        let (after, timeout) =
            SLEEP.1.wait_timeout(guard, Duration::from_secs(60)).expect("no panic while locked");
        assert!(!timeout.timed_out(), "a thread sleeps that nobody woke");
        guard = after;
    }
}

fn wake_all() {
    let _guard = SLEEP.0.lock().expect("no panic while locked");
    SLEEP.1.notify_all();
}

std::thread_local! {
    static ME: u8 = const { 0 };
}

fn me() -> usize {
    ME.with(|me| core::ptr::from_ref(me).addr())
}

/// Sleeps as on a futex.
pub(super) struct Park;

impl Platform for Park {
    fn context(&self) -> usize {
        me()
    }

    fn spins(&self) -> u32 {
        10
    }

    fn wait(&self, word: WaitWord<'_>, expected: u32) {
        sleep_while(word, expected);
    }

    fn wake(&self, _word: *const AtomicU32) {
        wake_all();
    }
}

/// [`Park`], with a lock that would lend priorities if these threads had any.
pub(super) struct ParkInheriting;

impl Platform for ParkInheriting {
    fn context(&self) -> usize {
        Park.context()
    }

    fn wait(&self, word: WaitWord<'_>, expected: u32) {
        Park.wait(word, expected);
    }

    fn wake(&self, word: *const AtomicU32) {
        Park.wake(word);
    }

    fn inheritance(&self) -> Option<&dyn Inheritance> {
        Some(self)
    }
}

// SAFETY: stacks of live threads differ; a word is taken by a compare-and-swap from 0.
unsafe impl Inheritance for ParkInheriting {
    fn id(&self) -> u32 {
        // Stacks of live threads are farther apart than this.
        (me() >> 4) as u32 & 0x3fff_ffff | 1
    }

    fn lock(&self, word: &AtomicU32) {
        let id = self.id();
        loop {
            let seen = word.load(Ordering::Relaxed);
            assert_ne!(seen & !WAITERS, id, "locked twice by one thread");
            if seen == 0 {
                // Other threads may be waiting: the releasing thread must look for them.
                let taken =
                    word.compare_exchange(0, id | WAITERS, Ordering::Acquire, Ordering::Relaxed);
                if taken.is_ok() {
                    return;
                }
            } else if seen & WAITERS != 0
                || word
                    .compare_exchange(seen, seen | WAITERS, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            {
                sleep_while(word.into(), seen | WAITERS);
            }
        }
    }

    fn unlock(&self, word: &AtomicU32) {
        assert_eq!(word.load(Ordering::Relaxed), self.id() | WAITERS, "ours, and somebody waits");
        word.store(0, Ordering::Release);
        wake_all();
    }
}
