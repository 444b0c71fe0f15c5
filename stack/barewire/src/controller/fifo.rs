//! The exchange of blocks with a data register: each word written brings one word in.
//!
//! # How it works
//! Because each word sent brings one in, the received words pace the sent ones: at most
//! [`Fifo::depth`] words are in flight, so the receive side has room for them however late we read.
//! A transfer's bytes are [cut](Cut) into words of the FIFO. Two bytes of a transfer in 8-bit words
//! may go in one 16-bit word, most significant first, if the block makes no pause between words:
//! half the register accesses, identical bits on the wire.
//!
//! A polled transfer between two buffers keeps what is left of them as slices that shrink ([`Frames`]). A block that says how
//! many words have been received is emptied in batches; one that is asked for each word ([`Fifo::ONE_A_LOOK`]) is sent
//! one for each that it gives ([`pace`]). Both end where a look finds nothing: then the words are awaited, and the timer
//! comes into play. Any other transfer goes through [`Flow`], which knows positions alone.
//!
//! # Ordering
//! 1. Received words are read before more are sent.
//! 2. After the last word the driver waits until the block's clock is at rest: moving the chip
//!    select earlier would cut the last bit.
//! 3. The timer is read before the status that it judges: a thread that was preempted between the
//!    two still sees that the hardware finished.
//! 4. A lost word is noticed as a word missing at the end. Only then is the block asked whether it
//!    lost one, so a good exchange never pays for that read.

use core::ops::Range;
use core::task::Poll;

use super::block::InFlight;
use super::deadline::{Deadline, HasTimer, Patience, poll};
use super::pace::{Singly, let_pass, pace};
use super::words::{pack, put_frame, unpack, word_of};
use super::{Plan, Stopped, Wire};
use crate::reg::chunks::{chunks, chunks_mut};
use crate::spi::Data;
use crate::time::{Timer as _, divide};

/// A block with a FIFO, or a single register, in each direction.
pub(super) trait Fifo: HasTimer + Wire {
    /// Whether a look finds one received word at most, and so each word is asked for.
    const ONE_A_LOOK: bool = false;

    /// Whether its words are let come on a timer that [waits for them](crate::time::Timer::waits_for_words): it would be asked
    /// often.
    const WAITS_FOR_WORDS: bool = false;

    /// The most words in flight.
    fn depth(&self) -> usize;

    /// Sends `words`, at least one. There is room for them.
    fn put(&mut self, words: impl ExactSizeIterator<Item = u32>);

    /// A lower bound of how many of `in_flight` words (at least one) have been received.
    fn ready(&mut self, in_flight: usize) -> usize;

    /// Reads one received word for each of `places`.
    fn take<P>(&mut self, places: impl ExactSizeIterator<Item = P>, to: impl FnMut(P, u32));

    /// Reads and discards `n` received words.
    fn discard(&mut self, n: usize);

    /// Reads a received word, if a look finds one. For a block with [`Fifo::ONE_A_LOOK`].
    #[inline(always)]
    fn take_one(&mut self) -> Option<u32> {
        let mut taken = None;
        if self.ready(1) > 0 {
            self.take(core::iter::once(()), |(), word| taken = Some(word));
        }
        taken
    }

    /// Sends a word in the place of the one that [`Fifo::take_one`] has just read.
    #[inline(always)]
    fn put_one(&mut self, word: u32) {
        self.put(core::iter::once(word));
    }

    /// [`pace`] on this block.
    #[inline(always)]
    fn pace<const N: usize>(
        &mut self,
        paced: usize,
        words: usize,
        tx: Option<&[[u8; N]]>,
        rx: Option<&mut [[u8; N]]>,
    ) -> usize {
        pace(self, paced, words, tx, rx)
    }

    /// Whether the last clock is over. Called once every word sent has been read.
    fn at_rest(&mut self) -> bool;

    /// Whether the block lost a word.
    fn lost(&mut self) -> bool;

    /// The time of `words` on the wire at the current clock, in nanoseconds.
    fn wire_ns(&self, words: usize) -> u64;

    /// The transfer that was left in flight.
    fn flight(&mut self) -> &mut Flight;
}

