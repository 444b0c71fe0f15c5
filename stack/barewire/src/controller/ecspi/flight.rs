//! Bursts left in flight: filled, left, and continued when the block interrupts.
//!
//! *Read first*: the module page of [`super`]; reference manual, chapter ECSPI: DMAREG, INTREG and
//! STATREG.
//!
//! # How it works
//! Every word sent brings one in, so RXFIFO alone says when to send more and when everything was
//! received. TXFIFO's request (TDREN) is not used: the manual explains TX_THRESHOLD three times,
//! and the texts of DMAREG and STATREG contradict that of INTREG. For RX_THRESHOLD all three say
//! "greater than".
//!
//! **When to interrupt.** A full burst is 128 words; 64 of them are in flight at its start. Sending
//! the other 64 without stopping the clock takes two interrupts: with a single one, after 64
//! received words, TXFIFO would be empty by then. If the first interrupt comes after n words, there
//! are 64 − n words of time to serve it and n words to serve the second. The shorter of the two is
//! longest at n = 32. So a full burst takes three interrupts (the third is its end), 6 per KiB,
//! each with 32 words of time: 51 µs at 20 MHz. Serving one later stops the clock, which costs time
//! but no data.
//!
//! **By which bits.** RDR says that as many words were received as the threshold asked for. For
//! blocks that never set RDR (QEMU's model), RF says it of 64 words, and TC says that a burst is
//! over or has run out of words. TC may come before the last word, so it is only a reason to look
//! at RR.
//!
//! # Ordering
//! 1. Between bursts, while the block is idle: clear STATREG.TC, write CONREG, write RX_THRESHOLD.
//! 2. Write a few words, XCH, then as many words as RXFIFO has room for: never more than 64 are in
//!    flight. On a native line all words are written before XCH.
//! 3. A burst that had started may stop before more words arrive: XCH is set again if it is clear
//!    while words are waiting. After that the burst cannot stop before RDR is set.
//! 4. Nothing interrupts until [`Controller::arm`](super::Controller::arm).
//! 5. Received words are read before more are sent.
//! 6. The burst's last word is received half a clock before its end: see step 5 of [`super`].
//! 7. The timer is read before the status that it judges: a thread that was preempted between the
//!    two still sees that the hardware finished.

use core::ops::Range;
use core::task::Poll;

use super::regs::{
    BURST_BYTES_MAX, BURST_LENGTH, FIFO_WORDS, RDR, RF, RR, SMC, STATREG, TC, burst_length,
};
use super::{Ecspi, Span, prefill_words};
use crate::controller::block::InFlight;
use crate::controller::deadline::Deadline;
use crate::controller::gpio::GpioBank;
use crate::controller::{Interrupt, Plan, Preset, Stopped, Wire};
use crate::reg::Registers;
use crate::spi::Data;
use crate::time::Timer;

/// The number of received words after which more are sent. The module's documentation says why.
const REFILL_WORDS: usize = FIFO_WORDS / 2;

/// The burst in flight.
#[derive(Debug, Default)]
pub struct Flight {
    span: Span,
    /// Words sent, and below words received.
    sent: usize,
    received: usize,
    /// Words to receive before anything else is done.
    due: usize,
    deadline: Deadline,
}

impl Flight {
    /// A polled burst of which these words are in flight.
    pub(super) fn of(span: Span, in_flight: Range<usize>) -> Self {
        Self { span, sent: in_flight.end, received: in_flight.start, ..Self::default() }
    }

    pub(super) fn span(&self) -> Span {
        self.span
    }

    /// The burst's words in flight.
    pub(super) fn in_flight(&self) -> Range<usize> {
        self.received..self.sent
    }

    /// Whether every word was sent.
    fn all_sent(&self) -> bool {
        self.sent == self.span.words()
    }

    /// The bits awaited, in INTREG and STATREG alike.
    pub(super) fn awaited(&self) -> u32 {
        if self.all_sent() { RDR | RF | TC } else { RDR | RF }
    }
}

