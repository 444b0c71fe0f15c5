//! Attributes changed in place, and empty tables taken back.

use std::vec;
use std::vec::Vec;

use super::release;
use crate::address::{Iova, PhysAddr};
use crate::format::{Access, Attributes, Config, Granule, MemoryType, Shareability, Stage};
use crate::gather::{Gather, Run};
use crate::table::{MapError, PageTable, UnmapError};
use crate::testing::{config, rw, with_arena};
use crate::tlbi::FlushError;

const K4: Config = config(Granule::Size4K, Stage::One, 39);
const PAGE: u64 = 4096;
const BLOCK: u64 = 2 << 20;

fn leaves(start: u64, end: u64, stride: u32, level: u8) -> Run {
    Run { start: Iova(start), end: Iova(end), stride, tables: false, level: Some(level) }
}

/// A block and two pages before it; the closure gets the table and what was invalidated.
fn with_block_and_pages(test: impl FnOnce(&mut PageTable<&crate::pool::Arena<'_>>)) {
    with_arena(Granule::Size4K, 8, |arena| {
        let mut table = PageTable::new(K4, arena).expect("a root");
        let mut gather = Gather::new();
        let at = BLOCK - 2 * PAGE;
        let phys = PhysAddr(0x4000_0000 + at);
        let mapped =
            table.whole().map(Iova(at), phys, BLOCK + 2 * PAGE, rw(Stage::One), &mut gather);
        mapped.expect("free");
        test(&mut table);
    });
}

#[test]
fn permissions_change_in_place_and_are_gathered() {
    with_block_and_pages(|table| {
        let read = Attributes::new(Stage::One, Access::Read);
        let mut gather = Gather::new();
        let mut never = |_: &Run| -> Result<(), FlushError> { panic!("no break") };
        let (at, len) = (Iova(BLOCK - 2 * PAGE), BLOCK + 2 * PAGE);
        let changed = table.whole().protect(at, len, read, &mut gather, &mut never);
        assert_eq!(changed, Ok(len));
        let runs = [leaves(at.0, BLOCK, 12, 3), leaves(BLOCK, 2 * BLOCK, 21, 2)];
        assert_eq!(gather.runs(), Some(&runs[..]));
        for iova in [at.0, BLOCK - PAGE, BLOCK, 2 * BLOCK - 1] {
            let found = table.iova_to_phys(Iova(iova)).expect("mapped");
            assert_eq!((found.phys.0, found.attributes), (0x4000_0000 + iova, read));
        }
        // Again: nothing changes, and the invalidation is asked for once more.
        let mut gather = Gather::new();
        assert_eq!(table.whole().protect(at, PAGE, read, &mut gather, &mut never), Ok(0));
        assert_eq!(gather.runs(), Some(&[leaves(at.0, at.0 + PAGE, 12, 3)][..]));
        // One page back: the other stays.
        let mut gather = Gather::new();
        let back = table.whole().protect(at, PAGE, rw(Stage::One), &mut gather, &mut never);
        assert_eq!(back, Ok(PAGE));
        let attributes = |iova| table.iova_to_phys(Iova(iova)).expect("mapped").attributes;
        assert_eq!((attributes(at.0), attributes(at.0 + PAGE)), (rw(Stage::One), read));
    });
}

#[test]
fn a_memory_type_changes_by_break_before_make_or_not_at_all() {
    for fails_at in [None, Some(0), Some(1)] {
        with_block_and_pages(|table| {
            let memory = MemoryType::NormalNonCacheable;
            let new = Attributes::with(Stage::One, Access::Read, memory, Shareability::Outer);
            let (at, len) = (BLOCK - 2 * PAGE, BLOCK + 2 * PAGE);
            let mut seen = Vec::new();
            let mut gather = Gather::new();
            let result = table.whole().protect(Iova(at), len, new, &mut gather, |run| {
                seen.push(*run);
                if Some(seen.len() - 1) == fails_at { Err(FlushError::Timeout) } else { Ok(()) }
            });
            assert!(gather.is_empty());
            let runs = vec![leaves(at, BLOCK, 12, 3), leaves(BLOCK, 2 * BLOCK, 21, 2)];
            let attributes = match fails_at {
                None => {
                    assert_eq!((result, &seen), (Ok(len), &runs));
                    new
                }
                Some(n) => {
                    let (iova, error) = (runs[n].start, FlushError::Timeout);
                    assert_eq!(result, Err(UnmapError::Flush { iova, error }));
                    assert_eq!(seen, runs[..=n]);
                    rw(Stage::One)
                }
            };
            for iova in [at, BLOCK - PAGE, BLOCK, 2 * BLOCK - 1] {
                let found = table.iova_to_phys(Iova(iova)).expect("mapped");
                assert_eq!((found.phys.0, found.attributes), (0x4000_0000 + iova, attributes));
            }
        });
    }
}

/// An earlier call may have split a block, which a TLB still holds: a level would spare it.
#[test]
fn pages_of_a_block_that_was_split_are_invalidated_at_any_level() {
    with_arena(Granule::Size4K, 8, |arena| {
        let mut table = PageTable::new(Config { bbml2: true, ..K4 }, arena).expect("a root");
        let mut part = table.whole();
        let (mut gather, mut seen) = (Gather::new(), Vec::new());
        part.map(Iova(0), PhysAddr(BLOCK), BLOCK, rw(Stage::One), &mut gather).expect("free");
        part.unmap(Iova(BLOCK - PAGE), PAGE, &mut gather).expect("it is split");
        let memory = MemoryType::NormalNonCacheable;
        let new = Attributes::with(Stage::One, Access::Read, memory, Shareability::Outer);
        let changed = part.protect(Iova(0), PAGE, new, &mut gather, |run| {
            seen.push(*run);
            Ok(())
        });
        assert_eq!(changed, Ok(PAGE));
        assert_eq!(seen, [Run { level: None, ..leaves(0, PAGE, 12, 3) }]);
        release(&part, &mut gather);
    });
}

#[test]
fn a_panic_between_break_and_make_leaves_all_as_it_was() {
    with_block_and_pages(|table| {
        let memory = MemoryType::NormalNonCacheable;
        let new = Attributes::with(Stage::One, Access::Read, memory, Shareability::Outer);
        let (at, len) = (BLOCK - 2 * PAGE, BLOCK + 2 * PAGE);
        let panicked = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            let mut gather = Gather::new();
            table.whole().protect(Iova(at), len, new, &mut gather, |_| panic!("in a flush"))
        }));
        assert!(panicked.is_err());
        for iova in [at, BLOCK - PAGE, BLOCK, 2 * BLOCK - 1] {
            let found = table.iova_to_phys(Iova(iova)).expect("mapped");
            assert_eq!((found.phys.0, found.attributes), (0x4000_0000 + iova, rw(Stage::One)));
        }
    });
}

