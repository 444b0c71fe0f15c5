//! The description of a chip: size, pages, erase types, addresses, times and limits.

use super::protection::Layout;

/// A JEDEC id: manufacturer, memory type, capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct JedecId(pub [u8; 3]);

/// A block size that the chip can erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct EraseType {
    /// Bytes erased, a power of two.
    pub size: u32,
    /// The opcode, for the address width that the driver uses.
    pub opcode: u8,
    /// The typical time.
    pub typical_ns: u64,
    /// The datasheet's maximum.
    pub max_ns: u64,
}

/// The width of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Addressing {
    /// Three bytes.
    ThreeByte,
    /// Four bytes, with separate opcodes, so there is no mode to leave.
    FourByteOpcodes,
    /// Four bytes after EN4B; `write_enable` says whether WREN must come before it.
    FourByteMode {
        /// Whether WREN must come before EN4B and EX4B.
        write_enable: bool,
    },
}

impl Addressing {
    /// The number of bytes in an address.
    #[must_use]
    pub const fn bytes(self) -> u8 {
        match self {
            Addressing::ThreeByte => 3,
            Addressing::FourByteOpcodes | Addressing::FourByteMode { .. } => 4,
        }
    }
}

/// The way the chip is programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Programming {
    /// Up to a page per command.
    Page {
        /// The size of a page, a power of two; a program command wraps at its end.
        size: u32,
    },
    /// Word by word, with an address that the chip increments (SST's AAI). Single bytes at odd
    /// ends.
    AaiWord,
}

/// A chip, as described by its SFDP or by the driver's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Geometry {
    /// The size in bytes.
    pub size: u64,
    /// The way it is programmed.
    pub programming: Programming,
    /// Up to four erase types, smallest first.
    pub erase_types: [Option<EraseType>; 4],
    /// The width of addresses.
    pub addressing: Addressing,
    /// The typical time to program a page, an AAI word, or a byte.
    pub program_typical_ns: u64,
    /// The maximum time to program a page, an AAI word, or a byte.
    pub program_max_ns: u64,
    /// Typical time to erase the chip.
    pub chip_erase_typical_ns: u64,
    /// Longest time to erase the chip.
    pub chip_erase_max_ns: u64,
    /// Whether the chip or the driver's table gave the times. If not, they are ample values for
    /// common parts, and the driver polls the status from the beginning instead of sleeping.
    pub times_known: bool,
    /// The maximum time to write the status register.
    pub status_write_max_ns: u64,
    /// The maximum clock for READ, in hertz.
    pub read_max_hz: u32,
    /// The maximum clock for all other commands, in hertz; `None` if unknown.
    pub max_hz: Option<u32>,
    /// How block protection bits map to addresses.
    pub protection: Layout,
    /// The part's name, if the driver's table has it.
    pub name: Option<&'static str>,
}

impl Geometry {
    /// The erase types, smallest first.
    pub fn erase_types(&self) -> impl DoubleEndedIterator<Item = EraseType> + '_ {
        self.erase_types.iter().flatten().copied()
    }

    /// The smallest block that can be erased, in bytes.
    #[must_use]
    pub fn erase_size(&self) -> u32 {
        self.erase_types().next().map_or(u32::MAX, |erase| erase.size)
    }

    /// The largest number of bytes one command programs.
    #[must_use]
    pub fn page_size(&self) -> u32 {
        match self.programming {
            Programming::Page { size } => size,
            // AAI has no pages; this is the unit in which differences are searched.
            Programming::AaiWord => 256,
        }
    }
}
