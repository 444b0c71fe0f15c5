//! Each error, with its fields.

use std::format;

use crate::address::{Iova, PhysAddr, Segment};
use crate::format::{Config, ConfigError, Granule, Stage};
use crate::gather::Gather;
use crate::pool::Pool;
use crate::table::{MapError, PageTable, Part, UnmapError};
use crate::testing::{BASE, Counting, config, rw, with_arena};

const PAGE: u64 = 4096;
const END: u64 = 1 << 32;
const SMALL: Config = Config { output_bits: 36, ..config(Granule::Size4K, Stage::One, 32) };

/// Maps and expects an error. Afterwards nothing is mapped and nothing needs invalidation.
fn refused<P: Pool>(part: &mut Part<'_, P>, iova: u64, segments: &[(u64, u64)]) -> MapError {
    let segments: std::vec::Vec<Segment> =
        segments.iter().map(|&(phys, len)| Segment { phys: PhysAddr(phys), len }).collect();
    let mut gather = Gather::new();
    let error = part.map_sg(Iova(iova), &segments, rw(Stage::One), &mut gather);
    assert_eq!(part.ranges(Iova(0)..Iova(u64::MAX)).count(), 0);
    // Tables shared with another part stay, so their contents need no invalidation.
    super::release(part, &mut gather);
    error.expect_err("refused")
}

#[test]
fn maps_that_cannot_be() {
    with_arena(Granule::Size4K, 32, |arena| {
        let mut table = PageTable::new(SMALL, arena).expect("a root");
        let mut part = table.whole();
        let part = &mut part;
        let iova = Iova(PAGE);
        assert_eq!(refused(part, PAGE, &[]), MapError::Empty(iova));
        assert_eq!(refused(part, PAGE, &[(0, 0)]), MapError::Empty(iova));
        let second = Iova(2 * PAGE);
        assert_eq!(refused(part, PAGE, &[(0, PAGE), (0, 0)]), MapError::Empty(second));
        let unaligned = |iova, value| MapError::Unaligned { iova, value, to: PAGE };
        assert_eq!(refused(part, 1, &[(0, PAGE)]), unaligned(Iova(1), 1));
        assert_eq!(refused(part, PAGE, &[(8, PAGE)]), unaligned(iova, 8));
        assert_eq!(refused(part, PAGE, &[(0, PAGE + 8)]), unaligned(iova, PAGE + 8));
        assert_eq!(refused(part, PAGE, &[(0, PAGE), (0, 512)]), unaligned(second, 512));
        let range = |iova, size| MapError::IovaRange { iova: Iova(iova), size, end: Iova(END) };
        assert_eq!(refused(part, END, &[(0, PAGE)]), range(END, PAGE));
        assert_eq!(refused(part, u64::MAX - 4095, &[(0, PAGE)]), range(u64::MAX - 4095, PAGE));
        assert_eq!(refused(part, END - PAGE, &[(0, 2 * PAGE)]), range(END - PAGE, 2 * PAGE));
        let huge = u64::MAX - 4095;
        assert_eq!(refused(part, PAGE, &[(0, huge)]), range(PAGE, huge));
        let list = [(0, PAGE), (2 * PAGE, PAGE)];
        assert_eq!(refused(part, END - PAGE, &list), range(END, PAGE));
        let phys = |iova, phys| {
            let (iova, phys) = (Iova(iova), PhysAddr(phys));
            MapError::PhysRange { iova, phys, end: PhysAddr(1 << 36) }
        };
        assert_eq!(refused(part, PAGE, &[(1 << 36, PAGE)]), phys(PAGE, 1 << 36));
        let last = (1 << 36) - PAGE;
        assert_eq!(refused(part, PAGE, &[(last, 2 * PAGE)]), phys(PAGE, (1 << 36) + PAGE - 1));
        assert_eq!(refused(part, PAGE, &[(huge, PAGE)]), phys(PAGE, huge));
        assert_eq!(refused(part, PAGE, &[(last, PAGE), (1 << 40, PAGE)]), phys(2 * PAGE, 1 << 40));
        let other = part.map(Iova(0), PhysAddr(0), PAGE, rw(Stage::Two), &mut Gather::new());
        assert_eq!(other, Err(MapError::Stage));
    });
}

