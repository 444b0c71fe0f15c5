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
//! An invalidation drops what the library may rely on (`strategy`'s documentation states it), and nothing
//! else:
//!
//! - by address with the leaf hint: the leaf that translates the address; cached walks stay;
//! - with a level (TTL): only a leaf of that level;
//! - without the leaf hint: also the walks that are cached for the address. A walk to a table is kept for
//!   each granule that the table translates, and a command for one granule leaves those of the others;
//! - of a group of pages with the Contiguous hint, kept as one entry: by any address in it;
//! - by context: entries with that tag; global leaves stay, since they have no ASID.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::descriptor::{GROUP, Leaf};
use crate::shape::Shape;

/// A table, and the addresses for which walks to it are cached: ranges in order that do not touch.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Walk {
    table: u64,
    cached: Vec<Range<u64>>,
}

impl Walk {
    fn add(&mut self, range: &Range<u64>) {
        let mut all = range.clone();
        self.cached.retain(|known| {
            let apart = known.end < all.start || all.end < known.start;
            if !apart {
                all = all.start.min(known.start)..all.end.max(known.end);
            }
            apart
        });
        let at = self.cached.partition_point(|known| known.start < all.start);
        self.cached.insert(at, all);
    }

    fn remove(&mut self, range: &Range<u64>) {
        if range.is_empty() {
            return;
        }
        let parts = |known: &Range<u64>| {
            [known.start..known.end.min(range.start), known.start.max(range.end)..known.end]
        };
        self.cached = self.cached.iter().flat_map(parts).filter(|left| !left.is_empty()).collect();
    }

    /// The addresses in `range` for which it is cached.
    fn within(&self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let both = |known: &Range<u64>| known.start.max(range.start)..known.end.min(range.end);
        self.cached.iter().map(both).filter(|both| !both.is_empty())
    }
}

/// A cached walk: its table, where the table is in a walk, and addresses for which it is cached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CachedWalk {
    pub(crate) level: u32,
    /// The first input address of the table.
    pub(crate) base: u64,
    pub(crate) table: u64,
    /// Some of the addresses for which it is cached.
    pub(crate) iovas: Range<u64>,
}

/// Two translations for one address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Conflict {
    pub(crate) iova: u64,
    pub(crate) cached: (u32, u64),
    pub(crate) made: (u32, u64),
}

/// The sizes of leaves: of levels 0 to 2, of a group of pages, of a page.
const SIZES: usize = 5;
const GROUP_SIZE: usize = 3;
const PAGE_SIZE: usize = 4;

/// The size of a leaf, as an index.
fn size_of(leaf: &Leaf) -> usize {
    match leaf.level {
        3 if leaf.contiguous => GROUP_SIZE,
        3 => PAGE_SIZE,
        level => level as usize,
    }
}

/// The sizes that a shape may have: each with its level and bytes.
fn sizes(shape: &Shape) -> impl Iterator<Item = (usize, u32, u64)> + use<> {
    let shape = *shape;
    (shape.start as usize..SIZES).map(move |size| match size {
        GROUP_SIZE => (size, 3, GROUP),
        PAGE_SIZE => (size, 3, shape.span(3)),
        level => (size, level as u32, shape.span(level as u32)),
    })
}

/// The entries of one context.
#[derive(Default)]
pub(crate) struct Tlb {
    /// By size, from the largest (see [`size_of`]), and first address. A changed entry has more than one
    /// descriptor.
    leaves: [BTreeMap<u64, Vec<Leaf>>; SIZES],
    /// Tables by their level and the first address they translate.
    walks: [BTreeMap<u64, Vec<Walk>>; 4],
}

impl Tlb {
    /// Keeps a leaf. Returns a conflicting entry for its addresses, if there is one. With `sizes`
    /// (FEAT_BBM level 2), leaves of other sizes with the same translation do not conflict.
    pub(crate) fn keep(&mut self, leaf: Leaf, shape: &Shape, sizes: bool) -> Option<Conflict> {
        let (level, size) = (leaf.level as usize, size_of(&leaf));
        let same = self.leaves[size].entry(leaf.iova).or_default();
        if same.contains(&leaf) {
            return None;
        }
        let mut conflict = same.iter().find(|other| !other.differs_in_permissions(&leaf)).copied();
        same.push(leaf);
        let differs = |other: &&Leaf| !sizes || !other.agrees(&leaf);
        for (larger, _, bytes) in self::sizes(shape).filter(|other| other.0 < size) {
            let kept = self.leaves[larger].get(&(leaf.iova & !(bytes - 1))).into_iter().flatten();
            conflict = conflict.or(kept.copied().find(|other| differs(&other)));
        }
        for smaller in &self.leaves[size + 1..] {
            let kept = smaller.range(leaf.iova..leaf.end()).flat_map(|(_, kept)| kept);
            conflict = conflict.or(kept.copied().find(|other| differs(&other)));
        }
        let made = (leaf.level, leaf.raw);
        if let Some(other) = conflict {
            let iova = leaf.iova.max(other.iova);
            return Some(Conflict { iova, cached: (other.level, other.raw), made });
        }
        let walk = self.walks.get(level + 1)?.get(&leaf.iova)?.first()?;
        let cached = (leaf.level, walk.table);
        (!sizes).then_some(Conflict { iova: leaf.iova, cached, made })
    }

