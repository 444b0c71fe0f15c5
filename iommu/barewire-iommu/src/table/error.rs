//! Errors of mapping and unmapping: where they happened, and what was there.

use core::fmt;

use crate::address::{Iova, PhysAddr};
use crate::tlbi::FlushError;

/// Why nothing was mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MapError {
    /// Nothing to map: size, count or a segment's length is 0.
    Empty(Iova),
    /// An address or length is not a multiple of the granule (of the page size, in `map_pages`).
    Unaligned {
        /// The IOVA it was to be mapped at.
        iova: Iova,
        /// The address or length.
        value: u64,
        /// The required alignment, in bytes.
        to: u64,
    },
    /// The range exceeds the table's input addresses or the part.
    IovaRange {
        /// The first IOVA of the range.
        iova: Iova,
        /// Its length in bytes.
        size: u64,
        /// The first IOVA that is too large.
        end: Iova,
    },
    /// A physical address is wider than the table's output addresses.
    PhysRange {
        /// The IOVA it was to be mapped at.
        iova: Iova,
        /// The address.
        phys: PhysAddr,
        /// The first address that is too large.
        end: PhysAddr,
    },
    /// The range is mapped already.
    Occupied {
        /// The first IOVA that is mapped.
        iova: Iova,
        /// The level of the existing entry.
        level: u32,
        /// The existing descriptor.
        descriptor: u64,
    },
    /// No leaf of this size exists in the granule.
    PageSize {
        /// log2 of the size asked for.
        shift: u32,
    },
    /// The pool had no table left, at this IOVA.
    OutOfMemory(Iova),
    /// The attributes are for the other stage.
    Stage,
}

/// Why nothing was unmapped, or why no attributes were changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum UnmapError {
    /// Size or count is 0.
    Empty(Iova),
    /// As in [`MapError`].
    Unaligned {
        /// The first IOVA of the range.
        iova: Iova,
        /// The address or length.
        value: u64,
        /// The required alignment, in bytes.
        to: u64,
    },
    /// As in [`MapError`].
    IovaRange {
        /// The first IOVA of the range.
        iova: Iova,
        /// Its length in bytes.
        size: u64,
        /// The first IOVA that is too large.
        end: Iova,
    },
    /// The range begins or ends inside a block. To replace a live block by a table would violate
    /// break-before-make.
    PartOfBlock {
        /// The first IOVA of the block.
        iova: Iova,
        /// Its level.
        level: u32,
        /// Its descriptor.
        descriptor: u64,
    },
    /// No leaf of this size exists in the granule.
    PageSize {
        /// log2 of the size asked for.
        shift: u32,
    },
    /// The pool has no table to split the block at this address into.
    OutOfMemory(Iova),
    /// `protect`: the attributes are for the other stage.
    Stage,
    /// `unmap_quiesced`, `protect`: a block, or a run of leaves, could not be invalidated. All is mapped
    /// as before.
    Flush {
        /// The first IOVA of the block or run.
        iova: Iova,
        /// The error of the invalidation.
        error: FlushError,
    },
    /// `unmap_checked`, `protect`: part of the range is not mapped.
    Hole {
        /// The first address of the hole.
        iova: Iova,
        /// The level of the empty entry.
        level: u32,
    },
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty(iova) => write!(f, "nothing to map at {iova}: a length of 0"),
            Self::Unaligned { iova, value, to } => unaligned(f, iova, value, to),
            Self::IovaRange { iova, size, end } => out_of_range(f, iova, size, end),
            Self::PhysRange { iova, phys, end } => write!(
                f,
                "{iova} cannot lead to {phys}: physical addresses end at {end}; raise output_bits if \
                 the hardware has more"
            ),
            Self::Occupied { iova, level, descriptor } => write!(
                f,
                "{iova} is mapped already: level {level} has {descriptor:#x}; unmap it first"
            ),
            Self::PageSize { shift } => {
                write!(f, "no leaf has 2^{shift} bytes in this granule: use map, which chooses")
            }
            Self::OutOfMemory(iova) => {
                write!(
                    f,
                    "no table for {iova}, and nothing was mapped: give the pool more, or free empty tables by \
                     reclaim"
                )
            }
            Self::Stage => f.write_str(STAGE),
        }
    }
}

impl fmt::Display for UnmapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty(iova) => write!(f, "nothing to unmap at {iova}: a length of 0"),
            Self::Unaligned { iova, value, to } => unaligned(f, iova, value, to),
            Self::IovaRange { iova, size, end } => out_of_range(f, iova, size, end),
            Self::PageSize { shift } => {
                write!(f, "no leaf has 2^{shift} bytes in this granule: use unmap")
            }
            Self::PartOfBlock { iova, level, descriptor } => write!(
                f,
                "the range cuts the block at {iova}, level {level}, {descriptor:#x}: unmap all of it, \
                 or quiesce the devices and use unmap_quiesced"
            ),
            Self::OutOfMemory(iova) => {
                write!(f, "no table to split the block at {iova} into: nothing was unmapped")
            }
            Self::Hole { iova, level } => {
                write!(
                    f,
                    "nothing is mapped at {iova}: level {level} is empty; nothing was changed"
                )
            }
            Self::Stage => f.write_str(STAGE),
            Self::Flush { iova, error } => {
                write!(
                    f,
                    "what is mapped at {iova} was not invalidated, so nothing was changed: {error}"
                )
            }
        }
    }
}

const STAGE: &str =
    "the attributes are for the other stage: make them with the table's Config::stage";

fn unaligned(f: &mut fmt::Formatter<'_>, iova: Iova, value: u64, to: u64) -> fmt::Result {
    write!(f, "at {iova}: {value:#x} is no multiple of {to:#x}")
}

fn out_of_range(f: &mut fmt::Formatter<'_>, iova: Iova, size: u64, end: Iova) -> fmt::Result {
    write!(
        f,
        "{size:#x} bytes from {iova} on do not end by {end}, where the part or the table does"
    )
}

impl core::error::Error for MapError {}
impl core::error::Error for UnmapError {}
