//! The calls of barewire-iommu that several contestants make.
#![allow(unsafe_code, reason = "tables go back to the pool when the caller says that nobody walks")]

use barewire_iommu::{Access, Attributes, Gather, Iova, PageTable, Part, Pool, Segment, Stage};

/// The attributes of every leaf mapped here.
pub(crate) const ATTRIBUTES: Attributes = Attributes::new(Stage::One, Access::ReadWrite);

/// [`map`] as a function of its own, which can be counted.
#[inline(never)]
pub(super) fn bench_iommu_map_sg<P: Pool>(table: &mut PageTable<P>, iova: Iova, list: &[Segment]) {
    map(table, iova, list);
}

/// Maps a list.
#[inline]
pub(super) fn map<P: Pool>(table: &mut PageTable<P>, iova: Iova, list: &[Segment]) {
    let mut gather = Gather::new();
    let mapped = table.whole().map_sg(iova, list, ATTRIBUTES, &mut gather);
    mapped.expect("the addresses are free and the pool has tables");
}

/// Returns unhooked tables to the pool.
#[inline]
pub(crate) fn release<P: Pool>(table: &PageTable<P>, gather: &mut Gather) {
    // SAFETY: the gather is of this table, and there is no device that could walk.
    unsafe { table.release(gather) };
}

/// [`release`] where a part is all that its thread has of the table.
#[inline]
pub(crate) fn release_of<P: Pool>(part: &Part<'_, P>, gather: &mut Gather) {
    // SAFETY: as for `release`.
    unsafe { part.release(gather) };
}