/// How the bytes of a transfer are cut into words of the FIFO.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cut {
    /// Bytes of a word of the device.
    word_bytes: u8,
    /// Bytes of a word of the FIFO: as many, or twice as many.
    frame_bytes: u8,
}

impl Cut {
    /// Words of the FIFO of `frame_bytes` (1 to 4), a multiple of the plan's word.
    pub(super) fn new(plan: &Plan, frame_bytes: u8) -> Self {
        Self { word_bytes: plan.word_bytes(), frame_bytes }
    }

    /// Bytes of a word of the FIFO, if they are 8-bit words.
    pub(super) fn frame_of_bytes(self) -> Option<u8> {
        (self.word_bytes == 1).then_some(self.frame_bytes)
    }

    fn words(self, data: &Data<'_>) -> usize {
        match self.frame_bytes {
            // A shift: the processor may have no division.
            1 | 2 | 4 => data.len() >> self.frame_bytes.trailing_zeros(),
            // Three, of a block with words of any length.
            bytes => divide(data.len() as u64, bytes.into()).0 as usize,
        }
    }

    /// The bytes of `words` in the transfer's buffers.
    #[inline]
    fn bytes(self, words: Range<usize>) -> Range<usize> {
        let bytes = usize::from(self.frame_bytes);
        words.start * bytes..words.end * bytes
    }
}

/// The progress of a transfer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    cut: Cut,
    sent: usize,
    received: usize,
    /// Where this run of words ends: at the last word, or, with a word delay, after the next word.
    until: usize,
}

impl Flow {
    fn new(cut: Cut, words: Range<usize>) -> Self {
        Self { cut, sent: words.start, received: words.start, until: words.end }
    }

    /// Words sent that have not been received.
    pub(super) fn in_flight(&self) -> usize {
        self.sent - self.received
    }

    /// Words of this run that are still to be sent.
    pub(super) fn unsent(&self) -> usize {
        self.until - self.sent
    }

    /// Whether every word of this run was sent.
    pub(super) fn all_sent(&self) -> bool {
        self.sent == self.until
    }

    fn all_received(&self) -> bool {
        self.received == self.until
    }

    /// Sends as many words as may be in flight.
    #[inline]
    fn fill<B: Fifo + ?Sized>(&mut self, block: &mut B, data: &Data<'_>) {
        let until = self.until.min(self.received + block.depth());
        let words = self.sent..until;
        if words.is_empty() {
            return;
        }
        self.sent = until;
        let Cut { word_bytes, frame_bytes } = self.cut;
        if cfg!(feature = "small") {
            let frame = |at| data.tx()?.get(self.cut.bytes(at..at + 1));
            return block.put(words.map(|at| frame(at).map_or(0, |frame| pack(frame, word_bytes))));
        }
        match data.tx().and_then(|tx| tx.get(self.cut.bytes(words.clone()))) {
            None => block.put(words.map(|_| 0)),
            // A byte is a word of the FIFO: no packing.
            Some(tx) if frame_bytes == 1 => block.put(tx.iter().map(|&byte| byte.into())),
            Some(tx) => {
                let frames = tx.chunks_exact(usize::from(frame_bytes).max(1));
                block.put(frames.map(|bytes| pack(bytes, word_bytes)));
            }
        }
    }

    /// Reads what was received. Returns whether anything was.
    #[inline]
    fn drain<B: Fifo + ?Sized>(&mut self, block: &mut B, data: &mut Data<'_>) -> bool {
        let in_flight = self.in_flight();
        if in_flight == 0 {
            return false;
        }
        // Never more than were sent, even if the block claims so.
        let ready = block.ready(in_flight).min(in_flight);
        if ready == 0 {
            return false;
        }
        let words = self.received..self.received + ready;
        self.received = words.end;
        let Cut { word_bytes, frame_bytes } = self.cut;
        if cfg!(feature = "small") {
            let (mut rx, cut) = (data.rx_mut(), self.cut);
            block.take(words, |at, word| {
                if let Some(frame) = rx.as_mut().and_then(|rx| rx.get_mut(cut.bytes(at..at + 1))) {
                    unpack(word, frame, word_bytes);
                }
            });
            return true;
        }
        match data.rx_mut().and_then(|rx| rx.get_mut(self.cut.bytes(words))) {
            None => block.discard(ready),
            Some(rx) if frame_bytes == 1 => {
                block.take(rx.iter_mut(), |byte, word| *byte = word as u8);
            }
            Some(rx) => {
                let frames = rx.chunks_exact_mut(usize::from(frame_bytes).max(1));
                block.take(frames, |bytes, word| unpack(word, bytes, word_bytes));
            }
        }
        true
    }
}

