//! Who is measured: each maps and unmaps the same lists at the same addresses.
//!
//! The other crates do not compile for 32 bits: there only the floors and barewire-iommu are measured.

#[cfg(target_pointer_width = "64")]
mod aarch64_paging;
mod barewire;
mod floor;
#[cfg(target_pointer_width = "64")]
mod multiarch;

use serde::Serialize;

use barewire_iommu::Segment;

use crate::list::{Layout, Size, TABLE_SPAN};

#[cfg(target_pointer_width = "64")]
pub use aarch64_paging::Aarch64Paging;
pub(crate) use barewire::{ATTRIBUTES, release};
pub use barewire::{Barewire, Unmapping};
pub use floor::{FloorReady, FloorTables};
#[cfg(target_pointer_width = "64")]
pub use multiarch::Multiarch;

/// Names in tables and JSON: an interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Implementation {
    /// barewire-iommu.
    Barewire,
    /// Stores into ready tables.
    FloorA,
    /// Stores into new tables.
    FloorB,
    /// Whole tables off.
    FloorDrop,
    /// Atomic stores one by one.
    FloorLeaf,
    /// The crate aarch64-paging; on 64 bits.
    Aarch64Paging,
    /// The crate page_table_multiarch; on 64 bits.
    PageTableMultiarch,
}

impl Implementation {
    /// As the JSON writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Barewire => "barewire",
            Self::FloorA => "floor_a",
            Self::FloorB => "floor_b",
            Self::FloorDrop => "floor_drop",
            Self::FloorLeaf => "floor_leaf",
            Self::Aarch64Paging => "aarch64_paging",
            Self::PageTableMultiarch => "page_table_multiarch",
        }
    }
}

/// What is done: a list is mapped in one call, and unmapped again in one call or in pieces.
#[derive(Clone, Debug)]
pub struct Job {
    /// Bytes mapped in a call.
    pub size: Size,
    /// How they lie.
    pub layout: Layout,
    /// Unmap less than a table at a time, so that no table goes: single leaves of live tables.
    pub by_leaf: bool,
    /// What is mapped.
    pub list: Vec<Segment>,
}

/// The first IOVA: tables of all levels begin here.
pub const BASE: u64 = 1 << 39;

/// Bytes of an unmap of single leaves: half a table.
pub const LEAF_PIECE: u64 = TABLE_SPAN / 2;

impl Job {
    /// A job with its list.
    pub fn new(size: Size, layout: Layout, by_leaf: bool) -> Self {
        Self { size, layout, by_leaf, list: layout.list(size) }
    }

    /// Where the list is mapped the `slot`th time.
    pub fn iova(&self, slot: usize) -> u64 {
        BASE + slot as u64 * self.size.bytes
    }

    /// Bytes of one unmap.
    pub fn unmap_bytes(&self) -> u64 {
        if self.by_leaf { self.size.bytes.min(LEAF_PIECE) } else { self.size.bytes }
    }

    /// Ranges to unmap one after the other: begin and bytes.
    pub fn unmaps(&self, slot: usize) -> impl Iterator<Item = (u64, u64)> {
        let (begin, bytes) = (self.iova(slot), self.unmap_bytes());
        (0..self.size.bytes / bytes).map(move |piece| (begin + piece * bytes, bytes))
    }

    /// Whether the list becomes blocks of 2 MiB.
    pub fn is_blocks(&self) -> bool {
        self.layout == Layout::Contiguous && self.size.bytes >= TABLE_SPAN
    }

    /// Whether its tables come with the map and go with the unmap.
    pub fn is_whole_tables(&self) -> bool {
        self.layout == Layout::Scattered && self.size.bytes >= TABLE_SPAN && !self.by_leaf
    }

    /// How often the list is mapped before it is unmapped as often: enough for the clock, few enough
    /// that the tables stay in a processor's own cache.
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

/// One of those who are measured.
pub trait Subject {
    /// Maps the job's list at the first `slots` places.
    fn map(&mut self, job: &Job, slots: usize);

    /// Unmaps it there.
    fn unmap(&mut self, job: &Job, slots: usize);

    /// So slow that one place is enough.
    fn is_slow(&self) -> bool {
        false
    }

    /// Where a device would arrive, for tests.
    fn translate(&self, job: &Job, iova: u64) -> Option<u64>;
}

#[cfg(test)]
mod tests;
