//! The lock between processes, as threads see it: to the kernel, a thread that ends is like a process that does.
//! The guests test it between a program of musl's and those of glibc's.

use std::fs::File;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;

use super::*;
use crate::sys::of_libc::OfLibc;
use crate::sys::robust::{MutexState, held_here};

fn lock_in(directory: &tempfile::TempDir) -> SharedLock {
    let (path, device) = (directory.path().join("lock"), directory.path().join("device"));
    File::create(&device).expect("made");
    SharedLock::open(&path, &device).expect("made")
}

/// The word that the kernel knows.
fn word(lock: &SharedLock) -> u32 {
    let mutex = lock.mutex();
    mutex.words().words()[mutex.word_index()].load(Ordering::Relaxed)
}

#[test]
fn its_word_has_the_owner_and_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let lock = lock_in(&directory);
    let at = crate::sys::page_size() / 4 - 2;
    assert_eq!(lock.mutex().word_index(), at, "where every program looks");
    let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    for _ in 0..3 {
        let (held, found) = lock.mutex().acquire().expect("free");
        assert_eq!((found, word(&lock)), (MutexState::Free, thread));
        assert_eq!(lock.mutex().acquire().err(), Some(Errno::DEADLK), "its owner takes it again");
        drop(held);
        assert_eq!(word(&lock), 0);
    }
}

#[test]
fn one_thread_has_it_at_a_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let lock = lock_in(&directory);
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
    let lock = lock_in(&directory);
    for _ in 0..3 {
        thread::scope(|scope| {
            let end = || std::mem::forget(lock.mutex().acquire().expect("free"));
            scope.spawn(end).join().expect("it ends");
        });
        let (held, found) = lock.mutex().acquire().expect("its owner ended");
        assert_eq!(found, MutexState::OwnerDied);
        drop(held);
        let (_held, found) = lock.mutex().acquire().expect("free");
        assert_eq!(found, MutexState::Free);
    }
}

#[test]
fn a_waiter_gets_it_from_a_thread_that_ends_and_can_be_stopped() {
    let directory = tempfile::tempdir().expect("a directory");
    let lock = lock_in(&directory);
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
        drop(held);
    });
    assert_eq!(word(&lock), 0);
}

#[test]
fn it_shares_the_threads_list_with_mutexes_of_libcs() {
    let directory = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let [one, other] = &directory;
    let locks = [lock_in(one), lock_in(other)];
    let libcs = [false, true].map(|inherits| OfLibc::new(inherits).expect("made"));
    // Taken in turns, and released in each order, among others that are held.
    let orders: Vec<[usize; 4]> = (0..256)
        .map(|n| [n & 3, n >> 2 & 3, n >> 4 & 3, n >> 6])
        .filter(|order| (0..4).all(|index| order.contains(&index)))
        .collect();
    assert_eq!(orders.len(), 24);
    for (taken, given) in
        orders.iter().flat_map(|taken| orders.iter().map(move |given| (taken, given)))
    {
        let mut held = [None, None];
        let mut held_count = 4;
        for &index in taken {
            match index {
                0 | 1 => held[index] = Some(locks[index].mutex().acquire().expect("free")),
                _ => assert_eq!(libcs[index - 2].lock(), Ok(())),
            }
        }
        for &index in given {
            match index {
                0 | 1 => drop(held[index].take()),
                _ => assert_eq!(libcs[index - 2].unlock(), Ok(())),
            }
            held_count -= 1;
            assert_eq!(held_here(), Ok(held_count), "{taken:?}, {given:?}");
        }
    }
    // A thread that ends with all four.
    for order in &orders {
        let end = || {
            for &index in order {
                match index {
                    0 | 1 => std::mem::forget(locks[index].mutex().acquire().expect("free")),
                    _ => assert_eq!(libcs[index - 2].lock(), Ok(())),
                }
            }
            assert_eq!(locks[0].mutex().acquire().err(), Some(Errno::DEADLK));
        };
        thread::scope(|scope| scope.spawn(end).join().expect("it ends"));
        for lock in &locks {
            let (_held, found) = lock.mutex().acquire().expect("its owner ended");
            assert_eq!(found, MutexState::OwnerDied);
        }
        for mutex in &libcs {
            assert_eq!(mutex.lock(), Err(Errno::from_raw_os_error(libc::EOWNERDEAD)));
            assert_eq!(mutex.unlock(), Ok(()));
        }
    }
}

/// The process that repairs may die too. Then the next owner is told again.
#[test]
fn whoever_ends_while_repairing_is_an_owner_that_died() {
    let directory = tempfile::tempdir().expect("a directory");
    let lock = lock_in(&directory);
    for _ in 0..3 {
        let end = || std::mem::forget(lock.mutex().acquire().expect("free or dead"));
        thread::scope(|scope| scope.spawn(end).join().expect("it ends"));
    }
    let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    let (held, found) = lock.mutex().acquire().expect("dead");
    assert_eq!((found, word(&lock)), (MutexState::OwnerDied, thread), "the mark is gone");
    drop(held);
    assert_eq!(lock.mutex().acquire().expect("released").1, MutexState::Free);
}

#[test]
fn a_lifeline_is_cut_by_its_threads_end() {
    let file = tempfile::tempfile().expect("a scratch file");
    file.set_len(65_536).expect("grown");
    let words = crate::SharedWords::map(&file, 16_384).expect("maps");
    let is_alive = |at: usize| Lifeline::is_alive(&words.words()[at]);
    assert!(!is_alive(crate::sys::page_size() / 4 - 2), "none was made");
    let at = thread::scope(|scope| {
        let held = scope.spawn(|| {
            let lifeline = Lifeline::hold(&file).expect("made");
            assert!(is_alive(lifeline.word()));
            lifeline.word()
        });
        held.join().expect("it ends")
    });
    assert!(!is_alive(at));
}
