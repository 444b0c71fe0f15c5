//! Transfers left in flight: filled, left, and continued when the block interrupts.
//!
//! *Read first*: the module page of [`super`]; `fifo.rs`, whose steps this uses; the databook's
//! descriptions of RXFTLR and IMR.
//!
//! # How it works
//! The block has no interrupt for being idle, and its transmit interrupt comes before the last
//! frame has left the shift register. So the receive FIFO alone says when to continue. RXFTLR is
//! half the FIFO: that leaves the other half on the wire as time to serve the interrupt, and half
//! the reads are done while the wire still works. With fewer words in flight, RXFTLR is set for the
//! very last word. BUSY is then polled for the half clock that remains.
//!
//! # Ordering
//! 1. RXFTLR is written before [`Controller::arm`], and arming is the one access after which the
//!    interrupt may come.
//! 2. A lost word (RXO) interrupts too.
//! 3. The bytes that do not fill a frame are sent after the others were received, by polling: one
//!    frame.

use core::task::Poll;

use super::DwSsi;
use super::regs::{RXF, RXFTLR, RXO};
use crate::controller::gpio::GpioBank;
use crate::controller::waits::Sleeps;
use crate::controller::{Controller, Interrupt, Plan, Program, Progress, Stepped, Stopped, fifo};
use crate::reg::Registers;
use crate::spi::Data;
use crate::time::Timer;

/// The interrupts that are enabled while a message waits.
pub(super) const AWAITED: u32 = RXF | RXO;

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> DwSsi<R, G, T, I> {
    /// Ordering 1: sets the number of words at which the block interrupts.
    fn await_words(&mut self) {
        let words = self.flight.flow.in_flight().clamp(1, self.size.depth / 2);
        let rxftlr = words as u32 - 1;
        if self.rxftlr != rxftlr {
            self.regs.write(RXFTLR, rxftlr);
            self.rxftlr = rxftlr;
        }
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Sleeps for DwSsi<R, G, T, I> {
    const CAN_SLEEP: bool = I::PRESENT;

    fn sleep(&mut self) {
        self.interrupt.enable();
        self.arm();
        self.interrupt.wait(self.flight.deadline.sleep_us());
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Stepped for DwSsi<R, G, T, I> {
    fn progress(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn begin(&mut self, _program: &Program, plan: &Plan, data: &mut Data<'_>) {
        let cut = self.prepare(plan, data.len());
        self.left = true;
        fifo::begin(self, cut, plan, data);
        self.await_words();
    }

    fn advance(
        &mut self,
        _program: &Program,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Poll<Result<(), Stopped>> {
        let advanced = fifo::advance(self, plan, data);
        match advanced {
            Poll::Pending => self.await_words(),
            Poll::Ready(Err(_)) => {}
            // Ordering 3: the rest of the transfer is one frame.
            Poll::Ready(Ok(())) => return Poll::Ready(self.exchange_tail(plan, data)),
        }
        advanced
    }
}
