//! Lists that begin with whole tables, where the table above exists already.

use std::vec::Vec;

use super::release;
use crate::address::{Iova, PhysAddr, Segment};
use crate::format::{Granule, LAST, Stage};
use crate::gather::Gather;
use crate::pool::Pool;
use crate::table::{MapError, PageTable, Part};
use crate::testing::{Counting, config, rw, with_arena};

/// Single pages, none of which begins a block or continues the one before it.
fn list(granule: Granule, count: u64) -> Vec<Segment> {
    let page = granule.bytes();
    (0..count).map(|n| Segment { phys: PhysAddr((2 * n + 1) * page), len: page }).collect()
}

#[test]
fn tables_of_pages_are_filled_up_to_what_is_there() {
    let (k4, k16) = (Granule::Size4K, Granule::Size16K);
    // The last two's roots lead to tables of pages. One is four tables side by side; the list begins in the second.
    let shapes = [
        (k4, Stage::One, 48, 0),
        (k16, Stage::One, 48, 0),
        (k4, Stage::One, 39, 0),
        (k16, Stage::One, 34, 0),
        (k4, Stage::Two, 32, 1 << 30),
    ];
    // Miri takes a minute for each, and sees the same code in all.
    let seen = if cfg!(miri) { 1 } else { shapes.len() };
    for &(granule, stage, bits, base) in &shapes[..seen] {
        let page = granule.bytes();
        let per_table = page / 8;
        let span = per_table * page;
        with_arena(granule, 16, |arena| {
            let pool = Counting::new(arena);
            let mut table = PageTable::new(config(granule, stage, bits), &pool).expect("a root");
            let mut part = table.whole();
            let mut gather = Gather::new();
            let attributes = rw(stage);
            // A page in the third table from `base`.
            let taken = Iova(base + 2 * span + 5 * page);
            part.map(taken, PhysAddr(0), page, attributes, &mut gather).expect("free");
            let before = pool.out.get();
            let list = list(granule, 3 * per_table);
            let mapped = part.map_sg(Iova(base + span), &list, attributes, &mut gather);
            assert!(
                matches!(mapped, Err(MapError::Occupied { iova, level: LAST, .. }) if iova == taken)
            );
            let left: Vec<_> = part.ranges(Iova(0)..Iova(1 << bits)).map(|m| m.iova).collect();
            assert_eq!(left, [taken], "a call that fails leaves nothing");
            release(&part, &mut gather);
            assert_eq!(pool.out.get(), before);
            part.unmap(taken, page, &mut gather).expect("mapped");
            // The third table is used now, and the others are new.
            let mapped = part.map_sg(Iova(base + span), &list, attributes, &mut gather);
            assert_eq!(mapped, Ok(3 * span));
            assert_eq!(pool.out.get(), before + 2);
            assert_mapped(&part, base + span, &list);
            part.unmap(Iova(base + span), 3 * span, &mut gather).expect("mapped");
            if cfg!(miri) {
                return;
            }
            // Where a table of pages exists, where none above does, between two pages, over the end of a table above.
            part.map(taken, PhysAddr(0), page, attributes, &mut gather).expect("free");
            part.unmap(taken, page, &mut gather).expect("mapped");
            let end = (base + per_table * span - span).min((1 << bits) - 4 * span);
            for iova in [base + 2 * span, 1 << (bits - 1), base + span + page, end] {
                let mapped = part.map_sg(Iova(iova), &list, attributes, &mut gather);
                assert_eq!(mapped, Ok(3 * span));
                assert_mapped(&part, iova, &list);
                part.unmap(Iova(iova), 3 * span, &mut gather).expect("mapped");
                release(&part, &mut gather);
            }
        });
    }
}

fn assert_mapped<P: Pool>(part: &Part<'_, P>, iova: u64, list: &[Segment]) {
    for (n, segment) in (0..).zip(list) {
        let found = part.iova_to_phys(Iova(iova + n * segment.len)).expect("mapped");
        assert_eq!((found.phys, found.level), (segment.phys, LAST));
    }
}

