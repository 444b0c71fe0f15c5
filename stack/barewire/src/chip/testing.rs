//! Shared by the tests of several drivers.

use std::vec::Vec;

use crate::time::Timer;

/// A counter of nanoseconds that advances with each wait.
#[derive(Debug, Default)]
pub(super) struct Clock(pub(super) u64);

impl Timer for Clock {
    fn frequency_hz(&self) -> u32 {
        1_000_000_000
    }

    fn now_ticks(&mut self) -> u64 {
        self.0
    }

    fn sleep_ns(&mut self, ns: u64) {
        self.0 += ns;
    }
}

/// Pseudo-random bytes by xorshift, equal on each run. `plain` in 256 of them are 0: a chip whose
/// answers these bytes modify then mostly answers normally.
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
