//! What a flash chip can do wrong, or be asked wrongly.

use core::fmt;

use super::{JedecId, SfdpError};
use crate::spi::MessageError;

/// An error of the SPI NOR driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NorError {
    /// The bus reported an error.
    Bus(MessageError),
    /// The id reads all ones: nobody drives the line.
    NoChip,
    /// The id reads all zeros: the line is stuck low.
    StuckLow,
    /// A chip whose id we do not know and which does not describe itself.
    UnknownChip {
        /// Its id.
        id: JedecId,
        /// What its SFDP lacks.
        sfdp: SfdpError,
    },
    /// The clock is faster than the chip allows.
    TooFast {
        /// The clock asked for, in hertz.
        speed_hz: u32,
        /// The fastest the chip takes, in hertz.
        max_hz: u32,
    },
    /// Beyond the chip's end.
    OutOfRange {
        /// First address.
        offset: u64,
        /// Bytes.
        len: u64,
        /// The chip's size.
        size: u64,
    },
    /// An erase that does not begin or end where the chip's smallest block does.
    Misaligned {
        /// The address that is off.
        address: u64,
        /// What it has to be a multiple of.
        granularity: u32,
    },
    /// The range is protected by the status register.
    Protected {
        /// First protected address.
        start: u64,
        /// First address behind them.
        end: u64,
        /// Status register 1.
        status: u8,
    },
    /// The protection bits did not clear: hardware protection (WP#, SRP) holds them.
    ProtectionStays {
        /// Status register 1 after the attempt.
        status: u8,
    },
    /// WREN did not set the write enable latch.
    WriteEnableRefused {
        /// Status register 1.
        status: u8,
    },
    /// The chip is busy longer than its datasheet allows.
    StaysBusy {
        /// The longest the datasheet allows, in nanoseconds.
        limit_ns: u64,
        /// Status register 1.
        status: u8,
    },
    /// The chip is at work for another user, who does not hold it any more: one that was killed.
    Occupied {
        /// How long it was waited for, in nanoseconds.
        waited_ns: u64,
        /// Status register 1.
        status: u8,
    },
    /// The chip stopped answering in the middle of an erase or program.
    Gone {
        /// The address being changed.
        address: u64,
    },
    /// What was read back is not what was written.
    Verify {
        /// The first address that differs.
        address: u64,
        /// What was to be there.
        expected: u8,
        /// What is there.
        actual: u8,
    },
    /// The caller's scratch buffer is smaller than the smallest block.
    ScratchTooSmall {
        /// Its length.
        len: usize,
        /// What is needed.
        needed: u32,
    },
    /// The caller's observer asked to stop.
    Interrupted {
        /// Bytes done before.
        done: u64,
    },
}

impl fmt::Display for NorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            NorError::Bus(error) => error.fmt(f),
            NorError::NoChip => f.write_str(
                "no chip answers: its JEDEC id reads ff ff ff (wrong chip select, no power, or MISO not connected)",
            ),
            NorError::StuckLow => f.write_str(
                "the JEDEC id reads 00 00 00: MISO is stuck low (a short, or a chip without power)",
            ),
            NorError::UnknownChip { id: JedecId([a, b, c]), sfdp } => {
                write!(f, "unknown chip {a:02x} {b:02x} {c:02x}: {sfdp}")
            }
            NorError::TooFast { speed_hz, max_hz } => {
                write!(f, "{speed_hz} Hz is above the chip's limit of {max_hz} Hz: lower the speed")
            }
            NorError::OutOfRange { offset, len, size } => write!(
                f,
                "{len} bytes at {offset:#x} reach beyond the chip's end at {size:#x}"
            ),
            NorError::Misaligned { address, granularity } => write!(
                f,
                "{address:#x} is no multiple of {granularity} bytes, the smallest block the chip erases"
            ),
            NorError::Protected { start, end, status } => write!(
                f,
                "the chip protects {start:#x} to {end:#x} (status {status:#04x}): unprotect it first"
            ),
            NorError::ProtectionStays { status } => write!(
                f,
                "block protection did not clear (status {status:#04x}): the chip's WP# pin or its status register lock holds it"
            ),
            NorError::WriteEnableRefused { status } => {
                write!(f, "the chip ignored WREN (status {status:#04x})")
            }
            NorError::StaysBusy { limit_ns, status } => write!(
                f,
                "the chip is still busy after {} ms, the longest its datasheet allows (status {status:#04x}): power-cycle it",
                limit_ns.div_ceil(1_000_000)
            ),
            NorError::Occupied { waited_ns, status } => write!(
                f,
                "the chip has been busy for {} ms with what another program began (status {status:#04x}): try again when that is done",
                waited_ns / 1_000_000
            ),
            NorError::Gone { address } => write!(
                f,
                "the chip stopped answering while {address:#x} was being changed: did it lose power? That block's content is undefined"
            ),
            NorError::Verify { address, expected, actual } => write!(
                f,
                "at {address:#x} the chip holds {actual:02x}, not {expected:02x}"
            ),
            NorError::ScratchTooSmall { len, needed } => {
                write!(f, "a scratch buffer of {len} bytes is too small: {needed} are needed")
            }
            NorError::Interrupted { done } => write!(f, "stopped as asked, after {done} bytes"),
        }
    }
}

impl core::error::Error for NorError {}

impl From<MessageError> for NorError {
    fn from(error: MessageError) -> Self {
        NorError::Bus(error)
    }
}
