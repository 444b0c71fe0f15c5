//! Maps and unmaps single pages of the usual shape (4 KiB granules, four levels) if all tables exist,
//! and several of one table: the small buffers that most devices map, unmap and map again.
//!
//! A walk with known shifts is a few instructions a level. These paths do the usual case only and
//! change nothing otherwise: the general code then does the work, or finds the error.
//!
//! # Safety
//! As in [`node`](super::node): tables are found in valid entries above the caller's claim, and stay
//! allocated while it holds that claim. Indices are of nine bits, or below the end of the input
//! addresses at the root.
#![allow(unsafe_code, reason = "table memory is reached through the pool's unsafe methods")]

use super::PageTable;
use super::fill::{self, Batch};
use super::mark::descend;
use super::node::Node;
use super::unmap::Remover;
use crate::address::{Iova, PhysAddr, Segment};
use crate::format::{Attributes, Descriptor, LAST, Marked};
use crate::gather::{Gather, Kind};
use crate::pool::{Pool, leaf};

pub(super) const PAGE_SHIFT: u32 = 12;
const PAGE: u64 = 1 << PAGE_SHIFT;
pub(super) const INDEX_BITS: u32 = 9;
/// log2 of the bytes that a last-level table covers.
pub(super) const SPAN_SHIFT: u32 = PAGE_SHIFT + INDEX_BITS;

/// An entry of a table.
struct Place<'t, P: Pool> {
    pool: &'t P,
    table: PhysAddr,
    index: usize,
}

impl<'t, P: Pool> Place<'t, P> {
    /// The entry of a page at `iova`. See [`at`](Self::at).
    #[inline(always)]
    fn find(table: &'t PageTable<P>, iova: u64, visible: bool) -> Option<Self> {
        Self::at(table, LAST, iova, visible)
    }

    /// The entry of `level` for `iova`, which is below the end of the input addresses, if all tables on
    /// the way exist. If `visible`, walkers can reach the table. A path with entries that this call would
    /// have to clean is left to the general code (see [`mark`](super::mark)).
    #[inline(always)]
    fn at(table: &'t PageTable<P>, level: u32, iova: u64, visible: bool) -> Option<Self> {
        let pool = &table.pool;
        let mark = match (P::COHERENT, visible) {
            (true, _) => Marked::No,
            (false, true) => Marked::Yes,
            (false, false) => Marked::Either,
        };
        let mut at = table.root;
        // The root may have fewer entries than a table, but has one for every valid IOVA.
        let mut index = (iova >> (PAGE_SHIFT + LAST * INDEX_BITS)) as usize;
        for level in 0..level {
            // SAFETY: the table is the root or was found in a valid entry on the way to the caller's
            // claim, and the index is within it.
            let found = Descriptor(unsafe { pool.load(at, index) });
            at = found.plain_table(mark)?;
            let shift = PAGE_SHIFT + (LAST - 1 - level) * INDEX_BITS;
            index = (iova >> shift) as usize & ((1 << INDEX_BITS) - 1);
        }
        Some(Self { pool, table: at, index })
    }

    #[inline(always)]
    fn load(&self) -> Descriptor {
        // SAFETY: found in a valid entry, and the index has nine bits.
        Descriptor(unsafe { self.pool.load(self.table, self.index) })
    }

    /// Writes the entry, which no other thread writes meanwhile, and makes that visible.
    #[inline(always)]
    fn store(&self, value: Descriptor) {
        // SAFETY: as for `load`.
        unsafe { leaf::store(self.pool, self.table, self.index, value.0) };
        self.pool.clean(self.table, self.index..self.index + 1);
        self.pool.barrier();
    }
}

/// Maps one page at `iova` and returns `true`, or does nothing. The caller has claimed `part`.
#[inline(always)]
pub(super) fn map<P: Pool>(
    table: &PageTable<P>,
    part: &core::ops::Range<u64>,
    iova: Iova,
    phys: PhysAddr,
    attributes: Attributes,
) -> bool {
    let geometry = &table.geometry;
    let right = (iova.0 | phys.0) & (PAGE - 1) == 0
        && part.contains(&iova.0)
        && phys.0 < geometry.output_end()
        && attributes.stage() == geometry.config().stage;
    if !right {
        return false;
    }
    match Place::find(table, iova.0, true) {
        Some(page) if !page.load().is_valid() => {
            page.store(Descriptor::leaf(phys, LAST, attributes.bits()));
            true
        }
        _ => false,
    }
}

