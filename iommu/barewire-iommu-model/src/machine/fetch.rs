//! The walker and the TLB after every store: all that the store made reachable is read, judged and
//! cached.

use std::ops::Range;

use barewire_iommu::Context;

use super::{Fetching, Place, Slot, State};
use crate::descriptor::{Entry, Leaf, decode};
use crate::memory::VisibleValues;
use crate::naive::Naive;
use crate::tlb::{CachedWalk, Conflict, Tlb};
use crate::violation::Violation;
use crate::walker::{Root, indices};

/// How the walk reached a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// Through the entry that was just stored.
    Hooking,
    /// From the root.
    Root,
    /// Through a cached entry that no root leads to any more.
    Stale,
}

/// A table and its place in a walk.
#[derive(Clone, Copy)]
struct View {
    slot: usize,
    level: u32,
    base: u64,
    table: u64,
}

impl State {
    pub(super) fn attach(&mut self, context: Context, root: Root) {
        let slot = match self.slots.iter().position(|slot| slot.context == context) {
            Some(index) => {
                let slot = &mut self.slots[index];
                slot.root = root;
                slot.live = true;
                slot.reference = Naive::new();
                slot.next = None;
                index
            }
            None => {
                self.slots.push(Slot {
                    context,
                    root,
                    live: true,
                    tlb: Tlb::default(),
                    reference: Naive::new(),
                    next: None,
                    settled: true,
                    quiet: false,
                });
                self.slots.len() - 1
            }
        };
        self.places.insert(root.table, Place { slot, level: root.shape.start, base: 0 });
        self.scan(self.root_view(slot), &(0..u64::MAX), Way::Hooking);
    }

    pub(super) fn detach(&mut self, context: Context) {
        let slot = self.slot(context);
        self.slots[slot].live = false;
        self.unhook(self.root_view(slot));
    }

    pub(super) fn quiesce(&mut self, context: Context, silent: bool) {
        let slot = self.slot(context);
        self.slots[slot].quiet = silent;
        if !silent {
            self.refetch(slot, &(0..u64::MAX));
        }
    }

    fn root_view(&self, slot: usize) -> View {
        let root = &self.slots[slot].root;
        View { slot, level: root.shape.start, base: 0, table: root.table }
    }

    /// Called when a walker may see a new value in an entry.
    pub(super) fn changed(&mut self, table: u64, index: usize, old: VisibleValues) {
        let Some(new) = self.memory.seen(table, index) else { return };
        if old == new {
            return;
        }
        let Some(place) = self.places.get(&table).copied() else {
            self.changed_behind(table, index, new);
            return;
        };
        let Place { slot, level, base } = place;
        let (old, new) = (old.to_hardware(level), new.to_hardware(level));
        if old == new {
            return;
        }
        let view = View { slot, level, base, table };
        let shape = self.slots[slot].root.shape;
        let iova = base + index as u64 * shape.span(level);
        let valid = |seen: VisibleValues| seen.values().filter(|raw| raw & 1 != 0);
        let made = || valid(new).filter(|raw| !old.has(*raw));
        if !self.slots[slot].quiet {
            for raw in made() {
                for other in valid(old).chain(valid(new)).filter(|other| *other != raw) {
                    self.replaced(view, iova, other, raw);
                }
            }
        }
        for raw in valid(old).filter(|raw| !new.has(*raw)) {
            if let Ok(Entry::Table(table)) = self.decode(slot, level, iova, raw) {
                self.unhook(View { slot, level: level + 1, base: iova, table });
            }
        }
        for raw in made() {
            self.entry(view, iova, raw, &(0..u64::MAX), Way::Hooking);
        }
        if valid(old).next().is_some() {
            self.judge_kept(slot, &(iova..iova + shape.span(level)));
        }
    }

    /// `changed` for a table that walks reach only through cached entries, if at all.
    fn changed_behind(&mut self, table: u64, index: usize, new: VisibleValues) {
        for slot in 0..self.slots.len() {
            let shape = self.slots[slot].root.shape;
            let known = self.slots[slot].tlb.walks().filter(|way| way.table == table);
            let mut places: Vec<_> = known.map(|way| (way.level, way.base)).collect();
            places.dedup();
            for (level, base) in places {
                let view = View { slot, level, base, table };
                let iova = base + index as u64 * shape.span(level);
                let span = iova..iova + shape.span(level);
                let mut ways = self.slots[slot].tlb.walks_in(&shape, &span);
                ways.retain(|way| (way.level, way.base, way.table) == (level, base, table));
                for (way, raw) in
                    ways.iter().flat_map(|way| new.values().map(move |raw| (way, raw)))
                {
                    self.entry(view, iova, raw, &way.iovas, Way::Stale);
                }
            }
        }
    }

