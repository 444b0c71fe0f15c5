//! The protocol under contention, its panics, and the boost itself if permissions allow it.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use barewire::bus::platform::WAITERS;

use super::*;
use crate::worker::{FifoPriority, WorkerOptions, spawn_scoped};

/// A lock that is nothing but the protocol, as the core uses it.
struct Lock(AtomicU32);

impl Lock {
    fn take(&self) {
        let free = self.0.compare_exchange(0, FUTEX_PI.id(), Ordering::Acquire, Ordering::Relaxed);
        if free.is_err() {
            FUTEX_PI.lock(&self.0);
        }
    }

    fn give_back(&self) {
        let mine = FUTEX_PI.id();
        if self.0.compare_exchange(mine, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            FUTEX_PI.unlock(&self.0);
        }
    }
}

#[test]
fn an_id_is_the_threads_own_and_stays() {
    let id = FUTEX_PI.id();
    assert_eq!(id, FUTEX_PI.id());
    assert!(id > 0 && id < 1 << 30);
    assert!(std::path::Path::new(&format!("/proc/self/task/{id}")).exists());
    let other = thread::spawn(|| FUTEX_PI.id()).join().expect("runs");
    assert_ne!(id, other);
}

#[test]
fn threads_that_contend_exclude_each_other() {
    const TURNS: u64 = 10_000;
    let (lock, turns) = (Lock(AtomicU32::new(0)), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..TURNS {
                    lock.take();
                    assert_eq!(lock.0.load(Ordering::Relaxed) & !WAITERS, FUTEX_PI.id());
                    turns.store(turns.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    lock.give_back();
                }
            });
        }
    });
    assert_eq!(turns.into_inner(), 4 * TURNS);
    assert_eq!(lock.0.into_inner(), 0, "free in the end");
}

#[test]
#[should_panic(expected = "this thread holds it already")]
fn taking_it_twice_is_a_mistake_and_told() {
    let lock = Lock(AtomicU32::new(0));
    lock.take();
    FUTEX_PI.lock(&lock.0);
}

#[test]
#[should_panic(expected = "by who does not hold it")]
fn giving_back_anothers_is_a_mistake_and_told() {
    let lock = Lock(AtomicU32::new(0));
    thread::scope(|scope| {
        scope.spawn(|| lock.take());
    });
    FUTEX_PI.unlock(&lock.0);
}

#[test]
#[should_panic(expected = "has ended without giving it back")]
fn an_owner_that_ended_is_told() {
    let lock = Lock(AtomicU32::new(0));
    thread::scope(|scope| {
        scope.spawn(|| lock.take());
    });
    lock.take();
}

/// The kernel's priority of a thread, from `/proc/…/stat`: 20 for an ordinary thread, `-1 -
/// priority` for a real-time one, and the waiter's while it is lent.
fn kernel_priority(id: u32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{id}/stat")).expect("a thread");
    // The name, in parentheses, may hold anything; the priority is the 16th field behind it.
    let fields = stat.rsplit(')').next().expect("a name");
    fields.split_whitespace().nth(15).and_then(|field| field.parse().ok()).expect("a priority")
}

#[test]
fn a_waiter_lends_the_owner_its_priority() {
    let lock = Lock(AtomicU32::new(0));
    let taken = AtomicBool::new(false);
    lock.take();
    let owner = FUTEX_PI.id();
    let before = kernel_priority(owner);
    let options = WorkerOptions {
        scheduler: Some(FifoPriority::new(10).expect("1 to 99")),
        ..WorkerOptions::default()
    };
    thread::scope(|scope| {
        let waiter = spawn_scoped(scope, &options, |_| {
            lock.take();
            taken.store(true, Ordering::Relaxed);
            lock.give_back();
        });
        let waiter = match waiter {
            Ok(waiter) => waiter,
            Err(error) => {
                println!("SKIPPED: no right to real-time priorities here: {error}");
                lock.give_back();
                return;
            }
        };
        let begun = Instant::now();
        while kernel_priority(owner) != -11 && begun.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(1));
        }
        let lent = kernel_priority(owner);
        assert!(!taken.load(Ordering::Relaxed));
        lock.give_back();
        let after = kernel_priority(owner);
        waiter.join().expect("runs");
        println!("priority of the owner: {before} before, {lent} with a waiter, {after} after");
        assert_eq!((lent, after), (-11, before));
    });
}

#[test]
#[should_panic(expected = "has ended without giving it back")]
fn an_owner_that_ends_while_waited_for_is_told() {
    let lock = Arc::new(Lock(AtomicU32::new(0)));
    let (held, mine) = (Arc::new(Barrier::new(2)), FUTEX_PI.id());
    let owner = {
        let (lock, held) = (Arc::clone(&lock), Arc::clone(&held));
        thread::spawn(move || {
            lock.take();
            held.wait();
            // Waits until the kernel has a waiter; then this thread ends.
            while lock.0.load(Ordering::Relaxed) & WAITERS == 0 {
                thread::sleep(Duration::from_millis(1));
            }
        })
    };
    held.wait();
    assert_ne!(lock.0.load(Ordering::Relaxed), mine);
    lock.take();
    drop(owner);
}
