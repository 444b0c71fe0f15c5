//! A bitmap allocator over storage that the caller supplies.
//!
//! It is our own because the `no_std` allocators found need an allocator themselves, or search bit
//! by bit and cannot reserve a range.
#![allow(unsafe_code, reason = "promises that ranges do not overlap")]

use core::ops::Range;

use super::bits::{Bits, WORD};
use super::{ClaimError, IovaAllocator, IovaStorage};
use crate::address::Iova;
use crate::format::Granule;
use crate::lock::Lock;

/// The largest number of claims outside the window.
const OUTSIDE: usize = 16;

/// A window of IOVAs, with one bit of `S` for each granule.
///
/// `S` is an array, a mutable slice or, with the feature `alloc`, a `Vec`: see [`IovaStorage`]. 4 GiB of
/// 4 KiB pages need 128 KiB of it.
///
/// Ranges are aligned to their size rounded up to a power of two, so that blocks can map them. The
/// alignment is at most 1 GiB, 32 MiB or 512 MiB with pages of 4, 16 or 64 KiB. Claims may also be
/// made outside the window: there is room for 16.
///
/// The lock is held during the search, which reads a few words as a rule, and all words if there is
/// no gap. See [`Domain`](crate::Domain) about interrupt handlers.
#[derive(Debug)]
pub struct IovaWindow<S> {
    granule: Granule,
    /// log2 of the granule.
    shift: u32,
    /// log2 of the largest alignment, in granules.
    align_most: u32,
    inner: Lock<Inner<S>>,
}

#[derive(Debug)]
struct Inner<S> {
    bits: Bits<S>,
    /// The window in granules.
    window: Range<u64>,
    /// Claims outside the window; unused places are empty ranges.
    outside: [Range<u64>; OUTSIDE],
}

impl<S: IovaStorage> IovaWindow<S> {
    /// Creates the window `range`, shortened if `storage` has fewer bits.
    pub fn new(range: Range<Iova>, granule: Granule, storage: S) -> Self {
        let shift = granule.shift();
        let start = range.start.0.div_ceil(granule.bytes());
        let first = start - start % WORD;
        let mut bits = Bits::new(storage, first);
        let last = first + bits.granules();
        let end = (range.end.0 >> shift).clamp(start, last.max(start));
        // Bits of the words before and after the window are never allocated.
        bits.set(first, (start - first).min(last - first));
        bits.set(end, last.saturating_sub(end));
        const NONE: Range<u64> = 0..0;
        let inner = Inner { bits, window: start..end, outside: [NONE; OUTSIDE] };
        let largest = match granule {
            Granule::Size4K => 30,
            Granule::Size16K => 25,
            Granule::Size64K => 29,
        };
        Self { granule, shift, align_most: largest - shift, inner: Lock::new(inner) }
    }

    /// The window.
    pub fn range(&self) -> Range<Iova> {
        let window = self.inner.with(|inner| inner.window.clone());
        let shift = self.shift;
        Iova(window.start << shift)..Iova(window.end << shift)
    }

    /// log2 of the alignment of `more + 1` granules, in granules: as large as they are, rounded up to a
    /// power of two.
    #[inline]
    fn align(&self, more: u64) -> u32 {
        (u64::BITS - more.leading_zeros()).min(self.align_most)
    }

    fn granules(&self, range: &Range<Iova>) -> Range<u64> {
        range.start.0 >> self.shift..range.end.0 >> self.shift
    }
}

// SAFETY: under the lock a range is found and marked as taken, in the bitmap or, outside the
// window, in the list. A marked range is not handed out. The bitmap keeps its marks by the promise of
// `IovaStorage`.
unsafe impl<S: IovaStorage> IovaAllocator for IovaWindow<S> {
    #[inline]
    fn alloc(&self, size: u64) -> Option<Iova> {
        // A shift: the compiler does not know that the granule is a power of two.
        let more = size.checked_sub(1)? >> self.shift;
        let at = self.inner.with(|inner| inner.bits.take(more + 1, self.align(more)))?;
        Some(Iova(at << self.shift))
    }

    fn claim(&self, range: Range<Iova>) -> Result<(), ClaimError> {
        let to = self.granule.bytes();
        if range.is_empty() || !range.start.0.is_multiple_of(to) || !range.end.0.is_multiple_of(to)
        {
            return Err(ClaimError::Unaligned { to });
        }
        let granules = self.granules(&range);
        self.inner.with(|inner| inner.claim(granules))
    }

    #[inline]
    unsafe fn release(&self, range: Range<Iova>) {
        let granules = self.granules(&range);
        self.inner.with(|inner| inner.release(granules));
    }
}

impl<S: IovaStorage> Inner<S> {
    /// The part of `range` inside the window, if any, and the parts before and after it.
    fn split(&self, range: &Range<u64>) -> (Option<Range<u64>>, [Range<u64>; 2]) {
        let inside = range.start.max(self.window.start)..range.end.min(self.window.end);
        let before = range.start..range.end.min(self.window.start);
        let after = range.start.max(self.window.end)..range.end;
        ((!inside.is_empty()).then_some(inside), [before, after])
    }

    fn claim(&mut self, range: Range<u64>) -> Result<(), ClaimError> {
        let (inside, outside) = self.split(&range);
        let meets = |taken: &Range<u64>| taken.start < range.end && range.start < taken.end;
        if self.outside.iter().any(meets) {
            return Err(ClaimError::Taken);
        }
        if let Some(inside) = &inside
            && !self.bits.is_free(inside.start, inside.end - inside.start)
        {
            return Err(ClaimError::Taken);
        }
        let needed = outside.iter().filter(|range| !range.is_empty()).count();
        if self.outside.iter().filter(|range| range.is_empty()).count() < needed {
            return Err(ClaimError::TooMany(OUTSIDE));
        }
        let mut places = self.outside.iter_mut().filter(|range| range.is_empty());
        for piece in outside.into_iter().filter(|range| !range.is_empty()) {
            if let Some(place) = places.next() {
                *place = piece;
            }
        }
        if let Some(inside) = inside {
            self.bits.set(inside.start, inside.end - inside.start);
        }
        Ok(())
    }

    fn release(&mut self, range: Range<u64>) {
        if self.window.start <= range.start && range.end <= self.window.end {
            self.bits.clear(range.start, range.end - range.start);
        } else {
            self.release_outside(range);
        }
    }

    /// `release` of a claim that is not inside the window, or not all of it.
    #[cold]
    fn release_outside(&mut self, range: Range<u64>) {
        let (inside, outside) = self.split(&range);
        if let Some(inside) = inside {
            self.bits.clear(inside.start, inside.end - inside.start);
        }
        for taken in &mut self.outside {
            if !taken.is_empty() && outside.contains(taken) {
                *taken = 0..0;
            }
        }
    }
}

#[cfg(test)]
mod tests;
