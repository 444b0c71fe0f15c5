//! The reference: the mappings, without tables.
//!
//! It maps addresses to addresses, in pieces that are as long as possible. So two maps are equal if
//! and only if every page in them is equal.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::descriptor::{Leaf, Meaning};

/// Contiguous bytes mapped to contiguous bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Its length in bytes.
    pub len: u64,
    /// The first output address.
    pub output: u64,
    /// The permissions and memory type.
    pub meaning: Meaning,
}

/// The mappings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Naive {
    pieces: BTreeMap<u64, Piece>,
}

impl Naive {
    /// Creates an empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Every piece with its first input address, in order.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, &Piece)> {
        self.pieces.iter().map(|(iova, piece)| (*iova, piece))
    }

    /// The number of mapped bytes.
    pub fn bytes(&self) -> u64 {
        self.pieces.values().map(|piece| piece.len).sum()
    }

    /// The piece that translates `iova`, with its first input address.
    fn at(&self, iova: u64) -> Option<(u64, Piece)> {
        let (start, piece) = self.pieces.range(..=iova).next_back()?;
        (iova - start < piece.len).then_some((*start, *piece))
    }

    /// The translation of `iova`.
    pub fn get(&self, iova: u64) -> Option<(u64, Meaning)> {
        self.at(iova).map(|(start, piece)| (piece.output + (iova - start), piece.meaning))
    }

    /// The first address in `range` that is mapped.
    pub fn first(&self, range: Range<u64>) -> Option<u64> {
        if range.is_empty() {
            return None;
        }
        let inside = || self.pieces.range(range.clone()).next().map(|(start, _)| *start);
        self.at(range.start).map(|_| range.start).or_else(inside)
    }

    /// The first address in `range` that is not mapped.
    pub fn hole(&self, range: Range<u64>) -> Option<u64> {
        let mut iova = range.start;
        while iova < range.end {
            let Some((start, piece)) = self.at(iova) else { return Some(iova) };
            iova = start + piece.len;
        }
        None
    }

    /// Adds a mapping.
    ///
    /// # Errors
    /// The first address that is mapped already. Nothing changes then.
    pub fn map(&mut self, iova: u64, output: u64, len: u64, meaning: Meaning) -> Result<(), u64> {
        if let Some(occupied) = self.first(iova..iova + len) {
            return Err(occupied);
        }
        let mut start = iova;
        let mut piece = Piece { len, output, meaning };
        if let Some((before, left)) = iova.checked_sub(1).and_then(|left| self.at(left))
            && left.output + left.len == output
            && left.meaning == meaning
        {
            start = before;
            piece = Piece { len: left.len + len, ..left };
        }
        if let Some(right) = self.pieces.get(&(iova + len)).copied()
            && right.output == output + len
            && right.meaning == meaning
        {
            self.pieces.remove(&(iova + len));
            piece.len += right.len;
        }
        self.pieces.insert(start, piece);
        Ok(())
    }

    /// Removes the mappings in a range, which may have holes. Returns the number of bytes removed.
    pub fn unmap(&mut self, range: Range<u64>) -> u64 {
        let mut removed = 0;
        let mut from = range.start;
        while let Some(iova) = self.first(from..range.end) {
            let (start, piece) = self.at(iova).expect("it is mapped");
            let end = (start + piece.len).min(range.end);
            self.pieces.remove(&start);
            if start < iova {
                self.pieces.insert(start, Piece { len: iova - start, ..piece });
            }
            if end < start + piece.len {
                let output = piece.output + (end - start);
                self.pieces.insert(end, Piece { len: start + piece.len - end, output, ..piece });
            }
            removed += end - iova;
            from = end;
        }
        removed
    }

    /// Adds a leaf that a walk found.
    ///
    /// # Errors
    /// As [`Naive::map`].
    pub fn add(&mut self, leaf: &Leaf) -> Result<(), u64> {
        self.map(leaf.iova, leaf.output, leaf.len, leaf.meaning)
    }

    /// The first address of `range` where neither map gives the same translation as `leaf`.
    pub fn contradicts(leaf: &Leaf, range: Range<u64>, maps: &[&Self]) -> Option<u64> {
        let mut iova = range.start.max(leaf.iova);
        let end = range.end.min(leaf.end());
        'next: while iova < end {
            for map in maps {
                if let Some((start, piece)) = map.at(iova)
                    && piece.meaning == leaf.meaning
                    && piece.output + (iova - start) == leaf.output + (iova - leaf.iova)
                {
                    iova = start + piece.len;
                    continue 'next;
                }
            }
            return Some(iova);
        }
        None
    }

    /// The translations in `range` that both maps have in common.
    pub fn common(&self, other: &Self, range: Range<u64>) -> Self {
        let mut both = Self::new();
        let mut from = range.start;
        while let Some(iova) = self.first(from..range.end) {
            let (start, piece) = self.at(iova).expect("it is mapped");
            let end = (start + piece.len).min(range.end);
            from = end;
            let Some(theirs) = other.first(iova..end) else { continue };
            let (their_start, their) = other.at(theirs).expect("it is mapped");
            from = end.min(their_start + their.len);
            let output = piece.output + (theirs - start);
            let same = their.output + (theirs - their_start) == output;
            if same && their.meaning == piece.meaning {
                let len = from - theirs;
                both.map(theirs, output, len, piece.meaning).expect("found in order");
            }
        }
        both
    }

    /// The first address at which the two differ.
    pub fn difference(&self, other: &Self) -> Option<u64> {
        let ends = |map: &Self| {
            map.pieces().flat_map(|(iova, piece)| [iova, iova + piece.len]).collect::<Vec<_>>()
        };
        let mut candidates = [ends(self), ends(other)].concat();
        candidates.sort_unstable();
        candidates.into_iter().find(|&iova| self.get(iova) != other.get(iova))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barewire_iommu::{Access, Stage};
    use proptest::prelude::*;

    /// The reference for the reference: a map with an entry per page.
    type Pages = BTreeMap<u64, (u64, Meaning)>;

    fn meaning(read_only: bool) -> Meaning {
        Meaning::normal(Stage::One, if read_only { Access::Read } else { Access::ReadWrite })
    }

    fn pages(map: &Naive) -> Pages {
        (0..64).filter_map(|page| Some((page, map.get(page)?))).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 4 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// Pieces behave like a map with an entry per page.
        #[test]
        fn pieces_are_pages(
            steps in prop::collection::vec(
                (any::<bool>(), 0_u64..56, 1_u64..8, 0_u64..4, any::<bool>()), 1..40),
        ) {
            let (mut map, mut reference) = (Naive::new(), Pages::new());
            let mut earlier = (Naive::new(), Pages::new());
            for (mapping, at, len, offset, read_only) in steps {
                let range = at..at + len;
                let first = range.clone().find(|page| reference.contains_key(page));
                let hole = range.clone().find(|page| !reference.contains_key(page));
                prop_assert_eq!(map.first(range.clone()), first);
                prop_assert_eq!(map.hole(range.clone()), hole);
                if mapping {
                    let done = map.map(at, at + offset * 100, len, meaning(read_only));
                    prop_assert_eq!(done.err(), first);
                    if done.is_ok() {
                        let page = |page| (page, (page + offset * 100, meaning(read_only)));
                        reference.extend(range.map(page));
                    }
                } else {
                    let count = range.clone().filter(|page| reference.contains_key(page)).count();
                    prop_assert_eq!(map.unmap(range.clone()), count as u64);
                    reference.retain(|page, _| !range.contains(page));
                }
                prop_assert_eq!(&pages(&map), &reference);
                prop_assert_eq!(map.bytes(), reference.len() as u64);
                // Rebuilt page by page it is equal: pieces are as long as possible.
                let mut anew = Naive::new();
                for (page, (output, meaning)) in &reference {
                    anew.map(*page, *output, 1, *meaning).unwrap();
                }
                prop_assert_eq!(&anew, &map);
                let (old, old_pages) = &earlier;
                let differs = |page: &u64| reference.get(page) != old_pages.get(page);
                prop_assert_eq!(map.difference(old), (0..64).find(differs));
                let mut kept = reference.clone();
                kept.retain(|page, to| (3..50).contains(page) && old_pages.get(page) == Some(to));
                prop_assert_eq!(pages(&map.common(old, 3..50)), kept);
                if read_only {
                    earlier = (map.clone(), reference.clone());
                }
            }
        }
    }
}
