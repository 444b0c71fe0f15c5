//! The scatter lists that all contestants map.

use barewire_iommu::{PhysAddr, Segment};
use serde::Serialize;

/// The size of a page in bytes.
pub const PAGE: u64 = 4 << 10;

/// The bytes that a last-level table covers.
pub const TABLE_SPAN: u64 = 2 << 20;

/// The sizes in S. P. Ranjan's table; see [`published`](crate::published).
pub const SIZES: [Size; 8] = [
    Size { name: "4K", bytes: 4 << 10 },
    Size { name: "64K", bytes: 64 << 10 },
    Size { name: "1M", bytes: 1 << 20 },
    Size { name: "2M", bytes: 2 << 20 },
    Size { name: "12M", bytes: 12 << 20 },
    Size { name: "16M", bytes: 16 << 20 },
    Size { name: "24M", bytes: 24 << 20 },
    Size { name: "32M", bytes: 32 << 20 },
];

/// The size of one mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// The name in that table.
    pub name: &'static str,
    /// The size in bytes.
    pub bytes: u64,
}

impl Size {
    /// The size with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        SIZES.into_iter().find(|size| size.name == name)
    }

    /// The number of 4 KiB pages.
    pub fn pages(self) -> u64 {
        self.bytes / PAGE
    }

    /// The number of last-level tables that it fills.
    pub fn tables(self) -> u64 {
        self.bytes / TABLE_SPAN
    }
}

/// The layout of the pages in physical memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Single pages that are not adjacent to their predecessors.
    Scattered,
    /// One contiguous piece, aligned to 1 GiB.
    Contiguous,
}

impl Layout {
    /// The name in the JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scattered => "scattered",
            Self::Contiguous => "contiguous",
        }
    }

    /// A scatter list of `size`.
    pub fn list(self, size: Size) -> Vec<Segment> {
        match self {
            Self::Scattered => (0..size.pages())
                .map(|index| Segment { phys: PhysAddr(BASE + scattered(index) * PAGE), len: PAGE })
                .collect(),
            Self::Contiguous => vec![Segment { phys: PhysAddr(BASE), len: size.bytes }],
        }
    }
}

/// The address of the first page; the memory is never accessed.
const BASE: u64 = 1 << 32;

/// A permutation of 2^20 pages, by multiplication with an odd number, in which neighbours are far
/// apart.
///
/// It does not begin at 0. Otherwise the first page of every table would be aligned like a block,
/// which for random pages happens once in 512 times.
fn scattered(index: u64) -> u64 {
    (index + 7).wrapping_mul(0x5_3a95) & ((1 << 20) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattered_pages_are_distinct_and_never_neighbours() {
        let size = Size::from_name("32M").expect("in the table");
        let list = Layout::Scattered.list(size);
        assert_eq!(list.len(), 8192);
        assert!(list.windows(2).all(|two| two[1].phys.0 != two[0].phys.0 + PAGE));
        let may_begin_a_block = |segment: &&Segment| segment.phys.0.is_multiple_of(TABLE_SPAN);
        assert_eq!(list.iter().filter(may_begin_a_block).count(), 16, "as often as by chance");
        assert_eq!(list.iter().step_by(512).filter(may_begin_a_block).count(), 0);
        let mut pages: Vec<u64> = list.iter().map(|segment| segment.phys.0).collect();
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages.len(), 8192);
        assert_eq!(
            Layout::Contiguous.list(size).iter().map(|piece| piece.len).sum::<u64>(),
            32 << 20
        );
    }
}
