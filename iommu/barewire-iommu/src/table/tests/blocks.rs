//! Leaves as large as address, size and alignment permit, and partial unmaps of them.

use std::vec::Vec;

use super::release;
use crate::address::{Iova, PhysAddr, Segment};
use crate::format::{Config, Granule, Stage};
use crate::gather::{Gather, Run};
use crate::pool::Pool;
use crate::table::{Mapping, PageTable, Part, UnmapError};
use crate::testing::{Counting, config, rw, with_arena};
use crate::tlbi::FlushError;

const K4: Config = config(Granule::Size4K, Stage::One, 39);
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Where all leaves of these tests are.
const SOME: std::ops::Range<Iova> = Iova(0)..Iova(8 * GIB);

/// Asserts the levels of the leaves in a range, run-length encoded. Miri looks at the first leaves only:
/// each look-up is the same code, and takes it milliseconds.
#[track_caller]
fn assert_levels<P: Pool>(part: &Part<'_, P>, iova: u64, size: u64, expected: &[(u32, usize)]) {
    if cfg!(miri) && expected.iter().any(|(_, count)| *count > 100) {
        let found = part.iova_to_phys(Iova(iova)).expect("mapped");
        assert_eq!(found.level, expected[0].0);
        return;
    }
    assert_eq!(levels(part, iova, size), expected);
}

/// The levels of the leaves in a range, run-length encoded.
fn levels<P: Pool>(part: &Part<'_, P>, iova: u64, size: u64) -> Vec<(u32, usize)> {
    let mut levels: Vec<(u32, usize)> = Vec::new();
    let mut at = iova;
    while at < iova + size {
        let found = part.iova_to_phys(Iova(at)).expect("mapped");
        match levels.last_mut() {
            Some((level, count)) if *level == found.level => *count += 1,
            _ => levels.push((found.level, 1)),
        }
        at += 1 << found.shift;
    }
    levels
}

fn map<P: Pool>(part: &mut Part<'_, P>, iova: u64, phys: u64, size: u64) {
    let mut gather = Gather::new();
    let stage = part.geometry().config().stage;
    part.map(Iova(iova), PhysAddr(phys), size, rw(stage), &mut gather).expect("it is free");
    assert!(gather.is_empty());
}

fn mapping(iova: u64, phys: u64, len: u64) -> Mapping {
    Mapping { iova: Iova(iova), phys: PhysAddr(phys), len, attributes: rw(Stage::One) }
}

#[test]
fn the_largest_leaves_that_fit() {
    with_arena(Granule::Size4K, 16, |arena| {
        let mut table = PageTable::new(K4, arena).expect("a root");
        let mut part = table.whole();
        // A page before 2 MiB, three 2 MiB blocks, one of 1 GiB, and the rest.
        let iova = GIB - 6 * MIB - 4 * KIB;
        let size = GIB + 8 * MIB + 8 * KIB;
        map(&mut part, iova, iova + 4 * GIB, size);
        assert_levels(&part, iova, size, &[(3, 1), (2, 3), (1, 1), (2, 1), (3, 1)]);
        let all: Vec<Mapping> = part.ranges(Iova(0)..Iova(u64::MAX)).collect();
        assert_eq!(all, [mapping(iova, iova + 4 * GIB, size)]);
        // And cut to the queried range.
        let cut: Vec<Mapping> = part.ranges(Iova(GIB + 4 * KIB)..Iova(2 * GIB)).collect();
        assert_eq!(cut, [mapping(GIB + 4 * KIB, 5 * GIB + 4 * KIB, GIB - 4 * KIB)]);
    });
}

#[test]
fn blocks_of_all_granules() {
    for (granule, bits, block) in [
        (Granule::Size4K, 32, 2 * MIB),
        (Granule::Size16K, 36, 32 * MIB),
        (Granule::Size64K, 42, 512 * MIB),
    ] {
        if cfg!(miri) && granule != Granule::Size4K {
            continue;
        }
        with_arena(granule, 8, |arena| {
            let mut table =
                PageTable::new(config(granule, Stage::One, bits), arena).expect("a root");
            let mut part = table.whole();
            map(&mut part, block, 3 * block, 2 * block);
            assert_levels(&part, block, 2 * block, &[(2, 2)]);
            // Different alignment: pages.
            map(&mut part, 4 * block, granule.bytes(), block);
            let pages = (block / granule.bytes()) as usize;
            assert_levels(&part, 4 * block, block, &[(3, pages)]);
        });
    }
}