    fn decode(&self, slot: usize, level: u32, iova: u64, raw: u64) -> Result<Entry, Violation> {
        let Slot { context, root, .. } = self.slots[slot];
        decode(&root.shape, root.mair, level, iova, raw).map_err(|flaw| Violation::Malformed {
            context,
            iova,
            level,
            raw,
            flaw,
        })
    }

    /// Judges a valid entry that was replaced by another valid one without a break.
    fn replaced(&mut self, view: View, iova: u64, old: u64, new: u64) {
        let View { slot, level, .. } = view;
        let [first, second] = [old, new].map(|raw| self.decode(slot, level, iova, raw));
        let same = match (first, second) {
            (Ok(Entry::Leaf(block)), Ok(Entry::Table(table)))
            | (Ok(Entry::Table(table)), Ok(Entry::Leaf(block))) => {
                self.options.bbml2
                    && self.all_agree(View { level: level + 1, table, ..view }, &block)
            }
            // The hint is one of the sizes that may change.
            (Ok(Entry::Leaf(old)), Ok(Entry::Leaf(new))) => {
                old.differs_in_permissions(&new) || self.options.bbml2 && old.agrees(&new)
            }
            _ => false,
        };
        if !same {
            let context = self.slots[slot].context;
            self.report(Violation::Replaced { context, iova, level, old, new });
        }
    }

    /// Whether every leaf of the table that replaced a block gives the same translation as the
    /// block.
    fn all_agree(&self, at: View, block: &Leaf) -> bool {
        let View { slot, level, table, .. } = at;
        let shape = &self.slots[slot].root.shape;
        let Some(valid) = self.memory.valid(table, 0..shape.entries(level)) else { return false };
        valid.into_iter().all(|(index, raw)| {
            let iova = block.iova + index as u64 * shape.span(level);
            match self.decode(slot, level, iova, raw) {
                Ok(Entry::Leaf(leaf)) => leaf.agrees(block),
                Ok(Entry::Table(table)) => {
                    let below = Leaf { iova, ..*block };
                    let output = block.output + (iova - block.iova);
                    self.all_agree(
                        View { level: level + 1, table, ..at },
                        &Leaf { output, ..below },
                    )
                }
                _ => false,
            }
        })
    }

    /// Forgets that walks from a root reach a table and the tables below it.
    fn unhook(&mut self, view: View) {
        let View { slot, level, base, table } = view;
        if self.places.get(&table) != Some(&Place { slot, level, base }) {
            return;
        }
        self.places.remove(&table);
        let shape = self.slots[slot].root.shape;
        for (index, raw) in self.memory.valid(table, 0..shape.entries(level)).unwrap_or_default() {
            let iova = base + index as u64 * shape.span(level);
            if let Ok(Entry::Table(table)) = self.decode(slot, level, iova, raw) {
                self.unhook(View { slot, level: level + 1, base: iova, table });
            }
        }
    }

    /// Reads the entries of a table in `range`, and all below them.
    fn scan(&mut self, view: View, range: &Range<u64>, way: Way) {
        let View { slot, level, base, table } = view;
        let Slot { context, root, .. } = self.slots[slot];
        let Some(valid) = self.memory.valid(table, indices(&root.shape, level, base, range)) else {
            self.report(Violation::NoTable { context, iova: base, table });
            return;
        };
        for (index, raw) in valid {
            let iova = base + index as u64 * root.shape.span(level);
            self.entry(view, iova, raw, range, way);
        }
    }

    /// Reads an entry, and all below.
    fn entry(&mut self, view: View, iova: u64, raw: u64, range: &Range<u64>, way: Way) {
        let View { slot, level, .. } = view;
        match self.decode(slot, level, iova, raw) {
            Ok(Entry::Invalid) => {}
            Ok(Entry::Leaf(leaf)) => {
                let leaf = leaf.widened();
                if way != Way::Stale {
                    self.judge_leaf(slot, &leaf);
                }
                if self.fetches(slot) {
                    self.keep(slot, leaf);
                }
            }
            Ok(Entry::Table(table)) => {
                let below = View { slot, level: level + 1, base: iova, table };
                if way == Way::Hooking && !self.hook(below) {
                    return;
                }
                if self.fetches(slot) {
                    self.keep_walk(below, range);
                }
                self.scan(below, range, way);
            }
            Err(violation) => self.report(violation),
        }
    }

