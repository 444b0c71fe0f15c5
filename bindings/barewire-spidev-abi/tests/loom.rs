//! The slots under a model checker: a request is run once and answered, or revoked and not run, whenever the server closes
//! them.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p barewire-spidev-abi --release --test loom`
#![cfg(loom)]

use std::sync::Arc;

use barewire_spidev_abi::protocol::{Call, Head, OpenId};
use barewire_spidev_abi::slots::{SLOTS_WORDS, Slots};
use loom::sync::atomic::AtomicU32;
use loom::thread;

const HEAD: Head = Head { id: OpenId(7), call: Call::Write, body: 1 };

fn words() -> Arc<Vec<AtomicU32>> {
    let words: Vec<_> = (0..SLOTS_WORDS).map(|_| AtomicU32::new(0)).collect();
    assert!(Slots::make(&words).is_some(), "enough words");
    Arc::new(words)
}

/// A program's request: whether it was answered, with its own byte plus 1. Revoked, it was not.
fn request(words: &[AtomicU32], byte: u8) -> bool {
    let slots = Slots::new(words).expect("slots");
    // The other thread has the only slot: a connection.
    let Some(slot) = slots.claim() else { return false };
    assert!(slot.ask(&HEAD, &[&[byte]]), "it fits");
    let answered = loop {
        if slot.asked().is_none() {
            let mut answer = Vec::new();
            assert_eq!(slot.answer(&mut answer), Ok(u32::from(byte)));
            assert_eq!(answer, [byte + 1], "its own answer");
            break true;
        }
        if slots.is_closed() && slot.revoke() {
            break false;
        }
        thread::yield_now();
    };
    slot.release();
    answered
}

/// The server looks once at all slots: how many requests it ran.
fn look(words: &[AtomicU32]) -> usize {
    let slots = Slots::new(words).expect("slots");
    let run = |taken: Result<(Head, Vec<u8>), _>| {
        let (head, body) = taken.expect("a request");
        assert_eq!((head, body.len()), (HEAD, 1));
        body[0]
    };
    let mut ran = 0;
    for slot in slots.all() {
        if let Some(byte) = slot.take().map(run) {
            slot.give(Ok(byte.into()), &[byte + 1]);
            ran += 1;
        }
    }
    ran
}

#[test]
fn a_request_is_run_and_answered_or_revoked_and_not_run() {
    loom::model(|| {
        let words = words();
        let program = thread::spawn({
            let words = words.clone();
            move || request(&words, 3)
        });
        let ran = look(&words);
        let slots = Slots::new(&words).expect("slots");
        slots.close();
        let ran = ran + look(&words);
        let answered = program.join().expect("ends");
        assert_eq!(usize::from(answered), ran);
    });
}

#[test]
fn two_threads_never_share_a_slot() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let words = words();
        let threads = [3, 5].map(|byte| {
            let words = words.clone();
            thread::spawn(move || request(&words, byte))
        });
        let ran = look(&words);
        Slots::new(&words).expect("slots").close();
        let answered = threads.map(|thread| usize::from(thread.join().expect("ends")));
        assert_eq!(answered.iter().sum::<usize>(), ran);
    });
}
