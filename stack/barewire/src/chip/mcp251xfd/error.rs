//! Errors of the CAN controller driver.

use core::fmt;

use super::regs::OSC_AFTER_RESET;
use super::{Mode, TimingError};
use crate::chip::shifted::shifted;
use crate::regmap::RegmapError;
use crate::spi::MessageError;

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum CanError {
    /// The message failed.
    Message(MessageError),
    /// MISO did not change: all received bits are zeros, or all ones.
    NoChip {
        /// The received bits.
        received: u32,
    },
    /// Another chip answers: C1CON has the wrong reset value.
    UnexpectedId {
        /// The reset value in MCP2517FD and MCP2518FD.
        expected: u32,
        /// The value read.
        actual: u32,
    },
    /// The clock is above the chip's maximum.
    SpiTooFast {
        /// The device's clock, in hertz.
        speed_hz: u32,
        /// The maximum, in hertz.
        max_hz: u32,
    },
    /// The configured oscillator is not possible: 1 to 40 MHz are, and at most 40 MHz after the
    /// PLL.
    Oscillator {
        /// The resulting system clock, in hertz.
        sysclk_hz: u32,
    },
    /// The oscillator or its PLL does not start.
    OscillatorNotReady {
        /// The register OSC.
        osc: u32,
        /// The time waited, in microseconds.
        waited_us: u32,
    },
    /// The chip did not change its mode.
    ModeTimeout {
        /// The requested mode.
        wanted: Mode,
        /// The present mode.
        actual: Mode,
    },
    /// The received data did not match its CRC in three attempts.
    Crc {
        /// The address that was read.
        address: u16,
    },
    /// A write arrived corrupt: in the set-up in all three attempts, or later.
    WriteCrc {
        /// The register CRC: its flags, and the enables of their interrupt.
        crc: u32,
    },
    /// No bit timing is possible.
    BitTiming(TimingError),
    /// The objects do not fit the chip's memory.
    Ram {
        /// The size of the objects, in bytes.
        bytes: u32,
        /// The size of the memory, in bytes.
        max_bytes: u32,
    },
    /// A FIFO has 1 to 32 objects.
    Depth {
        /// The requested number.
        objects: u8,
    },
    /// The chip has 32 filters, from 0.
    NoSuchFilter {
        /// The requested filter.
        index: u8,
    },
    /// The frame has more data than the configured objects, or it is of CAN FD and the mode is not.
    FrameTooLong {
        /// The bytes of data.
        len: u8,
        /// The maximum.
        max_len: u8,
    },
    /// The frame switches the bit rate, but no data bit rate is configured.
    NoDataBitRate,
    /// All objects to transmit from are in use.
    TxFull,
    /// Frames were lost because the chip had no space for them.
    RxOverflow,
    /// The chip has left the bus after too many errors.
    BusOff,
    /// C1INT's upper half does not have the written value: the chip was reset, or does not answer.
    Gone {
        /// The register.
        interrupts: u32,
    },
    /// INT stays low although the chip reports nothing.
    InterruptStuck {
        /// The register C1INT.
        interrupts: u32,
    },
}

/// Whether a register's value is the expected one, one bit late (`true`) or early. Its lowest byte is sent
/// first.
fn sampled(actual: u32, expected: u32) -> Option<bool> {
    shifted(actual.swap_bytes(), expected.swap_bytes(), u32::BITS)
}

fn shifted_text(f: &mut fmt::Formatter<'_>, name: &str, value: u32, late: bool) -> fmt::Result {
    let when = if late { "late" } else { "early" };
    write!(
        f,
        "the CAN controller's data is one bit {when} ({name} is {value:#010x} after a reset): the clock is too fast for the chip and the wires; lower the clock"
    )
}

impl fmt::Display for CanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Message(error) => error.fmt(f),
            Self::NoChip { received: 0 } => f.write_str(
                "no CAN controller answers: MISO is stuck low (a short, or a chip without power)",
            ),
            Self::NoChip { received } => write!(
                f,
                "no CAN controller answers ({received:#010x}): nothing drives MISO (wrong chip select, no power, or not connected)"
            ),
            Self::UnexpectedId { expected, actual } => {
                if let Some(late) = sampled(actual, expected) {
                    return shifted_text(f, "C1CON", actual, late);
                }
                write!(
                    f,
                    "no MCP2517FD or MCP2518FD: C1CON is {actual:#010x} after a reset, not {expected:#010x}"
                )
            }
            Self::SpiTooFast { speed_hz, max_hz } => write!(
                f,
                "{speed_hz} Hz is above the CAN controller's limit of {max_hz} Hz: lower the clock"
            ),
            Self::Oscillator { sysclk_hz } => {
                write!(f, "a system clock of {sysclk_hz} Hz: the CAN controller takes 1 to 40 MHz")
            }
            Self::OscillatorNotReady { osc, waited_us } => {
                if let Some(late) = sampled(osc, OSC_AFTER_RESET) {
                    return shifted_text(f, "OSC", osc, late);
                }
                write!(
                    f,
                    "the CAN controller's oscillator does not run after {waited_us} µs (OSC is {osc:#010x}): check crystal and PLL"
                )
            }
            Self::ModeTimeout { wanted, actual } => write!(
                f,
                "the CAN controller stays in mode {actual:?}, {wanted:?} was asked: it joins when the bus is idle for 11 bits"
            ),
            Self::Crc { address } => write!(
                f,
                "what is read at {address:#x} does not match its CRC: check the wires, lower the clock"
            ),
            Self::WriteCrc { crc } => write!(
                f,
                "the CAN controller received what is written corrupt (CRC is {crc:#010x}): check the wires, lower the clock, then restart"
            ),
            Self::BitTiming(error) => error.fmt(f),
            Self::Ram { bytes, max_bytes } => write!(
                f,
                "the objects take {bytes} bytes of the CAN controller's {max_bytes}: ask for fewer or shorter ones"
            ),
            Self::Depth { objects } => write!(f, "{objects} objects: a FIFO has 1 to 32"),
            Self::NoSuchFilter { index } => write!(f, "no filter {index}: there are 0 to 31"),
            Self::FrameTooLong { len, max_len } => write!(
                f,
                "a frame of {len} bytes does not go out: the configuration has classic frames or up to {max_len} bytes"
            ),
            Self::NoDataBitRate => f.write_str(
                "a frame that switches the bit rate does not go out: the configuration has no data bit rate",
            ),
            Self::TxFull => f.write_str("every place to transmit from is taken: try again later"),
            Self::RxOverflow => {
                f.write_str("frames were lost: they came faster than they were read")
            }
            Self::BusOff => {
                f.write_str("bus-off: check wires, termination and bit rate, then restart")
            }
            Self::Gone { interrupts } => write!(
                f,
                "the CAN controller was reset or no longer answers (C1INT is {interrupts:#010x}): restart it"
            ),
            Self::InterruptStuck { interrupts } => write!(
                f,
                "INT stays low and C1INT is {interrupts:#010x}: check the line and its pull-up"
            ),
        }
    }
}

impl core::error::Error for CanError {}

impl From<MessageError> for CanError {
    fn from(error: MessageError) -> Self {
        Self::Message(error)
    }
}

impl From<RegmapError> for CanError {
    fn from(error: RegmapError) -> Self {
        match error {
            RegmapError::Message(error) => Self::Message(error),
            // If the map refuses an access, this driver has a bug.
            other => unreachable!("{other}"),
        }
    }
}

impl From<TimingError> for CanError {
    fn from(error: TimingError) -> Self {
        Self::BitTiming(error)
    }
}