impl InFlight for Flight {
    fn deadline(&self) -> &Deadline {
        &self.deadline
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Ecspi<R, G, T, I> {
    /// Starts the burst at `start` of the transfer.
    pub(super) fn launch(&mut self, preset: &Preset, plan: &Plan, data: &Data<'_>, start: usize) {
        let spaced = plan.word_delay_ticks > 0;
        let max = if spaced { plan.word_bytes().into() } else { BURST_BYTES_MAX };
        let span = Span { start, len: (data.len() - start).min(max) };
        self.flight = Flight { span, ..Flight::default() };
        // Ordering 1: a stale TC would interrupt before this burst ends.
        self.regs.write(STATREG, TC);
        self.set_conreg(plan.control & !(BURST_LENGTH | SMC) | burst_length(span.len));
        // Ordering 2: by XCH, never SMC, because words are written during the burst (ERR009165).
        let prefill = span.words().min(prefill_words(preset));
        self.send(plan, data.tx(), span, 0..prefill);
        self.flight.sent = prefill;
        self.start_burst();
        self.refill(plan, data);
    }

    /// Sends what fits, and sets the threshold for the next interrupt.
    fn refill(&mut self, plan: &Plan, data: &Data<'_>) {
        let Flight { span, sent, received, .. } = self.flight;
        let words = span.words();
        let until = words.min(received + FIFO_WORDS);
        self.send(plan, data.tx(), span, sent..until);
        self.flight.sent = until;
        let in_flight = until - received;
        // If all was sent, the end is next; otherwise `in_flight` fills a FIFO.
        self.flight.due = if until == words { in_flight } else { REFILL_WORDS };
        self.set_threshold(self.flight.due);
        // Ordering 3: a burst that stopped is started again.
        if until > sent {
            self.restart_if_dry();
        }
        self.flight.deadline = self.deadline(4 * in_flight);
    }

    /// Reads received words according to STATREG: all that are due, or, with TC, as many as RR
    /// shows.
    fn drain(&mut self, plan: &Plan, data: &mut Data<'_>, mut status: u32) {
        let Flight { span, received, due, .. } = self.flight;
        let until = received + due;
        let mut next = received;
        if status & (RDR | RF) != 0 {
            next = until;
            self.receive(plan, data, span, received..until);
        } else {
            self.regs.write(STATREG, TC);
        }
        while next < until && status & RR != 0 {
            self.receive(plan, data, span, next..next + 1);
            next += 1;
            status = self.regs.read(STATREG);
        }
        self.flight.received = next;
        self.flight.due = until - next;
    }

    /// [`BlockDriver::advance`](crate::controller::block::BlockDriver::advance).
    pub(super) fn go_on(
        &mut self,
        preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Poll<Result<(), Stopped>> {
        let awaited = self.flight.awaited();
        let mut status = self.regs.read(STATREG);
        if status & awaited == 0 {
            // Ordering 7: the timer is read before the status.
            let late = self.flight.deadline.passed(&mut self.timer);
            status = self.regs.read(STATREG);
            if status & awaited == 0 {
                let late = late.then(|| self.flight.deadline.error());
                return late.map_or(Poll::Pending, |stopped| Poll::Ready(Err(stopped)));
            }
        }
        // Ordering 5: received words are read before more are sent.
        self.drain(plan, data, status);
        if self.flight.due > 0 {
            // TC came before the last words were received.
            self.set_threshold(self.flight.due);
            return Poll::Pending;
        }
        if !self.flight.all_sent() {
            self.refill(plan, data);
            return Poll::Pending;
        }
        // Ordering 6: the last word comes before the burst's end.
        if let Err(stopped) = self.end_burst(preset) {
            return Poll::Ready(Err(stopped));
        }
        let Span { start, len } = self.flight.span;
        let end = start + len;
        if end == data.len() {
            return Poll::Ready(Ok(()));
        }
        self.wait_ticks(plan.word_delay_ticks);
        self.launch(preset, plan, data, end);
        Poll::Pending
    }
}
