//! Requests in memory that a process shares with the server, instead of a connection for each.
//!
//! # How it works
//! The server makes one page for all processes, the [`Bell`], and [`Slots`] for each process that asks for them
//! ([`Call::Share`](crate::protocol::Call)). A thread claims a slot, writes its request into it, rings the bell, and waits
//! at the slot until the answer is there. Both words are futexes, so a request costs the program two system calls.
//!
//! The program keeps no descriptor for it: one that it closed, and whose number it used again, would carry requests into
//! a file of its own. The memory belongs to the process; a child of `fork` asks for its own. The server closes the slots
//! when their process has ended.
//!
//! # Ordering
//! 1. A request is written, then its state becomes `ASKED`, then the bell is rung. The server reads how often the bell
//!    has rung before it looks at the slots, and sleeps only if that number still holds.
//! 2. The side that changes `ASKED` has the request: the server that runs it, or the program that
//!    revokes it.
//! 3. The server closes slots before it looks at them for the last time. The program asks before it looks whether they
//!    are closed. So a request that the server will not see is one that the program can revoke.
//!
//! # Trust
//! The other side may write anything at any time. Each side takes a request or an answer out of the memory before it
//! looks at it, and every value leads to an error at worst.

use std::sync::atomic::Ordering;

// A model checker's, under `--cfg loom`.
use barewire::bus::platform::AtomicU32;
use rustix::io::Errno;

use crate::protocol::{ANSWER_BYTES, Answer, Head, REQUEST_BYTES, decode_answer, encode_answer};

/// The length of the bell's file: the server's lifeline is at the end of the machine's page, of which this is the largest.
pub const BELL_BYTES: u64 = 65_536;
/// The slots of a process. More threads than that wait for an answer at once: theirs are connections.
pub const SLOTS: usize = if cfg!(loom) { 1 } else { 8 };
/// The longest body of a request or answer in a slot, in bytes: a message of the default `bufsiz` both ways.
pub const BODY_BYTES: usize = if cfg!(loom) { 4 } else { 16 << 10 };

const BELL_MAGIC: u32 = u32::from_le_bytes(*b"bwb1");
const SLOTS_MAGIC: u32 = u32::from_le_bytes(*b"bws1");
/// The words of the bell's page.
const MAGIC_AT: usize = 0;
const LIFE_AT: usize = 1;
const RINGS_AT: usize = 2;
/// The second word of a process's slots.
const CLOSED_AT: usize = 1;
/// Words before the first slot: a line of a cache.
const HEADER_WORDS: usize = 16;

/// The words of a slot.
const STATE_AT: usize = 0;
const REQUEST_AT: usize = 1;
const ANSWER_AT: usize = REQUEST_AT + REQUEST_BYTES / 4;
const BODY_AT: usize = 16;
const SLOT_WORDS: usize = BODY_AT + BODY_BYTES / 4;
const _: () = assert!(ANSWER_AT + ANSWER_BYTES / 4 <= BODY_AT, "heads and body do not overlap");

/// The words of a process's slots.
pub const SLOTS_WORDS: usize = HEADER_WORDS + SLOTS * SLOT_WORDS;

const FREE: u32 = 0;
/// A thread has it, and writes its request or reads its answer.
const CLAIMED: u32 = 1;
const ASKED: u32 = 2;
/// The server runs the request.
const TAKEN: u32 = 3;
const ANSWERED: u32 = 4;

/// What wakes the server.
#[derive(Clone, Copy, Debug)]
pub struct Bell<'w> {
    rings: &'w AtomicU32,
    life: &'w AtomicU32,
}

impl<'w> Bell<'w> {
    /// Makes it: `life` is the index of the word of the server's lifeline. `None` if there are too few words.
    #[must_use]
    pub fn make(words: &'w [AtomicU32], life: usize) -> Option<Self> {
        // Within the machine's page.
        words.get(LIFE_AT)?.store(life as u32, Ordering::Relaxed);
        words.get(MAGIC_AT)?.store(BELL_MAGIC, Ordering::Release);
        Self::new(words)
    }

