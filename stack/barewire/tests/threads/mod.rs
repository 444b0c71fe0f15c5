//! What tests of the bus on real threads share: a watchdog, a waker, and locks that a panic does not
//! spoil.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// Locks, whether or not another thread panicked meanwhile.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `body` on a thread of its own. If `progress` returns the same for `limit`, the body hangs:
/// it is left behind, and this panics with what `hanging` returns.
pub(crate) fn while_it_goes_on(
    limit: Duration,
    progress: impl Fn() -> u64,
    hanging: impl FnOnce() -> String,
    body: impl FnOnce() + Send + 'static,
) {
    let (ended, end) = mpsc::channel();
    let spawned = thread::spawn(move || {
        let ran = catch_unwind(AssertUnwindSafe(body));
        // After the limit the receiver is gone.
        let _ = ended.send(ran);
    });
    let (mut seen, mut since) = (progress(), Instant::now());
    let ran = loop {
        let rest = limit.saturating_sub(since.elapsed());
        match end.recv_timeout(rest.min(Duration::from_secs(1))) {
            Ok(ran) => break ran,
            Err(RecvTimeoutError::Timeout) if progress() != seen => {
                (seen, since) = (progress(), Instant::now());
            }
            Err(RecvTimeoutError::Timeout) if since.elapsed() < limit => {}
            Err(_) => panic!("{}", hanging()),
        }
    };
    spawned.join().expect("it has ended");
    if let Err(panic) = ran {
        resume_unwind(panic);
    }
}

/// Runs `body` on a thread of its own, and fails if it hangs.
pub(crate) fn within(limit: Duration, what: &str, body: impl FnOnce() + Send + 'static) {
    let limit = if cfg!(miri) { limit * 10 } else { limit };
    while_it_goes_on(limit, || 0, || format!("{what} hangs"), body);
}

/// Waits until `condition` holds.
pub(crate) fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

/// Counts how often a task is woken.
#[derive(Default)]
pub(crate) struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

impl Woken {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let woken = Arc::new(Self::default());
        (woken.clone(), woken.into())
    }

    pub(crate) fn times(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}
