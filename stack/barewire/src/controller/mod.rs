//! Controllers: the interface between a bus and the silicon, and the drivers.
//!
//! # For bus authors
//! A [`Controller`] takes whole messages, in three steps. Each step does once what later calls
//! reuse:
//! 1. [`configure`](Controller::configure) turns a device's settings into register values;
//! 2. [`plan`](Controller::plan) validates a message and turns each transfer into register values;
//! 3. [`run`](Controller::run) does the register accesses.
//!
//! # For driver authors
//! A register block's driver is an alias of [`Block`], which implements [`Controller`] once; a driver adds what its
//! registers mean (docs/drivers.md, one page). Any other wire implements [`Wire`] (select, exchange, deselect, recover,
//! wait) and calls [`run_message`] from `run`: it deasserts CS on every path. [`Plan`] and [`Preset`] have room for the
//! block's own register values. A wire with interrupts also implements [`Stepped`] and calls [`start_message`] and
//! [`resume_message`] from `start` and `resume`.
//!
//! # Three ways to wait for a transfer
//! | way | how it waits | used for |
//! |---|---|---|
//! | polling | in the call, reading the status | transfers shorter than an interrupt takes |
//! | by interrupt | no thread waits: the block's handler calls [`resume`](Controller::resume) | a bus that its interrupt handler serves |
//! | blocking | the caller sleeps in an [`Interrupt`] | threads |
//!
//! Planning decides which transfers are polled, from their length and the controller's limit
//! ([`Plan::by_interrupt`]).

pub mod atmel;
pub mod bcm2835;
mod block;
pub mod cadence;
mod deadline;
pub mod dw_ssi;
pub mod ecspi;
mod fifo;
pub mod gpio;
mod interrupt;
mod lines;
pub mod mcspi;
pub mod null;
mod pace;
pub mod pl022;
mod plan;
pub mod sifive;
mod stepped;
mod waits;
mod wire;
mod words;

pub use crate::spi::plan::{After, Plan};
pub use block::Block;
pub use interrupt::{Interrupt, NoInterrupt, PollOnly};
pub use lines::CsLine;
pub use plan::{delay_ticks, plan_message, word_bytes};
pub(crate) use plan::{mark_all_short, plain_exchange, plan_plain, refusal};
pub use stepped::{Progress, Stepped, resume_message, start_message};
pub use waits::ALWAYS_POLL;
pub use wire::{Stopped, Unfinished, Wire, run_message};

use core::task::Poll;

use crate::spi::{Effective, Error, MessageError, Settings, Transfer};
use crate::time::{NS_PER_S, mul_div};

/// A device's settings as register values: computed when the device is opened, not at each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Preset {
    /// The plan of a plain transfer: one with the device's own settings.
    pub plan: Plan,
    /// Whether [`Controller::plan`] must check every message of the device.
    pub asks: bool,
    /// The longest transfer, in bytes, that is planned without the controller. [`Controller::plan`]
    /// plans a longer one and may have it wait by interrupt. `usize::MAX` if the length does not
    /// matter.
    pub poll_bytes_max: usize,
    /// The longest transfer that the block takes at once, in bytes; longer ones are split.
    pub max_transfer_bytes: usize,
    /// The block's own values; only the driver knows their meaning.
    pub regs: [u32; 4],
    /// The bit of the GPIO bank that selects the chip; 0 if none does.
    pub cs_mask: u32,
    /// Whether the chip's line is high while it is active.
    pub cs_active_high: bool,
    /// Ticks to wait after CS is driven active.
    pub cs_setup_ticks: u32,
    /// Ticks to wait before CS is driven inactive.
    pub cs_hold_ticks: u32,
    /// Ticks to wait after CS is driven inactive.
    pub cs_inactive_ticks: u32,
    /// A transfer that takes longer on the wire, in nanoseconds, waits by interrupt.
    pub poll_limit_ns: u32,
    /// Special properties of its selections.
    pub selection: Selection,
}

/// Special properties of a device's selections, in one byte. Separate flags made a sync message one
/// to four instructions longer on 32-bit Arm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Selection(u8);

impl Selection {
    /// There are waits around it, or the chip is kept selected: it cannot take the shortest paths.
    const TIMED: u8 = 1;
    /// The chip's line stays as it is driven: a GPIO, or none, or one of a block's own that does not
    /// follow its transfers.
    const HOLDS_CS: u8 = 2;
    /// A message without error leaves the chip selected.
    const KEEPS_CS: u8 = 4;

    /// Sets whether any of the device's three waits is above zero.
    #[must_use]
    pub const fn with_waits(self, waits: bool) -> Self {
        Self(self.0 & !Self::TIMED | if waits { Self::TIMED } else { 0 })
    }

    /// Sets whether the chip's line stays as it is driven.
    #[must_use]
    pub const fn holding_cs(self, holds: bool) -> Self {
        Self(self.0 & !Self::HOLDS_CS | if holds { Self::HOLDS_CS } else { 0 })
    }

    /// The same, leaving the chip selected after a message without error; `None` if its line cannot.
    #[must_use]
    pub(crate) const fn keeping_cs(self) -> Option<Self> {
        match self.0 & Self::HOLDS_CS {
            0 => None,
            _ => Some(Self(self.0 | Self::KEEPS_CS | Self::TIMED)),
        }
    }

    /// Whether a wire must look at the waits.
    #[inline(always)]
    #[must_use]
    pub const fn is_timed(self) -> bool {
        self.0 & Self::TIMED != 0
    }

