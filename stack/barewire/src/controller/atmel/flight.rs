//! Transfers left in flight, and continued word by word as the block interrupts.
//!
//! *Read first*: the module page of [`super`], and `fifo`, whose steps this uses.
//!
//! # How it works
//! RDRF interrupts for each word of 8 or 16 bits. The handler masks the block, reads SR and RDR,
//! polls once more, writes TDR and unmasks: six accesses, plus its entry and exit. That is 1.2 µs
//! on SAMA5D3, as simulated, and about 50 µs if the handler is a thread that a kernel wakes. A word
//! of 16 bits takes 1.6 µs at 10 MHz and 16 µs at 1 MHz. Above a few megahertz the processor does
//! nothing but enter and leave the handler while the wire waits for it, so polling is better at any
//! length ([`ALWAYS_POLL`](crate::controller::ALWAYS_POLL)).
//! [`AtmelConfig::poll_limit_ns`](super::AtmelConfig::poll_limit_ns) is for slow clocks.
//!
//! The last word waits for TXEMPTY, which comes at the end of its last clock. RDRF is set by then,
//! so one interrupt serves both.
//!
//! OVRES interrupts too, so that with [`Pipe::TwoWords`](super::Pipe::TwoWords) a word lost to a
//! late handler ends the message at once.
//!
//! # Ordering
//! As in `fifo`; the block does not interrupt before [`Controller::arm`](crate::controller::Controller::arm).
//!
//! # Not supported
//! Sending by TDRE's interrupt, without reading received words.

use super::Atmel;
use super::regs::{OVRES, RDRF, TXEMPTY};
use crate::controller::Interrupt;
use crate::controller::gpio::GpioBank;
use crate::reg::Registers;
use crate::time::Timer;

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Atmel<R, G, T, I> {
    /// The interrupts to enable for what is in flight.
    pub(super) fn awaited(&self) -> u32 {
        let flow = &self.flight.flow;
        if flow.all_sent() && flow.in_flight() == 1 { TXEMPTY } else { RDRF | OVRES }
    }
}
