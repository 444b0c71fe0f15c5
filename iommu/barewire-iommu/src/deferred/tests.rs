//! Tests the queue on its own, with a keeper that records the calls it gets.

use core::cell::{Cell, RefCell};
use std::boxed::Box;
use std::rc::Rc;
use std::vec;
use std::vec::Vec;

use super::*;

/// One recorded call.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Did {
    Invalidated(Vec<u32>),
    Freed(Vec<u32>),
    Released(u32),
}

#[derive(Default)]
struct Book {
    did: RefCell<Vec<Did>>,
    failures: Cell<u32>,
    panics: Cell<bool>,
    /// Called while a flush is under way.
    meanwhile: RefCell<Option<Box<dyn FnMut()>>>,
}

impl Keeper for Book {
    type Held = u32;
    type Gathered = Vec<u32>;
    type Error = &'static str;

    fn join(&self, all: &mut Vec<u32>, more: Vec<u32>) {
        all.extend(more);
    }

    fn invalidate(&self, gathered: &Vec<u32>) -> Result<(), &'static str> {
        if let Some(meanwhile) = self.meanwhile.borrow_mut().as_mut() {
            meanwhile();
        }
        assert!(!self.panics.replace(false), "the hardware is on fire");
        if self.failures.get() > 0 {
            self.failures.set(self.failures.get() - 1);
            return Err("timeout");
        }
        self.did.borrow_mut().push(Did::Invalidated(gathered.clone()));
        Ok(())
    }

    fn free(&self, gathered: Vec<u32>) {
        self.did.borrow_mut().push(Did::Freed(gathered));
    }

    fn release(&self, held: u32) {
        self.did.borrow_mut().push(Did::Released(held));
    }
}

type Queue<const N: usize> = FlushQueue<Book, N>;

const ANY: Bounds = Bounds { entries: usize::MAX, bytes: u64::MAX, age_ticks: u64::MAX };

fn push<const N: usize>(queue: &Queue<N>, book: &Book, held: u32, bounds: &Bounds) -> Option<u64> {
    queue.push(book, held, vec![held], 10, bounds).ok()
}

fn done(numbers: &[u32]) -> Vec<Did> {
    let mut did = vec![Did::Invalidated(numbers.to_vec()), Did::Freed(numbers.to_vec())];
    did.extend(numbers.iter().map(|&held| Did::Released(held)));
    did
}

#[test]
fn one_flush_is_for_all_and_nothing_is_released_before() {
    let (queue, book) = (Queue::<4>::new(), Book::default());
    let tickets: Vec<_> = (1..=3).map(|i| push(&queue, &book, i, &ANY).unwrap()).collect();
    assert_eq!(*book.did.borrow(), []);
    assert!(tickets.iter().all(|&ticket| !queue.completed(ticket)));
    assert_eq!(queue.waiting(), (3, 30));
    assert_eq!(queue.try_flush(&book), Ok(FlushOutcome::Done));
    assert_eq!(book.did.take(), done(&[1, 2, 3]));
    assert!(tickets.iter().all(|&ticket| queue.completed(ticket)));
    assert_eq!(queue.waiting(), (0, 0));
    // The queue is empty, so no flush is issued.
    assert_eq!(queue.try_flush(&book), Ok(FlushOutcome::Done));
    assert_eq!(book.did.take(), []);
}

#[test]
fn the_bounds_hold_by_count_and_by_bytes() {
    let (queue, book) = (Queue::<3>::new(), Book::default());
    let two = Bounds { entries: 2, ..ANY };
    for (bounds, room) in [(ANY, 3), (two, 2), (Bounds { bytes: 29, ..ANY }, 2)] {
        for held in 0..room {
            assert!(push(&queue, &book, held, &bounds).is_some(), "{bounds:?}");
        }
        assert_eq!(queue.push(&book, 9, vec![9], 10, &bounds), Err((9, vec![9])), "{bounds:?}");
        queue.try_flush(&book).unwrap();
    }
    let none = Bounds { entries: 0, ..ANY };
    assert_eq!(push(&queue, &book, 1, &none), None);
    let (empty, book) = (Queue::<0>::new(), Book::default());
    assert_eq!(push(&empty, &book, 1, &ANY), None);
    assert!(!empty.is_due(5, &ANY));
    assert_eq!(empty.try_flush(&book), Ok(FlushOutcome::Done));
}