    /// Whether a message without error leaves the chip selected.
    #[inline(always)]
    #[must_use]
    pub const fn keeps_cs(self) -> bool {
        self.0 & Self::KEEPS_CS != 0
    }
}

/// The limits of a controller. Fields may be added: make one with [`Limits::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Limits {
    /// The fastest clock, in hertz.
    pub max_speed_hz: u32,
    /// The slowest clock, in hertz, rounded up.
    pub min_speed_hz: u32,
    /// Supported word lengths, as Linux's mask: bit `n - 1` stands for words of `n` bits.
    pub bits_per_word_mask: u32,
    /// The frequency of the timer that makes delays, in hertz: delays are multiples of its period.
    pub timer_hz: u32,
    /// The longest delay of one transfer, in nanoseconds, including the device's `cs_hold`.
    pub max_delay_ns: u32,
    /// The longest message, in bytes, between two points where CS is inactive; `usize::MAX` if
    /// unlimited.
    pub max_message_bytes: usize,
}

impl Limits {
    /// Limits with these clocks, in hertz, and these words, as [`Limits::bits_per_word_mask`]. The
    /// longest delay is 2³² − 1 ticks of the timer or nanoseconds, whichever is shorter. The length
    /// of messages is not limited.
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
        // Avoids a division by zero; a timer of 0 Hz is a mistake of the caller.
        let hz = if timer_hz == 0 { 1 } else { timer_hz };
        let ns = mul_div(u32::MAX as u64, NS_PER_S, hz);
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

    /// Sets the longest delay, in nanoseconds.
    #[must_use]
    pub const fn with_max_delay_ns(self, max_delay_ns: u32) -> Self {
        Self { max_delay_ns, ..self }
    }

    /// Sets the longest message, in bytes.
    #[must_use]
    pub const fn with_max_message_bytes(self, max_message_bytes: usize) -> Self {
        Self { max_message_bytes, ..self }
    }
}

/// A controller: its select lines, its registers, its clock.
pub trait Controller {
    /// The limits of this controller.
    fn limits(&self) -> Limits;

    /// Turns a device's settings into register values.
    ///
    /// # Errors
    /// A setting that the block does not support: a word length, LSB first, a speed of zero or
    /// below its slowest clock, a delay that is too long, or a select line that does not exist, can
    /// sleep, or has the other polarity.
    fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error>;

    /// Whether its code may call the bus that has this controller, for example because it calls a
    /// user's tracer. The bus then notes whose context runs a message, which costs some instructions,
    /// and such a call returns [`Error::WouldDeadlock`] where it would wait for ever. Asked once, when
    /// the bus is [made](crate::bus::Bus::with_platform).
    fn may_use_its_bus(&self) -> bool {
        true
    }

    /// Sets whether a message waits while others than this bus use the hardware: another process, under a lock between processes.
    /// It does at first. If not, such a message ends at once with [`Unfinished::BUSY`]; a bus runs `try_` calls so. The default does
    /// nothing: nobody else uses the hardware.
    fn set_waiting(&mut self, waits: bool) {
        let _ = waits;
    }

    /// Validates a message and writes each transfer's plan.
    ///
    /// # Errors
    /// An empty message; a length that is not a whole number of words; a word length or speed that
    /// the block does not support; a message during which CS would pulse; `cs_change` on the last
    /// transfer.
    fn plan(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError>;

    /// Runs a planned message and returns its length in bytes.
    ///
    /// # Errors
    /// The transfer that did not finish, and why. CS is inactive and the FIFOs are empty
    /// afterwards.
    fn run(&mut self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<usize, Unfinished>;

    /// Runs a message that is one exchange of `tx` and `rx`, of equal length, planned as
    /// [`Preset::plan`] is, and returns that length in bytes: the prepared access of a chip driver.
    /// Calls [`Controller::run`] unless the driver has a shorter path.
    ///
    /// # Errors
    /// As [`Controller::run`].
    #[inline]
    fn run_exchange(
        &mut self,
        preset: &Preset,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        self.run(preset, &mut [Transfer::of_plan(tx, rx, preset.plan)])
    }

    /// Starts a planned message that [`Controller::resume`] continues. The block's interrupt stays
    /// masked until [`Controller::arm`]. The default finishes the message in the call, by
    /// [`Controller::run`].
    ///
    /// From the first `Pending` until `Ready`, the caller passes the same preset and message and
    /// calls no other method, except [`Controller::silence`], [`Controller::is_overdue`] and [`Controller::reclaim`].
    fn start(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        Poll::Ready(self.run(preset, message))
    }

    /// Continues the message that was started. Called from the block's interrupt handler, or by a
    /// thread that waited too long for the interrupt; silences the block. Does not wait for
    /// transfers that are planned to wait by interrupt. Shorter ones of the same message are
    /// polled, and delays are spun.
    ///
    /// # Errors
    /// As [`Controller::run`], including a deadline that has passed.
    fn resume(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        let _ = (preset, message);
        unreachable!("only a controller whose `start` returned Pending is resumed")
    }

    /// Unmasks the block's interrupt for the message that was started: one register access, the
    /// last before the interrupt may come.
    fn arm(&mut self) {}

    /// Masks the block's interrupt for the message that was started, without looking at the message: one register access.
    fn silence(&mut self) {}

    /// Whether the message that was started should have ended so long ago that its owner has forgotten it: its
    /// [deadline](Controller::resume) passed more than 0.1 s ago. The default knows no deadline.
    fn is_overdue(&mut self) -> bool {
        false
    }

    /// Brings the block from any state to idle: CS inactive, FIFOs empty, configuration forgotten.
    /// For a block that another program drove meanwhile, or died driving.
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
