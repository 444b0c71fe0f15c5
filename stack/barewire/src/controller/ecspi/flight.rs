//! Bursts that are left on the wire: filled, left, and gone on with when the block interrupts.
//!
//! *Read first*: the module page of [`super`]; reference manual, chapter ECSPI: DMAREG, INTREG and
//! STATREG.
//!
//! # How it works
//! Every word sent brings one in, so RXFIFO alone says when to send more, and when all has come.
//! TXFIFO's request (TDREN) is not used: the manual gives TX_THRESHOLD's meaning three times, and
//! DMAREG's and STATREG's contradict INTREG's, while of RX_THRESHOLD all three say "greater than".
//!
//! **When to interrupt.** A burst begins with both FIFOs' worth in flight, 64 words, and has 128
//! at most. To send the other 64 without the clock stopping takes two interrupts, since the one
//! that sends the rest must come when 64 words have come in, and with no other before it TXFIFO
//! would be empty by then. The first coming after n words leaves 64 - n words of time to serve it,
//! and n to serve the second: 32 is where the shorter of the two is longest. So it is three
//! interrupts a full burst (the third is the end), 6 a KiB, each with 32 words of time: 51 µs at
//! 20 MHz. One that is served later stops the clock, and costs time but no data.
//!
//! **By which bits.** RDR says that as many words have come as were waited for. Where a block does not
//! tell (QEMU's model never sets RDR), RF says it of 64 words, and TC that a burst is over or has run
//! out of words. TC may come before the last word, so it is a reason to look at RR, and no more.
//!
//! # Ordering
//! 1. Between bursts: STATREG.TC cleared, the block being idle; CONREG; RX_THRESHOLD.
//! 2. Few words, XCH, then as many as RXFIFO could hold: in flight are never more than 64. On the
//!    block's own line all words come before XCH.
//! 3. Where words were sent to a burst that had begun, it may have stopped before they came: XCH is
//!    set again if it is clear while words wait. From here on it cannot stop before RDR is set.
//! 4. Nothing interrupts until [`Controller::arm`](super::Controller::arm).
//! 5. What has come is read before more is sent.
//! 6. The burst's last word is there half a clock before its end: see point 5 of [`super`].
//! 7. The clock is read before the status it judges: whoever was put to sleep between the two
//!    still sees the hardware's success.

use core::task::Poll;

use super::regs::{
    BURST_BYTES_MAX, BURST_LENGTH, FIFO_WORDS, RDR, RF, RR, SMC, STATREG, TC, burst_length,
};
use super::{Ecspi, Span, prefill_words};
use crate::controller::deadline::Deadline;
use crate::controller::gpio::GpioBank;
use crate::controller::waits::Sleeps;
use crate::controller::{Controller, Interrupt, Plan, Program, Progress, Stepped, Stopped, Wire};
use crate::reg::Registers;
use crate::spi::Data;
use crate::time::Timer;

/// After how many received words more are sent; see the module on why.
const REFILL_WORDS: usize = FIFO_WORDS / 2;

/// The burst on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    span: Span,
    /// Its words sent and received.
    sent: usize,
    received: usize,
    /// Words to come before something is done.
    due: usize,
    deadline: Deadline,
}

impl Flight {
    /// Whether nothing is left to send.
    fn all_sent(&self) -> bool {
        self.sent == self.span.words()
    }

    /// What is awaited: INTREG's enables and STATREG's bits alike.
    pub(super) fn awaited(&self) -> u32 {
        if self.all_sent() { RDR | RF | TC } else { RDR | RF }
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Ecspi<R, G, T, I> {
    /// Begins the burst at `start` of the transfer.
    fn launch(&mut self, program: &Program, plan: &Plan, data: &Data<'_>, start: usize) {
        let spaced = plan.word_delay_ticks > 0;
        let max = if spaced { plan.word_bytes().into() } else { BURST_BYTES_MAX };
        let span = Span { start, len: (data.len() - start).min(max) };
        self.flight = Flight { span, ..Flight::default() };
        // 1. A stale TC would interrupt for a burst that has not ended.
        self.regs.write(STATREG, TC);
        self.set_conreg(plan.control & !(BURST_LENGTH | SMC) | burst_length(span.len));
        // 2. By XCH, never SMC: words are written during the burst (ERR009165).
        let prefill = span.words().min(prefill_words(program));
        self.send(plan, data, span, 0..prefill);
        self.flight.sent = prefill;
        self.start_burst();
        self.refill(plan, data);
    }

    /// Sends what fits, and sets when to look again.
    fn refill(&mut self, plan: &Plan, data: &Data<'_>) {
        let Flight { span, sent, received, .. } = self.flight;
        let words = span.words();
        let until = words.min(received + FIFO_WORDS);
        self.send(plan, data, span, sent..until);
        self.flight.sent = until;
        let in_flight = until - received;
        // All sent: the next to do is at the end. Else `in_flight` is a FIFO's worth.
        self.flight.due = if until == words { in_flight } else { REFILL_WORDS };
        self.set_threshold(self.flight.due);
        // Ordering 3: a burst that stopped is started again.
        if until > sent {
            self.restart_if_dry();
        }
        self.flight.deadline = self.deadline(4 * in_flight);
    }

    /// Reads what has come, by STATREG: what was waited for, or, TC being set, what RR shows.
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
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Sleeps for Ecspi<R, G, T, I> {
    const CAN_SLEEP: bool = I::PRESENT;

    fn sleep(&mut self) {
        self.interrupt.enable();
        self.arm();
        self.interrupt.wait(self.flight.deadline.sleep_us());
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Stepped for Ecspi<R, G, T, I> {
    fn progress(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn begin(&mut self, program: &Program, plan: &Plan, data: &mut Data<'_>) {
        self.launch(program, plan, data, 0);
    }

    fn advance(
        &mut self,
        program: &Program,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Poll<Result<(), Stopped>> {
        let awaited = self.flight.awaited();
        let mut status = self.regs.read(STATREG);
        if status & awaited == 0 {
            // Ordering 7: the clock is read before the status.
            let late = self.flight.deadline.passed(&mut self.timer);
            status = self.regs.read(STATREG);
            if status & awaited == 0 {
                let late = late.then(|| self.flight.deadline.error());
                return late.map_or(Poll::Pending, |stopped| Poll::Ready(Err(stopped)));
            }
        }
        // Ordering 5: what has come is read before more is sent.
        self.drain(plan, data, status);
        if self.flight.due > 0 {
            // TC came before the last words did.
            self.set_threshold(self.flight.due);
            return Poll::Pending;
        }
        if !self.flight.all_sent() {
            self.refill(plan, data);
            return Poll::Pending;
        }
        // Ordering 6: the last word comes before the burst's end.
        if let Err(stopped) = self.end_burst(program) {
            return Poll::Ready(Err(stopped));
        }
        let Span { start, len } = self.flight.span;
        let end = start + len;
        if end == data.len() {
            return Poll::Ready(Ok(()));
        }
        self.wait_ticks(plan.word_delay_ticks);
        self.launch(program, plan, data, end);
        Poll::Pending
    }
}
