//! Reads a scatter list: the next address, and how many bytes are contiguous there.

use super::error::MapError;
use super::fill::Batch;
use crate::address::{Iova, PhysAddr, Segment};
use crate::format::{Descriptor, Geometry, LAST};

/// The limits on addresses and lengths.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// The first IOVA beyond the part.
    pub(super) iova_end: u64,
    /// The first physical address that is too large.
    pub(super) phys_end: u64,
    /// Bits that must be 0 in addresses and lengths.
    pub(super) offset_mask: u64,
}

impl Limits {
    pub(super) fn new(geometry: &Geometry, iova_end: u64) -> Self {
        let offset_mask = geometry.page_bytes() - 1;
        Self { iova_end, phys_end: geometry.output_end(), offset_mask }
    }

    /// Checks whether a segment may be mapped at `iova`.
    #[inline]
    pub(super) fn check(self, iova: u64, segment: &Segment) -> Result<(), MapError> {
        let (phys, len) = (segment.phys.0, segment.len);
        let fits = len != 0
            && (phys | len) & self.offset_mask == 0
            && len <= self.iova_end - iova
            && phys < self.phys_end
            && len <= self.phys_end - phys;
        if fits { Ok(()) } else { Err(self.refuse(iova, segment)) }
    }

    /// The conditions for a batch of single pages with these attributes.
    #[inline]
    pub(super) fn batch(self, attributes: u64) -> Batch {
        Batch {
            leaf: attributes | Descriptor::leaf_type(LAST),
            bad: self.offset_mask | !(self.phys_end - 1),
            page: self.offset_mask + 1,
        }
    }

    #[cold]
    fn refuse(self, iova: u64, segment: &Segment) -> MapError {
        let (phys, len) = (segment.phys.0, segment.len);
        let at = Iova(iova);
        let unaligned = [phys, len].into_iter().find(|value| value & self.offset_mask != 0);
        if len == 0 {
            MapError::Empty(at)
        } else if let Some(value) = unaligned {
            MapError::Unaligned { iova: at, value, to: self.offset_mask + 1 }
        } else if len > self.iova_end - iova {
            MapError::IovaRange { iova: at, size: len, end: Iova(self.iova_end) }
        } else {
            let last = if phys < self.phys_end { phys.saturating_add(len - 1) } else { phys };
            MapError::PhysRange { iova: at, phys: PhysAddr(last), end: PhysAddr(self.phys_end) }
        }
    }
}

/// The number of segments compared at once.
const SOME: usize = 32;

/// The unread rest of a scatter list.
#[derive(Clone, Copy)]
pub(super) struct Pieces<'s> {
    /// Segments that were not checked yet.
    segments: &'s [Segment],
    /// The address of the next byte in the current segment, which was checked.
    phys: u64,
    /// The bytes left in the current segment.
    rest: u64,
}

impl<'s> Pieces<'s> {
    #[inline]
    pub(super) fn new(segments: &'s [Segment]) -> Self {
        Self { segments, phys: 0, rest: 0 }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.rest == 0 && self.segments.is_empty()
    }

    /// The next address, and the number of checked, contiguous bytes there: at least a page. The
    /// list must not be at its end.
    #[inline]
    pub(super) fn next(&mut self, limits: Limits, iova: u64) -> Result<(u64, u64), MapError> {
        if self.rest == 0 {
            let (first, rest) = self.segments.split_first().expect("there are segments left");
            limits.check(iova, first)?;
            *self = Self { segments: rest, phys: first.phys.0, rest: first.len };
        }
        Ok((self.phys, self.rest))
    }

    /// Advances by `bytes`, at most the number `next` returned.
    #[inline]
    pub(super) fn advance(&mut self, bytes: u64) {
        self.phys += bytes;
        self.rest -= bytes;
    }

    /// Up to `count` segments that were not begun. None if the current segment is not used up.
    #[inline]
    pub(super) fn whole(&self, count: usize) -> &'s [Segment] {
        if self.rest == 0 { &self.segments[..count.min(self.segments.len())] } else { &[] }
    }

    /// Advances by whole segments that `whole` returned and the caller has checked.
    #[inline]
    pub(super) fn skip(&mut self, count: usize) {
        self.segments = &self.segments[count..];
    }

    /// Like `next`, but unchecked. The list must not be at its end.
    #[inline]
    pub(super) fn peek(&self) -> (u64, u64) {
        match self.segments.first() {
            Some(first) if self.rest == 0 => (first.phys.0, first.len),
            _ => (self.phys, self.rest),
        }
    }

    /// If the next `bytes` are contiguous, returns the rest of the list after them. `bytes` is a
    /// power of two and more than `peek` returned. If any segment there is invalid, returns `None`.
    #[inline]
    pub(super) fn merged(&self, bytes: u64, limits: Limits, iova: u64) -> Option<Self> {
        let (phys, len) = self.peek();
        let next = &self.segments[usize::from(self.rest == 0)..];
        // Usually the next segment does not continue this one.
        let goes_on = next.first().is_some_and(|next| next.phys.0 == phys.wrapping_add(len));
        if goes_on { self.merge(phys, bytes, limits, iova) } else { None }
    }

    /// The likely case of `merged`, from `phys` on.
    #[inline(never)]
    fn merge(&self, phys: u64, bytes: u64, limits: Limits, iova: u64) -> Option<Self> {
        let fits = phys < limits.phys_end
            && bytes <= limits.phys_end - phys
            && bytes <= limits.iova_end - iova;
        if !fits {
            return None;
        }
        let room = limits.iova_end - iova - bytes;
        let page = limits.offset_mask + 1;
        let mut segments = self.segments;
        let mut end = phys + self.rest;
        loop {
            // Single-page segments, several at once. The block's last segment is left for the code
            // below.
            while let Some((some, after)) = segments.split_first_chunk::<SOME>()
                && bytes - (end - phys) > SOME as u64 * page
                && pages(some, end, page)
            {
                end += SOME as u64 * page;
                segments = after;
            }
            for _ in 0..SOME {
                let (first, after) = segments.split_first()?;
                let left = bytes - (end - phys);
                let bad = (first.phys.0 ^ end) | (first.len & limits.offset_mask);
                if bad != 0 || first.len == 0 {
                    return None;
                }
                if first.len >= left {
                    let rest = first.len - left;
                    // The bytes behind the block were not checked so far.
                    if rest > room || rest > limits.phys_end - (end + left) {
                        return None;
                    }
                    return Some(Self { segments: after, phys: end + left, rest });
                }
                end += first.len;
                segments = after;
            }
        }
    }

    /// A rough number of last-level tables that the rest needs, at least one.
    pub(super) fn tables(&self, geometry: &Geometry, iova: u64) -> usize {
        let shift = geometry.shift(LAST - 1);
        let mask = (1 << shift) - 1;
        // Bytes with matching alignment will mostly become blocks.
        let bytes = if (self.phys ^ iova) & mask == 0 { 0 } else { self.rest };
        let pages = self.segments.len() as u64 * geometry.page_bytes();
        (((iova & mask) + bytes + pages + mask) >> shift).max(1) as usize
    }
}

/// Whether every segment is one page and all are contiguous from `phys` on.
#[inline(never)]
fn pages(segments: &[Segment; SOME], phys: u64, page: u64) -> bool {
    let wrong = |wrong, (n, segment): (u64, &Segment)| {
        wrong | (segment.phys.0 ^ (phys + n * page)) | (segment.len ^ page)
    };
    (0..).zip(segments).fold(0, wrong) == 0
}
