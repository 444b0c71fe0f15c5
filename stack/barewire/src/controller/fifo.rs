//! The exchange of blocks that are fed through a data register: words go in, as many come out.
//!
//! # How it works
//! Each word sent brings one in, so what is received paces what is sent: at most
//! [`Fifo::depth`] words are in flight, and the receive side has room for them however late we
//! are. A transfer's bytes are [cut](Cut) into the words of the FIFO; two bytes of a transfer in
//! 8-bit words may go in one of 16 bits, most significant first, where the block has no pause
//! between words: half the register accesses, the same wire.
//!
//! # Ordering
//! 1. What has come is read before more is sent.
//! 2. After the last word the block is asked until its clock is at rest: a chip select moved before
//!    would cut the last cell.
//! 3. The clock is read before the status it judges: whoever was put to sleep between the two
//!    still sees the hardware's success.
//! 4. A word that was lost is missing at the end. Only then is the block asked whether it lost one,
//!    so that exchanges which go well never are.

use core::ops::Range;
use core::task::Poll;

use super::deadline::{Deadline, Patience, Timed, poll};
use super::words::{pack, unpack};
use super::{Plan, Stopped, Wire};
use crate::spi::{Data, Transfer};

/// A block with a FIFO each way, or none and a register each way.
pub(super) trait Fifo: Timed + Wire {
    /// Words in flight at most.
    fn depth(&self) -> usize;

    /// Sends `words`, at least one; there is room for them.
    fn put(&mut self, words: impl ExactSizeIterator<Item = u32>);

    /// How many of `in_flight` words, at least one, have certainly come: more may have.
    fn ready(&mut self, in_flight: usize) -> usize;

    /// Reads a word that is ready for each of `places`.
    fn take<P>(&mut self, places: impl ExactSizeIterator<Item = P>, to: impl FnMut(P, u32));

    /// Reads `n` words that are ready for the reads' effect alone.
    fn discard(&mut self, n: usize);

    /// Whether the last clock is over; asked when all that was sent has been read.
    fn at_rest(&mut self) -> bool;

    /// Whether the block has lost a word.
    fn lost(&mut self) -> bool;

    /// How long `words` take at the clock that is set, in nanoseconds.
    fn wire_ns(&self, words: usize) -> u64;

    /// The transfer that was left on the wire.
    fn flight(&mut self) -> &mut Flight;
}

/// How the bytes of a transfer are cut into words of the FIFO.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cut {
    /// Bytes of a word as the device has it.
    word_bytes: u8,
    /// Bytes of a word of the FIFO: as many, or twice.
    frame_bytes: u8,
}

impl Cut {
    /// Words of the FIFO of `frame_bytes`, 1, 2 or 4, a whole number of the plan's words.
    pub(super) fn new(plan: &Plan, frame_bytes: u8) -> Self {
        Self { word_bytes: plan.word_bytes(), frame_bytes }
    }

    fn words(self, data: &Data<'_>) -> usize {
        data.len() / usize::from(self.frame_bytes)
    }

    /// Where `words` lie in the transfer's buffers.
    #[inline]
    fn bytes(self, words: Range<usize>) -> Range<usize> {
        let bytes = usize::from(self.frame_bytes);
        words.start * bytes..words.end * bytes
    }
}

/// How far the words of a transfer have come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    cut: Cut,
    sent: usize,
    received: usize,
    /// Where this go ends: at the last word, or, where words lie apart, after the next.
    until: usize,
}

impl Flow {
    fn new(cut: Cut, words: Range<usize>) -> Self {
        Self { cut, sent: words.start, received: words.start, until: words.end }
    }

    /// Words sent that have not come back.
    pub(super) fn in_flight(&self) -> usize {
        self.sent - self.received
    }

    /// Words of this go that are still to be sent.
    pub(super) fn unsent(&self) -> usize {
        self.until - self.sent
    }

