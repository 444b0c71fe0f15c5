//! Shared by the tests of several drivers.

use std::vec::Vec;

/// Pseudo-random bytes by xorshift, equal on each run. `plain` of 256 are 0, so that a chip whose
/// answers are modified by these bytes mostly answers normally.
pub(super) fn bytes(seed: u64, plain: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 32
    };
    let len = next() % 1_500;
    (0..len).map(|_| if next() % 256 < plain { 0 } else { next() as u8 }).collect()
}