#[test]
fn segments_that_continue_each_other_become_blocks() {
    with_arena(Granule::Size4K, 16, |arena| {
        let mut table = PageTable::new(K4, arena).expect("a root");
        let mut part = table.whole();
        let pages = |phys: u64, count: u64| {
            (0..count).map(move |n| Segment { phys: PhysAddr(phys + n * 4096), len: 4096 })
        };
        let piece = |phys, len| Segment { phys: PhysAddr(phys), len };
        // A block made of pages. A block made of two pieces, the second of which is longer than the
        // block; pages after it that complete the next block. 511 pages, one less than a block.
        let mut list: Vec<Segment> = pages(2 * MIB, 512).collect();
        list.push(piece(16 * MIB, MIB));
        list.push(piece(17 * MIB, MIB + 8 * KIB));
        list.extend(pages(17 * MIB + MIB + 8 * KIB, 510));
        list.extend(pages(32 * MIB, 511));
        list.extend(pages(40 * MIB, 1));
        let size = list.iter().map(|segment| segment.len).sum();
        assert_eq!(size, 8 * MIB);
        let mut gather = Gather::new();
        let mapped = part.map_sg(Iova(0), &list, rw(Stage::One), &mut gather);
        assert_eq!(mapped, Ok(size));
        assert_levels(&part, 0, size, &[(2, 3), (3, 512)]);
        let expected = [
            mapping(0, 2 * MIB, 2 * MIB),
            mapping(2 * MIB, 16 * MIB, 4 * MIB),
            mapping(6 * MIB, 32 * MIB, 2 * MIB - 4 * KIB),
            mapping(8 * MIB - 4 * KIB, 40 * MIB, 4 * KIB),
        ];
        assert!(part.ranges(SOME).eq(expected));
    });
}

#[test]
#[cfg_attr(miri, ignore = "the same calls on larger tables")]
fn map_pages_makes_no_larger_leaves() {
    with_arena(Granule::Size4K, 16, |arena| {
        let mut table = PageTable::new(K4, arena).expect("a root");
        let mut part = table.whole();
        let mut gather = Gather::new();
        let mut pages = |part: &mut Part<'_, _>, iova, shift, count| {
            let phys = PhysAddr(8 * GIB);
            part.map_pages(Iova(iova), phys, shift, count, rw(Stage::One), &mut gather)
        };
        pages(&mut part, 0, 12, 512).expect("free");
        assert_levels(&part, 0, 2 * MIB, &[(3, 512)]);
        pages(&mut part, GIB, 21, 512).expect("free");
        assert_levels(&part, GIB, GIB, &[(2, 512)]);
        pages(&mut part, 2 * GIB, 30, 2).expect("free");
        assert_levels(&part, 2 * GIB, 2 * GIB, &[(1, 2)]);
        let mut gather = Gather::new();
        assert_eq!(part.unmap_pages(Iova(2 * GIB), 30, 2, &mut gather), Ok(2 * GIB));
        assert_eq!(part.unmap_pages(Iova(GIB), 21, 512, &mut gather), Ok(GIB));
        release(&part, &mut gather);
        // An existing table stays although it is empty, so leaves are smaller.
        assert_eq!(part.unmap(Iova(0), MIB, &mut gather), Ok(MIB));
        assert_eq!(part.unmap(Iova(MIB), MIB, &mut gather), Ok(MIB));
        part.map_pages(Iova(0), PhysAddr(0), 21, 1, rw(Stage::One), &mut gather).expect("free");
        assert_levels(&part, 0, 2 * MIB, &[(3, 512)]);
    });
}

/// The outcome of an unmap: its result, the runs to invalidate, and the remaining mappings.
fn after<P: Pool>(
    part: &mut Part<'_, P>,
    unmap: impl FnOnce(&mut Part<'_, P>, &mut Gather) -> Result<u64, UnmapError>,
) -> (Result<u64, UnmapError>, Vec<Run>, Vec<Mapping>) {
    let mut gather = Gather::new();
    let result = unmap(part, &mut gather);
    let runs = gather.runs().expect("few").to_vec();
    release(part, &mut gather);
    (result, runs, part.ranges(SOME).collect())
}

fn run(start: u64, end: u64, stride: u32, level: u8) -> Run {
    Run { start: Iova(start), end: Iova(end), stride, tables: false, level: Some(level) }
}

#[test]
fn part_of_a_block_is_refused() {
    with_arena(Granule::Size4K, 8, |arena| {
        let mut table = PageTable::new(K4, arena).expect("a root");
        let mut part = table.whole();
        map(&mut part, 2 * MIB, 0, 4 * MIB);
        let all = [mapping(2 * MIB, 0, 4 * MIB)];
        let refused = |iova, phys| {
            let descriptor = phys | rw(Stage::One).bits() | 1;
            Err(UnmapError::PartOfBlock { iova: Iova(iova), level: 2, descriptor })
        };
        let (first, second) = (refused(2 * MIB, 0), refused(4 * MIB, 2 * MIB));
        for (iova, size, error) in [
            (2 * MIB, 4 * KIB, first),
            (2 * MIB + 4 * KIB, 4 * KIB, first),
            (4 * MIB - 4 * KIB, 4 * KIB, first),
            (3 * MIB, 3 * MIB, first),
            (4 * MIB, 2 * MIB - 4 * KIB, second),
            // The first block as a whole, and still nothing is removed.
            (0, 4 * MIB + 4 * KIB, second),
        ] {
            let result = after(&mut part, |part, gather| part.unmap(Iova(iova), size, gather));
            assert_eq!(result, (error, Vec::new(), all.to_vec()), "{iova:#x} {size:#x}");
        }
    });
}

#[test]
fn part_of_a_block_goes_where_hardware_takes_it() {
    with_arena(Granule::Size4K, 16, |arena| {
        let pool = Counting::new(arena);
        let mut table = PageTable::new(Config { bbml2: true, ..K4 }, &pool).expect("a root");
        let mut part = table.whole();
        map(&mut part, GIB, 4 * GIB, 3 * GIB);
        // From inside the first block to inside the third: two levels of each are split.
        let (start, end) = (GIB + 6 * MIB + 8 * KIB, 3 * GIB + 2 * MIB + 4 * KIB);
        let before = pool.out.get();
        let unmap = |part: &mut Part<'_, _>, gather: &mut Gather| {
            part.unmap(Iova(start), end - start, gather)
        };
        let (result, runs, left) = after(&mut part, unmap);
        assert_eq!(result, Ok(end - start));
        assert_eq!(runs, [run(GIB, 4 * GIB, 30, 1)]);
        let expected =
            [mapping(GIB, 4 * GIB, start - GIB), mapping(end, 3 * GIB + end, 4 * GIB - end)];
        assert_eq!(left, expected);
        assert_eq!(pool.out.get() - before, 4);
        assert_levels(&part, GIB, start - GIB, &[(2, 3), (3, 2)]);
        assert_levels(&part, end, 4 * GIB - end, &[(3, 511), (2, 510)]);
        drop(table);
        assert_eq!(pool.out.get(), 0);
    });
}

