//! Compares the reachable mappings with those that should be reachable.

use std::collections::BTreeMap;
use std::ops::Range;

use barewire_iommu::Context;

use super::{Place, State};
use crate::descriptor::{GROUP, Leaf};
use crate::memory::Copy;
use crate::naive::Naive;
use crate::tlb::CachedWalk;
use crate::violation::Violation;
use crate::walker::{Fault, leaves};

impl State {
    pub(super) fn begin(&mut self, context: Context, next: Naive) {
        let slot = self.slot(context);
        self.slots[slot].next = Some(next);
        self.slots[slot].settled = false;
    }

    pub(super) fn update(&mut self, context: Context, change: impl FnOnce(&mut Naive, &mut Naive)) {
        let slot = self.slot(context);
        let known = &mut self.slots[slot];
        known.settled = false;
        let next = known.next.get_or_insert_with(|| known.reference.clone());
        change(&mut known.reference, next);
    }

    pub(super) fn end(&mut self, context: Context, outcome: Naive) {
        let slot = self.slot(context);
        self.slots[slot].next = None;
        self.slots[slot].reference = outcome;
        if self.unordered {
            self.report(Violation::NoBarrier { context });
        }
        self.judge_walks(context, &(0..u64::MAX));
        self.judge_cleaned(slot);
    }

    /// Compares what walks of a range find, in each copy of memory, with what should be mapped.
    pub(super) fn judge_walks(&mut self, context: Context, range: &Range<u64>) {
        let slot = self.slot(context);
        for copy in self.copies() {
            let found = self.collect(slot, range, *copy);
            let reference = &self.slots[slot].reference;
            // Leaves that extend beyond the range are cut.
            let expected = reference.common(reference, range.clone());
            if let Some(iova) = expected.difference(&found.common(&found, range.clone())) {
                let expected = expected.get(iova).map(|to| to.0);
                let found = found.get(iova).map(|to| to.0);
                self.report(Violation::Differs { context, iova, expected, found });
            }
        }
    }