/// Exchanges a transfer of at least one word, by polling.
///
/// # Errors
/// [`Stopped`]; the caller clears the FIFOs.
pub(super) fn exchange<B: Fifo + ?Sized>(
    block: &mut B,
    cut: Cut,
    plan: &Plan,
    data: &mut Data<'_>,
) -> Result<(), Stopped> {
    let words = cut.words(data);
    let spaced = if block.makes_delays() { plan.word_delay_ticks } else { 0 };
    if !cfg!(feature = "small") && spaced == 0 && cut.frame_bytes == 1 {
        // In-place transfers go word by word below: received bytes overwrite those to be sent.
        if let Some((tx, rx)) = data.apart() {
            return match B::ONE_A_LOOK {
                true => exchange_frames::<B, 1>(block, words, tx, rx),
                false => exchange_bytes(block, words, tx, rx),
            };
        }
    }
    if spaced == 0 {
        return exchange_range(block, cut, 0..words, data);
    }
    for index in 0..words {
        if index > 0 {
            block.wait_ticks(spaced);
        }
        exchange_range(block, cut, index..index + 1, data)?;
    }
    Ok(())
}

/// Exchanges `len` bytes in 8-bit words, of which each word of the FIFO carries `N`. Bytes behind the last whole word
/// of the FIFO are left to the caller.
///
/// # Errors
/// As [`exchange`].
#[inline(always)]
pub(super) fn exchange_frames<B: Fifo + ?Sized, const N: usize>(
    block: &mut B,
    len: usize,
    tx: Option<&[u8]>,
    rx: Option<&mut [u8]>,
) -> Result<(), Stopped> {
    let Frames { tx, rx, unsent, in_flight } = Frames::<N>::whole(len, tx, rx);
    finish(block, tx, rx, unsent, in_flight)
}

/// [`exchange_frames`] for as long as each look finds a received word. Returns true if everything was exchanged and the
/// clock is at rest; otherwise [`exchange_rest`] must follow.
#[inline(always)]
pub(super) fn exchange_ready<B: Fifo, const N: usize>(
    block: &mut B,
    len: usize,
    tx: Option<&[u8]>,
    rx: Option<&mut [u8]>,
) -> bool {
    let mut frames = Frames::<N>::whole(len, tx, rx);
    if frames.pass(block, 0) && block.at_rest() {
        return true;
    }
    let until = len / N;
    let (unsent, in_flight) = (frames.unsent, frames.in_flight);
    leave(block, N as u8, until - unsent, until - unsent - in_flight, until)
}

/// [`exchange_ready`] of words that are all in flight at once. Always inlined: the compiler knows the length of a prepared
/// access.
#[inline(always)]
pub(super) fn exchange_short<B: Fifo, const N: usize>(
    block: &mut B,
    len: usize,
    tx: Option<&[u8]>,
    rx: Option<&mut [u8]>,
) -> bool {
    let words = len / N;
    match tx {
        Some(tx) => put_frames::<B, N>(block, chunks(tx)),
        None => block.put((0..words).map(|_| 0)),
    }
    let rx = rx.map(chunks_mut);
    let received = match B::ONE_A_LOOK {
        true => take_singly::<B, N>(block, words, rx),
        false => take_short::<B, N>(block, words, rx),
    };
    (received == words && block.at_rest()) || leave(block, N as u8, words, received, words)
}

/// Leaves a transfer of `until` words of `frame_bytes` bytes in flight, which was not over at the first look. Returns
/// false.
#[cold]
#[inline(never)]
pub(super) fn leave<B: Fifo>(
    block: &mut B,
    frame_bytes: u8,
    sent: usize,
    received: usize,
    until: usize,
) -> bool {
    let cut = Cut { word_bytes: 1, frame_bytes };
    block.flight().flow = Flow { cut, sent, received, until };
    false
}