/// A pool above the output addresses: no walker would reach its tables.
#[test]
fn tables_are_below_the_end_of_the_output_addresses() {
    for tables in [1, 8] {
        with_arena(Granule::Size4K, tables, |arena| {
            let config = Config { output_bits: 32, ..SMALL };
            let end = PhysAddr(BASE + tables as u64 * PAGE);
            let refused = PageTable::new(config, arena).err();
            assert_eq!(refused, Some(ConfigError::Pool { end, output_bits: 32 }));
            // A pool that does not know where it ends: the root is looked at, and given back.
            let pool = Counting::new(arena);
            let end = PhysAddr(BASE + 32);
            let refused = PageTable::new(config, &pool).err();
            assert_eq!(refused, Some(ConfigError::Pool { end, output_bits: 32 }));
            assert_eq!(pool.out.get(), 0);
        });
    }
}

#[test]
fn every_place_of_a_long_list_is_checked() {
    if cfg!(miri) {
        return;
    }
    with_arena(Granule::Size4K, 32, |arena| {
        let mut table = PageTable::new(SMALL, arena).expect("a root");
        let mut part = table.whole();
        let list: std::vec::Vec<(u64, u64)> =
            (0..1024).map(|n| ((n * 7 + 3) * PAGE, PAGE)).collect();
        for wrong in [0, 1, 2, 3, 62, 63, 64, 510, 511, 512, 513, 1022, 1023] {
            let at = Iova((wrong as u64 + 512) * PAGE);
            for (value, error) in [
                (
                    (list[wrong].0 + 8, PAGE),
                    MapError::Unaligned { iova: at, value: list[wrong].0 + 8, to: PAGE },
                ),
                ((list[wrong].0, 0), MapError::Empty(at)),
                ((list[wrong].0, 512), MapError::Unaligned { iova: at, value: 512, to: PAGE }),
            ] {
                let mut list = list.clone();
                list[wrong] = value;
                assert_eq!(refused(&mut part, 512 * PAGE, &list), error, "{wrong}");
            }
        }
    });
}

#[test]
fn what_is_there_is_named() {
    with_arena(Granule::Size4K, 8, |arena| {
        let mut table = PageTable::new(SMALL, arena).expect("a root");
        let mut part = table.whole();
        let mut gather = Gather::new();
        let mut map = |part: &mut Part<'_, _>, iova, size| {
            part.map(Iova(iova), PhysAddr(iova), size, rw(Stage::One), &mut gather)
        };
        map(&mut part, PAGE, PAGE).expect("free");
        map(&mut part, 2 << 20, 2 << 20).expect("free");
        let bits = rw(Stage::One).bits();
        let page = MapError::Occupied { iova: Iova(PAGE), level: 3, descriptor: PAGE | bits | 3 };
        assert_eq!(map(&mut part, 0, 2 * PAGE), Err(page));
        assert_eq!(map(&mut part, PAGE, PAGE), Err(page));
        let block = |iova| {
            let descriptor = 2 << 20 | bits | 1;
            MapError::Occupied { iova: Iova(iova), level: 2, descriptor }
        };
        assert_eq!(map(&mut part, (2 << 20) + PAGE, PAGE), Err(block((2 << 20) + PAGE)));
        assert_eq!(map(&mut part, (2 << 20) - PAGE, 2 * PAGE), Err(block(2 << 20)));
        assert_eq!(part.ranges(Iova(0)..Iova(END)).count(), 2);
        // A block does not replace a table, even an empty one.
        assert_eq!(map(&mut part, 0, 2 << 20), Err(page));
    });
}

