//! A call that fails at any point leaves nothing behind.

use std::vec::Vec;

use super::release;
use crate::address::{Iova, PhysAddr, Segment};
use crate::format::{Config, Granule, Stage};
use crate::gather::Gather;
use crate::table::{MapError, PageTable, UnmapError};
use crate::testing::{Counting, config, rw, with_arena};

const K4: Config = config(Granule::Size4K, Stage::One, 39);
const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn scattered(pages: u64) -> Vec<Segment> {
    (0..pages).map(|n| Segment { phys: PhysAddr((3 * n + 1) * PAGE), len: PAGE }).collect()
}

#[test]
fn memory_may_run_out_at_every_table() {
    with_arena(Granule::Size4K, 32, |arena| {
        // Across the end of 1 GiB: two tables of level 2, and six of level 3, of which four are covered
        // whole. For Miri one is, of three.
        let whole = if cfg!(miri) { 1 } else { 4 };
        let below_gib = if cfg!(miri) { 2 } else { 4 } * MIB;
        let (iova, pages) = (GIB - below_gib - 8 * PAGE, whole * 512 + 16);
        let list = scattered(pages);
        let mut failures = 0;
        for allocations in 0.. {
            let pool = Counting::new(arena);
            let mut table = PageTable::new(K4, &pool).expect("a root");
            let mut part = table.whole();
            let mut gather = Gather::new();
            pool.left.set(allocations);
            let result = part.map_sg(Iova(iova), &list, rw(Stage::One), &mut gather);
            if result == Ok(pages * PAGE) {
                break;
            }
            failures += 1;
            assert!(matches!(result, Err(MapError::OutOfMemory(_))));
            assert_eq!(part.ranges(Iova(0)..Iova(u64::MAX)).count(), 0);
            // All that had been reachable must be invalidated.
            if let Err(MapError::OutOfMemory(at)) = result {
                let runs = gather.runs().expect("few");
                let mapped = |at| runs.iter().any(|run| (run.start..run.end).contains(&Iova(at)));
                let table = (at.0 & !(2 * MIB - 1)).max(iova);
                assert!((iova..table).step_by(PAGE as usize).all(mapped));
            }
            release(&part, &mut gather);
            // Tables that the call covers only in part may stay: two, at its beginning.
            assert!(pool.out.get() <= 3, "{} after {allocations}", pool.out.get());
            pool.left.set(usize::MAX);
            let again = part.map_sg(Iova(iova), &list, rw(Stage::One), &mut gather);
            assert_eq!(again, Ok(pages * PAGE));
            drop(table);
            assert_eq!(pool.out.get(), 0);
        }
        assert_eq!(failures, whole + 4);
    });
}

#[test]
fn tables_that_neighbours_may_use_stay() {
    with_arena(Granule::Size4K, 32, |arena| {
        let pool = Counting::new(arena);
        let mut table = PageTable::new(K4, &pool).expect("a root");
        let (_, high) = table.whole().split_at(Iova(MIB));
        let (mut middle, _) = high.split_at(Iova(5 * MIB));
        let mut gather = Gather::new();
        // The last page is the neighbour's. Three tables of level 3 are allocated: the first is
        // shared with a neighbour, as is the table above; the second is this part's only; the third
        // is never published.
        let list = scattered(4 * 256 + 1);
        let result = middle.map_sg(Iova(MIB), &list, rw(Stage::One), &mut gather);
        assert!(matches!(result, Err(MapError::IovaRange { iova: Iova(at), .. }) if at == 5 * MIB));
        assert_eq!(middle.ranges(Iova(0)..Iova(GIB)).count(), 0);
        assert_eq!(gather.tables(), 1);
        release(&middle, &mut gather);
        assert_eq!(pool.out.get(), 1 + 1 + 1);
    });
}

