//! Lists of single pages in tables that exist: their own path, and the cases that it leaves to the
//! general code.

use std::vec::Vec;

use crate::address::{Iova, PhysAddr, Segment};
use crate::format::{Access, Attributes, Config, Descriptor, Granule, LAST, Stage};
use crate::gather::Gather;
use crate::table::{MapError, PageTable};
use crate::testing::{Event, Recorder, config, rw, with_arena, with_arena_at};

/// The shape with that path.
const FOUR: Config = config(Granule::Size4K, Stage::One, 48);
const PAGE: u64 = 4096;
const ENTRIES: u64 = 512;

/// Pages far apart.
fn list(count: u64) -> Vec<Segment> {
    let page = |n: u64| Segment { phys: PhysAddr((2 * n + 1) << 24 | PAGE), len: PAGE };
    (0..count).map(page).collect()
}

/// Calls `test` with a table that has the last-level tables of its first 4 MiB, and is empty but for
/// the last page there.
fn with_tables(test: impl FnOnce(&mut PageTable<&crate::pool::Arena<'_>>)) {
    with_arena(Granule::Size4K, 16, |arena| {
        let mut table = PageTable::new(FOUR, arena).expect("a root");
        let mut gather = Gather::new();
        let mut part = table.whole();
        for (iova, stays) in [(0, false), (2 * ENTRIES - 1, true)] {
            let iova = Iova(iova * PAGE);
            part.map(iova, PhysAddr(0), PAGE, rw(Stage::One), &mut gather).expect("free");
            if !stays {
                part.unmap(iova, PAGE, &mut gather).expect("mapped");
            }
        }
        test(&mut table);
    });
}

/// Miri, for which an entry takes long, looks where tables begin and end.
fn is_empty(table: &PageTable<&crate::pool::Arena<'_>>) -> bool {
    let all = [(0, 2 * ENTRIES - 1)];
    let ends = [(0, 20), (ENTRIES - 20, ENTRIES + 20)];
    let looked_at = if cfg!(miri) { &ends[..] } else { &all[..] };
    looked_at
        .iter()
        .all(|(first, end)| table.ranges(Iova(first * PAGE)..Iova(end * PAGE)).next().is_none())
}

#[test]
fn lists_of_every_place_are_mapped() {
    with_tables(|table| {
        // Under Miri without the longest: each of its pages is looked for.
        let counts = [2, 3, 16, ENTRIES - 1];
        for count in counts.into_iter().take(if cfg!(miri) { 3 } else { counts.len() }) {
            let list = list(count);
            // In the first table, at its end, over its end, and in the second.
            for first in [0, 7, ENTRIES - count, ENTRIES - 1, ENTRIES] {
                let iova = Iova(first * PAGE);
                let mut gather = Gather::new();
                let mut part = table.whole();
                let mapped = part.map_sg(iova, &list, rw(Stage::One), &mut gather);
                assert_eq!(mapped, Ok(count * PAGE), "{count} from {first}");
                for (n, segment) in (first..).zip(&list) {
                    let found = part.iova_to_phys(Iova(n * PAGE)).expect("mapped");
                    assert_eq!((found.phys, found.level), (segment.phys, LAST));
                    let leaf = Descriptor::leaf(segment.phys, LAST, rw(Stage::One).bits());
                    assert_eq!(found.descriptor, leaf);
                }
                assert_eq!(part.unmap(iova, count * PAGE, &mut gather), Ok(count * PAGE));
                assert!(is_empty(table));
            }
        }
    });
}

/// A processor may read leaves by pairs, at addresses that need not be aligned like physical ones.
#[test]
fn tables_may_begin_at_any_word() {
    for offset in [0, 8] {
        with_arena_at(offset, Granule::Size4K, 4, |arena| {
            let mut table = PageTable::new(FOUR, arena).expect("a root");
            let mut part = table.whole();
            let counts: &[u64] = if cfg!(miri) { &[19] } else { &[1, 15, 16, 17, 33, 70] };
            for (&count, first) in counts.iter().flat_map(|count| [(count, 0), (count, 3)]) {
                let (iova, size) = (Iova(first * PAGE), count * PAGE);
                let mut gather = Gather::new();
                let mapped = part.map_sg(iova, &list(count), rw(Stage::One), &mut gather);
                assert_eq!(mapped, Ok(size));
                // A hole is not counted.
                let hole = Iova(iova.0 + (count / 2) * PAGE);
                assert_eq!(part.unmap(hole, PAGE, &mut gather), Ok(PAGE));
                let unmapped = part.unmap(iova, size, &mut Gather::new());
                assert_eq!(unmapped, Ok(size - PAGE), "{count} from {first}");
                assert_eq!(part.ranges(Iova(0)..Iova(1 << 21)).count(), 0);
            }
        });
    }
}

#[test]
fn lists_that_cannot_be_are_refused_and_change_nothing() {
    with_tables(|table| {
        let attributes = rw(Stage::One);
        let other = Attributes::new(Stage::Two, Access::Read);
        let mut gather = Gather::new();
        let mut map = |iova, list: &[Segment], attributes| {
            let (mut low, _) = table.whole().split_at(Iova(8 * PAGE));
            let mapped = low.map_sg(Iova(iova), list, attributes, &mut gather);
            (mapped, is_empty(table))
        };
        assert_eq!(map(0, &list(3), other), (Err(MapError::Stage), true));
        let unaligned = MapError::Unaligned { iova: Iova(8), value: 8, to: PAGE };
        assert_eq!(map(8, &list(3), attributes), (Err(unaligned), true));
        for iova in [6 * PAGE, 8 * PAGE, 1 << 48, u64::MAX - PAGE + 1] {
            let (mapped, empty) = map(iova, &list(3), attributes);
            assert!(matches!(mapped, Err(MapError::IovaRange { .. })), "{mapped:?}");
            assert!(empty);
        }
        for at in 0..3 {
            let mut wrong = list(3);
            wrong[at].phys.0 |= 1 << 48;
            let (mapped, empty) = map(0, &wrong, attributes);
            assert!(matches!(mapped, Err(MapError::PhysRange { .. })), "{mapped:?}");
            assert!(empty);
            let mut wrong = list(3);
            wrong[at].len = 0;
            let iova = Iova(at as u64 * PAGE);
            assert_eq!(map(0, &wrong, attributes), (Err(MapError::Empty(iova)), true));
        }
        // A segment of two pages is for the general code.
        let mut longer = list(3);
        longer[1].len = 2 * PAGE;
        assert_eq!(map(0, &longer, attributes), (Ok(4 * PAGE), false));
    });
}

#[test]
fn a_page_in_the_way_is_named() {
    with_tables(|table| {
        for at in 0..3 {
            let mut part = table.whole();
            let mut gather = Gather::new();
            let iova = Iova(at * PAGE);
            part.map(iova, PhysAddr(0), PAGE, rw(Stage::One), &mut gather).expect("free");
            let descriptor = Descriptor::leaf(PhysAddr(0), LAST, rw(Stage::One).bits()).0;
            let mapped = part.map_sg(Iova(0), &list(3), rw(Stage::One), &mut gather);
            assert_eq!(mapped, Err(MapError::Occupied { iova, level: LAST, descriptor }));
            assert_eq!(part.unmap(Iova(0), 3 * PAGE, &mut gather), Ok(PAGE));
            assert!(is_empty(table));
        }
    });
}

/// The stores, their cleaning and the barrier, in this order and nothing else.
#[test]
fn a_list_is_stored_cleaned_and_waited_for() {
    with_arena(Granule::Size4K, 16, |arena| {
        let pool = Recorder::<_, false>::new(arena);
        let mut table = PageTable::new(FOUR, &pool).expect("a root");
        let mut part = table.whole();
        let mut gather = Gather::new();
        part.map(Iova(0), PhysAddr(0), PAGE, rw(Stage::One), &mut gather).expect("free");
        pool.events.take();
        let list = list(2);
        part.map_sg(Iova(5 * PAGE), &list, rw(Stage::One), &mut gather).expect("free");
        let leaf = |n: usize| Descriptor::leaf(list[n].phys, LAST, rw(Stage::One).bits()).0;
        let stores = [Event::Store(5, leaf(0)), Event::Store(6, leaf(1))];
        let rest = [Event::Clean(5..7), Event::Barrier];
        assert_eq!(pool.events.take(), [stores, rest].concat());
    });
}

/// A list cleans the entries above its leaves that another processor may not have cleaned, as a single
/// page does; so does a list of whole tables.
#[test]
#[cfg(target_has_atomic = "64")]
fn a_way_that_is_not_marked_is_cleaned() {
    with_arena(Granule::Size4K, 16, |arena| {
        let pool = Recorder::<_, false>::new(arena);
        pool.marks.set(false);
        let mut table = PageTable::new(FOUR, &pool).expect("a root");
        // Both parts share the tables above the last level, and the first one of those.
        let (mut low, mut high) = table.whole().split_at(Iova(8 * PAGE));
        let mut gather = Gather::new();
        let mut entries = |part: &mut crate::table::Part<'_, _>, first, count| {
            pool.events.take();
            let iova = Iova(first * PAGE);
            part.map_sg(iova, &list(count), rw(Stage::One), &mut gather).expect("free");
            let events = pool.events.take();
            assert_eq!(events.last(), Some(&Event::Barrier));
            let is_one = |event: &&Event| matches!(event, Event::Clean(at) if at.len() == 1);
            events.iter().filter(is_one).count()
        };
        entries(&mut low, 0, 2);
        // Cleaned: three entries of the tables on the way; the pages are cleaned together.
        assert_eq!(entries(&mut low, 2, 2), 3);
        // Cleaned: two entries on the way, and the one that leads to the new table.
        assert_eq!(entries(&mut high, ENTRIES, ENTRIES), 3);
    });
}
