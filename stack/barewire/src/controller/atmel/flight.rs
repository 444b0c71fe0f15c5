//! Transfers that are left on the wire and gone on with word by word, as the block interrupts.
//!
//! *Read first*: the module page of [`super`], and `fifo`, whose steps these are.
//!
//! # How it works
//! RDRF interrupts for each word: 8 or 16 bits. The handler masks the block, reads SR and RDR,
//! looks once more, writes TDR and unmasks: six accesses, beside its own way in and out. That is
//! 1.2 µs on SAMA5D3, as simulated, and some 50 µs where the handler is a thread that a kernel
//! wakes; a word of 16 bits takes 1.6 µs at 10 MHz, 16 µs at 1 MHz. Faster than a few megahertz the
//! processor does nothing but come and go, and the wire waits for it: polling pays at any length
//! ([`ALWAYS_POLL`](crate::controller::ALWAYS_POLL)).
//! [`AtmelConfig::poll_limit_ns`](super::AtmelConfig::poll_limit_ns) is for slow clocks.
//!
//! The last word is waited for by TXEMPTY, which comes at the end of its last clock: RDRF is set by
//! then, so one interrupt serves both.
//!
//! OVRES interrupts too, so that with [`Pipe::TwoWords`](super::Pipe::TwoWords) a word lost to a
//! late handler ends the message at once.
//!
//! # Ordering
//! That of `fifo`; nothing interrupts until [`Controller::arm`](super::Controller::arm).
//!
//! # Not supported
//! A handler that sends without a look at what came: TDRE's interrupt.

use core::task::Poll;

use super::Atmel;
use super::regs::{OVRES, RDRF, TXEMPTY};
use crate::controller::fifo::{self, Flight};
use crate::controller::gpio::GpioBank;
use crate::controller::waits::Sleeps;
use crate::controller::{Controller, Interrupt, Plan, Program, Progress, Stepped, Stopped};
use crate::reg::Registers;
use crate::spi::Data;
use crate::time::Timer;

/// The interrupts that say that what is in flight needs somebody.
pub(super) fn awaited(flight: &Flight) -> u32 {
    let flow = &flight.flow;
    if flow.all_sent() && flow.in_flight() == 1 { TXEMPTY } else { RDRF | OVRES }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Sleeps for Atmel<R, G, T, I> {
    const CAN_SLEEP: bool = I::PRESENT;

    fn sleep(&mut self) {
        self.interrupt.enable();
        self.arm();
        self.interrupt.wait(self.flight.deadline.sleep_us());
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Stepped for Atmel<R, G, T, I> {
    fn progress(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn begin(&mut self, _program: &Program, plan: &Plan, data: &mut Data<'_>) {
        let cut = self.shape(plan, data);
        fifo::begin(self, cut, plan, data);
    }

    fn advance(
        &mut self,
        _program: &Program,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Poll<Result<(), Stopped>> {
        fifo::advance(self, plan, data)
    }
}