/// Reads received words of a short transfer until none is ready. Returns how many were read.
#[inline(always)]
fn take_short<B: Fifo, const N: usize>(
    block: &mut B,
    words: usize,
    mut rx: Option<&mut [[u8; N]]>,
) -> usize {
    let mut received = 0;
    while received < words {
        let ready = block.ready(words - received).min(words - received);
        if ready == 0 {
            break;
        }
        match rx.as_deref_mut().and_then(|rx| rx.get_mut(received..received + ready)) {
            Some(rx) => take_frames(block, rx),
            None => block.discard(ready),
        }
        received += ready;
    }
    received
}

/// [`take_short`] of a block that is asked for each word.
#[inline(always)]
fn take_singly<B: Fifo, const N: usize>(
    block: &mut B,
    words: usize,
    rx: Option<&mut [[u8; N]]>,
) -> usize {
    let mut received = 0;
    let Some(rx) = rx else {
        while received < words && Fifo::take_one(block).is_some() {
            received += 1;
        }
        return received;
    };
    for frame in rx {
        let Some(word) = Fifo::take_one(block) else { break };
        put_frame(frame, word);
        received += 1;
    }
    received
}

/// Waits for the rest of what [`exchange_short`] or [`exchange_ready`] left in flight, and exchanges what it did not
/// send. The buffers are the whole transfer's.
///
/// # Errors
/// As [`exchange`].
pub(super) fn exchange_rest<B: Fifo, const N: usize>(
    block: &mut B,
    tx: Option<&[u8]>,
    rx: Option<&mut [u8]>,
) -> Result<(), Stopped> {
    let flow = block.flight().flow;
    let Frames { tx, rx, unsent, in_flight } = Frames::<N>::rest(&flow, tx, rx);
    finish(block, tx, rx, unsent, in_flight)
}

/// [`BlockDriver`](super::block::BlockDriver)'s shorter path of a block whose words have 8 bits: [`exchange_short`], and
/// the given function for the rest.
macro_rules! short_by_bytes {
    ($($rest:tt)+) => {
        #[inline(always)]
        fn exchange_short(
            &mut self,
            _control: u32,
            len: usize,
            tx: Option<&[u8]>,
            rx: Option<&mut [u8]>,
        ) -> bool {
            fifo::exchange_short::<_, 1>(self, len, tx, rx)
        }

        fn exchange_rest(
            &mut self,
            _control: u32,
            _len: usize,
            tx: Option<&[u8]>,
            rx: Option<&mut [u8]>,
        ) -> Result<(), Stopped> {
            fifo::$($rest)+(self, tx, rx)
        }
    };
}
pub(super) use short_by_bytes;

/// [`exchange_rest`] in words of any size, without code for each.
pub(super) fn exchange_rest_of_any<B: Fifo>(
    block: &mut B,
    tx: Option<&[u8]>,
    rx: Option<&mut [u8]>,
) -> Result<(), Stopped> {
    let flow = block.flight().flow;
    finish_flow(block, flow, &mut Data::of(tx, rx))
}

/// Half of a FIFO of eight words, which reports this fill level: the loop over them is unrolled.
const HALF: usize = 4;

#[inline(always)]
fn put_frames<B: Fifo + ?Sized, const N: usize>(block: &mut B, frames: &[[u8; N]]) {
    match <&[[u8; N]; HALF]>::try_from(frames) {
        Ok(half) => block.put(half.iter().map(word_of)),
        Err(_) => block.put(frames.iter().map(word_of)),
    }
}

#[inline(always)]
fn take_frames<B: Fifo + ?Sized, const N: usize>(block: &mut B, frames: &mut [[u8; N]]) {
    match <&mut [[u8; N]; HALF]>::try_from(&mut *frames) {
        Ok(half) => block.take(half.iter_mut(), put_frame),
        Err(_) => block.take(frames.iter_mut(), put_frame),
    }
}

/// The rest of a polled transfer in 8-bit words, with separate buffers: the words of the FIFO to send and to
/// receive, as slices that shrink.
struct Frames<'d, const N: usize> {
    tx: Option<&'d [[u8; N]]>,
    rx: Option<&'d mut [[u8; N]]>,
    unsent: usize,
    in_flight: usize,
}

