//! What a chip is: size, pages, erase types, addresses, times and limits.

use super::protection::Layout;

/// A JEDEC id: manufacturer, memory type, capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JedecId(pub [u8; 3]);

/// One size of block the chip erases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EraseType {
    /// Bytes erased, a power of two.
    pub size: u32,
    /// Its opcode, in the width of address the driver uses.
    pub opcode: u8,
    /// Typical time.
    pub typical_ns: u64,
    /// Longest time the datasheet allows.
    pub max_ns: u64,
}

/// How addresses are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// Three bytes.
    ThreeByte,
    /// Four bytes, with opcodes of their own: no mode to leave behind.
    FourByteOpcodes,
    /// Four bytes after EN4B; `write_enable` says whether WREN must come before it.
    FourByteMode {
        /// Whether WREN must come before EN4B and EX4B.
        write_enable: bool,
    },
}

impl Addressing {
    /// Bytes of an address.
    #[must_use]
    pub const fn bytes(self) -> u8 {
        match self {
            Addressing::ThreeByte => 3,
            Addressing::FourByteOpcodes | Addressing::FourByteMode { .. } => 4,
        }
    }
}

/// How the chip is programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Programming {
    /// Up to a page at a time.
    Page {
        /// Bytes of a page, a power of two; a program wraps at its end.
        size: u32,
    },
    /// Word by word with the address kept by the chip (SST's AAI); odd ends by single bytes.
    AaiWord,
}

/// A chip, as its SFDP or our table describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes.
    pub size: u64,
    /// How it is programmed.
    pub programming: Programming,
    /// Up to four erase types, smallest first.
    pub erase_types: [Option<EraseType>; 4],
    /// How addresses are sent.
    pub addressing: Addressing,
    /// Typical time to program a page, or one AAI word or byte.
    pub program_typical_ns: u64,
    /// Longest time to program a page, or one AAI word or byte.
    pub program_max_ns: u64,
    /// Typical time to erase the chip.
    pub chip_erase_typical_ns: u64,
    /// Longest time to erase the chip.
    pub chip_erase_max_ns: u64,
    /// Whether the chip or our table gave the times. If not they are those of common parts, with ample
    /// room, and the driver asks for the status from the beginning instead of sleeping.
    pub times_known: bool,
    /// Longest time to write the status register.
    pub status_write_max_ns: u64,
    /// Fastest clock for READ, in hertz.
    pub read_max_hz: u32,
    /// Fastest clock for everything else, in hertz; `None` if nobody told.
    pub max_hz: Option<u32>,
    /// How block protection bits map to addresses.
    pub protection: Layout,
    /// The part's name, if our table has it.
    pub name: Option<&'static str>,
}

impl Geometry {
    /// The erase types there are, smallest first.
    pub fn erase_types(&self) -> impl DoubleEndedIterator<Item = EraseType> + '_ {
        self.erase_types.iter().flatten().copied()
    }

    /// The smallest block that can be erased, in bytes.
    #[must_use]
    pub fn erase_size(&self) -> u32 {
        self.erase_types().next().map_or(u32::MAX, |erase| erase.size)
    }

    /// Bytes programmed by one command at most.
    #[must_use]
    pub fn page_size(&self) -> u32 {
        match self.programming {
            Programming::Page { size } => size,
            // AAI has no pages; this is the piece in which differences are looked for.
            Programming::AaiWord => 256,
        }
    }
}