    /// The bell in these words; `None` if they hold none.
    #[must_use]
    pub fn new(words: &'w [AtomicU32]) -> Option<Self> {
        if words.get(MAGIC_AT)?.load(Ordering::Acquire) != BELL_MAGIC {
            return None;
        }
        let life = words.get(words.get(LIFE_AT)?.load(Ordering::Relaxed) as usize)?;
        Some(Self { rings: words.get(RINGS_AT)?, life })
    }

    /// The word of the server's lifeline.
    #[must_use]
    pub fn life(&self) -> &'w AtomicU32 {
        self.life
    }

    /// The word that counts how often it was rung; the server sleeps on it.
    #[must_use]
    pub fn rings(&self) -> &'w AtomicU32 {
        self.rings
    }

    /// Counts one more. The caller must wake the thread that sleeps on [`rings`](Self::rings).
    pub fn count(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
    }
}

/// The slots of a process.
#[derive(Clone, Copy, Debug)]
pub struct Slots<'w>(&'w [AtomicU32; SLOTS_WORDS]);

impl<'w> Slots<'w> {
    /// Makes them, in words that are zeros. `None` if there are too few.
    #[must_use]
    pub fn make(words: &'w [AtomicU32]) -> Option<Self> {
        words.get(MAGIC_AT)?.store(SLOTS_MAGIC, Ordering::Release);
        Self::new(words)
    }

    /// The slots in these words; `None` if they hold none.
    #[must_use]
    pub fn new(words: &'w [AtomicU32]) -> Option<Self> {
        let slots = Self(words.first_chunk()?);
        (slots.0[MAGIC_AT].load(Ordering::Acquire) == SLOTS_MAGIC).then_some(slots)
    }

    /// Says that no request is taken from them any more. The caller wakes the threads that wait at
    /// them.
    pub fn close(&self) {
        self.0[CLOSED_AT].store(1, Ordering::SeqCst);
    }

    /// Whether they are closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0[CLOSED_AT].load(Ordering::SeqCst) != 0
    }

    /// All slots.
    pub fn all(&self) -> impl Iterator<Item = Slot<'w>> {
        self.0[HEADER_WORDS..].as_chunks::<SLOT_WORDS>().0.iter().map(Slot)
    }

    /// A slot for the caller alone; `None` if all are in use.
    #[must_use]
    pub fn claim(&self) -> Option<Slot<'w>> {
        self.all().find(|slot| slot.change(FREE, CLAIMED))
    }
}

/// A place for a request and its answer.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'w>(&'w [AtomicU32; SLOT_WORDS]);

