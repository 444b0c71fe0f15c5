//! A lock made by a musl program, used in this glibc program. The guests test the reverse: there the command
//! uses musl, and the programs that it runs use glibc.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;

use super::lock::{FILE_BYTES, layout};
use super::*;
use crate::sys::owner::MutexState;

/// The first word of musl's mutex: robust, inherits priorities, between processes, checks errors.
const MUSLS_TYPE: u32 = 4 | 8 | 128 | 2;

/// A lock as musl's programs make it: a free mutex.
fn of_musl(directory: &tempfile::TempDir) -> SharedLock {
    let (path, device) = (directory.path().join("lock"), directory.path().join("device"));
    File::create(&device).expect("made");
    drop(SharedLock::open(&path, &device).expect("made"));
    let file = File::options().write(true).open(&path).expect("ours");
    let ours = layout();
    let (arch, _) = ours.split_once(" gnu ").expect("this is glibc's");
    let text = format!("{arch} musl mutex 40");
    file.write_all_at(&[0; 48], 16).expect("written");
    file.write_all_at(text.as_bytes(), 16).expect("written");
    file.write_all_at(&vec![0; FILE_BYTES as usize - 64], 64).expect("written");
    file.write_all_at(&MUSLS_TYPE.to_ne_bytes(), 64).expect("written");
    SharedLock::open(&path, &device).expect("of musl's")
}

/// The word that the kernel knows. The words that musl's own code reads are as that left them: its type, its
/// waiters, and its count.
fn word(lock: &SharedLock) -> u32 {
    let mutex = lock.mutex();
    let of_musl = [16, 18, 21].map(|at: usize| mutex.words().words()[at].load(Ordering::Relaxed));
    assert_eq!(of_musl, [MUSLS_TYPE, 0, 0]);
    mutex.words().words()[mutex.word_index()].load(Ordering::Relaxed)
}

#[test]
fn its_word_has_the_owner_and_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let lock = of_musl(&directory);
    assert_eq!(lock.mutex().word_index(), 17, "not where glibc has it");
    let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    for _ in 0..3 {
        let (held, found) = lock.mutex().acquire().expect("free");
        assert_eq!((found, word(&lock)), (MutexState::Free, thread));
        assert_eq!(lock.mutex().acquire().err(), Some(Errno::DEADLK), "by its owner again");
        drop(held);
        assert_eq!(word(&lock), 0);
    }
}

#[test]
fn what_is_left_in_it_is_reset_once_nobody_has_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let lock = of_musl(&directory);
    // Waiters of musl's, of a thread that is gone with its namespace.
    for at in [17, 18] {
        lock.mutex().words().words()[at].store(0x8000_0001, Ordering::Relaxed);
    }
    let (path, device) = (lock.path().to_owned(), directory.path().join("device"));
    drop(lock);
    let lock = SharedLock::open(&path, &device).expect("of musl's");
    assert_eq!(word(&lock), 0);
}

#[test]
fn one_thread_has_it_at_a_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let lock = of_musl(&directory);
    let (inside, turns) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    let (_held, found) = lock.mutex().acquire().expect("in its turn");
                    assert_eq!(found, MutexState::Free);
                    assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "alone");
                    turns.fetch_add(1, Ordering::Relaxed);
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!((turns.load(Ordering::Relaxed), word(&lock)), (8_000, 0));
}

#[test]
fn a_thread_that_ends_with_it_is_told_to_the_next() {
    let directory = tempfile::tempdir().expect("a directory");
    let lock = of_musl(&directory);
    for _ in 0..3 {
        thread::scope(|scope| {
            let end = || std::mem::forget(lock.mutex().acquire().expect("free"));
            scope.spawn(end).join().expect("it ends");
        });
        let (held, found) = lock.mutex().acquire().expect("its owner ended");
        assert_eq!(found, MutexState::OwnerDied);
        held.make_consistent().expect("held");
        drop(held);
        let (_held, found) = lock.mutex().acquire().expect("free");
        assert_eq!(found, MutexState::Free);
    }
}

#[test]
fn a_waiter_gets_it_from_a_thread_that_ends_and_can_be_stopped() {
    let directory = tempfile::tempdir().expect("a directory");
    let lock = of_musl(&directory);
    let held = lock.mutex().acquire().expect("free");
    let asked = AtomicU32::new(0);
    thread::scope(|scope| {
        let stopped = scope.spawn(|| {
            let mut go_on = |_| match asked.fetch_add(1, Ordering::Relaxed) {
                0 => std::ops::ControlFlow::Continue(()),
                _ => std::ops::ControlFlow::Break(()),
            };
            lock.mutex().acquire_while(&mut go_on).map(drop)
        });
        assert_eq!(stopped.join().expect("runs"), Err(Errno::INTR));
    });
    drop(held);
    let (tell, told) = std::sync::mpsc::channel();
    let lock_of_both = &lock;
    thread::scope(|scope| {
        scope.spawn(move || {
            let lock = lock_of_both;
            std::mem::forget(lock.mutex().acquire().expect("free"));
            tell.send(()).expect("heard");
            thread::sleep(Duration::from_millis(50));
        });
        told.recv().expect("it has it");
        let (held, found) = lock.mutex().acquire().expect("its owner ended");
        assert_eq!(found, MutexState::OwnerDied);
        held.make_consistent().expect("held");
    });
    assert_eq!(word(&lock), 0);
}

#[test]
fn it_shares_the_threads_list_with_mutexes_of_libcs() {
    let (one, other) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("two"));
    let foreign = of_musl(&one);
    let device = other.path().join("device");
    File::create(&device).expect("made");
    let own = [0, 1].map(|number| {
        SharedLock::open(&other.path().join(format!("lock{number}")), &device).expect("made")
    });
    let [first, second] = &own;
    // Released in each order, among others that are held.
    for order in 0..6 {
        let mut held = [
            Some(first.mutex().acquire().expect("free")),
            Some(foreign.mutex().acquire().expect("free")),
            Some(second.mutex().acquire().expect("free")),
        ];
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        for index in orders[order] {
            drop(held[index].take());
        }
        assert_eq!(word(&foreign), 0);
    }
    // One that ends with all three.
    thread::scope(|scope| {
        let end = || {
            for lock in [first, &foreign, second] {
                std::mem::forget(lock.mutex().acquire().expect("free"));
            }
            assert_eq!(foreign.mutex().acquire().err(), Some(Errno::DEADLK));
        };
        scope.spawn(end).join().expect("it ends");
    });
    for lock in [first, &foreign, second] {
        let (held, found) = lock.mutex().acquire().expect("its owner ended");
        assert_eq!(found, MutexState::OwnerDied);
        held.make_consistent().expect("held");
    }
}

#[test]
fn a_lifeline_is_cut_by_its_threads_end() {
    let file = tempfile::tempfile().expect("a scratch file");
    file.set_len(4096).expect("grown");
    let map = || crate::SharedWords::map(&file, 1024).expect("maps");
    let words = map();
    let is_alive = |at: usize| Lifeline::is_alive(&words.words()[at]);
    assert!(!is_alive(16), "none was made");
    let at = thread::scope(|scope| {
        let held = scope.spawn(|| {
            let lifeline = Lifeline::hold(map(), 16).expect("made");
            assert!(is_alive(lifeline.word()));
            lifeline.word()
        });
        held.join().expect("it ends")
    });
    assert!(!is_alive(at));
}
