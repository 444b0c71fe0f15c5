//! Real page tables in plain memory, and a count of what happens to them.
//!
//! *Read first*: the documentation of [`barewire_iommu::Gather`] and [`barewire_iommu::Strategy`].
//!
//! # How it works
//! Nothing walks these tables, so an invalidation has no receiver: it is counted, and complete at
//! once. Counts are read from what the calls left behind. After a map the leaves are looked up.
//! After an unmap the gather has a run for the leaves that were cleared one by one, and the number
//! of tables that were unhooked; after its release it has neither.
//!
//! # Safety
//! An arena is promised that the memory is its own, and a release that no walk reaches the tables.
#![allow(
    unsafe_code,
    reason = "an arena is promised its memory, and a release that no walk reaches the tables"
)]

use core::ptr::NonNull;

use barewire_iommu::{
    Access, Arena, Attributes, Config, Facts, Gather, Iova, Link, PageTable, PhysAddr, Segment,
    Stage, Strategy, Tlbi,
};

use super::Flush;

/// The bytes of a page.
pub(super) const PAGE: u64 = 4 << 10;

/// The bytes that a table of pages covers.
pub(super) const TABLE_SPAN: u64 = 512 * PAGE;

/// The most bytes of a list. From 1 GiB on a call could unhook a table of tables.
pub(super) const LIST_BYTES_MAX: u64 = 512 << 20;

/// Tables above those of pages: one at each of the levels 0 to 2.
const TABLES_ABOVE: u64 = 3;

/// Counts of the work done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkCounts {
    pub(super) calls: u64,
    pub(super) leaves_written: u64,
    /// Leaves cleared one by one, in tables that stay.
    pub(super) leaves_cleared: u64,
    pub(super) tables_unhooked: u64,
    /// Tables that went back to the pool.
    pub(super) tables_freed: u64,
    /// Where only leaves were removed.
    pub(super) leaf_flush: FlushCounts,
    /// Where tables were unhooked.
    pub(super) walk_flush: FlushCounts,
}

/// Invalidation commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlushCounts {
    pub(super) by_address: u64,
    pub(super) by_asid: u64,
}

impl WorkCounts {
    /// All commands.
    pub(super) fn invalidations(&self) -> u64 {
        let all = |told: FlushCounts| told.by_address + told.by_asid;
        all(self.leaf_flush) + all(self.walk_flush)
    }
}

/// A table with lists of single pages.
pub(super) struct Table<'m> {
    table: PageTable<&'m Arena<'m>>,
    /// Leaves mapped now.
    live: u64,
}

