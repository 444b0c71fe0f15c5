//! Errors of the touch controller driver.

use core::fmt;

use crate::spi::MessageError;

/// A position's axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Axis {
    /// X.
    X,
    /// Y.
    Y,
}

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum TouchError {
    /// The message failed.
    Message(MessageError),
    /// The clock is above the chip's maximum.
    TooFast {
        /// The device's clock, in hertz.
        speed_hz: u32,
        /// The maximum, in hertz.
        max_hz: u32,
    },
    /// The configuration is out of range: 1 to 8 repeats, 0 to 30 discarded.
    Config {
        /// The requested repeats.
        repeats: u8,
        /// The largest requested number of discarded conversions.
        settle: u8,
    },
    /// Bits that the chip keeps at 0 were 1: no chip drives MISO.
    NoChip {
        /// The first 16 bits of that kind.
        received: u16,
    },
    /// All received bits are zero, which no panel gives.
    StuckLow,
    /// The pen was up, or went up during the sample.
    PenUp {
        /// Z1, as sampled.
        z1: u16,
        /// Z2, as sampled.
        z2: u16,
    },
    /// The repeats of a position differ too much: the pen was lifted or put down during the sample,
    /// the panel had not settled, or there is noise.
    Inconsistent {
        /// The axis.
        axis: Axis,
        /// The largest minus the smallest value.
        spread: u16,
        /// The allowed maximum.
        spread_max: u16,
    },
    /// PENIRQ stays low while the pen is up.
    InterruptStuck {
        /// The number of consecutive samples without a valid position.
        samples: u32,
    },
}

impl fmt::Display for TouchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Message(error) => error.fmt(f),
            Self::TooFast { speed_hz, max_hz } => write!(
                f,
                "{speed_hz} Hz is above the touch controller's limit of {max_hz} Hz: lower the clock"
            ),
            Self::Config { repeats, settle } => write!(
                f,
                "{repeats} repeats and {settle} conversions to settle: a sample has 1 to 8 and 0 to 30"
            ),
            Self::NoChip { received } => write!(
                f,
                "no touch controller answers (received {received:#06x}): check its chip select, MISO and supply"
            ),
            Self::StuckLow => f.write_str(
                "nothing but zeros from the touch controller: check MISO and the supply",
            ),
            Self::PenUp { z1, z2 } => write!(f, "the pen is up (Z1 is {z1}, Z2 is {z2})"),
            Self::Inconsistent { axis, spread, spread_max } => write!(
                f,
                "the repeats of {axis:?} differ by {spread}, {spread_max} at most are allowed: let the panel settle longer, or sample again"
            ),
            Self::InterruptStuck { samples } => write!(
                f,
                "PENIRQ stays low though {samples} samples found no pen: check the line and its pull-up"
            ),
        }
    }
}

impl core::error::Error for TouchError {}

impl From<MessageError> for TouchError {
    fn from(error: MessageError) -> Self {
        Self::Message(error)
    }
}
