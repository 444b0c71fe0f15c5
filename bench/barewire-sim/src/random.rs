//! Random numbers from a seed, the same on every run.
//!
//! *Read first*: nothing but this page.

/// SplitMix64 (Guy Steele, Doug Lea and Christine Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014):
/// 64 bits of state, and any seed will do, 0 too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator whose numbers follow from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_numbers_are_those_of_the_published_generator() {
        // The first outputs for seed 1234567, as test vectors of the generator give them.
        let mut random = SplitMix64::new(1_234_567);
        let first = [random.next_u64(), random.next_u64(), random.next_u64()];
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
