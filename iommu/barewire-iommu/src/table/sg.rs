//! Reading a scatter list: where the next bytes lie, and how far they go on.

use super::error::MapError;
use crate::address::{Iova, PhysAddr, Segment};
use crate::format::{Geometry, LAST};

/// What physical addresses and lengths may be.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// The first IOVA that is not the part's.
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

    /// Whether a segment may stand at `iova`.
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

/// Segments that are looked at together.
const SOME: usize = 32;

/// What is left of a scatter list.
#[derive(Clone, Copy)]
pub(super) struct Pieces<'s> {
    /// Segments that nobody has looked at.
    segments: &'s [Segment],
    /// Where the next bytes of the segment before them lie, which was checked.
    phys: u64,
    /// How many bytes that segment still has.
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

    /// Where the next bytes lie and how many of them are checked and contiguous: at least a page.
    /// There are some.
    #[inline]
    pub(super) fn next(&mut self, limits: Limits, iova: u64) -> Result<(u64, u64), MapError> {
        if self.rest == 0 {
            let (first, rest) = self.segments.split_first().expect("there are segments left");
            limits.check(iova, first)?;
            *self = Self { segments: rest, phys: first.phys.0, rest: first.len };
        }
        Ok((self.phys, self.rest))
    }

    /// Goes on by `bytes`, at most what `next` said.
    #[inline]
    pub(super) fn advance(&mut self, bytes: u64) {
        self.phys += bytes;
        self.rest -= bytes;
    }

    /// Up to `count` segments of which nothing is read yet; none if the one before is not used up.
    #[inline]
    pub(super) fn whole(&self, count: usize) -> &'s [Segment] {
        if self.rest == 0 { &self.segments[..count.min(self.segments.len())] } else { &[] }
    }

    /// Goes on by whole segments, which were checked and had been in `whole`.
    #[inline]
    pub(super) fn skip(&mut self, count: usize) {
        self.segments = &self.segments[count..];
    }

    /// As `next`, but not checked. There are some.
    #[inline]
    pub(super) fn peek(&self) -> (u64, u64) {
        match self.segments.first() {
            Some(first) if self.rest == 0 => (first.phys.0, first.len),
            _ => (self.phys, self.rest),
        }
    }

    /// If the next `bytes`, a power of two and more than `peek` said, are contiguous: what follows
    /// them. A stretch with anything wrong in it is none.
    #[inline]
    pub(super) fn merged(&self, bytes: u64, limits: Limits, iova: u64) -> Option<Self> {
        let (phys, len) = self.peek();
        let next = &self.segments[usize::from(self.rest == 0)..];
        // Mostly what follows does not continue it.
        let goes_on = next.first().is_some_and(|next| next.phys.0 == phys.wrapping_add(len));
        if goes_on { self.merge(phys, bytes, limits, iova) } else { None }
    }

    /// `merged` that is likely, from `phys` on.
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
            // Segments of one page each, some at once; the block's last stays for below.
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
                    // What lies behind the block has not been checked so far.
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

    /// Roughly how many more last-level tables the rest needs, at least one.
    pub(super) fn tables(&self, geometry: &Geometry, iova: u64) -> usize {
        let shift = geometry.shift(LAST - 1);
        let mask = (1 << shift) - 1;
        // What is congruent will mostly become blocks.
        let bytes = if (self.phys ^ iova) & mask == 0 { 0 } else { self.rest };
        let pages = self.segments.len() as u64 * geometry.page_bytes();
        (((iova & mask) + bytes + pages + mask) >> shift).max(1) as usize
    }
}

/// Whether each segment is a page and all are contiguous from `phys` on.
#[inline(never)]
fn pages(segments: &[Segment; SOME], phys: u64, page: u64) -> bool {
    let wrong = |wrong, (n, segment): (u64, &Segment)| {
        wrong | (segment.phys.0 ^ (phys + n * page)) | (segment.len ^ page)
    };
    (0..).zip(segments).fold(0, wrong) == 0
}
