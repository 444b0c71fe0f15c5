//! A table walk over raw bytes.
//!
//! The caller reads words of memory; the walker knows the format.

use std::ops::Range;

use crate::descriptor::{Entry, Flaw, Leaf, decode};
use crate::shape::Shape;

/// A root and the register settings for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Root {
    /// TTBR0 or S2TTB.
    pub table: u64,
    /// Levels and sizes.
    pub shape: Shape,
    /// MAIR: the memory types of stage 1's indices.
    pub mair: u64,
}

/// Why a walk faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The entry is invalid.
    Translation {
        /// The level of the invalid entry.
        level: u32,
    },
    /// The input address is too wide.
    Input,
    /// An entry leads to memory that is not a table.
    NoTable {
        /// The address in the entry.
        table: u64,
    },
    /// An entry that software should not have written.
    Flaw {
        /// Its level.
        level: u32,
        /// The entry.
        raw: u64,
        /// The flaw.
        flaw: Flaw,
    },
}

/// Walks to one address.
///
/// # Errors
/// See [`Fault`].
pub fn walk(
    root: &Root,
    iova: u64,
    mut word: impl FnMut(u64, usize) -> Option<u64>,
) -> Result<Leaf, Fault> {
    let shape = &root.shape;
    if iova >= shape.input_end() {
        return Err(Fault::Input);
    }
    let mut table = root.table;
    for level in shape.start..=3 {
        let index = (iova >> shape.shift(level)) as usize & (shape.entries(level) - 1);
        let raw = word(table, index).ok_or(Fault::NoTable { table })?;
        let base = iova & !(shape.span(level) - 1);
        match decode(shape, root.mair, level, base, raw) {
            Ok(Entry::Leaf(leaf)) => return Ok(leaf),
            Ok(Entry::Table(next)) => table = next,
            Ok(Entry::Invalid) => return Err(Fault::Translation { level }),
            Err(flaw) => return Err(Fault::Flaw { level, raw, flaw }),
        }
    }
    unreachable!("an entry of level 3 is a leaf or a fault")
}

/// Every leaf that translates an address in `range`, in order. `words` returns a table's entries.
///
/// # Errors
/// The first fault other than a hole, and its address.
pub fn leaves<'w>(
    root: &Root,
    range: Range<u64>,
    mut words: impl FnMut(u64) -> Option<&'w [u64]>,
    mut found: impl FnMut(Leaf),
) -> Result<(), (u64, Fault)> {
    below(root, root.table, root.shape.start, 0, &range, &mut words, &mut found)
}

fn below<'w>(
    root: &Root,
    table: u64,
    level: u32,
    base: u64,
    range: &Range<u64>,
    words: &mut impl FnMut(u64) -> Option<&'w [u64]>,
    found: &mut impl FnMut(Leaf),
) -> Result<(), (u64, Fault)> {
    let shape = &root.shape;
    let entries = indices(shape, level, base, range);
    let no_table = (base, Fault::NoTable { table });
    let known = words(table).and_then(|known| known.get(entries.clone())).ok_or(no_table)?;
    for (index, raw) in entries.zip(known.iter().copied()).filter(|(_, raw)| raw & 1 != 0) {
        let iova = base + index as u64 * shape.span(level);
        match decode(shape, root.mair, level, iova, raw) {
            Ok(Entry::Leaf(leaf)) => found(leaf),
            Ok(Entry::Table(next)) => below(root, next, level + 1, iova, range, words, found)?,
            Ok(Entry::Invalid) => {}
            Err(flaw) => return Err((iova, Fault::Flaw { level, raw, flaw })),
        }
    }
    Ok(())
}

