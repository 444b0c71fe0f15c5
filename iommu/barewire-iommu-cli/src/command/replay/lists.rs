//! Finds a mapped scatter list by its memory.
//!
//! The kernel's event of unmapping a list has the list's physical addresses, and not the range of IOVAs.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

/// The most addresses in an event of mapping: newer kernels print no more.
const TOLD: usize = 128;

/// The most lists remembered. A list that is mapped beyond this number is not found when it is unmapped.
const LISTS_MAX: usize = 1 << 20;

/// The lists of a device.
#[derive(Default)]
pub(super) struct Lists {
    /// Ranges of IOVAs, by the hash of the list's addresses. The same memory may be mapped twice.
    ranges: HashMap<u64, Vec<Vec<Range<u64>>>>,
    count: usize,
}

impl Lists {
    /// A list of this memory was mapped to these ranges.
    pub(super) fn mapped(&mut self, phys: &[u64], ranges: Vec<Range<u64>>) {
        if self.count < LISTS_MAX {
            self.count += 1;
            self.ranges.entry(hash(phys)).or_default().push(ranges);
        }
    }

    /// The ranges of the list of this memory, which is forgotten. Of several, the last that was mapped.
    pub(super) fn unmapped(&mut self, phys: &[u64]) -> Option<Vec<Range<u64>>> {
        let key = hash(phys);
        let same = self.ranges.get_mut(&key)?;
        let ranges = same.pop();
        if same.is_empty() {
            self.ranges.remove(&key);
        }
        self.count -= usize::from(ranges.is_some());
        ranges
    }
}

fn hash(phys: &[u64]) -> u64 {
    let mut hasher = DefaultHasher::new();
    phys[..phys.len().min(TOLD)].hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_found_by_what_the_trace_has_of_them() {
        let mut lists = Lists::default();
        let long: Vec<u64> = (0..200).collect();
        lists.mapped(&[1, 2], vec![Range { start: 10, end: 20 }]);
        lists.mapped(&[1, 2], vec![Range { start: 30, end: 40 }]);
        lists.mapped(&long[..TOLD], vec![Range { start: 50, end: 60 }]);
        assert_eq!(lists.unmapped(&[1]), None);
        assert_eq!(lists.unmapped(&[1, 2]), Some(vec![Range { start: 30, end: 40 }]));
        assert_eq!(lists.unmapped(&[1, 2]), Some(vec![Range { start: 10, end: 20 }]));
        assert_eq!(lists.unmapped(&[1, 2]), None);
        assert_eq!(lists.unmapped(&long), Some(vec![Range { start: 50, end: 60 }]));
        assert_eq!((lists.count, lists.ranges.len()), (0, 0));
    }
}
