//! Transfers that are left on the wire: filled, left, and gone on with when the block interrupts.
//!
//! *Read first*: the module page of [`super`]; `fifo.rs`, whose steps these are; ARM DDI 0194,
//! sections "Interrupts" and SSPIMSC.
//!
//! # How it works
//! Every word sent brings one in, so the receive FIFO alone says when to send more, and when all
//! has come. It interrupts at four words (RXIM), which leaves four on the way: four frames of time to
//! be served in, and the clock stops only if it takes longer.
//!
//! **The tail.** RXIM does not come for less than four, and the timeout that does (RTIM) waits 32
//! bits after the last, more than a word takes. So words are read only in such numbers that four are
//! still to come, or none: RXIM comes with the very last word. Transfers of less than four frames,
//! and frames that lie apart, have RTIM alone.
//!
//! # Ordering
//! 1. Nothing interrupts until [`Controller::arm`](super::Controller::arm).
//! 2. A lost word (RORIM) interrupts whatever is awaited.
//! 3. What has come is read before more is sent.
//! 4. The last word is there up to a clock before the frame's end; BSY is polled for that long.

use core::task::Poll;

use super::Pl022;
use super::config::in_pairs;
use super::regs::{HALF_WORDS, ROR, RT, RX};
use crate::controller::fifo;
use crate::controller::gpio::GpioBank;
use crate::controller::waits::Sleeps;
use crate::controller::{Controller, Interrupt, Plan, Program, Progress, Stepped, Stopped};
use crate::reg::Registers;
use crate::spi::{Data, Transfer};
use crate::time::Timer;

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Pl022<R, G, T, I> {
    /// SSPIMSC for what is awaited.
    pub(super) fn awaited(&self) -> u32 {
        // Ordering 2: a lost word interrupts whatever is awaited.
        let words = if self.flight.flow.in_flight() < HALF_WORDS { RT } else { RX };
        words | ROR
    }

    /// How many of `in_flight` words are to be read, four or more being to come: so many that four
    /// are still to come, or none.
    #[inline]
    pub(super) fn ready_left(&mut self, in_flight: usize) -> usize {
        // Fewer cannot interrupt before more are sent.
        if in_flight < HALF_WORDS || !self.half_full() {
            return 0;
        }
        match in_flight + self.flight.flow.unsent() {
            HALF_WORDS => HALF_WORDS,
            to_come => (to_come - HALF_WORDS).min(HALF_WORDS),
        }
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Sleeps for Pl022<R, G, T, I> {
    const CAN_SLEEP: bool = I::PRESENT;

    fn look_ahead(&mut self, program: &Program, message: &[Transfer<'_>]) {
        self.pairs = in_pairs(program, message);
    }

    fn sleep(&mut self) {
        self.interrupt.enable();
        self.arm();
        self.interrupt.wait(self.flight.deadline.sleep_us());
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Stepped for Pl022<R, G, T, I> {
    fn progress(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn begin(&mut self, program: &Program, plan: &Plan, data: &mut Data<'_>) {
        // A block that is stuck gets nothing: what is awaited then does not come.
        if let Ok(cut) = self.prepare(program, plan) {
            self.left = true;
            fifo::begin(self, cut, plan, data);
        }
    }

    fn advance(
        &mut self,
        _program: &Program,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Poll<Result<(), Stopped>> {
        if let Some(stopped) = self.stuck {
            return Poll::Ready(Err(stopped));
        }
        fifo::advance(self, plan, data)
    }
}
