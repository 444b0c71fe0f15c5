//! The spread of many times, in bounded memory.
//!
//! # How it works
//! [`Times`] counts how often each value came. A simulated run repeats few values, so this is small and
//! exact. Beyond [`EXACT_VALUES`] different values each is rounded down to its [`KEPT_BITS`] highest
//! bits, a histogram. The longest time is always exact.

use std::collections::BTreeMap;

use crate::chip::Ps;

/// Up to this many different values all figures are exact.
pub const EXACT_VALUES: usize = 4_096;
/// The highest bits that a value keeps beyond [`EXACT_VALUES`]: it is too small by less than 1/1024.
pub const KEPT_BITS: u32 = 11;

const PS_PER_US: f64 = 1_000_000.0;

/// The distribution of a time over many samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one; of two the shorter.
    pub p50_us: f64,
    /// The longest.
    pub max_us: f64,
}

/// Times, counted by value.
#[derive(Clone, Debug, Default)]
pub struct Times {
    counts: BTreeMap<Ps, u64>,
    count: u64,
    longest: Ps,
    rounded: bool,
}

/// `time`, rounded down to its highest [`KEPT_BITS`] bits.
fn rounded(time: Ps) -> Ps {
    let dropped = (Ps::BITS - time.leading_zeros()).saturating_sub(KEPT_BITS);
    time >> dropped << dropped
}

impl Times {
    /// Adds a time.
    pub fn add(&mut self, time: Ps) {
        self.count += 1;
        self.longest = self.longest.max(time);
        let value = if self.rounded { rounded(time) } else { time };
        *self.counts.entry(value).or_default() += 1;
        if !self.rounded && self.counts.len() > EXACT_VALUES {
            self.round();
        }
    }

    #[cold]
    fn round(&mut self) {
        self.rounded = true;
        for (value, count) in std::mem::take(&mut self.counts) {
            *self.counts.entry(rounded(value)).or_default() += count;
        }
    }

    /// The number of times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The shortest time, rounded down like the median.
    #[must_use]
    pub fn shortest(&self) -> Option<Ps> {
        self.counts.first_key_value().map(|(&value, _)| value)
    }

    /// The longest time.
    #[must_use]
    pub fn longest(&self) -> Option<Ps> {
        (self.count > 0).then_some(self.longest)
    }

    /// The middle time; of two the shorter.
    #[must_use]
    pub fn median(&self) -> Option<Ps> {
        let before = self.count.checked_sub(1)? / 2;
        let mut passed = 0;
        let mut values = self.counts.iter();
        values.find_map(|(&value, &count)| {
            passed += count;
            (passed > before).then_some(value)
        })
    }

    /// Median and longest; `None` without any time.
    #[must_use]
    pub fn spread(&self) -> Option<Spread> {
        let us = |ps: Ps| ps as f64 / PS_PER_US;
        Some(Spread { p50_us: us(self.median()?), max_us: us(self.longest) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    fn times(all: &[Ps]) -> Times {
        let mut times = Times::default();
        all.iter().for_each(|&time| times.add(time));
        times
    }

    fn sorted_median(all: &[Ps]) -> Ps {
        let mut all = all.to_vec();
        all.sort_unstable();
        all[(all.len() - 1) / 2]
    }

    #[test]
    fn without_a_time_there_is_no_spread() {
        assert_eq!(Times::default().spread(), None);
    }

    #[test]
    fn of_two_middle_times_the_shorter_counts() {
        assert_eq!(times(&[4_000_000, 1_000_000]).median(), Some(1_000_000));
        let expected = Spread { p50_us: 2.0, max_us: 4.0 };
        assert_eq!(times(&[4_000_000, 1_000_000, 2_000_000]).spread(), Some(expected));
    }

    #[test]
    fn few_values_stay_exact_however_often_they_come() {
        let mut random = SplitMix64::new(1);
        let values: Vec<Ps> = (0..EXACT_VALUES as u64).map(|n| 1_000_000_007 * (n + 1)).collect();
        let all: Vec<Ps> =
            (0..100_000).map(|_| values[random.next_u64() as usize % values.len()]).collect();
        let times = times(&all);
        assert_eq!(times.median(), Some(sorted_median(&all)));
        assert_eq!(times.count(), 100_000);
    }

    #[test]
    fn many_values_are_rounded_to_a_thousandth_in_bounded_memory() {
        let mut random = SplitMix64::new(2);
        let all: Vec<Ps> = (0..300_000).map(|_| random.next_u64() % 1_000_000_000).collect();
        let times = times(&all);
        let (median, exact) = (times.median().expect("some"), sorted_median(&all));
        assert!(median <= exact && exact - median < exact / 1_000, "{median}, exact {exact}");
        assert_eq!(times.longest(), all.iter().copied().max());
        // Of 30 bits: 1,024 values for each highest bit, and the small values.
        assert!(times.counts.len() <= 21 * 1_024, "{}", times.counts.len());
    }

    #[test]
    fn the_largest_time_can_be_rounded() {
        assert_eq!(rounded(Ps::MAX), Ps::MAX >> 53 << 53);
        assert_eq!((rounded(0), rounded(2_047), rounded(2_049)), (0, 2_047, 2_048));
    }
}
