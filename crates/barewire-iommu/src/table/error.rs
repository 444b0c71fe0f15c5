//! Why a range could not be mapped or unmapped: where, and what stood there.

use core::fmt;

use crate::address::{Iova, PhysAddr};

/// Why nothing was mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MapError {
    /// Nothing to map: size, count or a segment's length is 0.
    Empty(Iova),
    /// An address or length is no multiple of the granule (of the page size, in map_pages).
    Unaligned {
        /// Where it was to be mapped.
        iova: Iova,
        /// The address or length.
        value: u64,
        /// What it must be a multiple of, in bytes.
        to: u64,
    },
    /// The range leaves the table's input addresses, or the part.
    IovaRange {
        /// Where the range begins.
        iova: Iova,
        /// Its length in bytes.
        size: u64,
        /// The first IOVA that may not be used.
        end: Iova,
    },
    /// A physical address has more bits than the table's output addresses.
    PhysRange {
        /// Where it was to be mapped.
        iova: Iova,
        /// The address.
        phys: PhysAddr,
        /// The first that is too large.
        end: PhysAddr,
    },
    /// Something is mapped there already.
    Occupied {
        /// Where.
        iova: Iova,
        /// The level of what stands there.
        level: u32,
        /// The descriptor that stands there.
        descriptor: u64,
    },
    /// No leaf of this size exists in the granule.
    PageSize {
        /// log2 of the size asked for.
        shift: u32,
    },
    /// The pool had no table.
    OutOfMemory(Iova),
    /// The attributes are for the other stage.
    Stage,
}

/// Why nothing was unmapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum UnmapError {
    /// Size or count is 0.
    Empty(Iova),
    /// As in [`MapError`].
    Unaligned {
        /// The range's begin.
        iova: Iova,
        /// The address or length.
        value: u64,
        /// What it must be a multiple of, in bytes.
        to: u64,
    },
    /// As in [`MapError`].
    IovaRange {
        /// Where the range begins.
        iova: Iova,
        /// Its length in bytes.
        size: u64,
        /// The first IOVA that may not be used.
        end: Iova,
    },
    /// The range begins or ends inside a block: replacing a live block by a table breaks
    /// break-before-make.
    PartOfBlock {
        /// Where the block begins.
        iova: Iova,
        /// Its level.
        level: u32,
        /// Its descriptor.
        descriptor: u64,
    },
    /// No table to split a block into.
    OutOfMemory(Iova),
    /// `unmap_checked`: nothing is mapped there.
    Hole {
        /// The first address of the hole.
        iova: Iova,
        /// The level of the empty entry.
        level: u32,
    },
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _ = f;
        todo!()
    }
}

impl fmt::Display for UnmapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _ = f;
        todo!()
    }
}

impl core::error::Error for MapError {}
impl core::error::Error for UnmapError {}
