//! The silicon: what a bus asks of a controller, and the drivers that answer.
//!
//! # For bus authors
//! A [`Controller`] takes whole messages. It is asked in three steps, each doing once what need
//! not be done again: [`configure`](Controller::configure) turns a device's settings into
//! register values, [`plan`](Controller::plan) validates a message and turns each transfer into
//! register values, [`run`](Controller::run) does the register work.
//!
//! # For driver authors
//! Implement [`Wire`] (select, exchange, deselect, recover, wait) and let [`run_message`] be the
//! body of `run`: it holds the promise that CS is released on every path. [`Plan`] and
//! [`Program`] have room for a block's own register values. A block that interrupts implements
//! [`Stepped`] too, and lets [`start_message`] and [`resume_message`] be the bodies of `start` and
//! `resume`.
//!
//! # Three ways to finish
//! | | waits | for |
//! |---|---|---|
//! | in the call | by polling | transfers shorter than an interrupt is worth |
//! | by interrupt | nobody: the block's handler calls [`resume`](Controller::resume) | a bus that runs by its handler |
//! | by blocking | the caller, asleep in an [`Interrupt`] | threads |
//!
//! Which transfers are polled is decided when they are planned, from their length and the
//! controller's limit ([`Plan::by_interrupt`]).

pub mod atmel;
pub mod bcm2835;
mod block;
mod deadline;
pub mod dw_ssi;
pub mod ecspi;
mod fifo;
pub mod gpio;
mod interrupt;
mod lines;
pub mod null;
pub mod pl022;
mod plan;
mod stepped;
#[cfg(test)]
mod testing;
mod waits;
mod wire;
mod words;

pub use crate::spi::plan::{After, Plan};
pub use interrupt::{Interrupt, NoInterrupt};
pub use lines::CsLine;
pub use plan::{delay_ticks, plan_message, word_bytes};
pub(crate) use plan::{plain_exchange, plan_plain};
pub use stepped::{Progress, Stepped, resume_message, start_message};
pub use waits::ALWAYS_POLL;
use wire::{SelectLine, Short};
pub use wire::{Stopped, Unfinished, Wire, run_message};

use core::task::Poll;

use crate::spi::{Effective, Error, MessageError, Settings, Transfer};

/// A device's settings as register values: computed when they are set, not at each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Program {
    /// The plan of a transfer that is as the device has it.
    pub plan: Plan,
    /// Whether [`Controller::plan`] must be asked about every message of the device.
    pub asks: bool,
    /// The longest transfer, in bytes, whose planning asks nothing: a longer one is planned by
    /// [`Controller::plan`], which may have it wait by interrupt. `usize::MAX` if none does.
    pub poll_bytes_max: usize,
    /// Longer transfers are split: the block takes them in several goes.
    pub max_transfer_bytes: usize,
    /// The block's own values; their meaning is the driver's.
    pub regs: [u32; 5],
    /// Ticks to wait after CS is driven active.
    pub cs_setup_ticks: u32,
    /// Ticks to wait before CS is driven inactive.
    pub cs_hold_ticks: u32,
    /// Ticks to wait after CS is driven inactive.
    pub cs_inactive_ticks: u32,
    /// Whether any of the three waits is above zero: the hot path asks once.
    pub timed: bool,
}

/// What a controller can do. There may be more fields: [`Limits::new`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Limits {
    /// The fastest clock, in hertz.
    pub max_speed_hz: u32,
    /// The slowest clock, in hertz, rounded up.
    pub min_speed_hz: u32,
    /// Word lengths, as Linux's mask: bit `n - 1` set means words of `n` bits.
    pub bits_per_word_mask: u32,
    /// Ticks a second of the timer that makes delays: its period is their quantum.
    pub timer_hz: u32,
    /// The longest delay of one transfer, in nanoseconds, the device's `cs_hold` included.
    pub max_delay_ns: u32,
    /// The longest message between two points at which CS is inactive, in bytes; `usize::MAX` if any
    /// will do.
    pub max_message_bytes: usize,
}

