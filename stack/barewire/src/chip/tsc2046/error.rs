//! What can go wrong with a touch controller.

use core::fmt;

use crate::spi::MessageError;

/// A position's axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// X.
    X,
    /// Y.
    Y,
}

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TouchError {
    /// The message failed.
    Message(MessageError),
    /// The clock is above what the chip takes.
    TooFast {
        /// The device's, in hertz.
        speed_hz: u32,
        /// The most, in hertz.
        max_hz: u32,
    },
    /// A configuration that is out of range: 1 to 8 repeats, 0 to 30 thrown away.
    Config {
        /// Repeats asked.
        repeats: u8,
        /// The most conversions to throw away that were asked.
        settle: u8,
    },
    /// Bits that the chip keeps at 0 came as 1: nobody drove MISO.
    NoChip {
        /// The first 16 bits like that.
        received: u16,
    },
    /// Nothing but zeros came in, which no panel gives.
    StuckLow,
    /// The pen was up, or went up during the sample.
    PenUp {
        /// Z1, as sampled.
        z1: u16,
        /// Z2, as sampled.
        z2: u16,
    },
    /// The repeats of a position lie too far apart: the pen went up or came down during the sample, the
    /// panel had not settled, or there is noise.
    Inconsistent {
        /// Whose.
        axis: Axis,
        /// Largest less smallest.
        spread: u16,
        /// The most allowed.
        spread_max: u16,
    },
    /// PENIRQ stays low while the pen is up.
    InterruptStuck {
        /// Samples in a row that found no pen, or not where.
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
