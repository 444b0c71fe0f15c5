//! Unmapping adjacent blocks, tables, pages and holes.

use std::vec::Vec;

use crate::address::{Iova, PhysAddr};
use crate::format::{Granule, Stage};
use crate::gather::{Gather, Run};
use crate::table::PageTable;
use crate::testing::{Counting, Event, Recorder, config, rw, with_arena};

/// The contents of a level 2 entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Has {
    Nothing,
    Block,
    Pages,
}

const MIXES: [[Has; 6]; 5] = {
    use Has::{Block, Nothing, Pages};
    [
        [Block, Block, Block, Block, Block, Block],
        [Block, Block, Pages, Pages, Block, Block],
        [Nothing, Block, Nothing, Block, Block, Nothing],
        [Pages, Block, Nothing, Pages, Pages, Block],
        [Pages, Pages, Block, Nothing, Nothing, Pages],
    ]
};

/// Every mix of entries, unmapped from each entry to each other entry, and from or to the middle of
/// pages.
#[test]
#[cfg_attr(miri, ignore = "hundreds of calls on large tables")]
fn everything_in_the_range_goes_and_nothing_else() {
    for granule in [Granule::Size4K, Granule::Size16K] {
        let config = config(granule, Stage::One, 47);
        let page = granule.bytes();
        for mix in MIXES {
            with_arena(granule, 64, |arena| {
                let pool = Counting::new(arena);
                let mut table = PageTable::new(config, &pool).expect("a root");
                let span = table.geometry().span(2);
                let half = span / 2;
                for from in 0..12 {
                    for to in from + 1..=12 {
                        check(&mut table, &mix, (from * half, to * half), page);
                    }
                }
            });
        }
    }
}

fn check<P: crate::pool::Pool>(
    table: &mut PageTable<P>,
    mix: &[Has],
    (from, to): (u64, u64),
    page: u64,
) {
    let span = table.geometry().span(2);
    let of = |at: u64| mix[(at / span) as usize];
    // A block is not cut.
    let cut = |at: u64| !at.is_multiple_of(span) && of(at) == Has::Block;
    if cut(from) || cut(to) {
        return;
    }
    let mut gather = Gather::new();
    let base = 4 * span;
    let mut part = table.whole();
    for (n, has) in (0..).zip(mix) {
        let phys = match has {
            Has::Nothing => continue,
            Has::Block => (n + 8) * span,
            Has::Pages => (n + 8) * span + page,
        };
        let attributes = rw(Stage::One);
        part.map(Iova(base + n * span), PhysAddr(phys), span, attributes, &mut gather)
            .expect("free");
    }
    let removed = part.unmap(Iova(base + from), to - from, &mut gather);
    let halves = |want: bool| {
        (0..2 * mix.len() as u64)
            .map(|half| half * span / 2)
            .filter(|at| of(*at) != Has::Nothing && (from..to).contains(at) == want)
            .collect::<Vec<_>>()
    };
    assert_eq!(removed, Ok(halves(true).len() as u64 * span / 2), "{mix:?} {from:#x} {to:#x}");
    for (gone, want) in [(true, false), (false, true)] {
        for at in halves(gone) {
            for at in [at, at + span / 2 - page] {
                let found = part.iova_to_phys(Iova(base + at)).is_some();
                assert_eq!(found, want, "{mix:?} {from:#x} {to:#x} {at:#x}");
            }
        }
    }
    // Every address that lost its translation is in a run, with the right properties.
    let runs = gather.runs().expect("fewer than nine runs").to_vec();
    for at in halves(true) {
        let whole = |half: &u64| (from..to).contains(half);
        let both = [at / span * span, at / span * span + span / 2].iter().all(whole);
        let (tables, level) = match of(at) {
            Has::Block => (false, Some(2)),
            Has::Pages if both => (true, None),
            _ => (false, Some(3)),
        };
        let covers =
            |run: &&Run| run.start.0 <= base + at && base + at < run.end.0 && run.tables == tables;
        let run = runs.iter().find(covers).unwrap_or_else(|| panic!("{mix:?} {at:#x}: {runs:x?}"));
        assert_eq!(run.level, level);
    }
    super::release(&table.whole(), &mut gather);
    // The rest is unmapped before the next check.
    let mut gather = Gather::new();
    table
        .whole()
        .unmap(Iova(base), mix.len() as u64 * span, &mut gather)
        .expect("no part of a block");
    super::release(&table.whole(), &mut gather);
}

/// Blocks side by side are cleared one by one, cleaned together and waited for once.
#[test]
fn blocks_are_cleaned_together() {
    with_arena(Granule::Size4K, 16, |arena| {
        let pool = Recorder::<_, false>::new(arena);
        let mut table =
            PageTable::new(config(Granule::Size4K, Stage::One, 48), &pool).expect("a root");
        let mut part = table.whole();
        let mut gather = Gather::new();
        let block = 2 << 20;
        part.map(Iova(2 * block), PhysAddr(0), 3 * block, rw(Stage::One), &mut gather)
            .expect("free");
        pool.events.take();
        assert_eq!(part.unmap(Iova(0), 512 * block, &mut gather), Ok(512 * block));
        assert_eq!(gather.tables(), 1, "the table of the blocks");
        part.map(Iova(2 * block), PhysAddr(0), 3 * block, rw(Stage::One), &mut gather)
            .expect("free");
        pool.events.take();
        assert_eq!(part.unmap(Iova(block), 8 * block, &mut gather), Ok(3 * block));
        let expected = [
            Event::Store(2, 0),
            Event::Store(3, 0),
            Event::Store(4, 0),
            Event::Clean(2..5),
            Event::Barrier,
        ];
        assert_eq!(pool.events.take(), expected);
    });
}