#[test]
fn sizes_that_no_leaf_has() {
    with_arena(Granule::Size4K, 8, |arena| {
        let mut table = PageTable::new(SMALL, arena).expect("a root");
        let mut part = table.whole();
        let mut gather = Gather::new();
        let mut map = |part: &mut Part<'_, _>, iova, phys, shift, count| {
            part.map_pages(Iova(iova), PhysAddr(phys), shift, count, rw(Stage::One), &mut gather)
        };
        for shift in [0, 11, 13, 39, 63, 64, u32::MAX] {
            assert_eq!(map(&mut part, 0, 0, shift, 1), Err(MapError::PageSize { shift }));
            let unmapped = part.unmap_pages(Iova(0), shift, 1, &mut Gather::new());
            assert_eq!(unmapped, Err(UnmapError::PageSize { shift }));
        }
        let unaligned = |value| MapError::Unaligned { iova: Iova(1 << 20), value, to: 2 << 20 };
        assert_eq!(map(&mut part, 1 << 20, 0, 21, 1), Err(unaligned(1 << 20)));
        let unaligned = |value| MapError::Unaligned { iova: Iova(0), value, to: 2 << 20 };
        assert_eq!(map(&mut part, 0, PAGE, 21, 1), Err(unaligned(PAGE)));
        assert_eq!(map(&mut part, 0, 0, 12, 0), Err(MapError::Empty(Iova(0))));
        let end = Iova(END);
        let range = MapError::IovaRange { iova: Iova(0), size: u64::MAX, end };
        assert_eq!(map(&mut part, 0, 0, 12, 1 << 52), Err(range));
        let unmapped = part.unmap_pages(Iova(0), 12, 1 << 52, &mut Gather::new());
        assert_eq!(unmapped, Err(UnmapError::IovaRange { iova: Iova(0), size: u64::MAX, end }));
        let unmapped = part.unmap_pages(Iova(PAGE), 21, 1, &mut Gather::new());
        let unaligned = UnmapError::Unaligned { iova: Iova(PAGE), value: PAGE, to: 2 << 20 };
        assert_eq!(unmapped, Err(unaligned));
    });
}

#[test]
fn unmaps_that_cannot_be() {
    with_arena(Granule::Size4K, 8, |arena| {
        let mut table = PageTable::new(SMALL, arena).expect("a root");
        let (mut low, mut high) = table.whole().split_at(Iova(8 * PAGE));
        let unmap = |part: &mut Part<'_, _>, iova, size| {
            let mut gather = Gather::new();
            let checked = part.unmap_checked(Iova(iova), size, &mut gather);
            let result = part.unmap(Iova(iova), size, &mut gather);
            assert!(gather.is_empty());
            if result.is_err() {
                assert_eq!(checked, result);
            }
            result
        };
        assert_eq!(unmap(&mut low, PAGE, 0), Err(UnmapError::Empty(Iova(PAGE))));
        let unaligned = |iova, value| UnmapError::Unaligned { iova: Iova(iova), value, to: PAGE };
        assert_eq!(unmap(&mut low, 1, PAGE), Err(unaligned(1, 1)));
        assert_eq!(unmap(&mut low, PAGE, 1), Err(unaligned(PAGE, 1)));
        let range =
            |iova, size, end| Err(UnmapError::IovaRange { iova: Iova(iova), size, end: Iova(end) });
        assert_eq!(unmap(&mut low, 7 * PAGE, 2 * PAGE), range(7 * PAGE, 2 * PAGE, 8 * PAGE));
        assert_eq!(unmap(&mut low, 8 * PAGE, PAGE), range(8 * PAGE, PAGE, 8 * PAGE));
        assert_eq!(unmap(&mut high, 7 * PAGE, 2 * PAGE), range(7 * PAGE, 2 * PAGE, END));
        assert_eq!(unmap(&mut high, 8 * PAGE, END), range(8 * PAGE, END, END));
        let huge = u64::MAX - 4095;
        assert_eq!(unmap(&mut high, 8 * PAGE, huge), range(8 * PAGE, huge, END));
        assert_eq!(unmap(&mut high, huge, PAGE), range(huge, PAGE, END));
        // Unmapping a hole is no error, unless the caller asks for the check.
        assert_eq!(unmap(&mut low, 0, 8 * PAGE), Ok(0));
        let checked = low.unmap_checked(Iova(0), 8 * PAGE, &mut Gather::new());
        assert_eq!(checked, Err(UnmapError::Hole { iova: Iova(0), level: 1 }));
    });
}