    /// The copies of memory that can differ.
    fn copies(&self) -> &'static [Copy] {
        if self.options.coherent { &[Copy::Cpu] } else { &[Copy::Cpu, Copy::Poc] }
    }

    /// The translations a walker finds if it sees only this copy.
    fn collect(&mut self, slot: usize, range: &Range<u64>, copy: Copy) -> Naive {
        let mut found = Naive::new();
        let root = self.slots[slot].root;
        let words = |table| self.memory.words(copy, table);
        let mut groups: BTreeMap<u64, Vec<Leaf>> = BTreeMap::new();
        let end = leaves(&root, range.clone(), words, |leaf| {
            found.add(&leaf).expect("leaves are found in order");
            if leaf.contiguous {
                groups.entry(leaf.widened().iova).or_default().push(leaf);
            }
        });
        let context = self.slots[slot].context;
        // Between calls every group is whole. One that the range cuts is looked at elsewhere.
        let is_between = self.slots[slot].next.is_none();
        let inside = |iova: u64| range.start <= iova && iova + GROUP <= range.end;
        for (iova, group) in groups.into_iter().filter(|(iova, _)| is_between && inside(*iova)) {
            let first = group[0].widened();
            if group.len() as u64 * group[0].len != GROUP
                || group.iter().any(|leaf| leaf.widened() != first)
            {
                self.report(Violation::Group { context, iova });
            }
        }
        match end {
            Ok(()) => {}
            Err((iova, Fault::Flaw { level, raw, flaw })) => {
                self.report(Violation::Malformed { context, iova, level, raw, flaw });
            }
            Err((iova, Fault::NoTable { table })) => {
                self.report(Violation::NoTable { context, iova, table });
            }
            Err((_, Fault::Translation { .. } | Fault::Input)) => {
                unreachable!("holes are passed over")
            }
        }
        found
    }

    fn judge_cleaned(&mut self, slot: usize) {
        let of_slot = self.places.iter().filter(|(_, place)| place.slot == slot);
        let dirty = |(table, place): (&u64, &Place)| {
            Some((*table, self.memory.dirty(*table, place.level)?))
        };
        let dirty: Vec<_> = of_slot.filter_map(dirty).collect();
        for (table, index) in dirty {
            self.report(Violation::NotCleaned { table, index });
        }
    }

    /// Judges a leaf that a walk from the root reached: it must be the old translation or the new
    /// one.
    pub(super) fn judge_leaf(&mut self, slot: usize, leaf: &Leaf) {
        let known = &self.slots[slot];
        let next = known.next.as_ref().unwrap_or(&known.reference);
        let all = leaf.iova..leaf.end();
        if let Some(iova) = Naive::contradicts(leaf, all, &[&known.reference, next]) {
            let (context, level, raw) = (known.context, leaf.level, leaf.raw);
            self.report(Violation::Torn { context, iova, level, raw });
        }
    }

    /// Judges that translations which the operation does not change stay mapped throughout.
    pub(super) fn judge_kept(&mut self, slot: usize, range: &Range<u64>) {
        let known = &self.slots[slot];
        if known.quiet {
            return;
        }
        let next = known.next.as_ref().unwrap_or(&known.reference);
        let kept = known.reference.common(next, range.clone());
        if kept.is_empty() {
            return;
        }
        let context = known.context;
        for copy in self.copies() {
            let found = self.collect(slot, range, *copy);
            if let Some(iova) = kept.difference(&kept.common(&found, range.clone())) {
                self.report(Violation::Lost { context, iova });
            }
        }
    }

    /// Judges the leaf that a device's access used.
    pub(super) fn judge_access(&mut self, slot: usize, iova: u64, leaf: &Leaf) {
        let known = &self.slots[slot];
        let (context, level, raw) = (known.context, leaf.level, leaf.raw);
        let page = iova..iova + 1;
        if known.settled && Naive::contradicts(leaf, page, &[&known.reference]).is_some() {
            self.report(Violation::Stale { context, iova, level, raw });
        }
    }

    pub(super) fn settle(&mut self, context: Context) {
        let slot = self.slot(context);
        self.slots[slot].settled = true;
        self.judge_cleaned(slot);
        let known = &self.slots[slot];
        let mut found = Vec::new();
        for leaf in known.tlb.leaves() {
            let all = leaf.iova..leaf.end();
            if let Some(iova) = Naive::contradicts(leaf, all, &[&known.reference]) {
                let (level, raw) = (leaf.level, leaf.raw);
                found.push(Violation::Stale { context, iova, level, raw });
            }
        }
        for CachedWalk { level, base: iova, table, .. } in known.tlb.walks() {
            if self.places.get(&table) != Some(&Place { slot, level, base: iova }) {
                found.push(Violation::StaleWalk { context, iova, level, table });
            }
        }
        for violation in found {
            self.report(violation);
        }
    }

    pub(super) fn given_back(&mut self, context: Context, range: Range<u64>) {
        let slot = self.slot(context);
        let known = &self.slots[slot];
        let shape = known.root.shape;
        let mut found = Vec::new();
        if let Some(leaf) = known.tlb.leaves_in(&shape, &range).first() {
            found.push(Violation::GivenBack { context, iova: leaf.iova.max(range.start) });
        }
        for CachedWalk { level, base: iova, table, .. } in known.tlb.walks_in(&shape, &range) {
            if self.places.get(&table) != Some(&Place { slot, level, base: iova }) {
                found.push(Violation::StaleWalk { context, iova, level, table });
            }
        }
        for copy in self.copies() {
            if let Some(iova) = self.collect(slot, &range, *copy).first(range.clone()) {
                found.push(Violation::GivenBack { context, iova });
            }
        }
        for violation in found {
            self.report(violation);
        }
    }
}