/// The indices of the entries that `range` overlaps, in a table that translates from `base` on.
pub(crate) fn indices(shape: &Shape, level: u32, base: u64, range: &Range<u64>) -> Range<usize> {
    let span = shape.span(level);
    let entries = shape.entries(level) as u64;
    let first = range.start.saturating_sub(base) / span;
    let last = range.end.saturating_sub(base).div_ceil(span);
    first.min(entries) as usize..last.min(entries) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use barewire_iommu::{Access, Attributes, Config, Granule, Stage};
    use std::collections::BTreeMap;

    /// Finds a page, a block and a hole in tables written by hand, for every granule.
    #[test]
    fn pages_blocks_and_holes_are_found_where_they_were_put() {
        // The granule, the index at each level, and the address they make up.
        let cases: [(Granule, &[usize], u64); 3] = [
            (Granule::Size4K, &[1, 2, 3, 4], 1 << 39 | 2 << 30 | 3 << 21 | 4 << 12),
            (Granule::Size16K, &[1, 2, 3, 4], 1 << 47 | 2 << 36 | 3 << 25 | 4 << 14),
            (Granule::Size64K, &[2, 3, 4], 2 << 42 | 3 << 29 | 4 << 16),
        ];
        for (granule, way, iova) in cases.into_iter().take(if cfg!(miri) { 1 } else { 3 }) {
            let shape = Shape::new(&Config { granule, ..Config::default() });
            let root = Root { table: 0x10_0000, shape, mair: Attributes::MAIR };
            let attributes = Attributes::new(Stage::One, Access::Read).bits();
            let mut words = BTreeMap::new();
            let mut table = root.table;
            let (last, tables) = way.split_last().unwrap();
            for &index in tables {
                words.insert((table, index), (table + 0x1_0000) | 3);
                table += 0x1_0000;
            }
            words.insert((table, *last), 0xabcd_0000 | attributes | 3);
            // Beside the last table, a block.
            words.insert((table - 0x1_0000, 9), 0x4000_0000 | attributes | 1);
            let word = |table, index| Some(words.get(&(table, index)).copied().unwrap_or(0));

            let leaf = walk(&root, iova, word).unwrap();
            assert_eq!((leaf.iova, leaf.level, leaf.output), (iova, 3, 0xabcd_0000));
            assert!(leaf.meaning.read && !leaf.meaning.write);
            let block =
                iova - (3 << shape.shift(2)) - (4 << shape.shift(3)) + (9 << shape.shift(2));
            let leaf = walk(&root, block + 5, word).unwrap();
            assert_eq!((leaf.iova, leaf.level, leaf.output), (block, 2, 0x4000_0000));
            assert_eq!(leaf.len, shape.span(2));
            let next = iova + shape.span(3);
            assert_eq!(walk(&root, next, word), Err(Fault::Translation { level: 3 }));
            assert_eq!(walk(&root, 0, word), Err(Fault::Translation { level: shape.start }));
            assert_eq!(walk(&root, 1 << 48, word), Err(Fault::Input));

            let mut tables = BTreeMap::new();
            for at in (root.table..=table).step_by(0x1_0000) {
                let words: Vec<u64> =
                    (0..shape.entries(3)).map(|index| word(at, index).unwrap()).collect();
                tables.insert(at, words);
            }
            let words = |at| tables.get(&at).map(Vec::as_slice);
            let mut all = Vec::new();
            leaves(&root, 0..shape.input_end(), words, |leaf| all.push(leaf.iova)).unwrap();
            assert_eq!(all, [iova, block]);
            let mut none = Vec::new();
            leaves(&root, next..block, words, |leaf| none.push(leaf.iova)).unwrap();
            assert_eq!(none, []);
            let fault = Fault::NoTable { table: root.table };
            assert_eq!(leaves(&root, iova..next, |_| None, |_| ()), Err((0, fault)));
            assert_eq!(walk(&root, iova, |_, _| None), Err(Fault::NoTable { table: root.table }));
        }
    }

    #[test]
    fn a_concatenated_root_is_walked_as_one() {
        let config = Config { stage: Stage::Two, input_bits: 40, ..Config::default() };
        let shape = Shape::new(&config);
        assert_eq!((shape.start, shape.entries(1)), (1, 1024));
        let root = Root { table: 0x2000, shape, mair: 0 };
        let attributes = Attributes::new(Stage::Two, Access::Write).bits();
        let word = |_, index| Some(if index == 777 { 1 << 30 | attributes | 1 } else { 0 });
        let leaf = walk(&root, 777 << 30 | 12345, word).unwrap();
        assert_eq!((leaf.iova, leaf.output, leaf.level), (777 << 30, 1 << 30, 1));
        assert!(leaf.meaning.write && !leaf.meaning.read);
    }
}