impl<'d, const N: usize> Frames<'d, N> {
    /// A transfer of `len` bytes, of which nothing was sent.
    #[inline(always)]
    fn whole(len: usize, tx: Option<&'d [u8]>, rx: Option<&'d mut [u8]>) -> Self {
        Self { tx: tx.map(chunks), rx: rx.map(chunks_mut), unsent: len / N, in_flight: 0 }
    }

    /// The rest of a transfer after `flow`.
    fn rest(flow: &Flow, tx: Option<&'d [u8]>, rx: Option<&'d mut [u8]>) -> Self {
        Self {
            tx: tx.and_then(|tx| chunks(tx).get(flow.sent..)),
            rx: rx.and_then(|rx| chunks_mut(rx).get_mut(flow.received..)),
            unsent: flow.unsent(),
            in_flight: flow.in_flight(),
        }
    }

    fn is_over(&self) -> bool {
        self.unsent == 0 && self.in_flight == 0
    }

    /// Takes the `found` words that were received, and exchanges more until a look finds none. Returns whether everything
    /// was exchanged; otherwise words are in flight. A block that is asked for each word sends one word for each
    /// received one, once as many are in flight as may be.
    #[inline(always)]
    fn pass<B: Fifo + ?Sized>(&mut self, block: &mut B, found: usize) -> bool {
        if found > 0 {
            self.receive(block, found);
        }
        if self.is_over() {
            return true;
        }
        let room = self.unsent.min(block.depth() - self.in_flight);
        if room > 0 {
            self.send(block, room);
        }
        let words = self.unsent + self.in_flight;
        let passed = block.pace(self.unsent, words, self.tx, self.rx.as_deref_mut());
        let sent = passed.min(self.unsent);
        self.tx = self.tx.and_then(|tx| tx.get(sent..));
        self.rx = self.rx.take().and_then(|rx| rx.get_mut(passed..));
        self.unsent -= sent;
        self.in_flight -= passed - sent;
        passed == words
    }

    /// Sends `n` words, at least one.
    #[inline(always)]
    fn send<B: Fifo + ?Sized>(&mut self, block: &mut B, n: usize) {
        self.unsent -= n;
        self.in_flight += n;
        match self.tx.take().and_then(|tx| tx.split_at_checked(n)) {
            Some((now, rest)) => {
                self.tx = Some(rest);
                put_frames(block, now);
            }
            None if n == HALF => block.put([0; HALF].into_iter()),
            None => block.put((0..n).map(|_| 0)),
        }
    }

    /// Reads `n` words, at least one.
    #[inline(always)]
    fn receive<B: Fifo + ?Sized>(&mut self, block: &mut B, n: usize) {
        self.in_flight -= n;
        match self.rx.take().and_then(|rx| rx.split_at_mut_checked(n)) {
            Some((now, rest)) => {
                self.rx = Some(rest);
                take_frames(block, now);
            }
            None => block.discard(n),
        }
    }
}

impl<B: Fifo + ?Sized> Singly for B {
    #[inline(always)]
    fn take_one(&mut self) -> Option<u32> {
        Fifo::take_one(self)
    }

    #[inline(always)]
    fn put_one(&mut self, word: u32) {
        Fifo::put_one(self, word);
    }
}

/// Exchanges everything that is left, the fields of [`Frames`]. Not inlined: one for whole transfers and for rests. The
/// fields are arguments of their own: a structure would stay in memory.
#[inline(never)]
fn finish<B: Fifo + ?Sized, const N: usize>(
    block: &mut B,
    tx: Option<&[[u8; N]]>,
    rx: Option<&mut [[u8; N]]>,
    unsent: usize,
    in_flight: usize,
) -> Result<(), Stopped> {
    let mut frames = Frames { tx, rx, unsent, in_flight };
    let mut found = 0;
    if B::ONE_A_LOOK {
        while !frames.pass(block, found) {
            found = await_words(block, frames.in_flight)?;
        }
    } else {
        let depth = block.depth();
        while !frames.is_over() {
            let room = frames.unsent.min(depth - frames.in_flight);
            if room > 0 {
                frames.send(block, room);
            }
            // Never more than were sent, even if the block claims so.
            found = block.ready(frames.in_flight).min(frames.in_flight);
            if found == 0 {
                found = await_words(block, frames.in_flight)?;
            }
            // Ordering 1: received words are read before more are sent.
            frames.receive(block, found);
        }
    }
    // Ordering 2: the clock comes to rest.
    poll(block, |block| block.wire_ns(1), Fifo::at_rest)
}

