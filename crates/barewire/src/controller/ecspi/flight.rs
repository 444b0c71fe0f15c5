//! Bursts that are left on the wire: filled, left, and gone on with when the block interrupts.
//!
//! *Read first*: the module page of [`super`]; reference manual, chapter ECSPI: DMAREG, INTREG and
//! STATREG.
//!
//! # How it works
//! Every word sent brings one in, so RXFIFO's count alone says when to send more, and when all has
//! come. TXFIFO's request (TDREN) is not used: the manual gives TX_THRESHOLD's meaning three times,
//! and DMAREG's and STATREG's contradict INTREG's, while of RX_THRESHOLD all three say "greater
//! than".
//!
//! **When to interrupt.** A burst begins with both FIFOs' worth in flight, 64 words, and has 128
//! at most. To send the other 64 without the clock stopping takes two interrupts, since the one
//! that sends the rest must come when 64 words have come in, and with no other before it TXFIFO
//! would be empty by then. The first coming after n words leaves 64 - n words of time to serve it,
//! and n to serve the second: 32 is where the shorter of the two is longest. So it is three
//! interrupts a full burst (the third is the end), 6 a KiB, each with 32 words of time: 51 µs at
//! 20 MHz. One that is served later stops the clock, and costs time but no data.
//!
//! # Ordering
//! 1. Between bursts: STATREG.TC cleared, the block being idle; CONREG; RX_THRESHOLD.
//! 2. Few words, XCH, then as many as RXFIFO could hold: in flight are never more than 64.
//! 3. Nothing interrupts until [`Controller::arm`](super::Controller::arm).
//! 4. What has come is read before more is sent.
//! 5. The burst's last word is there half a clock before its end, and XCH says when that is. If it
//!    is still to come, TC interrupts.
//! 6. The clock is read before the status it judges: whoever was put to sleep between the two
//!    still sees the hardware's success.

use core::task::Poll;

use super::regs::{
    BURST_LENGTH, CONREG, DMAREG, FIFO_WORDS, RDREN, SMC, STATREG, TC, TESTREG, XCH, burst_length,
    rx_threshold, rxcnt,
};
use super::{Ecspi, PREFILL_WORDS, Span};
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
    /// Words received on which something is to be done; 0: the end of the last.
    due: usize,
    deadline: Deadline,
}

impl Flight {
    /// INTREG for what is awaited.
    pub(super) fn awaited(&self) -> u32 {
        if self.due > 0 { RDREN } else { TC }
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Ecspi<R, G, T, I> {
    /// Begins the burst at `start` of the transfer.
    fn launch(&mut self, plan: &Plan, data: &Data<'_>, start: usize) {
        let spaced = plan.word_delay_ticks > 0;
        let max = if spaced { plan.word_bytes().into() } else { self.config.burst_bytes_max() };
        let span = Span { start, len: (data.len() - start).min(max) };
        self.flight = Flight { span, ..Flight::default() };
        // 1. A stale TC would interrupt for a burst that has not ended.
        self.regs.write(STATREG, TC);
        self.set_conreg(plan.control & !(BURST_LENGTH | SMC) | burst_length(span.len));
        // 2. By XCH, never SMC: words are written during the burst (ERR009165).
        let prefill = span.words().min(PREFILL_WORDS);
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
        let due = if until == words { in_flight } else { REFILL_WORDS };
        if self.flight.due != due {
            self.regs.write(DMAREG, rx_threshold(due));
            self.flight.due = due;
        }
        self.flight.deadline = self.deadline(4 * in_flight);
    }

    /// Whether what is awaited has come: words in RXFIFO, or, for the burst's end, 1.
    fn come(&mut self) -> usize {
        if self.flight.due > 0 {
            rxcnt(self.regs.read(TESTREG))
        } else {
            usize::from(self.regs.read(CONREG) & XCH == 0)
        }
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Sleeps for Ecspi<R, G, T, I> {
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

    fn begin(&mut self, _program: &Program, plan: &Plan, data: &mut Data<'_>) {
        self.launch(plan, data, 0);
    }

    fn advance(
        &mut self,
        _program: &Program,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Poll<Result<(), Stopped>> {
        let mut come = self.come();
        if come < self.flight.due.max(1) {
            // 6.
            let late = self.flight.deadline.passed(&mut self.timer);
            come = self.come();
            if come < self.flight.due.max(1) {
                let late = late.then(|| self.flight.deadline.error());
                return late.map_or(Poll::Pending, |stopped| Poll::Ready(Err(stopped)));
            }
        }
        let Flight { span, sent, received, due, .. } = self.flight;
        if due > 0 {
            // 4. No more than were sent, whatever the block says.
            let ready = come.min(sent - received);
            self.receive(plan, data, span, received..received + ready);
            self.flight.received += ready;
            if self.flight.received < span.words() {
                self.refill(plan, data);
                return Poll::Pending;
            }
            // 5.
            self.flight.due = 0;
            if self.come() == 0 {
                self.flight.deadline = self.deadline(4);
                return Poll::Pending;
            }
        }
        let end = span.start + span.len;
        if end == data.len() {
            return Poll::Ready(Ok(()));
        }
        self.wait_ticks(plan.word_delay_ticks);
        self.launch(plan, data, end);
        Poll::Pending
    }
}