    /// Whether every word was sent.
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
            // Bytes are words as they lie there.
            Some(tx) if frame_bytes == 1 => block.put(tx.iter().map(|&byte| byte.into())),
            Some(tx) => {
                let frames = tx.chunks_exact(frame_bytes.into());
                block.put(frames.map(|bytes| pack(bytes, word_bytes)));
            }
        }
    }

    /// Reads what has come; returns whether anything had.
    #[inline]
    fn drain<B: Fifo + ?Sized>(&mut self, block: &mut B, data: &mut Data<'_>) -> bool {
        let in_flight = self.in_flight();
        if in_flight == 0 {
            return false;
        }
        // No more than were sent, whatever the block says.
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
/// [`Stopped`]: what is in the FIFOs is the caller's to clear.
pub(super) fn exchange<B: Fifo + ?Sized>(
    block: &mut B,
    cut: Cut,
    plan: &Plan,
    data: &mut Data<'_>,
) -> Result<(), Stopped> {
    let words = cut.words(data);
    if plan.word_delay_ticks == 0 && cut.frame_bytes == 1 {
        // Where it is both, what comes in is written over what goes out: word by word.
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

/// Bytes of a transfer that [`exchange_short`] takes at most; a block may take fewer.
const SHORT_BYTES: usize = 16;

/// Whether a transfer of `len` bytes in words of as many is short.
#[inline(always)]
pub(super) fn is_short(len: usize) -> bool {
    len > 0 && len <= SHORT_BYTES
}

/// Sends `len` bytes, a word of the FIFO each, that may all be in flight, and looks as long as
/// something has come. Returns whether all has, in `rx`, and the clock rests: if not,
/// [`exchange_rest`] goes on. Compiled into its caller.
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

/// Reads what has come of a short transfer, and looks again; returns how many bytes have.
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

/// Waits for what [`exchange_short`] has sent.
///
/// # Errors
/// As [`exchange`].
pub(super) fn exchange_rest<B: Fifo>(block: &mut B, rx: Option<&mut [u8]>) -> Result<(), Stopped> {
    let flow = block.flight().flow;
    // What was sent is sent: a transfer without a buffer discards what comes.
    let mut rest = rx.map_or(Transfer::write(&[]), Transfer::read);
    finish(block, flow, &mut rest.data)
}

/// Words that come at once from a FIFO of eight which says when it is half full: their loop is unrolled.
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

/// [`exchange_range`] of a whole transfer whose bytes are words of the FIFO: what is left to send and to
/// receive are slices, which shrink.
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
        // Ordering 3: the clock is read before the status.
        let late = patience.late(block.timer());
        // No more than were sent, whatever the block says.
        let ready = block.ready(in_flight).min(in_flight);
        if ready == 0 {
            if let Err(stopped) = patience.look_in_vain(late, || deadline(block)) {
                // Ordering 4: only a missing word raises the question.
                return Err(if block.lost() { Stopped::Overrun } else { stopped });
            }
            continue;
        }
        // Ordering 1: what has come is read before more is sent.
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
        // Ordering 3: the clock is read before the status.
        let late = patience.late(block.timer());
        if flow.drain(block, data) {
            // Ordering 1: what has come is read before more is sent.
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

/// For what may be in flight.
fn deadline<B: Fifo + ?Sized>(block: &mut B) -> Deadline {
    let wire_ns = block.wire_ns(block.depth());
    Deadline::new(block.timer(), wire_ns)
}

/// A transfer that is left on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    pub(super) flow: Flow,
    pub(super) deadline: Deadline,
}

/// Begins a transfer of at least one word and leaves it.
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

/// Goes on with the transfer that [`begin`] left: reads what has come and sends more. Waits for
/// nothing but the last clock's end.
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
        // 4, at once: what is lost does not come, and whoever waits for it sleeps.
        if block.lost() {
            return Poll::Ready(Err(Stopped::Overrun));
        }
        // Ordering 3: the clock is read before the status.
        let late = deadline.passed(block.timer());
        if !flow.drain(block, data) {
            return if late { Poll::Ready(Err(deadline.error())) } else { Poll::Pending };
        }
    }
    // What came while the rest was read is not worth another interrupt.
    while !flow.all_received() && flow.drain(block, data) {}
    if !flow.all_received() {
        // Ordering 1: what has come is read before more is sent.
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