/// Polls until words were received, after a look that found none. Returns how many.
///
/// # Errors
/// [`Stopped`].
#[cold]
#[inline(never)]
fn await_words<B: Fifo + ?Sized>(block: &mut B, in_flight: usize) -> Result<usize, Stopped> {
    let mut patience = Patience::default();
    let mut late = false;
    let waits = B::WAITS_FOR_WORDS && block.timer().waits_for_words();
    let mut idle_ns = if waits { idle_ns(block, in_flight) } else { 0 };
    loop {
        idle_ns -= let_pass(block.timer(), idle_ns);
        if let Err(stopped) = patience.look_in_vain(late, || deadline(block)) {
            // Ordering 4: only a missing word raises the question.
            return Err(if block.lost() { Stopped::Overrun } else { stopped });
        }
        // Ordering 3: the timer is read before the status.
        late = patience.late(block.timer());
        // Never more than were sent, even if the block claims so.
        let ready = block.ready(in_flight).min(in_flight);
        if ready > 0 {
            return Ok(ready);
        }
    }
}

/// How long nobody needs to look, after a look that found no word: the first word in flight may come at once, but those behind
/// it have not begun. With a full FIFO half of its words, so that the wire does not run dry.
fn idle_ns<B: Fifo + ?Sized>(block: &B, in_flight: usize) -> u64 {
    let depth = block.depth();
    let words = if in_flight < depth { in_flight.saturating_sub(1) } else { depth / 2 };
    // A block's own figure may be its longest: nine clocks for eight.
    block.wire_ns(words) / 8 * 7
}

#[inline(always)]
fn put_bytes<B: Fifo + ?Sized>(block: &mut B, bytes: &[u8]) {
    match <&[u8; HALF]>::try_from(bytes) {
        Ok(half) => block.put(half.iter().map(|&byte| byte.into())),
        Err(_) => block.put(bytes.iter().map(|&byte| byte.into())),
    }
}

#[inline(always)]
fn take_bytes<B: Fifo + ?Sized>(block: &mut B, bytes: &mut [u8]) {
    match <&mut [u8; HALF]>::try_from(&mut *bytes) {
        Ok(half) => block.take(half.iter_mut(), |byte, word| *byte = word as u8),
        Err(_) => block.take(bytes.iter_mut(), |byte, word| *byte = word as u8),
    }
}

/// [`exchange_range`] of a whole transfer with one byte per word of the FIFO, on a block that says how many were received. The
/// bytes left to send and to receive are slices, which shrink.
fn exchange_bytes<B: Fifo + ?Sized>(
    block: &mut B,
    len: usize,
    mut tx: Option<&[u8]>,
    mut rx: Option<&mut [u8]>,
) -> Result<(), Stopped> {
    let depth = block.depth();
    let (mut unsent, mut in_flight) = (len, 0);
    let mut patience = Patience::default();
    loop {
        let n = unsent.min(depth - in_flight);
        if n > 0 {
            match tx.take().and_then(|tx| tx.split_at_checked(n)) {
                Some((now, rest)) => {
                    tx = Some(rest);
                    put_bytes(block, now);
                }
                None if n == HALF => block.put([0; HALF].into_iter()),
                None => block.put((0..n).map(|_| 0)),
            }
            unsent -= n;
            in_flight += n;
        }
        // Ordering 3: the timer is read before the status.
        let late = patience.late(block.timer());
        // Never more than were sent, even if the block claims so.
        let ready = block.ready(in_flight).min(in_flight);
        if ready == 0 {
            if let Err(stopped) = patience.look_in_vain(late, || deadline(block)) {
                // Ordering 4: only a missing word raises the question.
                return Err(if block.lost() { Stopped::Overrun } else { stopped });
            }
            continue;
        }
        // Ordering 1: received words are read before more are sent.
        match rx.take().and_then(|rx| rx.split_at_mut_checked(ready)) {
            Some((now, rest)) => {
                rx = Some(rest);
                take_bytes(block, now);
            }
            None => block.discard(ready),
        }
        in_flight -= ready;
        patience.renew();
        if in_flight == 0 && unsent == 0 {
            break;
        }
    }
    // Ordering 2: the clock comes to rest.
    poll(block, |block| block.wire_ns(1), Fifo::at_rest)
}

