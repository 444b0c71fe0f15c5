//! The fuzz target's room on strings of bytes that are the same each time.

use std::vec::Vec;

use super::any::drive;

/// Bytes by xorshift. Some are 0, as many as `plain` of 256, so that a chip is mostly itself.
fn bytes(seed: u64, plain: u64) -> Vec<u8> {
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

#[test]
fn whatever_the_chip_answers_every_call_ends_with_sense_or_an_error() {
    let rounds = if cfg!(miri) { 2 } else { 3_000 };
    drive(&[]);
    for seed in 1..=rounds {
        for plain in [0, 128, 230] {
            drive(&bytes(seed, plain));
        }
    }
}
