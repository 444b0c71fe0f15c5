//! Single pages: their own paths, and the cases that these leave to the general code.

use super::release;
use crate::address::{Iova, PhysAddr, Segment};
use crate::format::{Access, Attributes, Config, Descriptor, Granule, LAST, Stage};
use crate::gather::{Gather, Run};
use crate::pool::Pool;
use crate::table::{MapError, PageTable, UnmapError};
use crate::testing::{Counting, Event, Recorder, config, rw, with_arena};

/// Every granule and depth; the first four have paths of their own.
const CONFIGS: [Config; 8] = [
    config(Granule::Size4K, Stage::One, 48),
    config(Granule::Size4K, Stage::One, 40),
    config(Granule::Size4K, Stage::One, 45),
    config(Granule::Size4K, Stage::Two, 48),
    config(Granule::Size4K, Stage::One, 39),
    config(Granule::Size4K, Stage::Two, 40),
    config(Granule::Size16K, Stage::One, 47),
    config(Granule::Size64K, Stage::Two, 42),
];

fn configs() -> impl Iterator<Item = Config> {
    CONFIGS.into_iter().take(if cfg!(miri) { 1 } else { CONFIGS.len() })
}

fn run(config: Config, iova: u64) -> Run {
    Run {
        start: Iova(iova),
        end: Iova(iova + config.granule.bytes()),
        stride: config.granule.shift(),
        tables: false,
        level: Some(LAST as u8),
    }
}

/// Maps, looks up and unmaps pages at the ends of tables and of the input range.
fn check<P: Pool>(config: Config, pool: P) {
    let page = config.granule.bytes();
    let mut table = PageTable::new(config, pool).expect("a root");
    let end = table.geometry().input_end();
    let per_table = page / 8 * page;
    let mut part = table.whole();
    // The last two differ from others by their tables' addresses only: Miri goes without.
    let places = [0, page, 3 * per_table - page, end - page, 3 * per_table, end / 2];
    for &iova in &places[..if cfg!(miri) { 4 } else { 6 }] {
        let phys = PhysAddr(0x12_3456_0000);
        let segment = [Segment { phys, len: page }];
        let mut gather = Gather::new();
        // Twice: the first time tables are missing.
        for _ in 0..2 {
            let mapped = part.map_sg(Iova(iova), &segment, rw(config.stage), &mut gather);
            assert_eq!(mapped, Ok(page), "{iova:#x}");
            let found = part.iova_to_phys(Iova(iova + page - 1)).expect("mapped");
            assert_eq!((found.phys.0, found.level), (phys.0 + page - 1, LAST));
            let leaf = Descriptor::leaf(phys, LAST, rw(config.stage).bits());
            assert_eq!(found.descriptor, leaf);
            for neighbour in [iova.wrapping_sub(1), iova + page] {
                assert_eq!(part.iova_to_phys(Iova(neighbour)), None);
            }
            let again = part.map_sg(Iova(iova), &segment, rw(config.stage), &mut gather);
            let descriptor = leaf.0;
            let occupied = MapError::Occupied { iova: Iova(iova), level: LAST, descriptor };
            assert_eq!(again, Err(occupied));
            assert!(gather.is_empty());
            assert_eq!(part.unmap(Iova(iova), page, &mut gather), Ok(page));
            assert_eq!(gather.runs(), Some(&[run(config, iova)][..]));
            assert_eq!(part.iova_to_phys(Iova(iova)), None);
            gather = Gather::new();
            // There is nothing more.
            assert_eq!(part.unmap(Iova(iova), page, &mut gather), Ok(0));
            assert!(gather.is_empty());
        }
    }
}

#[test]
fn a_page_is_mapped_and_unmapped_in_every_shape() {
    for config in configs() {
        with_arena(config.granule, 80, |arena| {
            check(config, arena);
            check(config, Counting::new(arena));
            check(config, Recorder::<_, true>::new(arena));
        });
    }
}