impl Limits {
    /// A controller of these clocks and words, in hertz and as [`Limits::bits_per_word_mask`]; its
    /// delays are as long as 32 bits of its timer's ticks (or of nanoseconds, if that is less), its
    /// messages as long as can be.
    ///
    /// ```
    /// use barewire::controller::Limits;
    ///
    /// const LIMITS: Limits = Limits::new(1, 50_000_000, 1 << 7, 1_000_000)
    ///     .with_max_delay_ns(65_535_000)
    ///     .with_max_message_bytes(4_096);
    /// assert_eq!((LIMITS.max_delay_ns, LIMITS.max_message_bytes), (65_535_000, 4_096));
    /// ```
    #[must_use]
    pub const fn new(
        min_speed_hz: u32,
        max_speed_hz: u32,
        bits_per_word_mask: u32,
        timer_hz: u32,
    ) -> Self {
        // A timer that stands still would make no delay at all.
        let hz = if timer_hz == 0 { 1 } else { timer_hz as u64 };
        let ns = u32::MAX as u64 * 1_000_000_000 / hz;
        let max_delay_ns = if ns > u32::MAX as u64 { u32::MAX } else { ns as u32 };
        let max_message_bytes = usize::MAX;
        Self {
            max_speed_hz,
            min_speed_hz,
            bits_per_word_mask,
            timer_hz,
            max_delay_ns,
            max_message_bytes,
        }
    }

    /// The same with another longest delay, in nanoseconds.
    #[must_use]
    pub const fn with_max_delay_ns(self, max_delay_ns: u32) -> Self {
        Self { max_delay_ns, ..self }
    }

    /// The same with another longest message, in bytes.
    #[must_use]
    pub const fn with_max_message_bytes(self, max_message_bytes: usize) -> Self {
        Self { max_message_bytes, ..self }
    }
}

/// A controller: its lines, its registers, its clock.
pub trait Controller {
    /// What this controller can do.
    fn limits(&self) -> Limits;

    /// Turns a device's settings into register values.
    ///
    /// # Errors
    /// Whatever the block cannot do: a word length, LSB first, a speed of zero or below its
    /// slowest, a line that does not exist, can sleep, or has another polarity, a delay it cannot
    /// make.
    fn configure(&self, settings: &Settings) -> Result<(Program, Effective), Error>;

    /// Validates a message and writes each transfer's plan.
    ///
    /// # Errors
    /// An empty message; lengths that are no whole words; words or speeds the block cannot do;
    /// CS that would pulse; `cs_change` on the last transfer.
    fn plan(&self, program: &Program, message: &mut [Transfer<'_>]) -> Result<(), MessageError>;

    /// Runs a planned message and returns its length in bytes.
    ///
    /// # Errors
    /// The transfer that did not finish. CS is inactive and the FIFOs are empty afterwards.
    fn run(&mut self, program: &Program, message: &mut [Transfer<'_>])
    -> Result<usize, Unfinished>;

    /// Runs a message that is one planned exchange of `tx` and `rx`, which are as long, and returns its
    /// length in bytes: the prepared access of a chip driver. [`Controller::run`] unless the driver has
    /// a shorter way.
    ///
    /// # Errors
    /// As [`Controller::run`].
    #[inline]
    fn run_exchange(
        &mut self,
        program: &Program,
        plan: &Plan,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        self.run(program, &mut [Transfer::of_plan(tx, rx, *plan)])
    }

    /// Begins a planned message that [`Controller::resume`] goes on with, the block's interrupt
    /// still masked ([`Controller::arm`] lets it come). A controller that finishes in the call,
    /// which is the default, returns what [`Controller::run`] does.
    ///
    /// Between the first `Pending` and `Ready` the controller is given the same program and
    /// message, and nothing else is asked of it but [`Controller::reclaim`].
    fn start(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        Poll::Ready(self.run(program, message))
    }

    /// Goes on with the message begun: called from the block's interrupt handler, which it
    /// silences, or by somebody who got tired of waiting for it. Never waits for a transfer that is
    /// planned to wait by interrupt; shorter ones of the same message are polled, and delays spun.
    ///
    /// # Errors
    /// As [`Controller::run`]; a deadline that has passed among them.
    fn resume(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        let _ = (program, message);
        unreachable!("only a controller whose `start` returned Pending is resumed")
    }

    /// Lets the block interrupt for the message begun: one register access, the last before the
    /// interrupt may come.
    fn arm(&mut self) {}

    /// Brings the block from any state to idle: CS inactive, FIFOs empty, nothing configured that
    /// the next message would rely on. For a block that somebody else drove meanwhile, or died
    /// driving.
    fn reclaim(&mut self);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_delay_is_32_bits_of_ticks_or_of_nanoseconds() {
        for (timer_hz, max_delay_ns) in [
            (1, u32::MAX),
            (8_000_000, u32::MAX),
            (1_000_000_000, u32::MAX),
            (1_000_000_001, 4_294_967_290),
            (2_000_000_000, 2_147_483_647),
            (u32::MAX, 1_000_000_000),
        ] {
            let limits = Limits::new(1, 2, 1 << 7, timer_hz);
            assert_eq!(limits.max_delay_ns, max_delay_ns, "{timer_hz}");
            assert!(delay_ticks(limits.max_delay_ns, timer_hz).is_ok(), "{timer_hz}");
        }
    }
}
