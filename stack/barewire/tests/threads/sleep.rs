//! How threads of the system sleep and wake each other.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use barewire::bus::platform::WaitWord;

use crate::threads::lock;

pub(crate) use std::thread::yield_now;

/// One condition variable for all words: threads wake too often, but no wake-up is lost.
static SLEEP: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

/// Sleeps as on a futex.
pub(crate) fn sleep_while(word: WaitWord<'_>, expected: u32) {
    let asleep_since = Instant::now();
    let mut guard = lock(&SLEEP.0);
    while word.load() == expected {
        let slept = SLEEP.1.wait_timeout(guard, Duration::from_secs(60));
        guard = slept.unwrap_or_else(PoisonError::into_inner).0;
        assert!(asleep_since.elapsed().as_secs() < 60, "a thread sleeps that nobody woke");
    }
}

pub(crate) fn wake(_word: *const AtomicU32) {
    let _guard = lock(&SLEEP.0);
    SLEEP.1.notify_all();
}

static THREADS_COUNT: AtomicUsize = AtomicUsize::new(0);

std::thread_local! {
    static ME: usize = THREADS_COUNT.fetch_add(1, Ordering::Relaxed) + 1;
}

/// A number above 0 that no two threads share.
pub(crate) fn me() -> usize {
    ME.with(|me| *me)
}