#[test]
fn what_a_page_cannot_be_is_said_as_for_any_size() {
    for config in configs() {
        let page = config.granule.bytes();
        with_arena(config.granule, 16, |arena| {
            let mut table = PageTable::new(config, arena).expect("a root");
            let end = table.geometry().input_end();
            let output_end = table.geometry().output_end();
            let (mut low, mut high) = table.whole().split_at(Iova(4 * page));
            let mut gather = Gather::new();
            let attributes = rw(config.stage);
            let mut map = |iova, phys, attributes| {
                low.map(Iova(iova), PhysAddr(phys), page, attributes, &mut gather)
            };
            assert_eq!(map(3 * page, 0, attributes), Ok(()));
            let other = match config.stage {
                Stage::One => Stage::Two,
                Stage::Two => Stage::One,
            };
            assert_eq!(map(0, 0, Attributes::new(other, Access::Read)), Err(MapError::Stage));
            let unaligned = |value| MapError::Unaligned { iova: Iova(0), value, to: page };
            assert_eq!(map(0, page / 2, attributes), Err(unaligned(page / 2)));
            let refused = MapError::Unaligned { iova: Iova(8), value: 8, to: page };
            assert_eq!(map(8, 0, attributes), Err(refused));
            let beyond = map(0, output_end, attributes);
            assert!(matches!(beyond, Err(MapError::PhysRange { .. })), "{beyond:?}");
            let outside = [4 * page, end, end + page, u64::MAX - page + 1];
            for iova in outside {
                let out = map(iova, 0, attributes);
                assert!(matches!(out, Err(MapError::IovaRange { .. })), "{out:?}");
            }
            for iova in outside {
                let out = low.unmap(Iova(iova), page, &mut gather);
                assert!(matches!(out, Err(UnmapError::IovaRange { .. })), "{out:?}");
            }
            // The neighbour's part shares the tables, and does not reach this one's pages.
            for iova in [0, 3 * page] {
                let out = high.unmap(Iova(iova), page, &mut gather);
                assert!(matches!(out, Err(UnmapError::IovaRange { .. })), "{out:?}");
            }
            let unaligned = UnmapError::Unaligned { iova: Iova(8), value: 8, to: page };
            assert_eq!(low.unmap(Iova(8), page, &mut gather), Err(unaligned));
            assert!(gather.is_empty());
            assert_eq!(low.unmap(Iova(3 * page), page, &mut gather), Ok(page));
        });
    }
}

#[test]
fn a_block_on_the_way_is_met_as_for_any_size() {
    for (config, level) in [
        (config(Granule::Size4K, Stage::One, 48), 2),
        (config(Granule::Size4K, Stage::One, 48), 1),
        (config(Granule::Size4K, Stage::One, 39), 2),
        (config(Granule::Size16K, Stage::One, 47), 2),
    ] {
        let page = config.granule.bytes();
        with_arena(config.granule, 16, |arena| {
            let mut table = PageTable::new(config, arena).expect("a root");
            let block = table.geometry().span(level);
            let mut part = table.whole();
            let mut gather = Gather::new();
            let attributes = rw(config.stage);
            assert_eq!(
                part.map(Iova(block), PhysAddr(block), block, attributes, &mut gather),
                Ok(())
            );
            let descriptor = Descriptor::leaf(PhysAddr(block), level, attributes.bits()).0;
            for iova in [block, block + page, 2 * block - page].map(Iova) {
                let mapped = part.map(iova, PhysAddr(0), page, attributes, &mut gather);
                assert_eq!(mapped, Err(MapError::Occupied { iova, level, descriptor }));
                let cut = UnmapError::PartOfBlock { iova: Iova(block), level, descriptor };
                assert_eq!(part.unmap(iova, page, &mut gather), Err(cut));
            }
            assert!(gather.is_empty());
            assert!(part.iova_to_phys(Iova(block)).is_some());
        });
    }
}