    fn hook(&mut self, view: View) -> bool {
        let View { slot, level, base, table } = view;
        let place = Place { slot, level, base };
        match self.places.get(&table) {
            Some(known) if *known != place => {
                self.report(Violation::HookedTwice { table, iova: base });
                false
            }
            _ => {
                if self.memory.is_table(table) {
                    self.places.insert(table, place);
                }
                true
            }
        }
    }

    fn fetches(&self, slot: usize) -> bool {
        self.options.fetching == Fetching::Always
            && self.slots[slot].live
            && !self.slots[slot].quiet
    }

    fn keep(&mut self, slot: usize, leaf: Leaf) {
        let sizes = self.options.bbml2;
        let Slot { root, tlb, .. } = &mut self.slots[slot];
        let conflict = tlb.keep(leaf, &root.shape, sizes);
        self.conflict(slot, conflict);
    }

    /// Keeps walks of `range` through a table.
    fn keep_walk(&mut self, view: View, range: &Range<u64>) {
        let View { slot, level, base, table } = view;
        let sizes = self.options.bbml2;
        let shape = self.slots[slot].root.shape;
        // Whole granules: a walk is for one of them.
        let page = shape.span(3) - 1;
        let end = range.end.saturating_add(page) & !page;
        let iovas = base.max(range.start & !page)..(base + shape.span(level - 1)).min(end);
        let conflict = self.slots[slot].tlb.keep_walk(level, base, table, &iovas, sizes);
        self.conflict(slot, conflict);
    }

    fn conflict(&mut self, slot: usize, conflict: Option<Conflict>) {
        if let Some(Conflict { iova, cached, made }) = conflict {
            let context = self.slots[slot].context;
            self.report(Violation::Conflict { context, iova, cached, made });
        }
    }

    /// Reads everything that walks of `range` may reach: from the root, and through cached entries.
    pub(super) fn refetch(&mut self, slot: usize, range: &Range<u64>) {
        if !self.fetches(slot) {
            return;
        }
        self.scan(self.root_view(slot), range, Way::Root);
        let shape = self.slots[slot].root.shape;
        for CachedWalk { level, base, table, iovas } in self.slots[slot].tlb.walks_in(&shape, range)
        {
            if self.places.get(&table) != Some(&Place { slot, level, base }) {
                self.scan(View { slot, level, base, table }, &iovas, Way::Stale);
            }
        }
    }

    /// The leaf a device uses: a cached one, or by the longest cached walk, or from the root.
    pub(super) fn access(&mut self, context: Context, iova: u64) -> Option<Leaf> {
        let slot = self.slot(context);
        let page = iova..iova + 1;
        let shape = self.slots[slot].root.shape;
        let cached = self.slots[slot].tlb.leaves_in(&shape, &page);
        let reference = &self.slots[slot].reference;
        let wrong = |leaf: &&Leaf| Naive::contradicts(leaf, page.clone(), &[reference]).is_some();
        if let Some(leaf) = cached.iter().find(wrong).or_else(|| cached.first()).copied() {
            self.judge_access(slot, iova, &leaf);
            return Some(leaf);
        }
        self.counts.walks += 1;
        let mut view = self.root_view(slot);
        if let Some(walk) = self.slots[slot].tlb.walks_in(&shape, &page).last() {
            view = View { slot, level: walk.level, base: walk.base, table: walk.table };
        } else if !self.slots[slot].live {
            return None;
        }
        loop {
            let span = shape.span(view.level);
            let index = indices(&shape, view.level, view.base, &page).next()?;
            let Some(seen) = self.memory.seen(view.table, index) else {
                self.report(Violation::NoTable { context, iova, table: view.table });
                return None;
            };
            // Of two values the older one, as if the line was not written back yet.
            match self.decode(slot, view.level, iova & !(span - 1), seen.poc) {
                Ok(Entry::Invalid) => return None,
                Ok(Entry::Table(table)) => {
                    view = View { slot, level: view.level + 1, base: iova & !(span - 1), table };
                    self.keep_walk(view, &page);
                }
                Ok(Entry::Leaf(leaf)) => {
                    let leaf = leaf.widened();
                    self.keep(slot, leaf);
                    self.judge_access(slot, iova, &leaf);
                    return Some(leaf);
                }
                Err(violation) => {
                    self.report(violation);
                    return None;
                }
            }
        }
    }
}
