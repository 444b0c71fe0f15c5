//! The description of a chip: size, pages, erase types and where they hold, addresses, times and limits.

use core::ops::Range;

use super::address::{Addressing, Exit};
use super::fault::Report;
use super::layout::Layout;
use super::notes::Notes;
use super::status::StatusForm;

/// A JEDEC id: manufacturer, memory type, capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct JedecId(pub [u8; 3]);

impl JedecId {
    /// The size that the capacity byte gives, in bytes: a power of two. `None` if the maker's bytes mean
    /// something else (SST, Adesto), or nothing.
    #[must_use]
    pub fn size(self) -> Option<u64> {
        const SST: u8 = 0xbf;
        const ADESTO: u8 = 0x1f;
        const MACRONIX: u8 = 0xc2;
        let [maker, _, capacity] = self.0;
        let exponent = match (maker, capacity) {
            (SST | ADESTO, _) => return None,
            // Micron and Winbond go on from 19h (32 MiB) with 20h.
            (_, 0x20..=0x22) => capacity - 6,
            // Its octal and 1.8 V parts.
            (MACRONIX, 0x32..=0x3c) => capacity - 0x20,
            (_, 0x10..=0x1c) => capacity,
            _ => return None,
        };
        Some(1 << exponent)
    }
}

/// A size that the chip can erase by an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct EraseType {
    /// Bytes erased, a power of two. Less where a [`Region`] ends before that.
    pub size: u32,
    /// The opcode, for the address width that the driver uses.
    pub opcode: u8,
    /// The typical time.
    pub typical_ns: u64,
    /// The datasheet's maximum.
    pub max_ns: u64,
}

/// A part of the array in which some of the erase types hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Region {
    /// The first address.
    pub start: u64,
    /// The first address after the region.
    pub end: u64,
    /// Bit n: the n-th of [`Geometry::erase_types`] holds here.
    pub erase_types: u8,
}

/// The most regions of a chip: more than any part in use has.
pub const REGIONS_MAX: usize = 8;

/// The bytes that are written at once where no erase is known.
const UNERASED: u32 = 4 << 10;

/// The range that one erase command erases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Block {
    /// The first address.
    pub start: u64,
    /// The length in bytes.
    pub len: u64,
    /// How it is erased.
    pub erase: EraseType,
}

impl Block {
    /// The address after the last.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start + self.len
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
    /// The bytes that the driver can address, from 0: less than `size` if no way above 16 MiB is known.
    pub reach: u64,
    /// The way it is programmed.
    pub programming: Programming,
    /// Up to four erase types, smallest first.
    pub erase_types: [Option<EraseType>; 4],
    /// Where they hold, in order and without gaps. A part without regions of its own is one region.
    pub regions: [Option<Region>; REGIONS_MAX],
    /// The width of addresses.
    pub addressing: Addressing,
    /// How the chip leaves 4-byte mode, if it has one and the way is known.
    pub exit: Option<Exit>,
    /// The chip has an extended address register, which must be 0 for a boot ROM.
    pub extended_address: bool,
    /// Whether FAST_READ has the address width that the driver uses.
    pub has_fast_read: bool,
    /// Whether the command that erases the whole chip is used.
    pub chip_erase: bool,
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
    /// Whether the protection bits are volatile: set at power-up, and opened before the first change.
    pub volatile_protection: bool,
    /// The quad enable requirement of SFDP's word 15 (0 to 7); `None` if there is no such word.
    pub quad_enable: Option<u8>,
    /// How the status registers are written.
    pub status_form: StatusForm,
    /// How the chip tells that a program or an erase failed.
    pub report: Report,
    /// The part's name, if the driver's table has it.
    pub name: Option<&'static str>,
    /// Notes for the user on the fields above.
    pub notes: Notes,
}

