//! The bus under a model checker: every interleaving of threads that run prepared accesses, sync,
//! submit, lock and cancel, with threads that sleep and are woken.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p barewire --release --test loom`
#![cfg(loom)]
#![allow(unsafe_code, reason = "loom's cells hand out pointers, and a bus is leaked and got back")]

#[path = "mixes/mod.rs"]
mod mixes;

use std::sync::Mutex;
use std::sync::atomic::Ordering;

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

fn check(threads: &'static [&'static [Op]], preemption_bound: Option<usize>) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemption_bound;
    model.check(move || {
        let bus = model_bus(&Park);
        let mut threads = (0_u8..).zip(threads).map(|(n, ops)| Worker::new(bus, n, ops));
        let first = threads.next().expect("there are threads");
        let others: Vec<_> = threads.collect();
        let handles: Vec<_> =
            others.into_iter().map(|other| thread::spawn(move || other.run())).collect();
        let mut outcomes: Vec<Outcome> = vec![first.run()];
        outcomes.extend(handles.into_iter().map(|handle| handle.join().expect("no panic")));
        mixes::assert_promises(&bus.take().into_sent(), &outcomes);
    });
}

#[test]
fn two_threads_sync() {
    check(&[&[Sync], &[Sync]], None);
}

#[test]
fn two_threads_async() {
    check(&[&[Async], &[Async]], None);
}

#[test]
fn two_threads_two_syncs() {
    check(&[&[Sync, Sync], &[Sync, Sync]], None);
}

#[test]
fn async_sync_beside_cancel_lock() {
    check(&[&[Async, Sync], &[Cancel, Lock]], None);
}

#[test]
fn transact_beside_prepared() {
    check(&[&[Transact], &[Prepared]], None);
}