/// Records exactly the store, its cleaning and the barrier, in this order. A direct store is not
/// recorded; the test reads it in the table.
#[test]
fn a_page_is_stored_cleaned_and_waited_for() {
    fn check<const DIRECT: bool>(config: Config) {
        with_arena(config.granule, 16, |arena| {
            let pool = Recorder::<_, DIRECT>::new(arena);
            let page = config.granule.bytes();
            let mut table = PageTable::new(config, &pool).expect("a root");
            let mut part = table.whole();
            let mut gather = Gather::new();
            let attributes = rw(config.stage);
            let leaf = Descriptor::leaf(PhysAddr(page), LAST, attributes.bits()).0;
            part.map(Iova(0), PhysAddr(0), page, attributes, &mut gather).expect("free");
            let expected = |value| {
                let store = (!DIRECT).then_some(Event::Store(5, value));
                let rest = [Event::Clean(5..6), Event::Barrier];
                store.into_iter().chain(rest).collect::<std::vec::Vec<_>>()
            };
            pool.events.take();
            part.map(Iova(5 * page), PhysAddr(page), page, attributes, &mut gather).expect("free");
            assert_eq!(pool.events.take(), expected(leaf), "{config:?}");
            part.unmap(Iova(5 * page), page, &mut gather).expect("mapped");
            assert_eq!(pool.events.take(), expected(0), "{config:?}");
        });
    }
    for config in configs() {
        check::<false>(config);
        check::<true>(config);
    }
}

/// A table that another processor has just published is not marked as clean: then the mapping cleans
/// the whole way itself.
#[test]
#[cfg(target_has_atomic = "64")]
fn a_way_that_is_not_marked_is_cleaned() {
    for config in configs() {
        with_arena(config.granule, 16, |arena| {
            let pool = Recorder::<_, false>::new(arena);
            pool.marks.set(false);
            let page = config.granule.bytes();
            let mut table = PageTable::new(config, &pool).expect("a root");
            let levels = 1 + LAST - table.geometry().start_level();
            // Both parts share all tables, so none is marked when it is stored.
            let (mut low, _high) = table.whole().split_at(Iova(4 * page));
            let mut gather = Gather::new();
            let mut cleaned = |n: u64| {
                pool.events.take();
                let attributes = rw(config.stage);
                low.map(Iova(n * page), PhysAddr(0), page, attributes, &mut gather).expect("free");
                let events = pool.events.take();
                assert_eq!(events.last(), Some(&Event::Barrier));
                events.iter().filter(|event| matches!(event, Event::Clean(_))).count() as u32
            };
            cleaned(0);
            assert_eq!(cleaned(1), levels, "{config:?}");
        });
    }
}

/// Pages that follow each other, and others, into a gather that is not empty.
#[test]
fn pages_join_the_runs_before_them() {
    for config in configs() {
        let page = config.granule.bytes();
        with_arena(config.granule, 16, |arena| {
            let mut table = PageTable::new(config, arena).expect("a root");
            let mut part = table.whole();
            let mut gather = Gather::new();
            for n in [1, 2, 4, 5, 3, 9] {
                let phys = PhysAddr(n << 30);
                part.map(Iova(n * page), phys, page, rw(config.stage), &mut gather).expect("free");
            }
            for n in [2, 1, 4, 5, 9] {
                assert_eq!(part.unmap(Iova(n * page), page, &mut gather), Ok(page));
            }
            let of = |first: u64, last: u64| Run {
                end: Iova((last + 1) * page),
                ..run(config, first * page)
            };
            assert_eq!(gather.runs(), Some(&[of(1, 2), of(4, 5), of(9, 9)][..]));
            gather.record_everything();
            assert_eq!(part.unmap(Iova(3 * page), page, &mut gather), Ok(page));
            assert_eq!(gather.runs(), None);
            release(&part, &mut gather);
        });
    }
}
