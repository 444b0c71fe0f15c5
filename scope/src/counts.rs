//! How often each value was seen, in bounded memory.

use std::collections::BTreeMap;

/// The most different values that are kept apart.
const DIFFERENT_MAX: usize = 16_384;

/// How often each value was seen. Values are exact until 16,384 different ones were seen; then the lowest bit is
/// dropped, and so on, so a quantile is at most [`quantum`](Self::quantum) − 1 too low. The maximum stays exact.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    counts: BTreeMap<u64, u64>,
    shift: u32,
    total: u64,
    max: u64,
}

impl Counts {
    /// One more of `value`.
    pub fn add(&mut self, value: u64) {
        self.add_times(value, 1);
    }

    fn add_times(&mut self, value: u64, times: u64) {
        self.total += times;
        self.max = self.max.max(value);
        *self.counts.entry(value >> self.shift << self.shift).or_default() += times;
        while self.counts.len() > DIFFERENT_MAX {
            self.shift += 1;
            for (value, times) in std::mem::take(&mut self.counts) {
                *self.counts.entry(value >> self.shift << self.shift).or_default() += times;
            }
        }
    }

    /// All of `other` too.
    pub fn merge(&mut self, other: &Self) {
        for (&value, &times) in &other.counts {
            self.add_times(value, times);
        }
        self.max = self.max.max(other.max);
    }

    /// The values in their order, and how often each was seen.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().map(|(&value, &times)| (value, times))
    }

    /// How many values were seen.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Whether none was seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The largest.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.total > 0).then_some(self.max)
    }

    /// The smallest value that at least `percent` percent are not above.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let rank = (self.total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let found = self.counts.iter().find(|(_, times)| {
            seen += **times;
            seen >= rank
        });
        found.map(|(&value, _)| value)
    }

    /// What values are multiples of: 1 while they are exact.
    #[must_use]
    pub fn quantum(&self) -> u64 {
        1 << self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_until_there_are_too_many_values() {
        let mut counts = Counts::default();
        assert_eq!((counts.percentile(50), counts.max()), (None, None));
        (1..=100).rev().for_each(|value| counts.add(value * 7));
        assert_eq!([50, 99, 100].map(|p| counts.percentile(p)), [350, 693, 700].map(Some));
        (0..100_000).for_each(|value| counts.add(value * 3 + 1));
        let median = counts.percentile(50).expect("some");
        assert!(counts.counts.len() <= DIFFERENT_MAX && counts.quantum() > 1);
        assert!(149_851 - median < counts.quantum(), "{median}");
        assert_eq!((counts.len(), counts.max()), (100_100, Some(299_998)));
    }

    #[test]
    fn a_merge_has_all_values() {
        let (mut one, mut other) = (Counts::default(), Counts::default());
        one.add(4);
        (0..3).for_each(|_| other.add(9));
        one.merge(&other);
        assert_eq!((one.len(), one.percentile(25), one.percentile(50)), (4, Some(4), Some(9)));
    }
}