#[test]
fn the_oldest_tells_when_it_is_due() {
    let (queue, book) = (Queue::<3>::new(), Book::default());
    let ten = Bounds { age_ticks: 10, ..ANY };
    assert!(!queue.is_due(1000, &ten), "an empty queue is never due");
    push(&queue, &book, 1, &ten);
    assert!(!queue.is_due(1005, &ten));
    push(&queue, &book, 2, &ten);
    assert!(!queue.is_due(1009, &ten));
    // An older time, from another thread for example, does not turn the clock back.
    assert!(!queue.is_due(3, &ten));
    assert!(queue.is_due(1010, &ten));
    queue.try_flush(&book).unwrap();
    assert!(!queue.is_due(1011, &ten));
    push(&queue, &book, 3, &ten);
    assert!(!queue.is_due(1020, &ten));
    assert!(queue.is_due(1021, &ten));
}

#[test]
fn a_failed_flush_releases_nothing_and_the_next_covers_it_too() {
    let (queue, book) = (Queue::<4>::new(), Book::default());
    book.failures.set(2);
    push(&queue, &book, 1, &ANY);
    assert_eq!(queue.try_flush(&book), Err("timeout"));
    let ticket = push(&queue, &book, 2, &ANY).unwrap();
    assert_eq!(queue.wait(&book, ticket), Err("timeout"));
    assert_eq!(queue.waiting(), (2, 20));
    assert!(!queue.completed(1));
    assert_eq!(*book.did.borrow(), []);
    assert_eq!(queue.wait(&book, ticket), Ok(()));
    assert_eq!(book.did.take(), done(&[1, 2]));
}

#[test]
fn so_does_one_that_panicked() {
    let (queue, book) = (Queue::<4>::new(), Book::default());
    book.panics.set(true);
    push(&queue, &book, 1, &ANY);
    let flush = std::panic::AssertUnwindSafe(|| queue.try_flush(&book));
    assert!(std::panic::catch_unwind(flush).is_err());
    assert_eq!(queue.waiting(), (1, 10));
    assert_eq!(queue.try_flush(&book), Ok(FlushOutcome::Done));
    assert_eq!(book.did.take(), done(&[1]));
}

#[test]
fn what_comes_during_a_flush_waits_for_the_next() {
    let queue = Rc::new(Queue::<2>::new());
    let book = Book::default();
    push(&queue, &book, 1, &ANY);
    let (inside, mut round) = (queue.clone(), 0);
    *book.meanwhile.borrow_mut() = Some(Box::new(move || {
        round += 1;
        let other = Book::default();
        if round == 1 {
            assert_eq!(push(&inside, &other, 2, &ANY), Some(2));
            // The first entry still holds its place in the ring.
            assert_eq!(push(&inside, &other, 3, &ANY), None);
            assert!(!inside.completed(1));
        }
        assert_eq!(inside.try_flush(&other), Ok(FlushOutcome::Busy));
    }));
    assert_eq!(queue.try_flush(&book), Ok(FlushOutcome::Done));
    assert_eq!(book.did.take(), done(&[1]));
    assert!(!queue.completed(2));
    assert_eq!(queue.try_flush(&book), Ok(FlushOutcome::Done));
    assert_eq!(book.did.take(), done(&[2]));
}

#[test]
fn places_are_used_again_in_order() {
    let (queue, book) = (Queue::<3>::new(), Book::default());
    let mut expected = vec![];
    for round in 0..10 {
        let held: Vec<u32> = (0..=round % 3).map(|i| round * 10 + i).collect();
        for &held in &held {
            push(&queue, &book, held, &ANY).unwrap();
        }
        queue.try_flush(&book).unwrap();
        expected.extend(done(&held));
    }
    assert_eq!(book.did.take(), expected);
}
