//! The bus under a model checker: every interleaving of threads that run prepared accesses, sync,
//! submit, lock and cancel, with threads that sleep and are woken.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p barewire --release --test loom`
#![cfg(loom)]
#![allow(unsafe_code, reason = "loom's cells hand out pointers, and a bus is leaked and got back")]

#[path = "mixes/mod.rs"]
mod mixes;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use loom::thread::{self, Thread};

use barewire::bus::Platform;
use barewire::bus::platform::AtomicU32;
use mixes::Op::{self, Async, Cancel, Enqueue, Lock, Prepared, Sync, Transact, Try};
use mixes::{Outcome, Worker, model_bus};

loom::lazy_static! {
    /// Who sleeps where. Not loom's mutex: it is never kept over a switch, and so adds no
    /// interleavings of its own.
    static ref SLEEPERS: Mutex<Vec<(usize, Thread)>> = Mutex::new(Vec::new());
}

/// Threads sleep as on a futex: whether the word still is as expected is asked of its newest value.
struct Park;

impl Platform for Park {
    fn spins(&self) -> u32 {
        0
    }

    fn relax(&self) {
        thread::yield_now();
    }

    fn wait(&self, word: &AtomicU32, expected: u32) {
        let at = core::ptr::from_ref(word).addr();
        SLEEPERS.lock().expect("no panic").push((at, thread::current()));
        // Reading and writing in one reads the newest value, as the kernel's lock does.
        if word.fetch_or(0, Ordering::Relaxed) == expected {
            thread::park();
        }
    }

    fn wake(&self, word: *const AtomicU32) {
        let mut sleepers = SLEEPERS.lock().expect("no panic");
        let woken: Vec<_> = sleepers.extract_if(.., |(at, _)| *at == word.addr()).collect();
        drop(sleepers);
        for (_, thread) in woken {
            thread.unpark();
        }
    }
}

/// Runs every interleaving of `threads`, or every one of at most `preemption_bound` preemptions.
fn check(threads: &'static [&'static [Op]], preemption_bound: Option<usize>) {
    static INTERLEAVINGS: AtomicU64 = AtomicU64::new(0);
    let before = INTERLEAVINGS.load(Ordering::Relaxed);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemption_bound;
    model.check(move || {
        INTERLEAVINGS.fetch_add(1, Ordering::Relaxed);
        let bus = model_bus(&Park);
        let mut workers = (0_u8..).zip(threads).map(|(n, ops)| Worker::new(bus, n, ops));
        let first = workers.next().expect("there are threads");
        let others: Vec<_> = workers.collect();
        let handles: Vec<_> =
            others.into_iter().map(|other| thread::spawn(move || other.run())).collect();
        let mut outcomes: Vec<Outcome> = vec![first.run()];
        outcomes.extend(handles.into_iter().map(|handle| handle.join().expect("no panic")));
        mixes::assert_results(&mut outcomes);
        mixes::assert_promises(&bus.take().into_sent(), &outcomes);
    });
    let ran = INTERLEAVINGS.load(Ordering::Relaxed) - before;
    println!("{threads:?}: {ran} interleavings");
}

fn leak(threads: &[&[Op]]) -> &'static [&'static [Op]] {
    Vec::leak(threads.iter().map(|ops| &*Vec::leak(ops.to_vec())).collect())
}

const OPS: [Op; 5] = [Prepared, Sync, Async, Lock, Cancel];

#[test]
fn probe_pairs() {
    for a in OPS {
        for b in OPS {
            let t = std::time::Instant::now();
            check(leak(&[&[a], &[b]]), None);
            println!("{:?}", t.elapsed());
        }
    }
}

#[test]
fn probe_two() {
    for bound in [2, 3, 4, 5] {
        let t = std::time::Instant::now();
        check(&[&[Sync, Sync], &[Sync, Sync]], Some(bound));
        println!("{bound} {:?}", t.elapsed());
    }
}

#[test]
fn probe_three() {
    for bound in [1, 2, 3] {
        let t = std::time::Instant::now();
        check(&[&[Sync], &[Sync], &[Sync]], Some(bound));
        println!("{bound} {:?}", t.elapsed());
    }
}
