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

use super::DwSsi;
use super::regs::{RXF, RXFTLR, RXO};
use crate::controller::Interrupt;
use crate::controller::gpio::GpioBank;
use crate::reg::Registers;
use crate::time::Timer;

/// The interrupts that are enabled while a message waits.
pub(super) const AWAITED: u32 = RXF | RXO;

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> DwSsi<R, G, T, I> {
    /// Ordering 1: sets the number of words at which the block interrupts.
    pub(super) fn await_words(&mut self) {
        // Not `clamp`, which panics without a FIFO.
        let words = self.flight.flow.in_flight().min(self.config.size.depth / 2).max(1);
        let rxftlr = words as u32 - 1;
        if self.state.rxftlr != rxftlr {
            self.regs.write(RXFTLR, rxftlr);
            self.state.rxftlr = rxftlr;
        }
    }
}
