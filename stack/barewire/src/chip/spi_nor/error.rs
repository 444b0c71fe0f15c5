//! Errors of the SPI NOR driver.

use core::fmt;

use super::fault::Operation;
use super::geometry::JedecId;
use super::sfdp::SfdpError;
use crate::spi::MessageError;

/// An error of the SPI NOR driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum NorError {
    /// The bus reported an error.
    Bus(MessageError),
    /// The id reads all ones: no chip drives MISO.
    NoChip,
    /// The id reads all zeros: MISO is stuck low.
    StuckLow,
    /// What the chip sends is shifted by one bit: MISO is sampled one clock late or early.
    Shifted {
        /// The id as it was read.
        id: JedecId,
        /// Whether each bit comes one clock late.
        late: bool,
    },
    /// Two readings of the id differ: nothing drives MISO, or it is disturbed.
    Unstable {
        /// The first reading.
        first: JedecId,
        /// The second one.
        second: JedecId,
    },
    /// The chip's id is unknown, and its SFDP gives no description.
    UnknownChip {
        /// Its id.
        id: JedecId,
        /// What is wrong with its SFDP.
        sfdp: SfdpError,
    },
    /// The clock is faster than the chip's maximum.
    TooFast {
        /// The requested clock, in hertz.
        speed_hz: u32,
        /// The maximum, in hertz.
        max_hz: u32,
    },
    /// The range exceeds the chip.
    OutOfRange {
        /// The first address.
        offset: u64,
        /// The length in bytes.
        len: u64,
        /// The size of the chip in bytes.
        size: u64,
    },
    /// The range exceeds what the driver can address: no way into 4-byte mode and out of it is known.
    OutOfReach {
        /// The first address.
        offset: u64,
        /// The length in bytes.
        len: u64,
        /// The bytes within reach.
        reach: u64,
    },
    /// The start or end of an erase is not where one of the chip's blocks begins.
    Misaligned {
        /// The wrong address.
        address: u64,
        /// The size of the smallest block there in bytes.
        granularity: u32,
    },
    /// No erase command is known to erase this place and nothing else. [`Geometry::notes`](super::Geometry::notes)
    /// has the reason.
    NoErase {
        /// The first such address.
        address: u64,
    },
    /// The range is protected by the status register.
    Protected {
        /// The first protected address.
        start: u64,
        /// The address after the last protected one.
        end: u64,
        /// Status register 1.
        status: u8,
    },
    /// The protection bits did not clear: hardware (WP#, SRP) keeps them set.
    ProtectionStays {
        /// Status register 1 after the attempt.
        status: u8,
    },
    /// A protection bit may be set, and it is not known which bits those are.
    ProtectionUnknown {
        /// Status register 1.
        status: u8,
    },
    /// A bit of a status register changed that should not, or two readings of it differ.
    StatusChanged {
        /// 1 or 2.
        register: u8,
        /// Its value before.
        expected: u8,
        /// Its value after.
        actual: u8,
    },
    /// The chip reports a failed operation. The report is cleared.
    Failed {
        /// The operation that failed.
        operation: Operation,
        /// The address being changed.
        address: u64,
        /// Status register 1.
        status: u8,
    },
    /// The chip did not execute a command: its write enable latch stayed set, and nothing is changed.
    Ignored {
        /// The address that was to be changed.
        address: u64,
        /// Status register 1.
        status: u8,
    },
    /// A chip that answered before has a status of all ones now.
    Silent,
    /// WREN did not set the write enable latch.
    WriteEnableRefused {
        /// Status register 1.
        status: u8,
    },
    /// The chip is busy for longer than its datasheet's maximum.
    StaysBusy {
        /// The maximum, in nanoseconds.
        limit_ns: u64,
        /// Status register 1.
        status: u8,
    },
    /// The chip executes a command left by another user, for example by a process that was killed.
    Occupied {
        /// The time waited, in nanoseconds.
        waited_ns: u64,
        /// Status register 1.
        status: u8,
    },
    /// The chip is shared with other processes, and an operation on it would block the thread.
    Shared,
    /// The chip stopped answering in the middle of an erase or program.
    Gone {
        /// The address being changed.
        address: u64,
    },
    /// The data read back differs from the data written.
    Verify {
        /// The first address that differs.
        address: u64,
        /// The expected byte.
        expected: u8,
        /// The byte in the chip.
        actual: u8,
    },
    /// The caller's scratch buffer is smaller than the smallest block.
    ScratchTooSmall {
        /// Its length in bytes.
        len: usize,
        /// The required length in bytes.
        needed: u32,
    },
    /// The caller's observer stopped the operation.
    Interrupted {
        /// The bytes done before.
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
            NorError::Shifted { id: JedecId([a, b, c]), late } => write!(
                f,
                "the chip's data is one bit {} (its id reads {a:02x} {b:02x} {c:02x}): the clock is too fast for the chip and the wires, or the mode is wrong; lower the speed",
                if late { "late" } else { "early" }
            ),
            NorError::Unstable {
                first: JedecId([a, b, c]),
                second: JedecId([d, e, g]),
            } => write!(
                f,
                "the JEDEC id reads {a:02x} {b:02x} {c:02x}, then {d:02x} {e:02x} {g:02x}: nothing drives MISO (wrong chip select, no power), or the clock is too fast"
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
            NorError::OutOfReach { offset, len, reach } => write!(
                f,
                "{len} bytes at {offset:#x} reach beyond {reach:#x}: no way to address more of this chip is known"
            ),
            NorError::Misaligned { address, granularity } => write!(
                f,
                "{address:#x} is no multiple of {granularity} bytes, the smallest block the chip erases"
            ),
            NorError::NoErase { address } => write!(
                f,
                "no command is known to erase {address:#x} and nothing else: the chip's description is not clear"
            ),
            NorError::Protected { start, end, status } => write!(
                f,
                "the chip protects {start:#x} to {end:#x} (status {status:#04x}): unprotect it first"
            ),
            NorError::ProtectionStays { status } => write!(
                f,
                "block protection did not clear (status {status:#04x}): the chip's WP# pin or its status register lock holds it"
            ),
            NorError::ProtectionUnknown { status } => write!(
                f,
                "a protection bit may be set (status {status:#04x}), but which bits of this chip protect is not known: name the layout"
            ),
            NorError::StatusChanged { register, expected, actual } => write!(
                f,
                "status register {register} reads {actual:#04x} where {expected:#04x} was to stay: check it before the board is powered down"
            ),
            NorError::Failed { operation, address, status } => write!(
                f,
                "the chip reports that {operation} at {address:#x} failed (status {status:#04x}): worn, protected, or without enough power"
            ),
            NorError::Ignored { address, status } => write!(
                f,
                "the chip ignored a command at {address:#x} (status {status:#04x}, write enable still set): it does not have it, or the place is locked"
            ),
            NorError::Silent => f.write_str(
                "the chip no longer answers: its status reads ff (did it lose power?)",
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
            NorError::Shared => f.write_str(
                "the chip is shared with other processes, whose operations a future cannot wait for: use the blocking driver",
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
