//! How threads of a Linux process wait for a bus: by futexes.
//!
//! * [`Futex`] spins for a moment, then sleeps; its instance is [`FUTEX`].
//! * [`FutexPi`] also lends a waiter's priority to the holder of the bus; its instance is
//!   [`FUTEX_PI`].
//!
//! Read first: [`barewire::bus::platform`]; futex(2), on `FUTEX_WAIT` and on `FUTEX_LOCK_PI`.
//!
//! # How long to spin
//! A thread that sleeps costs its waker a system call and itself the way back: together some
//! microseconds, longer than a message of a few bytes takes. [`SPINS`] takes about that long, so a
//! waiter never waits more than twice as long as with the better choice. The example `futex`
//! measures both on this machine.
//!
//! # Ordering
//! None here: see the core's module.
//!
//! # Not supported
//! Waiters in several processes: the futexes are private; use [`shared`](crate::shared). A child of
//! fork without exec, if another thread had the bus at the fork: in the child it is never released.

mod pi;

pub use pi::{FUTEX_PI, FutexPi};

use barewire::bus::Platform;
use barewire::bus::platform::{AtomicU32, WaitWord};

use crate::sys;

/// How many times a waiter polls before it sleeps; see the module.
pub const SPINS: u32 = 100;

/// Threads that spin for a moment and then sleep.
#[derive(Clone, Copy, Debug, Default)]
pub struct Futex;

/// The instance of [`Futex`].
pub static FUTEX: Futex = Futex;

thread_local! {
    /// A variable per thread, whose address identifies the thread. It has no destructor, so it may
    /// be used in signal handlers and while the thread ends.
    static CONTEXT: u8 = const { 0 };
}

/// The calling thread's number; no two live threads share one.
fn context() -> usize {
    CONTEXT.with(|context| std::ptr::from_ref(context).addr())
}

fn wait(word: WaitWord<'_>, expected: u32) {
    // The caller checks again, whatever ended the sleep: for example a signal or a changed word.
    sys::futex::wait(word, expected);
}

impl Platform for Futex {
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
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn live_threads_have_contexts_of_their_own() {
        let here = FUTEX.context();
        assert_eq!(here, FUTEX_PI.context(), "one thread, one context");
        let barrier = std::sync::Barrier::new(4);
        let contexts: Vec<usize> = thread::scope(|scope| {
            let one = || {
                let context = FUTEX.context();
                barrier.wait();
                context
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|thread| thread.join().expect("runs")).collect()
        });
        let mut all = contexts;
        all.push(here);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 5);
    }

    #[test]
    fn a_word_that_changed_is_not_slept_on() {
        let word = AtomicU32::new(1);
        // A sleep would not end, because no thread wakes it.
        FUTEX.wait((&word).into(), 0);
    }

    #[test]
    fn a_wake_reaches_every_sleeper_and_a_stale_address_does_no_harm() {
        let word = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while word.load(Ordering::Acquire) == 0 {
                        FUTEX.wait((&word).into(), 0);
                    }
                });
            }
            // Long enough for some threads to sleep. The test is right for any number of sleepers.
            thread::sleep(Duration::from_millis(20));
            word.store(1, Ordering::Release);
            FUTEX.wake(&word);
        });
        let gone = std::ptr::from_ref(&*Box::new(AtomicU32::new(0)));
        FUTEX.wake(gone);
        FUTEX.wake(std::ptr::null());
    }

    /// A lock of three states on `wait` and `wake`, as a bus uses them: no wake-up may be lost.
    #[test]
    fn threads_that_contend_lose_no_wake_up() {
        const TURNS: u64 = 20_000;
        let (word, turns) = (AtomicU32::new(0), std::sync::atomic::AtomicU64::new(0));
        let take = || {
            let mut found = word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
            while found.is_err() {
                if word.swap(2, Ordering::Acquire) == 0 {
                    found = Ok(0);
                } else {
                    FUTEX.wait((&word).into(), 2);
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..TURNS {
                        take();
                        // Not atomic together: lost if two are in here.
                        turns.store(turns.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                        if word.swap(0, Ordering::Release) == 2 {
                            FUTEX.wake(&word);
                        }
                    }
                });
            }
        });
        assert_eq!(turns.into_inner(), 4 * TURNS);
    }
}
