//! Bytes as words of `N` bytes, counted from the front or from the back.
//!
//! How it works: the standard library has these as `as_chunks` and `as_rchunks` since Rust 1.88, which is newer than
//! the oldest compiler of this crate. When that compiler has them, this file goes.
//!
//! # Safety
//! An array of `N` bytes has the size of `N` bytes, no padding and the alignment of one.

#![allow(unsafe_code, reason = "a slice of bytes is looked at as a slice of arrays of bytes")]

use core::slice::{from_raw_parts, from_raw_parts_mut};

/// The whole words from the front on.
#[inline(always)]
pub(crate) fn chunks<const N: usize>(bytes: &[u8]) -> &[[u8; N]] {
    const { assert!(N > 0, "a word has bytes") };
    // SAFETY: the module's Safety; as many whole words are in `bytes`, which stays borrowed.
    unsafe { from_raw_parts(bytes.as_ptr().cast(), bytes.len() / N) }
}

/// [`chunks`], to be written.
#[inline(always)]
pub(crate) fn chunks_mut<const N: usize>(bytes: &mut [u8]) -> &mut [[u8; N]] {
    const { assert!(N > 0, "a word has bytes") };
    // SAFETY: the module's Safety; as many whole words are in `bytes`, which stays borrowed alone.
    unsafe { from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / N) }
}

/// The bytes before the whole words, and the whole words that end where `bytes` ends.
#[inline(always)]
pub(crate) fn rchunks<const N: usize>(bytes: &[u8]) -> (&[u8], &[[u8; N]]) {
    let (short, whole) = bytes.split_at(bytes.len() % N);
    (short, chunks(whole))
}

/// [`rchunks`], to be written.
#[inline(always)]
pub(crate) fn rchunks_mut<const N: usize>(bytes: &mut [u8]) -> (&mut [u8], &mut [[u8; N]]) {
    let (short, whole) = bytes.split_at_mut(bytes.len() % N);
    (short, chunks_mut(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The compiler of the tests has the standard library's.
    #[test]
    fn every_length_is_cut_as_the_standard_library_cuts_it() {
        let mut all: [u8; 19] = core::array::from_fn(|at| at as u8);
        for len in 0..all.len() {
            let bytes = &mut all[..len];
            assert_eq!(chunks::<4>(bytes), bytes.as_chunks::<4>().0, "{len}");
            assert_eq!(rchunks::<4>(bytes), bytes.as_rchunks::<4>(), "{len}");
            assert_eq!(chunks::<1>(bytes), bytes.as_chunks::<1>().0, "{len}");
            let mut copy = bytes.to_vec();
            assert_eq!(chunks_mut::<3>(bytes), copy.as_chunks_mut::<3>().0, "{len}");
            assert_eq!(rchunks_mut::<3>(bytes), copy.as_rchunks_mut::<3>(), "{len}");
        }
    }
}