/// Calls `with` with an empty table that has room for `bytes` and no more.
///
/// # Panics
/// If `bytes` is not whole pages, 0, or more than [`LIST_BYTES_MAX`].
pub(super) fn with_table<R>(bytes: u64, with: impl FnOnce(&mut Table<'_>) -> R) -> R {
    assert!(bytes.is_multiple_of(PAGE), "a list is whole pages, not {bytes} bytes");
    assert!((PAGE..=LIST_BYTES_MAX).contains(&bytes), "a list of {bytes} bytes");
    let tables = (bytes.div_ceil(TABLE_SPAN) + TABLES_ABOVE) as usize;
    let mut words = vec![0_u64; tables * PAGE as usize / 8];
    let links: Vec<Link> = (0..tables).map(|_| Link::new()).collect();
    let start = NonNull::from(&mut words[..]).cast();
    // SAFETY: as many bytes as the links say, initialised, and borrowed longer than the arena lives. They are next to
    // each other at a physical address that nothing uses.
    let arena = unsafe { Arena::new(start, PhysAddr(1 << 20), PAGE as usize, &links) };
    let arena = arena.expect("the address is a multiple of a page");
    let table = PageTable::new(Config::default(), &arena).expect("the arena has a root");
    with(&mut Table { table, live: 0 })
}

impl Table<'_> {
    /// Maps a list of single pages at `iova`.
    pub(super) fn map(&mut self, iova: u64, bytes: u64, counted: &mut WorkCounts) {
        // No page continues the one before it, so none become a block.
        let page = |n: u64| Segment { phys: PhysAddr((1 << 32) + n * 5 * PAGE), len: PAGE };
        let list: Vec<Segment> = (0..bytes / PAGE).map(page).collect();
        let attributes = Attributes::new(Stage::One, Access::ReadWrite);
        let before = self.leaves(iova, bytes);
        // A map that succeeds leaves nothing to invalidate.
        let mut failed = Gather::new();
        let mapped = self.table.whole().map_sg(Iova(iova), &list, attributes, &mut failed);
        assert_eq!(mapped, Ok(bytes), "the list fits the arena");
        let written = self.leaves(iova, bytes) - before;
        self.live += written;
        counted.calls += 1;
        counted.leaves_written += written;
    }

    /// The leaves mapped in a range.
    fn leaves(&self, iova: u64, bytes: u64) -> u64 {
        let (mut at, mut leaves) = (iova, 0);
        while at < iova + bytes {
            let found = self.table.iova_to_phys(Iova(at));
            leaves += u64::from(found.is_some());
            at += found.map_or(PAGE, |found| 1 << found.shift);
        }
        leaves
    }

    /// Unmaps a list at `iova`, and invalidates it.
    pub(super) fn unmap(
        &mut self,
        iova: u64,
        bytes: u64,
        (flush, costs): (Flush, barewire_iommu::Costs),
        counted: &mut WorkCounts,
    ) {
        counted.calls += 1;
        let walk = match flush {
            Flush::ByAddress => Strategy::ByPage,
            Flush::ByAsid => Strategy::ByContext,
            Flush::Gathered => {
                return self.unmap_at_once(iova, bytes, |_| Strategy::Adaptive(costs), counted);
            }
        };
        let strategy = |tables: bool| if tables { walk } else { Strategy::ByPage };
        let (mut at, end) = (iova, iova + bytes);
        while at < end {
            let next = end.min((at / TABLE_SPAN + 1) * TABLE_SPAN);
            self.unmap_at_once(at, next - at, strategy, counted);
            at = next;
        }
    }

    /// Unmaps a range, then invalidates all of it. `strategy` is told whether tables were unhooked.
    fn unmap_at_once(
        &mut self,
        iova: u64,
        bytes: u64,
        strategy: impl Fn(bool) -> Strategy,
        counted: &mut WorkCounts,
    ) {
        let mut gather = Gather::new();
        let removed = self.table.whole().unmap(Iova(iova), bytes, &mut gather);
        assert_eq!(removed, Ok(bytes), "all of a list is mapped");
        self.live -= bytes / PAGE;

        let unhooked = gather.tables() as u64;
        let runs = gather.runs().expect("a list is one range of leaves and one of tables at most");
        let leaves = runs.iter().filter(|run| !run.tables);
        counted.leaves_cleared +=
            leaves.map(|run| (run.end.0 - run.start.0) >> run.stride).sum::<u64>();
        counted.tables_unhooked += unhooked;

        let page_shift = self.table.geometry().page_shift();
        let facts = Facts { page_shift, has_ranges: false, live_entries: self.live };
        let operations = strategy(unhooked > 0).operations(Some(runs), &facts);
        for operation in operations.as_slice() {
            let (told, walks) = match *operation {
                Tlbi::Context => ((0, 1), unhooked > 0),
                Tlbi::Pages { leaf, count, .. } => ((count, 0), !leaf),
                Tlbi::Range { .. } => unreachable!("this SMMU has no ranges"),
            };
            let step = if walks { &mut counted.walk_flush } else { &mut counted.leaf_flush };
            step.by_address += told.0;
            step.by_asid += told.1;
        }

        // SAFETY: it is this table's gather, and nothing ever walks these tables.
        unsafe { self.table.release(&mut gather) };
        counted.tables_freed += unhooked - gather.tables() as u64;
    }
}
