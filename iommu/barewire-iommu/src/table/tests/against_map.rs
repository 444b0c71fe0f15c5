//! Random calls, compared with a map from page to page.

use std::collections::BTreeMap;
use std::vec::Vec;

use super::release;
use crate::address::{Iova, PhysAddr, Segment};
use crate::format::{Config, Granule, Stage};
use crate::gather::Gather;
use crate::table::{MapError, PageTable, UnmapError};
use crate::testing::{Counting, config, rw, with_arena};

/// A small pseudo-random number generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

fn steps() -> usize {
    if cfg!(miri) { 5 } else { 600 }
}

/// Runs calls on a few windows that straddle tables, and compares every page after each call.
fn check(config: Config, seed: u64) {
    let shift = config.granule.shift();
    let page = config.granule.bytes();
    let per_table = page / 8;
    with_arena(config.granule, 64, |arena| {
        let pool = Counting::new(arena);
        let mut table = PageTable::new(config, &pool).expect("a root");
        let mut part = table.whole();
        let mut gather = Gather::new();
        let mut naive: BTreeMap<u64, u64> = BTreeMap::new();
        let mut numbers = Numbers(seed);
        // Around the end of a table, and the last pages of the input range.
        let windows = [per_table * 2 - 8, (1 << (config.input_bits - shift as u8)) - 16];
        // All of it. Miri, for which an empty entry takes a millisecond, looks around the windows.
        let looked_at = if cfg!(miri) {
            let begin = |window: u64| Iova((window - 16) << shift);
            let end = |window: u64| Iova((window + 2 * per_table + 64) << shift);
            windows.map(|window| begin(window)..end(window)).to_vec()
        } else {
            std::vec![Iova(0)..Iova(u64::MAX)]
        };
        for _ in 0..steps() {
            let first = windows[numbers.below(2) as usize] + numbers.below(16);
            let most = if numbers.below(20) == 0 { 2 * per_table } else { 12 };
            let count = 1 + numbers.below(most);
            let (iova, size) = (Iova(first << shift), count << shift);
            let end = first + count > 1 << (config.input_bits - shift as u8);
            if numbers.below(2) == 0 {
                let segments: Vec<Segment> = {
                    let mut left = count;
                    let mut segments = Vec::new();
                    while left > 0 {
                        let pages = (1 + numbers.below(3)).min(left);
                        let phys = PhysAddr((0x1000 + numbers.below(1 << 16)) << shift);
                        segments.push(Segment { phys, len: pages << shift });
                        left -= pages;
                    }
                    segments
                };
                let taken = naive.range(first..first + count).next().map(|(page, _)| *page);
                match part.map_sg(iova, &segments, rw(config.stage), &mut gather) {
                    Ok(bytes) => {
                        assert_eq!((bytes, taken, end), (size, None, false));
                        let mut at = first;
                        for segment in &segments {
                            for n in 0..segment.len >> shift {
                                naive.insert(at, segment.phys.0 + (n << shift));
                                at += 1;
                            }
                        }
                    }
                    Err(MapError::Occupied { iova, .. }) => {
                        assert_eq!(taken, Some(iova.0 >> shift));
                    }
                    Err(MapError::IovaRange { .. }) => assert!(end),
                    Err(other) => panic!("{other}"),
                }
            } else {
                let mapped = naive.range(first..first + count).count() as u64;
                let checked = numbers.below(4) == 0;
                let result = if checked {
                    part.unmap_checked(iova, size, &mut gather)
                } else {
                    part.unmap(iova, size, &mut gather)
                };
                match result {
                    Ok(bytes) if bytes == mapped << shift => {}
                    // A table that was unhooked without reading counts as full.
                    Ok(bytes) => assert!(count >= per_table && bytes > mapped << shift),
                    Err(UnmapError::Hole { .. }) => assert!(checked && mapped < count && !end),
                    Err(UnmapError::IovaRange { .. }) => assert!(end),
                    Err(other) => panic!("{other}"),
                }
                if result.is_ok() {
                    naive.retain(|at, _| !(first..first + count).contains(at));
                }
            }
            let looked: Vec<(u64, u64)> = looked_at
                .iter()
                .flat_map(|range| part.ranges(range.clone()))
                .flat_map(|m| (0..m.len >> shift).map(move |n| (m.iova.0, m.phys.0, n)))
                .map(|(iova, phys, n)| ((iova >> shift) + n, phys + (n << shift)))
                .collect();
            assert!(looked.iter().copied().eq(naive.iter().map(|(page, phys)| (*page, *phys))));
            if numbers.below(8) == 0 {
                // No other walker is there.
                release(&part, &mut gather);
            }
            let at = first + numbers.below(count);
            let found = part.iova_to_phys(Iova((at << shift) + 5)).map(|found| found.phys.0);
            assert_eq!(found, naive.get(&at).map(|phys| phys + 5));
        }
        release(&part, &mut gather);
        drop(table);
        assert_eq!(pool.out.get(), 0, "tables leaked");
    });
}

#[test]
fn granule_of_4k() {
    // Miri's steps take a second each, and one seed makes all the calls.
    for seed in 0..if cfg!(miri) { 1 } else { 4 } {
        check(config(Granule::Size4K, Stage::One, 39), seed);
    }
}

#[test]
#[cfg_attr(miri, ignore = "the same calls on more tables")]
fn four_levels() {
    check(config(Granule::Size4K, Stage::One, 48), 7);
}

#[test]
#[cfg_attr(miri, ignore = "the same calls on a larger root")]
fn concatenated() {
    check(config(Granule::Size4K, Stage::Two, 32), 8);
}

#[test]
#[cfg_attr(miri, ignore = "its tables are large")]
fn granule_of_16k() {
    check(config(Granule::Size16K, Stage::One, 36), 9);
}

#[test]
#[cfg_attr(miri, ignore = "its tables are large")]
fn granule_of_64k() {
    check(config(Granule::Size64K, Stage::Two, 42), 10);
    // The root is of level 3.
    check(config(Granule::Size64K, Stage::Two, 32), 11);
}
