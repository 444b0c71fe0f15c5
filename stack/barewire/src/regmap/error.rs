//! Errors of register accesses.

use core::fmt;

use crate::spi::MessageError;

/// Why a register access was refused or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum RegmapError {
    /// The message failed.
    Message(MessageError),
    /// The register is written only.
    NotReadable {
        /// Its address.
        address: u32,
    },
    /// The register is read only.
    NotWritable {
        /// Its address.
        address: u32,
    },
    /// The value has more bits than a register.
    ValueTooWide {
        /// The register's address.
        address: u32,
        /// The value.
        value: u32,
        /// The width of a register in bits.
        val_bits: u8,
    },
    /// The part does not increment addresses, or its format is not in whole bytes.
    NoBulk,
    /// A run of registers exceeds the address range.
    AddressRange {
        /// The first address.
        address: u32,
        /// The number of registers.
        count: usize,
        /// The last valid address.
        max: u32,
    },
}

impl fmt::Display for RegmapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Message(error) => error.fmt(f),
            Self::NotReadable { address } => {
                write!(f, "the register at {address:#x} can only be written")
            }
            Self::NotWritable { address } => {
                write!(f, "the register at {address:#x} can only be read")
            }
            Self::ValueTooWide { address, value, val_bits } => write!(
                f,
                "{value:#x} does not fit the register at {address:#x}: it has {val_bits} bits"
            ),
            Self::NoBulk => {
                f.write_str("the part has no bulk access: read or write its registers one by one")
            }
            Self::AddressRange { address, count, max } => write!(
                f,
                "{count} registers from {address:#x} are more than there are: the last is at {max:#x}"
            ),
        }
    }
}

impl core::error::Error for RegmapError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Message(error) => Some(error),
            _ => None,
        }
    }
}

impl From<MessageError> for RegmapError {
    fn from(error: MessageError) -> Self {
        Self::Message(error)
    }
}