    /// Keeps that walks of `iovas`, which `table` of `level` translates, go through it. The table
    /// translates from `base` on. Returns a conflict as [`Tlb::keep`].
    pub(crate) fn keep_walk(
        &mut self,
        level: u32,
        base: u64,
        table: u64,
        iovas: &Range<u64>,
        sizes: bool,
    ) -> Option<Conflict> {
        let same = self.walks[level as usize].entry(base).or_default();
        if let Some(known) = same.iter_mut().find(|known| known.table == table) {
            known.add(iovas);
            return None;
        }
        let other = same.first().map(|known| known.table);
        same.push(Walk { table, cached: vec![iovas.clone()] });
        let block = || {
            let kept = self.leaves[level as usize - 1].get(&base)?.first()?;
            (!sizes).then_some(kept.raw)
        };
        let cached = other.or_else(block)?;
        Some(Conflict { iova: base, cached: (level - 1, cached), made: (level - 1, table) })
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
        for (size, level, bytes) in sizes(shape) {
            if only_level.is_none_or(|only| u32::from(only) == level) {
                remove(&mut self.leaves[size], range, bytes);
            }
        }
        for level in shape.start..=3 {
            if !only_leaf && level > shape.start {
                // A command finds what is cached for the granules that it names.
                let page = shape.span(3) - 1;
                let granules = range.start & !page..range.end.saturating_add(page) & !page;
                remove_walks(&mut self.walks[level as usize], &granules, shape.span(level - 1));
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
        for (size, _, bytes) in sizes(shape) {
            let keys = touching(&self.leaves[size], range, bytes);
            found.extend(keys.flat_map(|(_, kept)| kept).copied());
        }
        found
    }

    /// Every table that a cached walk may go through, once.
    pub(crate) fn walks(&self) -> impl Iterator<Item = CachedWalk> {
        (0..).zip(&self.walks).flat_map(|(level, walks)| {
            let of = move |base: u64, walk: &Walk| {
                let iovas = walk.cached.first()?.clone();
                Some(CachedWalk { level, base, table: walk.table, iovas })
            };
            walks
                .iter()
                .flat_map(move |(base, kept)| kept.iter().filter_map(move |walk| of(*base, walk)))
        })
    }

    /// Every cached walk of addresses in `range`, for those addresses.
    pub(crate) fn walks_in(&self, shape: &Shape, range: &Range<u64>) -> Vec<CachedWalk> {
        let mut found = Vec::new();
        for level in shape.start + 1..=3 {
            let keys = touching(&self.walks[level as usize], range, shape.span(level - 1));
            for (&base, walk) in keys.flat_map(|(base, kept)| kept.iter().map(move |at| (base, at)))
            {
                let table = walk.table;
                let of = |iovas| CachedWalk { level, base, table, iovas };
                found.extend(walk.within(range).map(of));
            }
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

fn remove_walks(kept: &mut BTreeMap<u64, Vec<Walk>>, range: &Range<u64>, span: u64) {
    if kept.is_empty() {
        return;
    }
    let keys: Vec<u64> = touching(kept, range, span).map(|(key, _)| *key).collect();
    for key in keys {
        let Some(walks) = kept.get_mut(&key) else { continue };
        walks.iter_mut().for_each(|walk| walk.remove(range));
        walks.retain(|walk| !walk.cached.is_empty());
        if walks.is_empty() {
            kept.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a set of addresses, for every sequence of three changes of a few addresses.
    #[test]
    fn a_walk_is_cached_for_what_was_added_and_not_removed() {
        let most: u64 = if cfg!(miri) { 2 } else { 6 };
        let ranges: Vec<_> = (0..most).flat_map(|a| (a + 1..=most).map(move |b| a..b)).collect();
        let mut cases = 0;
        for first in &ranges {
            for (second, third) in ranges.iter().flat_map(|a| ranges.iter().map(move |b| (a, b))) {
                let mut walk = Walk { table: 0, cached: vec![first.clone()] };
                walk.remove(second);
                walk.add(third);
                walk.remove(&(second.end..third.end));
                let is_cached = |at: &u64| {
                    (first.contains(at) && !second.contains(at) || third.contains(at))
                        && !(second.end..third.end).contains(at)
                };
                let found: Vec<_> = walk.cached.iter().flat_map(Clone::clone).collect();
                assert_eq!(found, (0..8).filter(is_cached).collect::<Vec<_>>());
                assert!(walk.cached.windows(2).all(|pair| pair[0].end < pair[1].start));
                let all: Vec<_> = walk.within(&(0..8)).flatten().collect();
                assert_eq!(all, found);
                cases += 1;
            }
        }
        assert_eq!(cases, ranges.len().pow(3));
    }
}
