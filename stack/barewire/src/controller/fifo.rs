//! The exchange of blocks with a data register: each word written brings one word in.
//!
//! # How it works
//! Because each word sent brings one in, the received words pace the sent ones: at most
//! [`Fifo::depth`] words are in flight, so the receive side has room for them however late we read.
//! A transfer's bytes are [cut](Cut) into words of the FIFO. Two bytes of a transfer in 8-bit words
//! may go in one 16-bit word, most significant first, if the block makes no pause between words:
//! half the register accesses, identical bits on the wire.
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

use super::deadline::{Deadline, Patience, Timed, poll};
use super::words::{pack, unpack};
use super::{Plan, Stopped, Wire};
use crate::spi::{Data, Transfer};

/// A block with a FIFO, or a single register, in each direction.
pub(super) trait Fifo: Timed + Wire {
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
    /// Words of the FIFO of `frame_bytes` (1, 2 or 4), a multiple of the plan's word.
    pub(super) fn new(plan: &Plan, frame_bytes: u8) -> Self {
        Self { word_bytes: plan.word_bytes(), frame_bytes }
    }

    fn words(self, data: &Data<'_>) -> usize {
        data.len() / usize::from(self.frame_bytes)
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
        match data.tx().map(|tx| &tx[self.cut.bytes(words.clone())]) {
            None => block.put(words.map(|_| 0)),
            // A byte is a word of the FIFO: no packing.
            Some(tx) if frame_bytes == 1 => block.put(tx.iter().map(|&byte| byte.into())),
            Some(tx) => {
                let frames = tx.chunks_exact(frame_bytes.into());
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
        match data.rx_mut().map(|rx| &mut rx[self.cut.bytes(words)]) {
            None => block.discard(ready),
            Some(rx) if frame_bytes == 1 => {
                block.take(rx.iter_mut(), |byte, word| *byte = word as u8);
            }
            Some(rx) => {
                let frames = rx.chunks_exact_mut(frame_bytes.into());
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
    if plan.word_delay_ticks == 0 && cut.frame_bytes == 1 {
        // In-place transfers go word by word below: received bytes overwrite those to be sent.
        if let Some((tx, rx)) = data.apart() {
            return exchange_bytes(block, words, tx, rx);
        }
    }
    if plan.word_delay_ticks == 0 {
        return exchange_range(block, cut, 0..words, data);
    }
    for index in 0..words {
        if index > 0 {
            block.wait_ticks(plan.word_delay_ticks);
        }
        exchange_range(block, cut, index..index + 1, data)?;
    }
    Ok(())
}

/// Sends `len` bytes, one per word of the FIFO, all in flight at once, and reads for as long as
/// something has been received. Returns true if all bytes are in `rx` and the clock is at rest;
/// otherwise [`exchange_rest`] must follow. Always inlined.
#[inline(always)]
pub(super) fn exchange_short<B: Fifo>(
    block: &mut B,
    len: usize,
    tx: Option<&[u8]>,
    rx: Option<&mut [u8]>,
) -> bool {
    match tx {
        Some(tx) => put_bytes(block, tx),
        None => block.put((0..len).map(|_| 0)),
    }
    let received = take_short(block, len, rx);
    if received == len && block.at_rest() {
        return true;
    }
    let cut = Cut { word_bytes: 1, frame_bytes: 1 };
    block.flight().flow = Flow { cut, sent: len, received, until: len };
    false
}

/// Reads received words of a short transfer until none is ready. Returns how many bytes were read.
#[inline(always)]
fn take_short<B: Fifo>(block: &mut B, len: usize, mut rx: Option<&mut [u8]>) -> usize {
    let mut received = 0;
    while received < len {
        let ready = block.ready(len - received).min(len - received);
        if ready == 0 {
            break;
        }
        match rx.as_deref_mut().and_then(|rx| rx.get_mut(received..received + ready)) {
            Some(rx) => take_bytes(block, rx),
            None => block.discard(ready),
        }
        received += ready;
    }
    received
}

/// Waits for the rest of what [`exchange_short`] sent.
///
/// # Errors
/// As [`exchange`].
pub(super) fn exchange_rest<B: Fifo>(block: &mut B, rx: Option<&mut [u8]>) -> Result<(), Stopped> {
    let flow = block.flight().flow;
    // Everything was sent; without a buffer, received words are discarded.
    let mut rest = rx.map_or(Transfer::write(&[]), Transfer::read);
    finish(block, flow, &mut rest.data)
}

/// Half of a FIFO of eight words, which reports this fill level: the loop over them is unrolled.
const HALF: usize = 4;

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

/// [`exchange_range`] of a whole transfer with one byte per word of the FIFO. The bytes left to
/// send and to receive are slices, which shrink.
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
    finish(block, flow, data)
}

/// Receives what was sent and exchanges the rest.
#[inline]
fn finish<B: Fifo + ?Sized>(
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
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    pub(super) flow: Flow,
    pub(super) deadline: Deadline,
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
        // Ordering 4, at once: a lost word never comes, and its waiter sleeps.
        if block.lost() {
            return Poll::Ready(Err(Stopped::Overrun));
        }
        // Ordering 3: the timer is read before the status.
        let late = deadline.passed(block.timer());
        if !flow.drain(block, data) {
            return if late { Poll::Ready(Err(deadline.error())) } else { Poll::Pending };
        }
    }
    // Read what came in meanwhile now: it does not pay to interrupt again for it.
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