/// Those of a page serve a block: what is not an attribute of a descriptor does not come along.
#[test]
fn attributes_of_a_descriptor_are_its_attributes() {
    with_block_and_pages(|table| {
        let found = table.iova_to_phys(Iova(BLOCK - PAGE)).expect("mapped");
        let hinted = found.descriptor.0 | 1 << 52;
        let taken = Attributes::from_descriptor(hinted, Stage::One);
        assert_eq!(taken, rw(Stage::One));
        let mut gather = Gather::new();
        let phys = PhysAddr(4 * BLOCK);
        table.whole().map(Iova(4 * BLOCK), phys, BLOCK, taken, &mut gather).expect("free");
        let block = table.iova_to_phys(Iova(5 * BLOCK - 1)).expect("mapped");
        assert_eq!((block.phys.0, block.level), (5 * BLOCK - 1, 2));
    });
}

#[test]
fn what_cannot_be_protected_is_refused() {
    with_block_and_pages(|table| {
        let read = Attributes::new(Stage::One, Access::Read);
        let at = BLOCK - 2 * PAGE;
        let mut part = table.whole();
        let mut refused = |iova, size, attributes| {
            let mut gather = Gather::new();
            let result = part.protect(Iova(iova), size, attributes, &mut gather, |_| Ok(()));
            assert!(gather.is_empty());
            result.unwrap_err()
        };
        let hole = UnmapError::Hole { iova: Iova(at - PAGE), level: 3 };
        assert_eq!(refused(at - PAGE, 2 * PAGE, read), hole);
        let cut = refused(at, 3 * PAGE, read);
        assert!(
            matches!(cut, UnmapError::PartOfBlock { iova: Iova(BLOCK), level: 2, .. }),
            "{cut}"
        );
        assert_eq!(refused(at, PAGE, Attributes::new(Stage::Two, Access::Read)), UnmapError::Stage);
        assert_eq!(refused(at, 0, read), UnmapError::Empty(Iova(at)));
        let found = table.iova_to_phys(Iova(at)).expect("mapped");
        assert_eq!(found.attributes, rw(Stage::One));
    });
}