/// Unmaps the page at `iova` and returns `true`, or does nothing. The caller has claimed `part`.
#[inline(always)]
pub(super) fn unmap<P: Pool>(
    table: &PageTable<P>,
    part: &core::ops::Range<u64>,
    iova: Iova,
    gather: &mut Gather,
) -> bool {
    if iova.0 & (PAGE - 1) != 0 || !part.contains(&iova.0) {
        return false;
    }
    // Before the walk: after its loads a compiler must read a new gather back.
    let is_first = gather.has_no_run();
    match Place::find(table, iova.0, false) {
        Some(page) if page.load().is_valid() => {
            page.store(Descriptor::EMPTY);
            gather.add_to(is_first, iova.0, iova.0 + PAGE, Kind::leaves(PAGE_SHIFT, LAST));
            true
        }
        _ => false,
    }
}

/// Maps a list of single pages that lie in one table and returns their bytes, or does nothing. The
/// caller has claimed `part`.
#[inline(always)]
pub(super) fn map_some<P: Pool>(
    table: &PageTable<P>,
    part: &core::ops::Range<u64>,
    iova: u64,
    segments: &[Segment],
    attributes: Attributes,
) -> Option<u64> {
    let geometry = &table.geometry;
    // Fewer pages than a table has: the general code maps whole tables and blocks.
    let few = (2..1 << INDEX_BITS).contains(&segments.len());
    let bytes = (segments.len() as u64) << PAGE_SHIFT;
    let right = few
        && geometry.is_four_of_4k()
        && iova & (PAGE - 1) == 0
        && part.contains(&iova)
        && bytes <= part.end - iova
        && (iova ^ (iova + bytes - 1)) >> SPAN_SHIFT == 0
        && attributes.stage() == geometry.config().stage;
    if !right {
        return None;
    }
    let batch = Batch {
        leaf: attributes.bits() | Descriptor::leaf_type(LAST),
        bad: (PAGE - 1) | !(geometry.output_end() - 1),
        page: PAGE,
    };
    let Place { table: at, index, .. } = Place::find(table, iova, true)?;
    // SAFETY: found in a valid entry above the claim.
    let node = unsafe { Node::of_4k(table, at, LAST) };
    let entries = index..index + segments.len();
    if !fill::right(segments, &batch) || node.occupied(entries.clone()).is_some() {
        return None;
    }
    node.put_each(index, segments, |segment| segment.phys.0 | batch.leaf);
    node.clean(entries);
    table.pool.barrier();
    Some(bytes)
}

/// The table in which entries lead to last-level tables, on the way to `iova`, if it exists and has as many
/// entries as they. The caller has claimed `iova`, and pages have 4 KiB.
#[inline(always)]
pub(super) fn above_last<P: Pool>(table: &PageTable<P>, iova: u64) -> Option<Node<'_, P>> {
    let is_usual = table.geometry.is_four_of_4k();
    let found = is_usual.then(|| Place::at(table, LAST - 1, iova, true)).flatten();
    let at = match found {
        Some(place) => place.table,
        None => {
            // If walkers may not see the way to it, this makes it visible.
            let node = descend(table, iova);
            if node.level() + 1 != LAST || node.entries() != 1 << INDEX_BITS {
                return None;
            }
            node.at()
        }
    };
    // SAFETY: found in a valid entry above the claim, or the root.
    Some(unsafe { Node::of_4k(table, at, LAST - 1) })
}

/// Unmaps the pages from `range.start` to `range.end` and returns the bytes removed, or does nothing.
/// The caller has claimed them.
#[inline]
pub(super) fn unmap_some<P: Pool>(
    table: &PageTable<P>,
    range: &core::ops::Range<u64>,
    gather: &mut Gather,
) -> Option<u64> {
    let bytes = range.end - range.start;
    // A whole table is unhooked, not cleared.
    let inside = (range.start ^ (range.end - 1)) >> SPAN_SHIFT == 0 && bytes >> SPAN_SHIFT == 0;
    if !table.geometry.is_four_of_4k() || !inside {
        return None;
    }
    let Place { table: at, index, .. } = Place::find(table, range.start, false)?;
    // SAFETY: found in a valid entry above the claim.
    let node = unsafe { Node::of_4k(table, at, LAST) };
    let mut remover = Remover::new(gather);
    debug_assert_eq!(node.index(range.start), index);
    remover.pages(node, range.start, range.end);
    let removed = remover.finish();
    table.pool.barrier();
    Some(removed)
}

/// Whether a table has the shape of these paths, and `bytes` are one page.
#[inline(always)]
pub(super) fn is_page<P: Pool>(table: &PageTable<P>, bytes: u64) -> bool {
    table.geometry.is_four_of_4k() && bytes == PAGE
}
