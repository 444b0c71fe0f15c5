//! The contestants: each maps and unmaps the same lists at the same addresses.
//!
//! The other crates do not compile for 32 bits. There only the floors and barewire-iommu are
//! measured.

#[cfg(target_pointer_width = "64")]
mod aarch64_paging;
mod barewire;
mod call;
mod domain;
mod floor;
#[cfg(target_pointer_width = "64")]
mod generic;
#[cfg(target_pointer_width = "64")]
mod multiarch;
mod table_work;

use serde::Serialize;

use barewire_iommu::Segment;

use crate::list::{Layout, Size, TABLE_SPAN};

#[cfg(target_pointer_width = "64")]
pub use aarch64_paging::Aarch64Paging;
pub use barewire::{Barewire, Unmapping};
pub(crate) use call::{ATTRIBUTES, release_of};
pub use domain::WholeDomain;
pub use floor::{FloorReady, FloorTables};
#[cfg(target_pointer_width = "64")]
pub use generic::Generic;
#[cfg(target_pointer_width = "64")]
pub use multiarch::Multiarch;
pub use table_work::TableWork;

/// The names in tables and JSON; they are an interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Implementation {
    /// barewire-iommu.
    Barewire,
    /// Stores into existing tables.
    FloorA,
    /// Stores into new tables, which are zeroed before.
    FloorB,
    /// Stores into new tables, which are not zeroed because every entry is stored.
    FloorBUnzeroed,
    /// Removal of whole tables.
    FloorDrop,
    /// Single atomic stores.
    FloorLeaf,
    /// The crate aarch64-paging; on 64 bits.
    Aarch64Paging,
    /// The crate page_table_multiarch; on 64 bits.
    PageTableMultiarch,
    /// The crate page-table-generic; on 64 bits.
    PageTableGeneric,
}

impl Implementation {
    /// The other crates.
    pub const PEERS: [Self; 3] =
        [Self::Aarch64Paging, Self::PageTableMultiarch, Self::PageTableGeneric];

    /// The name in the JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Barewire => "barewire",
            Self::FloorA => "floor_a",
            Self::FloorB => "floor_b",
            Self::FloorBUnzeroed => "floor_b_unzeroed",
            Self::FloorDrop => "floor_drop",
            Self::FloorLeaf => "floor_leaf",
            Self::Aarch64Paging => "aarch64_paging",
            Self::PageTableMultiarch => "page_table_multiarch",
            Self::PageTableGeneric => "page_table_generic",
        }
    }
}

/// The work: a list is mapped in one call, and unmapped in one call or in pieces.
#[derive(Clone, Debug)]
pub struct Job {
    /// The size of one mapping.
    pub size: Size,
    /// The layout of the pages.
    pub layout: Layout,
    /// Unmap less than a table at a time, so that no table is removed.
    pub by_leaf: bool,
    /// The scatter list.
    pub list: Vec<Segment>,
}

/// The first IOVA, at which a last-level table begins.
///
/// Its entries in the tables above lie at other offsets in their pages than those of the first half of a
/// last-level table. Many processors compare only the low 12 bits of addresses before a load may pass a store
/// (AMD, *Software Optimization Guide for AMD64 Processors*, 25112 rev. 3.06, 5.5, *False Dependencies*). So a walk
/// may wait for the leaf that the call before it stored at the same offset in another page, and whether it does
/// depends on the memory that a run is given (`examples/page_offsets.rs`).
pub const BASE: u64 = 300 << 39 | 500 << 30 | 352 << 21;

/// The size of an unmap of single leaves: half a table.
pub const LEAF_PIECE: u64 = TABLE_SPAN / 2;

impl Job {
    /// Creates a job and its list.
    pub fn new(size: Size, layout: Layout, by_leaf: bool) -> Self {
        Self { size, layout, by_leaf, list: layout.list(size) }
    }

    /// The IOVA of the `slot`th mapping of the list.
    pub fn iova(&self, slot: usize) -> u64 {
        BASE + slot as u64 * self.size.bytes
    }

    /// The bytes of one unmap.
    pub fn unmap_bytes(&self) -> u64 {
        if self.by_leaf { self.size.bytes.min(LEAF_PIECE) } else { self.size.bytes }
    }

    /// The ranges to unmap one after the other: first IOVA and bytes.
    pub fn unmaps(&self, slot: usize) -> impl Iterator<Item = (u64, u64)> {
        let (begin, bytes) = (self.iova(slot), self.unmap_bytes());
        // A division by a constant: one by a variable takes as long as an unmap of a page.
        let pieces = if self.by_leaf { (self.size.bytes / LEAF_PIECE).max(1) } else { 1 };
        (0..pieces).map(move |piece| (begin + piece * bytes, bytes))
    }

    /// Whether the list is mapped by 2 MiB blocks.
    pub fn is_blocks(&self) -> bool {
        self.layout == Layout::Contiguous && self.size.bytes >= TABLE_SPAN
    }

    /// Whether its tables are created by the map and removed by the unmap.
    pub fn is_whole_tables(&self) -> bool {
        self.layout == Layout::Scattered && self.size.bytes >= TABLE_SPAN && !self.by_leaf
    }

    /// How many times the list is mapped before it is unmapped as many times: enough for the
    /// clock's resolution, few enough that the tables stay in a processor's own cache.
    pub fn slots(&self) -> usize {
        match (self.size.bytes, self.layout) {
            (..0x1_0000, _) => 64,
            (..0x10_0000, _) => 16,
            (..0x20_0000, _) => 4,
            (_, Layout::Contiguous) => 8,
            (..0x40_0000, _) => 8,
            _ => 4,
        }
    }
}

/// A contestant.
pub trait Subject {
    /// Maps the job's list at the first `slots` places.
    fn map(&mut self, job: &Job, slots: usize);

    /// Unmaps it there.
    fn unmap(&mut self, job: &Job, slots: usize);

    /// Does the work that its unmaps left for later. This is not timed.
    fn settle(&mut self) {}

    /// Its scattered lists of a table and more are so slow that one place is enough.
    fn is_slow(&self) -> bool {
        false
    }

    /// The output address of `iova`, for tests.
    fn translate(&self, job: &Job, iova: u64) -> Option<u64>;
}

#[cfg(test)]
mod tests;