impl Geometry {
    /// The erase types, smallest first.
    pub fn erase_types(&self) -> impl DoubleEndedIterator<Item = EraseType> + '_ {
        self.erase_types.iter().flatten().copied()
    }

    /// The regions, in order.
    pub fn regions(&self) -> impl DoubleEndedIterator<Item = Region> + '_ {
        self.regions.iter().flatten().copied()
    }

    /// The erase types that hold in `region`, smallest first.
    pub fn erase_types_of(
        &self,
        region: Region,
    ) -> impl DoubleEndedIterator<Item = EraseType> + '_ {
        let holds = move |(index, erase): (usize, &Option<EraseType>)| {
            erase.filter(|_| region.erase_types >> index & 1 == 1)
        };
        self.erase_types.iter().enumerate().filter_map(holds)
    }

    /// The smallest block that can be erased anywhere, in bytes.
    #[must_use]
    pub fn erase_size(&self) -> u32 {
        self.erase_types().next().map_or(u32::MAX, |erase| erase.size)
    }

    /// The room that [`super::SpiNor::write`] needs, in bytes: the largest block that has no smaller one in
    /// its place.
    #[must_use]
    pub fn scratch_size(&self) -> u32 {
        let smallest = |region: Region| {
            let size = self.erase_types_of(region).next().map_or(UNERASED, |erase| erase.size);
            u64::from(size).min(region.end - region.start) as u32
        };
        self.regions().map(smallest).max().unwrap_or(UNERASED)
    }

    /// The piece of the array that is written at once at `address`, and how it is erased, if that is known.
    pub(super) fn piece_at(&self, address: u64) -> (Range<u64>, Option<Block>) {
        match self.sector_at(address) {
            Some(sector) => (sector.start..sector.end(), Some(sector)),
            None => {
                let size = u64::from(UNERASED);
                let start = address / size * size;
                (start..(start + size).min(self.reach), None)
            }
        }
    }

    /// The blocks at `address`, smallest first. None if the driver knows of no way to erase it.
    pub fn blocks_at(&self, address: u64) -> impl DoubleEndedIterator<Item = Block> + '_ {
        let region = self.regions().find(|region| (region.start..region.end).contains(&address));
        let blocks = move |region: Region| {
            self.erase_types_of(region).map(move |erase| {
                let size = u64::from(erase.size);
                let aligned = address / size * size;
                let start = aligned.max(region.start);
                let end = (aligned + size).min(region.end);
                Block { start, len: end - start, erase }
            })
        };
        region.into_iter().flat_map(blocks)
    }

    /// The smallest block at `address`.
    pub(super) fn sector_at(&self, address: u64) -> Option<Block> {
        self.blocks_at(address).next()
    }

    /// The largest block that begins at `address` and has no more than `len` bytes.
    pub(super) fn largest_from(&self, address: u64, len: u64) -> Option<Block> {
        self.blocks_at(address).rfind(|block| block.start == address && block.len <= len)
    }

    /// Whether a block begins at `address`, or the array ends there.
    pub(super) fn is_boundary(&self, address: u64) -> bool {
        address == self.reach
            || self.sector_at(address).is_some_and(|sector| sector.start == address)
    }

    /// Whether every multiple of `size` bytes is the boundary of a block.
    pub(super) fn erases_multiples_of(&self, size: u64) -> bool {
        let inside = |region: Region| {
            let sector = self.sector_at(region.start)?;
            let first = region.start.next_multiple_of(size);
            let aligned = u64::from(sector.erase.size);
            Some(
                first >= region.end
                    || size.checked_rem(aligned) == Some(0) && self.is_boundary(first),
            )
        };
        size > 0 && self.regions().all(|region| inside(region) == Some(true))
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

    /// Where all of `erase_types` hold everywhere.
    pub(super) fn one_region(
        size: u64,
        erase_types: &[Option<EraseType>; 4],
    ) -> [Option<Region>; REGIONS_MAX] {
        let mask = (0..4).fold(0, |mask, n| mask | u8::from(erase_types[n].is_some()) << n);
        let mut regions = [None; REGIONS_MAX];
        regions[0] = Some(Region { start: 0, end: size, erase_types: mask });
        regions
    }
}
