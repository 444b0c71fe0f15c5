//! Tables one by one, in chains and side by side.

use std::vec::Vec;

use super::*;
use crate::format::Granule;
use crate::testing::{BASE, drained, with_arena};

#[test]
fn every_table_once_and_again() {
    with_arena(Granule::Size4K, 5, |arena| {
        let mut tables: Vec<PhysAddr> = core::iter::from_fn(|| arena.alloc(4096)).collect();
        assert_eq!(arena.alloc(4096), None);
        assert!(arena.alloc_chain(4096, 3).is_empty());
        let last = tables.pop().expect("five");
        for table in tables.drain(..).chain([last]) {
            // SAFETY: allocated, and freed once.
            unsafe { arena.free(table, 4096) };
        }
        assert_eq!(arena.alloc(4096), Some(last), "the table that is still in a cache comes first");
        // SAFETY: allocated just now.
        unsafe { arena.free(last, 4096) };
        assert_eq!(drained(arena, 4096), 5);
        // A smaller table takes a whole one.
        assert_eq!(drained(arena, 64), 5);
    });
}

#[test]
fn chains_come_and_go_at_once() {
    with_arena(Granule::Size4K, 8, |arena| {
        let count = |chain: &Chain| {
            let Some((first, last)) = chain.ends() else { return 0 };
            let mut at = first;
            let mut count = 1;
            while at != last {
                // SAFETY: one of the chain, and not the last.
                at = unsafe { arena.next(at) };
                count += 1;
            }
            count
        };
        // From unused memory: a chain has no more tables than are left.
        let (three, five) = (arena.alloc_chain(4096, 3), arena.alloc_chain(4096, 9));
        assert_eq!((count(&three), count(&five)), (3, 5));
        assert!(arena.alloc_chain(4096, 1).is_empty());
        // From freed tables.
        for chain in [three, five] {
            // SAFETY: the tables are not in use.
            unsafe { arena.free_chain(chain, 4096) };
        }
        for asked in [1, 7, 8, 9] {
            let chain = arena.alloc_chain(4096, asked);
            assert_eq!(count(&chain), asked.min(8));
            // SAFETY: as above.
            unsafe { arena.free_chain(chain, 4096) };
        }
        assert_eq!(drained(arena, 4096), 8);
    });
}

#[test]
fn several_tables_side_by_side_are_aligned() {
    with_arena(Granule::Size4K, 16, |arena| {
        let one = arena.alloc(4096).expect("room");
        assert_eq!(one, PhysAddr(BASE));
        let four = arena.alloc(4 * 4096).expect("room");
        assert_eq!(four, PhysAddr(BASE + 4 * 4096));
        // The three tables that were skipped for alignment are not lost, and eight follow the
        // allocated ones.
        assert_eq!(drained(arena, 4096), 3 + 8);
        // Two of those freed one by one are adjacent, in the last such place.
        let two = arena.alloc(2 * 4096).expect("room");
        assert_eq!(two, PhysAddr(BASE + 14 * 4096));
        // SAFETY: allocated just now.
        unsafe { arena.free(two, 2 * 4096) };
        // SAFETY: allocated, and freed once.
        unsafe { arena.free(four, 4 * 4096) };
        assert_eq!(drained(arena, 4096), 15);
    });
}

#[test]
fn memory_that_is_no_arena() {
    let links = [(), ()].map(|()| Link::new());
    let mut memory = [0_u64; 2 * 512];
    let start = NonNull::from(&mut memory).cast();
    let arena = |phys, bytes| {
        // SAFETY: the memory has that many bytes, or `new` refuses before that matters.
        unsafe { Arena::new(start, PhysAddr(phys), bytes, &links) }.map(drop).err()
    };
    assert_eq!(arena(BASE, 32), Some(ArenaError::TableBytes(32)));
    assert_eq!(arena(BASE, 4095), Some(ArenaError::TableBytes(4095)));
    assert_eq!(arena(BASE + 64, 4096), Some(ArenaError::Unaligned(PhysAddr(BASE + 64))));
    assert_eq!(arena(BASE, 4096), None);
}

#[test]
#[should_panic(expected = "a table of another pool")]
fn tables_of_others_are_not_reached() {
    with_arena(Granule::Size4K, 2, |arena| arena.pointer(PhysAddr(BASE + 2 * 4096)));
}