impl<'w> Slot<'w> {
    /// The word that the program sleeps on while it holds [`asked`](Self::asked).
    #[must_use]
    pub fn state(&self) -> &'w AtomicU32 {
        &self.0[STATE_AT]
    }

    fn change(&self, from: u32, to: u32) -> bool {
        self.state().compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// The program's: writes a request into a claimed slot, and asks. The caller rings then. False, with nothing asked, for
    /// a body that is too long.
    #[must_use]
    pub fn ask(&self, head: &Head, parts: &[&[u8]]) -> bool {
        let long: usize = parts.iter().map(|part| part.len()).sum();
        if long > BODY_BYTES {
            return false;
        }
        store(&self.0[REQUEST_AT..], &[&head.encode()]);
        store(&self.0[BODY_AT..], parts);
        self.state().store(ASKED, Ordering::SeqCst);
        true
    }

    /// The program's: the state to wait in; `None` if the answer is there.
    #[must_use]
    pub fn asked(&self) -> Option<u32> {
        let state = self.state().load(Ordering::SeqCst);
        (state != ANSWERED).then_some(state)
    }

    /// The program's: takes the request back; false if the server has it, or has answered it.
    #[must_use]
    pub fn revoke(&self) -> bool {
        self.change(ASKED, CLAIMED)
    }

    /// The program's: the answer, whose body is appended to `into`.
    ///
    /// # Errors
    /// The answer's; `EPROTO` if there is none.
    pub fn answer(&self, into: &mut Vec<u8>) -> Result<u32, Errno> {
        if self.asked().is_some() {
            return Err(Errno::PROTO);
        }
        let mut bytes = [0; ANSWER_BYTES];
        load(&self.0[ANSWER_AT..], &mut bytes);
        let (result, body) = decode_answer(&bytes);
        let body = body as usize;
        if body > BODY_BYTES {
            return Err(Errno::PROTO);
        }
        let begin = into.len();
        into.resize(begin + body, 0);
        load(&self.0[BODY_AT..], &mut into[begin..]);
        result
    }

    /// The program's: gives a claimed or answered slot back.
    pub fn release(&self) {
        self.state().store(FREE, Ordering::SeqCst);
    }

    /// The server's: whether a request waits.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.state().load(Ordering::SeqCst) == ASKED
    }

    /// The server's: takes the request that waits, and its body; `None` without one.
    #[must_use]
    pub fn take(&self) -> Option<Result<(Head, Vec<u8>), Errno>> {
        if !self.is_asked() || !self.change(ASKED, TAKEN) {
            return None;
        }
        let mut bytes = [0; REQUEST_BYTES];
        load(&self.0[REQUEST_AT..], &mut bytes);
        let with_body = |head: Head| {
            let mut body = vec![0; head.body as usize];
            load(&self.0[BODY_AT..], &mut body);
            (head, body)
        };
        let fits = |head: &Head| head.body as usize <= BODY_BYTES;
        let head = Head::decode(&bytes).and_then(|head| match fits(&head) {
            true => Ok(head),
            false => Err(Errno::PROTO),
        });
        Some(head.map(with_body))
    }

    /// The server's: answers a request that it has taken. The caller must wake the thread that
    /// waits at the slot. An answer that is too long becomes `EPROTO`: no library asks for one.
    pub fn give(&self, result: Result<u32, Errno>, body: &[u8]) {
        let answer: Answer = match u32::try_from(body.len()) {
            Ok(len) if body.len() <= BODY_BYTES => (result, len),
            _ => (Err(Errno::PROTO), 0),
        };
        store(&self.0[BODY_AT..], &[&body[..answer.1 as usize]]);
        store(&self.0[ANSWER_AT..], &[&encode_answer(answer)]);
        self.state().store(ANSWERED, Ordering::SeqCst);
    }
}

/// Writes bytes, one part behind the other. Words that are not there take none.
fn store(words: &[AtomicU32], parts: &[&[u8]]) {
    let mut words = words.iter();
    // The bytes of a word that is not full yet.
    let (mut word, mut bytes) = (0_u32, 0);
    let put = |words: &mut core::slice::Iter<'_, AtomicU32>, value: u32| {
        if let Some(place) = words.next() {
            place.store(value, Ordering::Relaxed);
        }
    };
    for part in parts {
        let mut part = *part;
        while bytes != 0
            && let Some((byte, rest)) = part.split_first()
        {
            word |= u32::from(*byte) << (8 * bytes);
            (bytes, part) = ((bytes + 1) % 4, rest);
            if bytes == 0 {
                put(&mut words, word.to_le());
                word = 0;
            }
        }
        let (whole, rest) = part.as_chunks();
        whole.iter().for_each(|bytes| put(&mut words, u32::from_ne_bytes(*bytes)));
        for byte in rest {
            word |= u32::from(*byte) << (8 * bytes);
            bytes += 1;
        }
    }
    if bytes != 0 {
        put(&mut words, word.to_le());
    }
}

