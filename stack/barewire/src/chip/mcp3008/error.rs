//! Errors of the converter driver.

use core::fmt;

use crate::spi::MessageError;

/// Why a conversion was refused or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum AdcError {
    /// The message failed.
    Message(MessageError),
    /// The requested clock is above the part's maximum at its supply.
    TooFast {
        /// The requested clock, in hertz.
        speed_hz: u32,
        /// The maximum, in hertz.
        max_hz: u32,
        /// The supply, in millivolts.
        supply_mv: u32,
    },
    /// The part does not work at this supply.
    Supply {
        /// The given supply, in millivolts.
        supply_mv: u32,
        /// The minimum.
        min_mv: u32,
        /// The maximum.
        max_mv: u32,
    },
    /// The part has no such channel.
    NoSuchChannel {
        /// The requested channel.
        channel: u8,
        /// The number of channels, counted from 0.
        channels: u8,
    },
    /// The channels are not a pair. Pairs are 0 and 1, 2 and 3 and so on, in either order.
    NoPair {
        /// The requested IN+.
        plus: u8,
        /// The requested IN-.
        minus: u8,
    },
    /// The null bit was 1: no chip drives MISO.
    NoChip {
        /// The last three received bytes.
        received: [u8; 3],
    },
    /// The requested rate of conversions is too high.
    TooOften {
        /// The requested conversions per second.
        asked_hz: u32,
        /// The maximum, rounded down.
        max_hz: u32,
    },
    /// A rate of zero.
    RateZero,
}

impl fmt::Display for AdcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            AdcError::Message(error) => error.fmt(f),
            AdcError::TooFast { speed_hz, max_hz, supply_mv } => write!(
                f,
                "{speed_hz} Hz is above the converter's limit of {max_hz} Hz at a supply of {supply_mv} mV: lower the clock"
            ),
            AdcError::Supply { supply_mv, min_mv, max_mv } => {
                write!(
                    f,
                    "the converter has no supply of {supply_mv} mV: it takes {min_mv} to {max_mv}"
                )
            }
            AdcError::NoSuchChannel { channel, channels } => write!(
                f,
                "the converter has no channel {channel}: it has 0 to {}",
                channels.saturating_sub(1)
            ),
            AdcError::NoPair { plus, minus } => write!(
                f,
                "channels {plus} and {minus} are no pair: 0 and 1, 2 and 3 and so on are, either way round"
            ),
            AdcError::NoChip { received: [a, b, c] } => write!(
                f,
                "no converter answers (received {a:02x} {b:02x} {c:02x}, the null bit is 1): check its chip select, MISO and supply"
            ),
            AdcError::TooOften { asked_hz, max_hz } => write!(
                f,
                "{asked_hz} conversions a second cannot be held: the highest rate here is {max_hz}"
            ),
            AdcError::RateZero => f.write_str("a rate of 0: name conversions a second"),
        }
    }
}

impl core::error::Error for AdcError {}

impl From<MessageError> for AdcError {
    fn from(error: MessageError) -> Self {
        AdcError::Message(error)
    }
}
