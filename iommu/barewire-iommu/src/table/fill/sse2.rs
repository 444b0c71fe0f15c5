//! [`fill`](super::fill) for x86-64, eight segments at a time.
//!
//! # How it works
//! A segment is one vector: its address below, its length above. The union of all vectors has the
//! union of the addresses and that of the lengths; their sum has the sum of the lengths. So a length takes
//! no instruction that its address does not need too. The compiler's own vectors separate the lengths
//! first, which takes a seventh more time.
//!
//! # Safety
//! Vectors are read and written within pairs of segments and of entries.
#![allow(unsafe_code, reason = "vectors are loaded and stored by pointer")]

use core::arch::x86_64::{
    __m128i, _mm_add_epi64, _mm_cvtsi128_si64, _mm_loadu_si128, _mm_or_si128, _mm_set1_epi64x,
    _mm_setzero_si128, _mm_storeu_si128, _mm_unpackhi_epi64, _mm_unpacklo_epi64,
};

use super::{Batch, SegmentBits};
use crate::address::Segment;

/// Segments of one turn of the loop.
const EIGHT: usize = 8;
/// Sums kept apart, so that no addition waits for the one before it.
const SUMS: usize = 4;

/// Writes the leaves of the segments up to the last multiple of eight, and returns that. `None` if one
/// of them is not one page with a valid address; the entries are then to be discarded.
#[inline(always)]
pub(super) fn fill(entries: &mut [u64], segments: &[Segment], batch: &Batch) -> Option<usize> {
    let (places, _) = entries.as_chunks_mut::<EIGHT>();
    let (segments, _) = segments.as_chunks::<EIGHT>();
    let count = places.len().min(segments.len());
    // SAFETY: this file is compiled only where all processors have SSE2.
    let seen = unsafe { write(&mut places[..count], &segments[..count], batch.leaf) };
    let count = count * EIGHT;
    seen.right(count, batch).then_some(count)
}

/// [`SegmentBits::of`].
#[inline]
pub(super) fn bits(segments: &[Segment]) -> SegmentBits {
    // SAFETY: this file is compiled only where all processors have SSE2.
    unsafe { see(segments) }
}

#[target_feature(enable = "sse2")]
#[inline]
fn see(segments: &[Segment]) -> SegmentBits {
    let mut or = [_mm_setzero_si128(); SUMS];
    let mut sum = [_mm_setzero_si128(); SUMS];
    let (chunks, rest) = segments.as_chunks::<SUMS>();
    for chunk in chunks {
        for (n, segment) in chunk.iter().enumerate() {
            let segment = load(segment);
            or[n] = _mm_or_si128(or[n], segment);
            sum[n] = _mm_add_epi64(sum[n], segment);
        }
    }
    for segment in rest {
        let segment = load(segment);
        or[0] = _mm_or_si128(or[0], segment);
        sum[0] = _mm_add_epi64(sum[0], segment);
    }
    together(or, sum)
}

#[target_feature(enable = "sse2")]
fn write(places: &mut [[u64; EIGHT]], segments: &[[Segment; EIGHT]], leaf: u64) -> SegmentBits {
    let leaf = _mm_set1_epi64x(leaf as i64);
    let mut or = [_mm_setzero_si128(); SUMS];
    let mut sum = [_mm_setzero_si128(); SUMS];
    for (entries, segments) in places.iter_mut().zip(segments) {
        let (pairs, _) = entries.as_chunks_mut::<2>();
        let (segments, _) = segments.as_chunks::<2>();
        for (n, (pair, [a, b])) in pairs.iter_mut().zip(segments).enumerate() {
            let (a, b) = (load(a), load(b));
            let (first, second) = (2 * n % SUMS, (2 * n + 1) % SUMS);
            or[first] = _mm_or_si128(or[first], a);
            or[second] = _mm_or_si128(or[second], b);
            sum[first] = _mm_add_epi64(sum[first], a);
            sum[second] = _mm_add_epi64(sum[second], b);
            let leaves = _mm_or_si128(_mm_unpacklo_epi64(a, b), leaf);
            // SAFETY: the pair is as large as a vector, and the store need not be aligned.
            unsafe { _mm_storeu_si128(core::ptr::from_mut(pair).cast(), leaves) };
        }
    }
    together(or, sum)
}

#[target_feature(enable = "sse2")]
#[inline]
fn together(or: [__m128i; SUMS], sum: [__m128i; SUMS]) -> SegmentBits {
    let [a, b, c, d] = or;
    let or = _mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d));
    let [a, b, c, d] = sum;
    let sum = _mm_add_epi64(_mm_add_epi64(a, b), _mm_add_epi64(c, d));
    SegmentBits { phys: low(or), len: high(or), len_sum: high(sum) }
}

/// The segment as a vector: `repr(C)` puts the address first.
#[target_feature(enable = "sse2")]
#[inline]
fn load(segment: &Segment) -> __m128i {
    const { assert!(size_of::<Segment>() == size_of::<__m128i>()) };
    // SAFETY: the segment is as large as a vector, and the load need not be aligned.
    unsafe { _mm_loadu_si128(core::ptr::from_ref(segment).cast()) }
}

#[target_feature(enable = "sse2")]
#[inline]
fn low(vector: __m128i) -> u64 {
    _mm_cvtsi128_si64(vector) as u64
}

#[target_feature(enable = "sse2")]
#[inline]
fn high(vector: __m128i) -> u64 {
    _mm_cvtsi128_si64(_mm_unpackhi_epi64(vector, vector)) as u64
}