/// Reads bytes.
fn load(words: &[AtomicU32], into: &mut [u8]) {
    for (bytes, word) in into.chunks_mut(4).zip(words) {
        let word = word.load(Ordering::Relaxed).to_ne_bytes();
        bytes.copy_from_slice(&word[..bytes.len()]);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::protocol::{Call, OpenId};

    fn words(count: usize) -> Vec<AtomicU32> {
        (0..count).map(|_| AtomicU32::new(0)).collect()
    }

    fn head(body: usize) -> Head {
        Head { id: OpenId(7), call: Call::Write, body: body.try_into().expect("short") }
    }

    #[test]
    fn a_request_and_its_answer_arrive_whole() {
        let words = words(SLOTS_WORDS);
        assert!(Slots::new(&words).is_none() && Slots::make(&words[1..]).is_none());
        let slots = Slots::make(&words).expect("slots");
        let bytes: Vec<u8> = (0..BODY_BYTES).map(|at| (at % 251) as u8).collect();
        for len in [0, 1, 3, 4, 5, 32, 35, 4096, BODY_BYTES - 1, BODY_BYTES] {
            // Wherever a part ends.
            for split in [0, 1, 2, 3, 4, 7, len / 2, len].map(|split| split.min(len)) {
                let parts = [&bytes[..split], &[], &bytes[split..len]];
                let slot = slots.claim().expect("free");
                assert!(slot.take().is_none(), "not asked yet");
                assert!(slot.ask(&head(len), &parts) && slot.asked().is_some());
                assert_eq!(slot.take(), Some(Ok((head(len), bytes[..len].to_vec()))));
                assert!(slot.take().is_none() && !slot.revoke(), "taken");
                slot.give(Ok(9), &bytes[..len]);
                let mut answer = vec![1, 2];
                assert_eq!((slot.asked(), slot.answer(&mut answer)), (None, Ok(9)));
                assert_eq!((&answer[..2], &answer[2..]), (&[1, 2][..], &bytes[..len]));
                slot.release();
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let words = words(SLOTS_WORDS);
        let slots = Slots::make(&words).expect("slots");
        let slot = slots.claim().expect("free");
        let long = vec![0; BODY_BYTES + 1];
        assert!(!slot.ask(&head(long.len()), &[&long]), "a body that is too long");
        assert!(slot.ask(&head(BODY_BYTES + 1), &[]), "a head that lies");
        assert_eq!(slot.take(), Some(Err(Errno::PROTO)));
        slot.give(Ok(1), &long);
        assert_eq!(slot.answer(&mut Vec::new()), Err(Errno::PROTO));
        // The other side may write anything: here an answer's length.
        slot.give(Ok(1), &[]);
        words[HEADER_WORDS + ANSWER_AT + 1].store(u32::MAX, Ordering::Relaxed);
        assert_eq!(slot.answer(&mut Vec::new()), Err(Errno::PROTO));
        words[HEADER_WORDS + REQUEST_AT].store(u32::MAX, Ordering::Relaxed);
        words[HEADER_WORDS + STATE_AT].store(ASKED, Ordering::Relaxed);
        assert_eq!(slot.take(), Some(Err(Errno::PROTO)), "another version");
        words[HEADER_WORDS + STATE_AT].store(99, Ordering::Relaxed);
        assert!(slot.take().is_none() && slot.asked() == Some(99) && !slot.revoke());
    }

    #[test]
    fn each_slot_has_one_owner_and_a_request_one_taker() {
        let words = words(SLOTS_WORDS);
        let slots = Slots::make(&words).expect("slots");
        let claimed: Vec<_> = (0..SLOTS).map(|_| slots.claim().expect("free")).collect();
        assert!(slots.claim().is_none(), "all are in use");
        claimed[3].release();
        let slot = slots.claim().expect("free again");
        assert!(slot.ask(&head(0), &[]) && slots.all().filter(Slot::is_asked).count() == 1);
        slots.close();
        assert!(slots.is_closed() && slot.revoke() && slot.take().is_none());
    }

    #[test]
    fn a_bell_is_known_by_its_words() {
        let words = words(64);
        assert!(Bell::new(&words).is_none() && Bell::make(&words[..2], 1).is_none());
        let bell = Bell::make(&words, 63).expect("a bell");
        bell.count();
        let other = Bell::new(&words).expect("the same");
        assert_eq!(other.rings().load(Ordering::Relaxed), 1);
        assert!(std::ptr::eq(bell.life(), &words[63]));
        words[LIFE_AT].store(64, Ordering::Relaxed);
        assert!(Bell::new(&words).is_none(), "a word that is not there");
    }
}
