//! Writes leaves for a list of single pages into a table that no walker can reach: the inner loop
//! of map_sg.
//!
//! Each segment must be one page with a valid address. This is checked without a branch while its
//! leaf is written, and the result is tested once at the end, so that the compiler vectorises the
//! loop. [`sse2`] does better than the compiler where it can.

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod sse2;
#[cfg(test)]
mod tests;

use crate::address::Segment;

/// The expected properties of single-page segments, and the bits of their leaves.
pub(super) struct Batch {
    /// Attributes and type.
    pub(super) leaf: u64,
    /// Bits that must be 0 in a physical address.
    pub(super) bad: u64,
    /// The length of every segment.
    pub(super) page: u64,
}

/// Bits accumulated over several segments.
///
/// If the union of the lengths is one bit, a page, each length is a page or 0. If the sum is as many pages
/// as there are segments, none is 0.
#[derive(Default)]
pub(crate) struct SegmentBits {
    /// The union of the addresses' bits.
    phys: u64,
    /// The union of the lengths' bits.
    pub(crate) len: u64,
    /// The sum of the lengths, without its carry.
    pub(crate) len_sum: u64,
}

impl SegmentBits {
    /// Those of a list.
    #[inline]
    pub(crate) fn of(segments: &[Segment]) -> Self {
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        {
            sse2::bits(segments)
        }
        #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
        {
            let mut seen = Self::default();
            segments.iter().for_each(|segment| seen.see(segment));
            seen
        }
    }

    #[inline]
    fn see(&mut self, segment: &Segment) {
        self.phys |= segment.phys.0;
        self.len |= segment.len;
        self.len_sum = self.len_sum.wrapping_add(segment.len);
    }

    /// Whether each of `count` segments was one page with a valid address.
    #[inline]
    fn right(&self, count: usize, batch: &Batch) -> bool {
        let len = if count == 0 { 0 } else { batch.page };
        self.phys & batch.bad == 0
            && self.len == len
            && self.len_sum == (count as u64).wrapping_mul(batch.page)
    }
}

/// Whether every segment is one page with a valid address.
#[inline]
pub(super) fn right(segments: &[Segment], batch: &Batch) -> bool {
    SegmentBits::of(segments).right(segments.len(), batch)
}

/// [`fill`] of a whole table, whose length is a constant wherever this is called.
#[inline(always)]
pub(super) fn table<const N: usize>(
    entries: &mut [u64],
    segments: &[Segment; N],
    batch: &Batch,
) -> bool {
    entries.first_chunk_mut::<N>().is_some_and(|entries| fill(entries, segments, batch))
}

/// Writes the leaf of each segment. Returns `false` if a segment is not one page with a valid
/// address; the entries are then to be discarded.
#[inline(always)]
pub(super) fn fill(entries: &mut [u64], segments: &[Segment], batch: &Batch) -> bool {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    let (entries, segments) = match sse2::fill(entries, segments, batch) {
        Some(count) if count == segments.len() => return true,
        Some(count) => (&mut entries[count..], &segments[count..]),
        None => return false,
    };
    one_by_one(entries, segments, batch)
}

/// `fill` for any processor, which the compiler vectorises. Within a larger function it does that worse: 5 % more
/// instructions on arm64.
#[inline(never)]
fn one_by_one(entries: &mut [u64], segments: &[Segment], batch: &Batch) -> bool {
    let mut seen = SegmentBits::default();
    for (entry, segment) in entries.iter_mut().zip(segments) {
        *entry = segment.phys.0 | batch.leaf;
        seen.see(segment);
    }
    seen.right(segments.len().min(entries.len()), batch)
}