#[test]
fn a_hole_anywhere_leaves_all_as_it_is() {
    with_arena(Granule::Size4K, 8, |arena| {
        let mut table = PageTable::new(SMALL, arena).expect("a root");
        let mut part = table.whole();
        let mut gather = Gather::new();
        for hole in [0, 3, 7] {
            for page in (0..8).filter(|page| *page != hole) {
                part.map(Iova(page * PAGE), PhysAddr(0), PAGE, rw(Stage::One), &mut gather)
                    .expect("free");
            }
            let error = UnmapError::Hole { iova: Iova(hole * PAGE), level: 3 };
            assert_eq!(part.unmap_checked(Iova(0), 8 * PAGE, &mut gather), Err(error));
            assert!(gather.is_empty());
            part.map(Iova(hole * PAGE), PhysAddr(0), PAGE, rw(Stage::One), &mut gather)
                .expect("free");
            assert_eq!(part.unmap_checked(Iova(0), 8 * PAGE, &mut gather), Ok(8 * PAGE));
            super::release(&part, &mut gather);
        }
    });
}

#[test]
fn no_memory_for_a_root() {
    with_arena(Granule::Size4K, 4, |arena| {
        let pool = Counting::new(arena);
        pool.left.set(0);
        assert_eq!(
            PageTable::new(SMALL, &pool).map(drop).expect_err("no memory"),
            ConfigError::NoRoot(32)
        );
        pool.left.set(1);
        let mut table = PageTable::new(SMALL, &pool).expect("room for the root");
        let mapped =
            table.whole().map(Iova(PAGE), PhysAddr(0), PAGE, rw(Stage::One), &mut Gather::new());
        assert_eq!(mapped, Err(MapError::OutOfMemory(Iova(PAGE))));
    });
}

#[test]
fn parts_are_claims() {
    with_arena(Granule::Size4K, 8, |arena| {
        let mut table = PageTable::new(SMALL, arena).expect("a root");
        let (low, high) = table.whole().split_at(Iova(8 * PAGE));
        assert_eq!(
            (low.range(), high.range()),
            (Iova(0)..Iova(8 * PAGE), Iova(8 * PAGE)..Iova(END))
        );
        let (mut none, mut all) = high.split_at(Iova(8 * PAGE));
        let at = Iova(8 * PAGE);
        let attributes = rw(Stage::One);
        let mut gather = Gather::new();
        assert!(none.map(at, PhysAddr(0), PAGE, attributes, &mut gather).is_err());
        all.map(at, PhysAddr(0), PAGE, attributes, &mut gather).expect("its own");
        assert!(all.iova_to_phys(at).is_some());
        assert!(low.iova_to_phys(at).is_none(), "outside the part");
        assert_eq!(low.ranges(Iova(0)..Iova(END)).count(), 0);
        assert_eq!(all.ranges(Iova(0)..Iova(END)).count(), 1);
    });
}

#[test]
#[should_panic(expected = "a part is split inside")]
fn a_part_is_split_inside() {
    with_arena(Granule::Size4K, 8, |arena| {
        let mut table = PageTable::new(SMALL, arena).expect("a root");
        let (low, _) = table.whole().split_at(Iova(8 * PAGE));
        low.split_at(Iova(9 * PAGE));
    });
}

#[test]
#[should_panic(expected = "a part is split between pages")]
fn a_part_is_split_between_pages() {
    with_arena(Granule::Size4K, 8, |arena| {
        let mut table = PageTable::new(SMALL, arena).expect("a root");
        table.whole().split_at(Iova(1));
    });
}

#[test]
fn errors_say_where_and_what_to_do() {
    let iova = Iova(0x1000);
    let map = [
        (
            MapError::Occupied { iova, level: 3, descriptor: 0x5003 },
            "0x1000 is mapped already: level 3 has 0x5003; unmap it first",
        ),
        (
            MapError::IovaRange { iova, size: 0x2000, end: Iova(0x2000) },
            "0x2000 bytes from 0x1000 on do not end by 0x2000, where the part or the table does",
        ),
        (
            MapError::OutOfMemory(iova),
            "no table for 0x1000, and nothing was mapped: give the pool more, or free empty tables by reclaim",
        ),
    ];
    for (error, text) in map {
        assert_eq!(format!("{error}"), text);
    }
    let block = UnmapError::PartOfBlock { iova, level: 2, descriptor: 0x5001 };
    assert_eq!(
        format!("{block}"),
        "the range cuts the block at 0x1000, level 2, 0x5001: unmap all of it, or quiesce the devices \
         and use unmap_quiesced"
    );
}
