//! What tests of the bus on real threads share: platforms whose threads sleep, a watchdog, a waker.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use barewire::bus::Platform;
use barewire::bus::platform::{Inheritance, WAITERS};

/// One condition for all words: it wakes too often, never too seldom.
static SLEEP: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

fn sleep_lock() -> MutexGuard<'static, ()> {
    SLEEP.0.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sleep_while(word: &AtomicU32, expected: u32) {
    let asleep_since = Instant::now();
    let mut guard = sleep_lock();
    while word.load(Ordering::Relaxed) == expected {
        let slept = SLEEP.1.wait_timeout(guard, Duration::from_secs(60));
        guard = slept.unwrap_or_else(PoisonError::into_inner).0;
        assert!(asleep_since.elapsed().as_secs() < 60, "a thread sleeps that nobody woke");
    }
}

fn wake_all() {
    let _guard = sleep_lock();
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

/// Threads sleep as on a futex.
pub(crate) struct Park;

impl Platform for Park {
    fn context(&self) -> usize {
        me()
    }

    fn spins(&self) -> u32 {
        0
    }

    fn relax(&self) {
        thread::yield_now();
    }

    fn wait(&self, word: &AtomicU32, expected: u32) {
        sleep_while(word, expected);
    }

    fn wake(&self, _word: *const AtomicU32) {
        wake_all();
    }
}

/// Threads spin, and each is a context of its own.
pub(crate) struct Spinning;

impl Platform for Spinning {
    fn context(&self) -> usize {
        me()
    }

    fn spins(&self) -> u32 {
        3
    }

    fn relax(&self) {
        thread::yield_now();
    }

    fn wait(&self, _word: &AtomicU32, _expected: u32) {
        thread::yield_now();
    }

    fn wake(&self, _word: *const AtomicU32) {}
}

/// [`Park`] with a lock that would lend priorities if these threads had any.
pub(crate) struct ParkInheriting;

impl Platform for ParkInheriting {
    fn context(&self) -> usize {
        me()
    }

    fn spins(&self) -> u32 {
        0
    }

    fn relax(&self) {
        thread::yield_now();
    }

    fn wait(&self, word: &AtomicU32, expected: u32) {
        Park.wait(word, expected);
    }

    fn wake(&self, word: *const AtomicU32) {
        Park.wake(word);
    }

    fn inheritance(&self) -> Option<&dyn Inheritance> {
        Some(self)
    }
}

impl Inheritance for ParkInheriting {
    fn id(&self) -> u32 {
        me() as u32
    }

    fn lock(&self, word: &AtomicU32) {
        let id = self.id();
        loop {
            let seen = word.load(Ordering::Relaxed);
            assert_ne!(seen & !WAITERS, id, "locked twice by one thread");
            // Others may wait: with WAITERS set, unlocking has to look.
            let wanted = if seen == 0 { id | WAITERS } else { seen | WAITERS };
            match word.compare_exchange(seen, wanted, Ordering::Acquire, Ordering::Relaxed) {
                Ok(0) => return,
                Ok(_) => sleep_while(word, wanted),
                Err(_) => {}
            }
        }
    }

    fn unlock(&self, word: &AtomicU32) {
        assert_eq!(word.load(Ordering::Relaxed), self.id() | WAITERS, "ours, and somebody waits");
        word.store(0, Ordering::Release);
        wake_all();
    }
}

/// Every platform on which a bus must keep its promises.
pub(crate) static PLATFORMS: [&dyn Platform; 3] = [&Spinning, &Park, &ParkInheriting];

/// What a failure calls the platform.
pub(crate) fn name_of(platform: &dyn Platform) -> &'static str {
    match (platform.inheritance(), platform.spins()) {
        (Some(_), _) => "inheriting",
        (None, 0) => "parking",
        (None, _) => "spinning",
    }
}

/// Runs `body` on a thread of its own, and fails if it hangs. The hanging thread is left behind.
pub(crate) fn within(limit: Duration, what: &str, body: impl FnOnce() + Send + 'static) {
    let (ended, end) = mpsc::channel();
    let spawned = thread::spawn(move || {
        let ran = catch_unwind(AssertUnwindSafe(body));
        // After the limit the receiver is gone.
        let _ = ended.send(ran);
    });
    match end.recv_timeout(if cfg!(miri) { limit * 10 } else { limit }) {
        Ok(Ok(())) => spawned.join().expect("it has ended"),
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => panic!("{what} hangs"),
    }
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