/// Small pieces all over, in a table without a domain: 400 pages, one after the other, in 40 tables.
#[test]
#[cfg_attr(miri, ignore = "takes long, and shows Miri nothing that the others do not")]
fn a_table_alone_does_not_run_out_if_it_reclaims() {
    with_arena(Granule::Size4K, 40, |arena| {
        let mut table = PageTable::new(K4, arena).expect("a root");
        let mut reclaimed = 0;
        for n in 0..400 {
            let (iova, phys) = (Iova(n * 11 % 119 * BLOCK), PhysAddr(n << 12));
            let mut part = table.whole();
            let mut gather = Gather::new();
            let map = |part: &mut super::Part<'_, _>, gather: &mut Gather| {
                part.map(iova, phys, PAGE, rw(Stage::One), gather)
            };
            let mut mapped = map(&mut part, &mut gather);
            if matches!(mapped, Err(MapError::OutOfMemory(_))) {
                reclaimed += part.reclaim(&mut gather);
                assert_ne!(gather.tables(), 0, "after {n} pages");
                release(&part, &mut gather);
                mapped = map(&mut part, &mut gather);
            }
            mapped.expect("there are tables");
            part.unmap(iova, PAGE, &mut gather).expect("mapped");
            release(&part, &mut gather);
        }
        assert!(reclaimed > 300, "{reclaimed}");
    });
}

/// A part takes back what lies in it whole, and nothing that is in use.
#[test]
fn a_part_reclaims_its_own_empty_tables() {
    with_arena(Granule::Size4K, 8, |arena| {
        let mut table = PageTable::new(K4, arena).expect("a root");
        let mut gather = Gather::new();
        let mut part = table.whole();
        for n in 0..3 {
            let (iova, phys) = (Iova(n * BLOCK), PhysAddr(n << 12));
            part.map(iova, phys, PAGE, rw(Stage::One), &mut gather).expect("free");
        }
        for n in [0, 2] {
            part.unmap(Iova(n * BLOCK), PAGE, &mut gather).expect("mapped");
        }
        release(&part, &mut gather);
        let (mut low, mut high) = part.split_at(Iova(2 * BLOCK + PAGE));
        assert_eq!(high.reclaim(&mut gather), 0, "the third table is not its own alone");
        assert_eq!(low.reclaim(&mut gather), 1);
        let tables =
            Run { start: Iova(0), end: Iova(BLOCK), stride: 12, tables: true, level: None };
        assert_eq!(gather.runs(), Some(&[tables][..]));
        release(&low, &mut gather);
        let mut part = table.whole();
        assert_eq!(part.reclaim(&mut gather), 1, "the third");
        release(&part, &mut gather);
        part.unmap(Iova(BLOCK), PAGE, &mut gather).expect("mapped");
        release(&part, &mut gather);
        assert_eq!(part.reclaim(&mut gather), 2, "with the table above");
        release(&part, &mut gather);
        assert_eq!(part.reclaim(&mut gather), 0);
    });
}
