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
//! [`Program`] have room for a block's own register values.

pub mod ecspi;
pub mod gpio;
pub mod null;
mod plan;
mod wire;

pub use plan::{delay_ticks, plan_message, word_bytes};
pub use wire::{Wire, run_message};

use crate::spi::{Effective, Error, MessageError, Settings, Transfer};

/// A device's settings as register values: computed when they are set, not at each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// The block's own values; their meaning is the driver's.
    pub regs: [u32; 6],
    /// Ticks to wait after CS is driven active.
    pub cs_setup_ticks: u32,
    /// Ticks to wait before CS is driven inactive.
    pub cs_hold_ticks: u32,
    /// Ticks to wait after CS is driven inactive.
    pub cs_inactive_ticks: u32,
    /// Ticks to wait between two words of a transfer.
    pub word_delay_ticks: u32,
    /// Bytes of a word.
    pub word_bytes: u8,
    /// Whether any of the first three waits is above zero: the hot path asks once.
    pub timed: bool,
}

/// A transfer as register values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The block's own values; their meaning is the driver's.
    pub regs: [u32; 2],
    /// Ticks to wait after the transfer.
    pub delay_ticks: u32,
    /// Ticks CS stays inactive after it, with `cs_change`.
    pub cs_change_ticks: u32,
    /// Ticks to wait after each word but the last.
    pub word_delay_ticks: u32,
    /// Bytes of a word.
    pub word_bytes: u8,
    /// What follows the transfer.
    pub after: After,
}

/// What follows a transfer inside its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The next transfer, at once.
    Nothing,
    /// A wait of `delay_ticks`.
    Delay,
    /// A wait, then CS drops and rises again.
    CsChange,
}

impl Plan {
    /// The plan of a transfer that has none yet.
    pub(crate) const NONE: Plan = Plan {
        regs: [0; 2],
        delay_ticks: 0,
        cs_change_ticks: 0,
        word_delay_ticks: 0,
        word_bytes: 1,
        after: After::Nothing,
    };
}

/// What a controller can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The fastest clock, in hertz.
    pub max_speed_hz: u32,
    /// The slowest clock, in hertz, rounded up.
    pub min_speed_hz: u32,
    /// Word lengths, as Linux's mask: bit `n - 1` set means words of `n` bits.
    pub bits_per_word_mask: u32,
    /// Ticks a second of the timer that makes delays: its period is their quantum.
    pub timer_hz: u32,
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
    /// [`Error::Timeout`]. CS is inactive and the FIFOs are empty afterwards.
    fn run(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, MessageError>;
}
