//! The loops of a block that is asked for each word: the driver sends one word for each that it receives.
//!
//! There is a loop for each form of a transfer, so that the form is not tested in each round. They end where a look finds
//! nothing.

use core::iter::repeat_n;

use super::words::{put_frame, word_of};
use crate::time::{Timer, ticks_at_least};

/// A block that is asked for each word.
pub(super) trait Singly {
    /// Reads a received word, if a look finds one.
    fn take_one(&mut self) -> Option<u32>;

    /// Sends a word in the place of the one that [`Singly::take_one`] has just read.
    fn put_one(&mut self, word: u32);
}

/// Receives `words` words, and sends one of `tx` behind each of the first `paced`. Ends where a look finds none. Returns how
/// many were received. Not inlined: it has a loop for each form of a transfer.
#[inline(never)]
pub(super) fn pace<S: Singly + ?Sized, const N: usize>(
    block: &mut S,
    paced: usize,
    words: usize,
    tx: Option<&[[u8; N]]>,
    rx: Option<&mut [[u8; N]]>,
) -> usize {
    let nowhere = |(), _: u32| ();
    let zeros = repeat_n(0, paced);
    match (tx, rx.map(|rx| rx.split_at_mut_checked(paced))) {
        (Some(tx), Some(Some((rx, rest)))) => {
            let tx = tx.iter().map(word_of);
            pace_each(block, tx.zip(rx), rest, put_frame)
        }
        (None, Some(Some((rx, rest)))) => pace_each(block, zeros.zip(rx), rest, put_frame),
        (Some(tx), _) => {
            let pairs = tx.iter().map(|frame| (word_of(frame), ()));
            pace_each(block, pairs, repeat_n((), words - paced), nowhere)
        }
        (None, _) => pace_slowly(block, paced, words, None::<&[[u8; N]]>, None),
    }
}

/// [`pace`] in few instructions of code, for a clock at which a word takes longer than its handling.
#[inline(never)]
pub(super) fn pace_slowly<S: Singly + ?Sized, const N: usize>(
    block: &mut S,
    paced: usize,
    words: usize,
    tx: Option<&[[u8; N]]>,
    mut rx: Option<&mut [[u8; N]]>,
) -> usize {
    for at in 0..words {
        let Some(word) = block.take_one() else { return at };
        if let Some(frame) = rx.as_deref_mut().and_then(|rx| rx.get_mut(at)) {
            put_frame(frame, word);
        }
        if at < paced {
            block.put_one(tx.and_then(|tx| tx.get(at)).map_or(0, word_of));
        }
    }
    words
}

#[inline(always)]
fn pace_each<S: Singly + ?Sized, P>(
    block: &mut S,
    pairs: impl Iterator<Item = (u32, P)>,
    rest: impl IntoIterator<Item = P>,
    mut to: impl FnMut(P, u32),
) -> usize {
    let mut received = 0;
    for (word, place) in pairs {
        let Some(taken) = block.take_one() else { return received };
        to(place, taken);
        block.put_one(word);
        received += 1;
    }
    for place in rest {
        let Some(taken) = block.take_one() else { return received };
        to(place, taken);
        received += 1;
    }
    received
}

/// The longest time that passes between two looks, in nanoseconds: less than a kernel's timer would sleep.
const LONGEST_WAIT_NS: u64 = 8_000;

/// Lets up to `idle_ns` pass, in which no word is looked for. Returns how much.
#[inline]
pub(super) fn let_pass(timer: &mut impl Timer, idle_ns: u64) -> u64 {
    let ns = idle_ns.min(LONGEST_WAIT_NS);
    if ns > 0 {
        timer.wait_ticks(ticks_at_least(ns, timer.frequency_hz()));
    }
    ns
}
