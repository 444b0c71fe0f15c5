//! A TLB: how many leaves it holds, the one not used for longest leaves first.
//!
//! It is fully associative and keeps a leaf of any size in one entry. Walk caches are not in it: what
//! a miss costs is the caller's to say.

use std::collections::{BTreeMap, HashMap};

use barewire_iommu::Tlbi;

#[derive(Clone, Copy)]
struct Entry {
    shift: u32,
    used: u64,
}

/// The model.
pub(super) struct Tlb {
    room: usize,
    /// By a leaf's first IOVA.
    entries: HashMap<u64, Entry>,
    /// First IOVAs by when they were used last.
    order: BTreeMap<u64, u64>,
    clock: u64,
}

impl Tlb {
    pub(super) fn new(room: usize) -> Self {
        Self { room, entries: HashMap::new(), order: BTreeMap::new(), clock: 0 }
    }

    /// The device accesses the leaf at `base`. Returns whether the TLB had it; afterwards the TLB has
    /// it.
    pub(super) fn access(&mut self, base: u64, shift: u32) -> bool {
        if self.room == 0 {
            return false;
        }
        self.clock += 1;
        let used = self.clock;
        let before = self.entries.insert(base, Entry { shift, used });
        if let Some(before) = before {
            self.order.remove(&before.used);
        } else if self.entries.len() > self.room
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.entries.remove(&oldest);
        }
        self.order.insert(used, base);
        before.is_some()
    }

    /// Drops the entries that the operation covers.
    pub(super) fn invalidate(&mut self, operation: &Tlbi) {
        match *operation {
            Tlbi::Context => self.clear(),
            Tlbi::Pages { iova, stride, count, .. } => {
                self.remove(|begin, end| named(iova.0, stride, count, begin, end));
            }
            Tlbi::Range { iova, page_shift, pages, .. } => {
                self.forget(iova.0, pages << page_shift);
            }
        }
    }

    /// Drops the entries of the range.
    pub(super) fn forget(&mut self, iova: u64, size: u64) {
        self.remove(|begin, end| begin < iova + size && iova < end);
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.order.clear();
    }

    fn remove(&mut self, goes: impl Fn(u64, u64) -> bool) {
        let order = &mut self.order;
        self.entries.retain(|&base, entry| {
            let stays = !goes(base, base + (1 << entry.shift));
            if !stays {
                order.remove(&entry.used);
            }
            stays
        });
    }
}

/// Whether one of `count` addresses from `iova` on, `1 << stride` apart, is from `begin` to `end`.
fn named(iova: u64, stride: u32, count: u64, begin: u64, end: u64) -> bool {
    let first = begin.saturating_sub(iova).div_ceil(1 << stride);
    first < count && iova + (first << stride) < end
}

#[cfg(test)]
mod tests {
    use super::*;
    use barewire_iommu::Iova;

    fn has(tlb: &Tlb, base: u64) -> bool {
        assert_eq!(tlb.entries.len(), tlb.order.len());
        tlb.entries.contains_key(&base)
    }

    #[test]
    fn what_was_not_used_for_longest_leaves() {
        let mut tlb = Tlb::new(2);
        assert_eq!(
            [tlb.access(0, 12), tlb.access(0x1000, 12), tlb.access(0, 12)],
            [false, false, true]
        );
        assert!(!tlb.access(0x2000, 12));
        assert_eq!([0, 0x1000, 0x2000].map(|base| has(&tlb, base)), [true, false, true]);
        let mut none = Tlb::new(0);
        assert_eq!([none.access(0, 12), none.access(0, 12)], [false, false]);
    }

    #[test]
    fn an_invalidation_takes_what_it_covers_and_no_more() {
        let full = || {
            let mut tlb = Tlb::new(8);
            for (base, shift) in [(0x1000, 12), (0x2000, 12), (0x20_0000, 21), (0x40_0000, 21)] {
                tlb.access(base, shift);
            }
            tlb
        };
        let left = |operation: Tlbi| {
            let mut tlb = full();
            tlb.invalidate(&operation);
            [0x1000, 0x2000, 0x20_0000, 0x40_0000].map(|base| u8::from(has(&tlb, base)))
        };
        let pages = |iova, stride, count| Tlbi::Pages {
            iova: Iova(iova),
            stride,
            count,
            leaf: true,
            level: None,
        };
        assert_eq!(left(Tlbi::Context), [0, 0, 0, 0]);
        assert_eq!(left(pages(0x2000, 12, 1)), [1, 0, 1, 1]);
        assert_eq!(left(pages(0, 12, 2)), [0, 1, 1, 1]);
        assert_eq!(left(pages(0x2000, 12, 0x1ff)), [1, 0, 0, 1]);
        assert_eq!(left(pages(0x2000, 12, 0x1fe)), [1, 0, 1, 1]);
        // In the middle of a block; and at every second block.
        assert_eq!(left(pages(0x3f_f000, 12, 1)), [1, 1, 0, 1]);
        assert_eq!(left(pages(0, 22, 2)), [1, 1, 1, 0]);
        let range = |iova, pages| Tlbi::Range {
            iova: Iova(iova),
            page_shift: 12,
            pages,
            leaf: true,
            level: None,
        };
        assert_eq!(left(range(0x2000, 1)), [1, 0, 1, 1]);
        assert_eq!(left(range(0x2000, 0x1ff)), [1, 0, 0, 1]);
    }
}
