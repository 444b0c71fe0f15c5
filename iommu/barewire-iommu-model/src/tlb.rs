//! A TLB that keeps everything hardware is allowed to keep.
//!
//! *Read first*: Arm ARM DDI 0487, D8.16 (TLB maintenance), D8.17 (caching of walks); IHI 0070, 4.4
//! (TLBI commands).
//!
//! Hardware may keep any translation and any table descriptor it ever read, until it is
//! invalidated. This model keeps every one of them. Hardware may also keep both the old and the new
//! value of an entry that changed. So an address may have several translations, and a device may
//! use any of them.
//!
//! An invalidation drops what the architecture requires, and nothing else:
//!
//! - by address with the leaf hint: the leaf that translates the address; cached walks stay;
//! - with a level (TTL): only a leaf of that level;
//! - without the leaf hint: also the tables on the way to the address;
//! - by context: entries with that tag; global leaves stay, since they have no ASID.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::descriptor::Leaf;
use crate::shape::Shape;

/// Two translations for one address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Conflict {
    pub(crate) iova: u64,
    pub(crate) cached: (u32, u64),
    pub(crate) made: (u32, u64),
}

/// The entries of one context.
#[derive(Default)]
pub(crate) struct Tlb {
    /// By level and first address. A changed entry has more than one descriptor.
    leaves: [BTreeMap<u64, Vec<Leaf>>; 4],
    /// Tables by their level and the first address they translate.
    walks: [BTreeMap<u64, Vec<u64>>; 4],
}

impl Tlb {
    /// Keeps a leaf. Returns a conflicting entry for its addresses, if there is one. With `sizes`
    /// (FEAT_BBM level 2), leaves of other sizes with the same translation do not conflict.
    pub(crate) fn keep(&mut self, leaf: Leaf, shape: &Shape, sizes: bool) -> Option<Conflict> {
        let level = leaf.level as usize;
        let same = self.leaves[level].entry(leaf.iova).or_default();
        if same.contains(&leaf) {
            return None;
        }
        let mut conflict = same.first().copied();
        same.push(leaf);
        let differs = |other: &&Leaf| !sizes || !other.agrees(&leaf);
        for larger in shape.start..leaf.level {
            let base = leaf.iova & !(shape.span(larger) - 1);
            let kept = self.leaves[larger as usize].get(&base).into_iter().flatten();
            conflict = conflict.or(kept.copied().find(|other| differs(&other)));
        }
        for smaller in level + 1..4 {
            let kept = self.leaves[smaller].range(leaf.iova..leaf.end()).flat_map(|(_, kept)| kept);
            conflict = conflict.or(kept.copied().find(|other| differs(&other)));
        }
        let made = (leaf.level, leaf.raw);
        if let Some(other) = conflict {
            let iova = leaf.iova.max(other.iova);
            return Some(Conflict { iova, cached: (other.level, other.raw), made });
        }
        let table = self.walks.get(level + 1)?.get(&leaf.iova)?.first()?;
        let cached = (leaf.level, *table);
        (!sizes).then_some(Conflict { iova: leaf.iova, cached, made })
    }

    /// Keeps that walks from `iova` on go through `table` of `level`. Returns a conflict as
    /// [`Tlb::keep`].
    pub(crate) fn keep_walk(
        &mut self,
        level: u32,
        iova: u64,
        table: u64,
        sizes: bool,
    ) -> Option<Conflict> {
        let same = self.walks[level as usize].entry(iova).or_default();
        if same.contains(&table) {
            return None;
        }
        let other = same.first().copied();
        same.push(table);
        let block = || {
            let kept = self.leaves[level as usize - 1].get(&iova)?.first()?;
            (!sizes).then_some(kept.raw)
        };
        let cached = other.or_else(block)?;
        Some(Conflict { iova, cached: (level - 1, cached), made: (level - 1, table) })
    }

    /// Drops the entries with the context's tag: all but global leaves.
    pub(crate) fn drop_context(&mut self) {
        for walks in &mut self.walks {
            walks.clear();
        }
        for leaves in &mut self.leaves {
            leaves.retain(|_, kept| {
                kept.retain(|leaf| leaf.global);
                !kept.is_empty()
            });
        }
    }

    /// Drops what an invalidation of `range` must drop. One address is a range too.
    pub(crate) fn drop_range(
        &mut self,
        shape: &Shape,
        range: &Range<u64>,
        only_leaf: bool,
        only_level: Option<u8>,
    ) {
        for level in shape.start..=3 {
            if only_level.is_none_or(|only| u32::from(only) == level) {
                remove(&mut self.leaves[level as usize], range, shape.span(level));
            }
            if !only_leaf && level > shape.start {
                remove(&mut self.walks[level as usize], range, shape.span(level - 1));
            }
        }
    }

    /// Every leaf.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        self.leaves.iter().flat_map(BTreeMap::values).flatten()
    }

    /// Every leaf that translates an address in `range`.
    pub(crate) fn leaves_in(&self, shape: &Shape, range: &Range<u64>) -> Vec<Leaf> {
        let mut found = Vec::new();
        for level in shape.start..=3 {
            let leaves = &self.leaves[level as usize];
            let keys = touching(leaves, range, shape.span(level));
            found.extend(keys.flat_map(|(_, kept)| kept).copied());
        }
        found
    }

    /// Every table that a cached walk may go through: its level, its first input address, and its
    /// own address.
    pub(crate) fn walks(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        (0..).zip(&self.walks).flat_map(|(level, walks)| {
            walks
                .iter()
                .flat_map(move |(iova, kept)| kept.iter().map(move |at| (level, *iova, *at)))
        })
    }

    /// The same for walks of `range`.
    pub(crate) fn walks_in(&self, shape: &Shape, range: &Range<u64>) -> Vec<(u32, u64, u64)> {
        let mut found = Vec::new();
        for level in shape.start + 1..=3 {
            let keys = touching(&self.walks[level as usize], range, shape.span(level - 1));
            found.extend(keys.flat_map(|(iova, kept)| kept.iter().map(|at| (level, *iova, *at))));
        }
        found
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.leaves().next().is_none() && self.walks().next().is_none()
    }
}

/// The items of length `span` that overlap the range.
fn touching<'a, T>(
    kept: &'a BTreeMap<u64, T>,
    range: &Range<u64>,
    span: u64,
) -> impl Iterator<Item = (&'a u64, &'a T)> + use<'a, T> {
    kept.range(range.start & !(span - 1)..range.end)
}

fn remove<T>(kept: &mut BTreeMap<u64, T>, range: &Range<u64>, span: u64) {
    if kept.is_empty() {
        return;
    }
    let first = range.start & !(span - 1);
    if range.end - first <= span {
        kept.remove(&first);
        return;
    }
    let keys: Vec<u64> = touching(kept, range, span).map(|(key, _)| *key).collect();
    for key in keys {
        kept.remove(&key);
    }
}