/// What is wrong with a long list is found, and leaves nothing.
#[test]
fn whole_tables_are_mapped_where_they_may_be_and_if_all_is_right() {
    let page = Granule::Size4K.bytes();
    let span = 512 * page;
    with_arena(Granule::Size4K, 32, |arena| {
        let pool = Counting::new(arena);
        let mut table =
            PageTable::new(config(Granule::Size4K, Stage::One, 48), &pool).expect("a root");
        let (_, part) = table.whole().split_at(Iova(2 * span));
        let (mut part, _) = part.split_at(Iova(8 * span));
        let mut gather = Gather::new();
        part.map(Iova(7 * span), PhysAddr(0), page, rw(Stage::One), &mut gather).expect("free");
        let before = pool.out.get();
        let right = list(Granule::Size4K, 1536);
        let mut wrong = right.clone();
        wrong[700].phys.0 += 8;
        for (iova, stage, list) in [
            (2 * span, Stage::Two, &right),
            (0, Stage::One, &right),
            (8 * span, Stage::One, &right),
            (2 * span + 8, Stage::One, &right),
            (2 * span, Stage::One, &wrong),
        ] {
            let mapped = part.map_sg(Iova(iova), list, rw(stage), &mut gather);
            assert!(mapped.is_err(), "{iova:#x} {stage:?}");
            release(&part, &mut gather);
            assert_eq!(pool.out.get(), before);
            assert_eq!(part.ranges(Iova(0)..Iova(16 * span)).count(), 1);
        }
    });
}

#[test]
fn tables_beyond_the_part_are_not_touched() {
    let page = Granule::Size4K.bytes();
    let span = 512 * page;
    with_arena(Granule::Size4K, 16, |arena| {
        let mut table =
            PageTable::new(config(Granule::Size4K, Stage::One, 48), arena).expect("a root");
        let (mut low, high) = table.whole().split_at(Iova(span + span / 2));
        let mut gather = Gather::new();
        let attributes = rw(Stage::One);
        low.map(Iova(0), PhysAddr(0), page, attributes, &mut gather).expect("free");
        low.unmap(Iova(0), page, &mut gather).expect("mapped");
        let list = list(Granule::Size4K, 1024);
        let mapped = low.map_sg(Iova(0), &list, attributes, &mut gather);
        assert!(matches!(mapped, Err(MapError::IovaRange { .. })), "{mapped:?}");
        let mapped = low.map_sg(Iova(span), &list[..512], attributes, &mut gather);
        assert!(matches!(mapped, Err(MapError::IovaRange { .. })), "{mapped:?}");
        for part in [&low, &high] {
            assert_eq!(part.ranges(Iova(0)..Iova(4 * span)).count(), 0);
        }
    });
}

/// Pages that make up a block are mapped as one block, also after tables of pages.
#[test]
fn pages_that_make_up_a_block_become_one() {
    let page = Granule::Size4K.bytes();
    let span = 512 * page;
    with_arena(Granule::Size4K, 16, |arena| {
        let mut table =
            PageTable::new(config(Granule::Size4K, Stage::One, 48), arena).expect("a root");
        let mut part = table.whole();
        let mut gather = Gather::new();
        let attributes = rw(Stage::One);
        part.map(Iova(0), PhysAddr(0), page, attributes, &mut gather).expect("free");
        let mut list = list(Granule::Size4K, 512);
        list.extend((0..512).map(|n| Segment { phys: PhysAddr((1 << 40) + n * page), len: page }));
        assert_eq!(part.map_sg(Iova(span), &list, attributes, &mut gather), Ok(2 * span));
        let level = |iova| part.iova_to_phys(Iova(iova)).map(|found| found.level);
        assert_eq!((level(span), level(2 * span)), (Some(3), Some(2)));
    });
}