fn exchange_range<B: Fifo + ?Sized>(
    block: &mut B,
    cut: Cut,
    words: Range<usize>,
    data: &mut Data<'_>,
) -> Result<(), Stopped> {
    let mut flow = Flow::new(cut, words);
    flow.fill(block, data);
    finish_flow(block, flow, data)
}

/// Receives the words in flight and exchanges the rest.
fn finish_flow<B: Fifo + ?Sized>(
    block: &mut B,
    mut flow: Flow,
    data: &mut Data<'_>,
) -> Result<(), Stopped> {
    let mut patience = Patience::default();
    while !flow.all_received() {
        // Ordering 3: the timer is read before the status.
        let late = patience.late(block.timer());
        if flow.drain(block, data) {
            // Ordering 1: received words are read before more are sent.
            flow.fill(block, data);
            patience.renew();
        } else if let Err(stopped) = patience.look_in_vain(late, || deadline(block)) {
            // Ordering 4: only a missing word raises the question.
            return Err(if block.lost() { Stopped::Overrun } else { stopped });
        }
    }
    // Ordering 2: the clock comes to rest.
    poll(block, |block| block.wire_ns(1), Fifo::at_rest)
}

/// The deadline of the words that may be in flight.
fn deadline<B: Fifo + ?Sized>(block: &mut B) -> Deadline {
    let wire_ns = block.wire_ns(block.depth());
    Deadline::new(block.timer(), wire_ns)
}

/// A transfer that was left in flight.
#[derive(Debug, Default)]
pub struct Flight {
    pub(super) flow: Flow,
    pub(super) deadline: Deadline,
}

impl InFlight for Flight {
    fn deadline(&self) -> &Deadline {
        &self.deadline
    }
}

/// Starts a transfer of at least one word and leaves it in flight.
pub(super) fn begin<B: Fifo + ?Sized>(block: &mut B, cut: Cut, plan: &Plan, data: &Data<'_>) {
    let words = cut.words(data);
    let until = if plan.word_delay_ticks == 0 { words } else { 1 };
    launch(block, Flow::new(cut, 0..until), data);
}

fn launch<B: Fifo + ?Sized>(block: &mut B, mut flow: Flow, data: &Data<'_>) {
    flow.fill(block, data);
    let deadline = deadline(block);
    *block.flight() = Flight { flow, deadline };
}

/// Continues the transfer that [`begin`] left in flight: reads what was received and sends more.
/// Waits only for the end of the last clock.
///
/// # Errors
/// [`Stopped`].
pub(super) fn advance<B: Fifo + ?Sized>(
    block: &mut B,
    plan: &Plan,
    data: &mut Data<'_>,
) -> Poll<Result<(), Stopped>> {
    let Flight { mut flow, deadline } = *block.flight();
    if !flow.drain(block, data) {
        // Ordering 4, checked at once: the waiter would sleep for a lost word, which never comes.
        if block.lost() {
            return Poll::Ready(Err(Stopped::Overrun));
        }
        // Ordering 3: the timer is read before the status.
        let late = deadline.passed(block.timer());
        if !flow.drain(block, data) {
            return if late { Poll::Ready(Err(deadline.error())) } else { Poll::Pending };
        }
    }
    // Read the words that came in meanwhile: another interrupt for them does not pay.
    while !flow.all_received() && flow.drain(block, data) {}
    if !flow.all_received() {
        // Ordering 1: received words are read before more are sent.
        launch(block, flow, data);
        return Poll::Pending;
    }
    // Ordering 2: the clock comes to rest.
    let rested = poll(block, |block| block.wire_ns(1), Fifo::at_rest);
    let words = flow.cut.words(data);
    if rested.is_err() || flow.received == words {
        return Poll::Ready(rested);
    }
    block.wait_ticks(plan.word_delay_ticks);
    launch(block, Flow::new(flow.cut, flow.received..flow.received + 1), data);
    Poll::Pending
}
