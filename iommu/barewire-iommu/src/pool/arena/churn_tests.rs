//! Roots and tables are allocated and freed in many orders. None of them fragments the arena for
//! good.

use std::collections::BTreeMap;

use super::*;
use crate::address::Iova;
use crate::format::{Config, Granule, Stage};
use crate::gather::Gather;
use crate::table::PageTable;
use crate::testing::{BASE, drained, rw, with_arena};

const PAGE: usize = 4096;

/// A 40-bit stage 2 table has a root of two adjacent tables.
#[test]
fn domains_with_a_root_of_several_tables_come_and_go() {
    with_arena(Granule::Size4K, 33, |arena| {
        // Without the run lists, 15 cycles use the arena up.
        for cycle in 0..if cfg!(miri) { 4 } else { 512 } {
            let config =
                Config { stage: Stage::Two, input_bits: 40, output_bits: 40, ..Config::default() };
            let mut table = PageTable::new(config, arena)
                .unwrap_or_else(|error| panic!("cycle {cycle}: {error:?}"));
            let mut gather = Gather::new();
            let mut part = table.whole();
            let phys = PhysAddr(0x4000_0000);
            part.map(Iova(0x1000), phys, 0x1000, rw(Stage::Two), &mut gather).expect("room");
            // Every second one is dropped with a mapping left in it.
            if cycle % 2 == 0 {
                part.unmap(Iova(0x1000), 0x1000, &mut gather).expect("mapped");
            }
            // SAFETY: there is no TLB.
            unsafe { table.release(&mut gather) };
            drop(table);
        }
        assert_eq!(drained(arena, PAGE), 33);
    });
}

/// What a test holds: for each first table, how many.
type Held = BTreeMap<usize, usize>;

/// Whether `count` adjacent tables, aligned to their number, are held by none.
fn has_run(held: &Held, tables: usize, count: usize) -> bool {
    let base = (BASE / PAGE as u64) as usize;
    let mut free = std::vec![true; tables];
    for (&first, &count) in held {
        free[first..first + count].fill(false);
    }
    (0..=tables.saturating_sub(count)).any(|first| {
        (base + first).is_multiple_of(count) && free[first..first + count].iter().all(|f| *f)
    })
}

/// Pseudo-random numbers (xorshift64).
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 16) as usize
}

/// Roots of every size and tables, one by one and in chains, in random order: an allocation fails
/// only if there is no place for it.
#[test]
#[cfg_attr(miri, ignore = "takes Miri long, and shows it nothing that the others do not")]
fn an_allocation_fails_only_if_nothing_fits() {
    let rounds = if cfg!(miri) { 60 } else { 20_000 };
    let arenas = [(1, 16), (2, 33), (3, 64), (4, 65)];
    for (seed, tables) in arenas.into_iter().take(if cfg!(miri) { 2 } else { arenas.len() }) {
        with_arena(Granule::Size4K, tables, |arena| {
            let index = |table: PhysAddr| ((table.0 - BASE) / PAGE as u64) as usize;
            let mut state = 0x9e37_79b9_7f4a_7c15 ^ seed;
            let mut held = Held::new();
            let mut refused = 0;
            for round in 0..rounds {
                // Phases in which more is allocated than freed, and the other way round.
                let wants = next(&mut state) % 100 < [70, 30][round / 64 % 2];
                if wants {
                    let count = [1, 1, 1, 2, 4, 8, 16][next(&mut state) % 7];
                    match arena.alloc(count * PAGE) {
                        Some(table) => {
                            let first = index(table);
                            assert_eq!(table.0 % (count * PAGE) as u64, 0, "aligned");
                            for (&other, &len) in &held {
                                assert!(other + len <= first || first + count <= other, "twice");
                            }
                            assert!(first + count <= tables);
                            held.insert(first, count);
                        }
                        None => {
                            refused += usize::from(count > 1);
                            assert!(
                                !has_run(&held, tables, count),
                                "seed {seed}, round {round}: {count} tables fit, {held:?}"
                            );
                        }
                    }
                } else if let Some((&first, &count)) =
                    held.iter().nth(next(&mut state) % held.len().max(1))
                {
                    held.remove(&first);
                    // SAFETY: allocated with this size, and freed once.
                    unsafe { arena.free(arena.at(first), count * PAGE) };
                }
            }
            assert!(refused > 0 || cfg!(miri), "the test met no full arena");
            for (first, count) in core::mem::take(&mut held) {
                // SAFETY: as above.
                unsafe { arena.free(arena.at(first), count * PAGE) };
            }
            assert_eq!(drained(arena, PAGE), tables);
            assert!(arena.alloc(16 * PAGE).is_some(), "all memory is free, in one run again");
        });
    }
}