#[test]
fn what_was_there_before_stays() {
    with_arena(Granule::Size4K, 32, |arena| {
        let pool = Counting::new(arena);
        let mut table = PageTable::new(K4, &pool).expect("a root");
        let mut part = table.whole();
        let mut gather = Gather::new();
        let attributes = rw(Stage::One);
        for at in [0, 2 * MIB + 8 * PAGE, 4 * MIB] {
            part.map(Iova(at), PhysAddr(GIB), PAGE, attributes, &mut gather).expect("free");
        }
        let before: Vec<_> = part.ranges(Iova(0)..Iova(GIB)).collect();
        let result = part.map_sg(Iova(PAGE), &scattered(1024), attributes, &mut gather);
        assert!(
            matches!(result, Err(MapError::Occupied { iova: Iova(at), .. }) if at == 2 * MIB + 8 * PAGE)
        );
        assert!(part.ranges(Iova(0)..Iova(GIB)).eq(before));
        release(&part, &mut gather);
        drop(table);
        assert_eq!(pool.out.get(), 0);
    });
}

#[test]
fn a_split_needs_all_its_tables_or_none() {
    with_arena(Granule::Size4K, 32, |arena| {
        for allocations in 0..=4 {
            let pool = Counting::new(arena);
            let mut table = PageTable::new(Config { bbml2: true, ..K4 }, &pool).expect("a root");
            let mut part = table.whole();
            let mut gather = Gather::new();
            part.map(Iova(0), PhysAddr(0), 4 * GIB, rw(Stage::One), &mut gather).expect("free");
            pool.left.set(allocations);
            let result = part.unmap(Iova(PAGE), 3 * GIB, &mut gather);
            if allocations == 4 {
                assert_eq!(result, Ok(3 * GIB));
            } else {
                let at = if allocations < 2 { 0 } else { 3 * GIB };
                assert_eq!(result, Err(UnmapError::OutOfMemory(Iova(at))));
                assert!(gather.is_empty());
                assert_eq!(
                    part.ranges(Iova(0)..Iova(u64::MAX)).map(|m| m.len).sum::<u64>(),
                    4 * GIB
                );
                assert_eq!(pool.out.get(), 1);
            }
        }
    });
}

#[test]
fn nested_tables_go_with_the_one_above() {
    with_arena(Granule::Size4K, 32, |arena| {
        let pool = Counting::new(arena);
        let mut table =
            PageTable::new(config(Granule::Size4K, Stage::One, 48), &pool).expect("a root");
        let mut part = table.whole();
        let mut gather = Gather::new();
        for at in [0, 2 * MIB, GIB, GIB + 4 * MIB] {
            part.map(Iova(at), PhysAddr(0), PAGE, rw(Stage::One), &mut gather).expect("free");
        }
        assert_eq!(pool.out.get(), 1 + 1 + 2 + 4);
        // 512 GiB at once: the level 1 table and all tables below it, in one run.
        assert_eq!(part.unmap(Iova(0), 512 * GIB, &mut gather), Ok(512 * GIB));
        assert_eq!(gather.tables(), 7);
        let runs = gather.runs().expect("one");
        assert_eq!((runs.len(), runs[0].start, runs[0].end), (1, Iova(0), Iova(512 * GIB)));
        assert!(runs[0].tables && runs[0].level.is_none() && runs[0].stride == 12);
        release(&part, &mut gather);
        assert!(gather.is_empty());
        assert_eq!(pool.out.get(), 1);
    });
}

#[test]
fn an_emptied_table_is_not_freed_by_less_than_its_span() {
    with_arena(Granule::Size4K, 32, |arena| {
        let mut table = PageTable::new(K4, arena).expect("a root");
        let mut part = table.whole();
        let mut gather = Gather::new();
        part.map(Iova(0), PhysAddr(PAGE), MIB, rw(Stage::One), &mut gather).expect("free");
        assert_eq!(part.unmap(Iova(0), MIB, &mut gather), Ok(MIB));
        assert_eq!(gather.tables(), 0);
        let runs = gather.runs().expect("one");
        assert_eq!((runs[0].stride, runs[0].tables, runs[0].level), (12, false, Some(3)));
        // A call that covers the table removes it, empty or not.
        assert_eq!(part.unmap(Iova(0), 2 * MIB, &mut gather), Ok(2 * MIB));
        assert_eq!(gather.tables(), 1);
        release(&part, &mut gather);
    });
}
