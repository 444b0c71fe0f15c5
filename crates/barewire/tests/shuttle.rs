//! The bus under a randomised scheduler: larger mixes than the model checker can exhaust, a million
//! schedules of them.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p barewire --release --test shuttle`
//!
//! A failing schedule is printed, and replayed by `shuttle::replay`.
#![cfg(shuttle)]
#![allow(unsafe_code, reason = "a bus is leaked and got back, see mixes")]

#[path = "mixes/mod.rs"]
mod mixes;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;

use barewire::bus::platform::{AtomicU32, Inheritance, WAITERS};
use barewire::bus::{Platform, Pump};
use mixes::Op::{self, Async, Cancel, Enqueue, Lock, Prepared, Race, Sync, Transact, Try, Wait};
use mixes::{Outcome, Worker, model_bus};

shuttle::lazy_static! {
    static ref SLEEP: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
}

fn sleep_while(word: &AtomicU32, expected: u32) {
    let guard = SLEEP.0.lock().expect("no panic");
    if word.load(Ordering::SeqCst) == expected {
        drop(SLEEP.1.wait(guard).expect("no panic"));
    }
}

fn wake_all() {
    let _guard = SLEEP.0.lock().expect("no panic");
    SLEEP.1.notify_all();
}

fn me() -> usize {
    usize::from(thread::current().id()) + 1
}

/// Threads sleep on one condition, and each is a context of its own; with a lock that would lend
/// priorities, or without.
struct Park {
    inherits: bool,
}

impl Platform for Park {
    fn context(&self) -> usize {
        me()
    }

    fn spins(&self) -> u32 {
        1
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

    fn inheritance(&self) -> Option<&dyn Inheritance> {
        self.inherits.then_some(self as &dyn Inheritance)
    }
}

impl Inheritance for Park {
    fn id(&self) -> u32 {
        me() as u32
    }

    fn lock(&self, word: &AtomicU32) {
        loop {
            let seen = word.load(Ordering::SeqCst);
            assert_ne!(seen & !WAITERS, self.id(), "locked twice by one thread");
            let wanted = if seen == 0 { self.id() | WAITERS } else { seen | WAITERS };
            let set = word.compare_exchange(seen, wanted, Ordering::SeqCst, Ordering::SeqCst);
            match set {
                Ok(0) => return,
                Ok(_) => sleep_while(word, wanted),
                Err(_) => {}
            }
        }
    }

    fn unlock(&self, word: &AtomicU32) {
        assert_eq!(word.load(Ordering::SeqCst), self.id() | WAITERS, "ours, and forced");
        word.store(0, Ordering::SeqCst);
        wake_all();
    }
}

const ALL: [Op; 9] = [Prepared, Sync, Async, Lock, Cancel, Enqueue, Wait, Transact, Try];

/// Schedules of a test: a million in all five, unless `BAREWIRE_SCHEDULES` says otherwise.
fn schedules() -> usize {
    let all = std::env::var("BAREWIRE_SCHEDULES").ok();
    let all: usize = all.map_or(1_000_000, |all| all.parse().expect("a number of schedules"));
    all.div_ceil(5)
}

/// Random mixes of up to `ops` operations on each of `threads` threads, in random schedules; with
/// a worker where the bus is to have one.
fn check(platform: &'static dyn Platform, pump: Pump, threads: u8, ops: usize) {
    let served = Arc::new(AtomicU64::new(0));
    let counter = served.clone();
    // Where priorities are lent, two futures of a thread are in no order.
    let raced = if platform.inheritance().is_some() { None } else { Some(Race) };
    let kinds: Vec<Op> = ALL.into_iter().chain(raced).collect();
    shuttle::check_random(
        move || {
            let bus = model_bus(platform, pump);
            let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
            let worker = (pump == Pump::Worker).then(|| {
                let stop = stop.clone();
                thread::spawn(move || bus.get().serve(&stop))
            });
            let workers: Vec<_> = (0..threads)
                .map(|number| {
                    let ops = (0..thread_rng().gen_range(1..=ops))
                        .map(|_| kinds[thread_rng().gen_range(0..kinds.len())]);
                    let worker = Worker::new(bus, number, ops.collect());
                    thread::spawn(move || worker.run())
                })
                .collect();
            let mut outcomes: Vec<Outcome> =
                workers.into_iter().map(|worker| worker.join().expect("no panic")).collect();
            mixes::assert_results(&mut outcomes);
            stop.store(true, Ordering::SeqCst);
            bus.get().ring();
            if let Some(worker) = worker {
                counter.fetch_add(worker.join().expect("no panic"), Ordering::Relaxed);
            }
            mixes::assert_promises(&bus.take().into_sent(), &outcomes);
        },
        schedules(),
    );
    println!(
        "FIGURE: shuttle, {threads} threads of up to {ops} operations, {pump:?}: {} schedules, {} messages served",
        schedules(),
        served.load(Ordering::Relaxed)
    );
}

#[test]
fn three_threads_three_operations() {
    check(&Park { inherits: false }, Pump::Caller, 3, 3);
}

#[test]
fn two_threads_six_operations() {
    check(&Park { inherits: false }, Pump::Caller, 2, 6);
}

#[test]
fn five_threads_two_operations() {
    check(&Park { inherits: false }, Pump::Caller, 5, 2);
}

#[test]
fn three_threads_beside_a_worker() {
    check(&Park { inherits: false }, Pump::Worker, 3, 2);
}

#[test]
fn three_threads_that_lend_priorities() {
    check(&Park { inherits: true }, Pump::Caller, 3, 3);
}
