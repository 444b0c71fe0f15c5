//! What tests of several drivers have in common.

use std::vec::Vec;

/// Bytes by xorshift, the same each time. Some are 0, as many as `plain` of 256, so that a chip that
/// answers by them is mostly itself.
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