#[test]
fn both_ends_may_cut_one_block() {
    with_arena(Granule::Size4K, 16, |arena| {
        let mut table = PageTable::new(Config { bbml2: true, ..K4 }, arena).expect("a root");
        let mut part = table.whole();
        map(&mut part, GIB, 4 * GIB, GIB);
        let (start, end) = (GIB + 4 * KIB, GIB + 12 * KIB);
        let unmap = |part: &mut Part<'_, _>, gather: &mut Gather| {
            part.unmap(Iova(start), end - start, gather)
        };
        let (result, runs, left) = after(&mut part, unmap);
        assert_eq!((result, runs), (Ok(8 * KIB), std::vec![run(GIB, 2 * GIB, 30, 1)]));
        let expected = [mapping(GIB, 4 * GIB, 4 * KIB), mapping(end, 3 * GIB + end, 2 * GIB - end)];
        assert_eq!(left, expected);
    });
}

#[test]
fn a_block_of_two_parts_is_split_by_neither() {
    with_arena(Granule::Size4K, 8, |arena| {
        let mut table = PageTable::new(Config { bbml2: true, ..K4 }, arena).expect("a root");
        map(&mut table.whole(), 0, 0, 2 * MIB);
        let (mut low, mut high) = table.whole().split_at(Iova(MIB));
        for part in [&mut low, &mut high] {
            let start = part.range().start;
            let refused = part.unmap(start, MIB, &mut Gather::new());
            assert!(matches!(refused, Err(UnmapError::PartOfBlock { iova: Iova(0), .. })));
        }
    });
}

#[test]
fn quiet_devices_let_a_block_be_broken_first() {
    with_arena(Granule::Size4K, 8, |arena| {
        let mut table = PageTable::new(K4, arena).expect("a root");
        let mut part = table.whole();
        map(&mut part, 0, GIB, 4 * MIB);
        let mut told = Vec::new();
        let (result, runs, left) = after(&mut part, |part, gather| {
            part.unmap_quiesced(Iova(MIB), 2 * MIB, gather, |run| {
                told.push(*run);
                Ok(())
            })
        });
        assert_eq!(result, Ok(2 * MIB));
        assert_eq!(told, [run(0, 2 * MIB, 21, 2), run(2 * MIB, 4 * MIB, 21, 2)]);
        assert_eq!(runs, [run(0, 4 * MIB, 21, 2)]);
        assert_eq!(left, [mapping(0, GIB, MIB), mapping(3 * MIB, GIB + 3 * MIB, MIB)]);
    });
}

#[test]
fn a_block_that_cannot_be_invalidated_stands_as_before() {
    with_arena(Granule::Size4K, 8, |arena| {
        let pool = Counting::new(arena);
        let mut table = PageTable::new(K4, &pool).expect("a root");
        let mut part = table.whole();
        map(&mut part, 0, GIB, 4 * MIB);
        let before = pool.out.get();
        let mut calls = 0;
        let (result, runs, left) = after(&mut part, |part, gather| {
            part.unmap_quiesced(Iova(MIB), 2 * MIB, gather, |_| {
                calls += 1;
                if calls == 2 { Err(FlushError::Timeout) } else { Ok(()) }
            })
        });
        let error = FlushError::Timeout;
        assert_eq!(result, Err(UnmapError::Flush { iova: Iova(2 * MIB), error }));
        assert_eq!((runs, left), (Vec::new(), std::vec![mapping(0, GIB, 4 * MIB)]));
        assert_eq!(pool.out.get(), before);
    });
}
