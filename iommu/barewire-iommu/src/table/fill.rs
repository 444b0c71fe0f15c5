//! Leaves for a list of single pages, in a table that no walker can reach: the inner loop of map_sg.
//!
//! Whether each segment is a page with a possible address is found out while its leaf is written,
//! without a branch, and asked at the end: so a compiler makes vectors of all of it. (By hand, with the
//! lengths of half the segments compared by branches beside the vectors, it takes a fifth less where
//! list and table are in the first cache, and a tenth more elsewhere.)

use crate::address::Segment;

/// What segments of one page each must be like, and what becomes of them.
pub(super) struct Batch {
    /// Attributes and type.
    pub(super) leaf: u64,
    /// Bits that must be 0 in a physical address.
    pub(super) bad: u64,
    /// Every segment's length.
    pub(super) page: u64,
}

/// What some segments have in common.
#[derive(Default)]
struct Seen {
    /// All addresses' bits.
    phys: u64,
    /// All bits in which a length is not a page's.
    len: u64,
}

impl Seen {
    #[inline]
    fn see(&mut self, segment: &Segment, batch: &Batch) {
        self.phys |= segment.phys.0;
        self.len |= segment.len ^ batch.page;
    }

    /// Whether each was a page with a possible address.
    #[inline]
    fn right(&self, batch: &Batch) -> bool {
        (self.phys & batch.bad) | self.len == 0
    }
}

/// Whether each segment is a page with a possible address.
#[inline]
pub(super) fn right(segments: &[Segment], batch: &Batch) -> bool {
    let mut seen = Seen::default();
    segments.iter().for_each(|segment| seen.see(segment, batch));
    seen.right(batch)
}

/// Writes the leaf of each segment; `false` if any is no page with a possible address, and then what
/// is written is worth nothing.
#[inline]
pub(super) fn fill(entries: &mut [u64], segments: &[Segment], batch: &Batch) -> bool {
    let mut seen = Seen::default();
    for (entry, segment) in entries.iter_mut().zip(segments) {
        *entry = segment.phys.0 | batch.leaf;
        seen.see(segment, batch);
    }
    seen.right(batch)
}
