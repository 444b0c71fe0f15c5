//! Each allocation of a sequence fails in turn. The call that fails leaves all mappings as they were
//! and loses no table. Entries that the TLB may have read meanwhile are flushed with the gather.

use barewire_iommu::{
    Config, ConfigError, Granule, MapError, PageTable, Stage, Strategy, UnmapError,
};
use barewire_iommu_model::{Machine, Options, Shortage};

use crate::bench::{Bench, Kind, machine};

/// A call that may need tables. Returns whether it found memory.
type Call = fn(&mut Bench<'_>) -> bool;

fn mapped(result: Result<(), MapError>) -> bool {
    match result {
        Ok(()) => true,
        Err(MapError::OutOfMemory(_)) => false,
        Err(other) => panic!("{other:?}"),
    }
}

fn unmapped(result: Result<(), UnmapError>) -> bool {
    match result {
        Ok(()) => true,
        Err(UnmapError::OutOfMemory(_)) => false,
        Err(other) => panic!("{other:?}"),
    }
}

/// Where the tables of the last two levels meet.
fn meeting(bench: &Bench<'_>) -> u64 {
    if bench.shape.start < 2 { bench.shape.span(1) } else { bench.shape.span(2) * 4 }
}

const CALLS: [Call; 14] = [
    // A page: a table at every level.
    |b| mapped(b.map(meeting(b) - b.page(), 1 << 35, b.page(), Kind::Plain)),
    // A range in existing tables, and one on the other side of the boundary.
    |b| {
        let at = meeting(b) - 3 * b.page();
        mapped(b.map(at, 2 << 35, 2 * b.page(), Kind::Plain))
    },
    |b| mapped(b.map(meeting(b), 2 << 35, b.page(), Kind::ReadOnly)),
    // Pieces into two tables, then a block and a page behind it.
    |b| {
        let (page, table) = (b.page(), b.shape.span(2));
        let list = [(3 << 35, 2 * page), (4 << 35, page), (5 << 35, table), (6 << 35, page)];
        mapped(b.map_sg(meeting(b) + table - 3 * page, &list, Kind::ReadOnly))
    },
    // Blocks, far away if there is room.
    |b| {
        let table = b.shape.span(2);
        mapped(b.map(meeting(b) + 4 * table, (4 << 35) + 4 * table, 2 * table, Kind::Plain))
    },
    |b| {
        let at = meeting(b);
        unmapped(b.unmap(at, b.shape.span(2) * 2 + b.page()))
    },
    // Both ends of a range cut a block.
    |b| {
        let (page, table) = (b.page(), b.shape.span(2));
        unmapped(b.unmap(meeting(b) + 5 * table - 3 * page, 6 * page))
    },
    // A hole in a block.
    |b| mapped(b.map(meeting(b) + 6 * b.shape.span(2), 5 << 35, b.shape.span(2), Kind::Plain)),
    |b| unmapped(b.unmap(meeting(b) + 6 * b.shape.span(2) + 5 * b.page(), b.page())),
    // Two tables of the last level where there is none of the level above yet.
    |b| {
        let at = 3 * meeting(b) + b.shape.span(2) - 2 * b.page();
        mapped(b.map(at, 7 << 35, 4 * b.page(), Kind::Plain))
    },
    // Blocks in the place of an empty table, pages on both sides; then all of it goes.
    |b| unmapped(b.unmap(3 * meeting(b), b.shape.span(2) + 2 * b.page())),
    |b| {
        let (page, table) = (b.page(), b.shape.span(2));
        let at = 3 * meeting(b) - 2 * page;
        mapped(b.map(at, (9 << 35) + at, 3 * table + 4 * page, Kind::Plain))
    },
    |b| {
        let (page, table) = (b.page(), b.shape.span(2));
        unmapped(b.unmap(3 * meeting(b) - 2 * page, 3 * table + 4 * page))
    },
    // Where tables are already.
    |b| mapped(b.map(meeting(b), 6 << 35, b.page(), Kind::Registers)),
];

/// Runs the sequence, with memory running out as `shortage` says. Returns how often it did.
fn run(config: Config, coherent: bool, shortage: Shortage) -> u32 {
    let machine = machine(&config, coherent);
    let mut bench = Bench::new(&machine, config);
    // By page, undoing a map that made a table of the first levels would take too many commands.
    bench.strategy = if coherent { Strategy::default() } else { Strategy::ByRange };
    bench.replacing = Some(None);
    machine.set_shortage(shortage);
    let mut failures = 0;
    for call in CALLS {
        let before = bench.map.clone();
        if !call(&mut bench) {
            failures += 1;
            assert_eq!(bench.map, before);
            bench.check_tables();
            machine.assert_sound();
            machine.set_shortage(Shortage::Never);
            assert!(call(&mut bench), "there is memory again");
        }
        bench.flush().expect("nothing fails unasked");
        bench.check_tables();
        machine.assert_sound();
    }
    bench.check_lookups();
    bench.finish();
    failures
}

#[test]
#[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
fn memory_runs_out_at_every_allocation_of_a_sequence() {
    let mut failures = 0;
    for granule in [Granule::Size4K, Granule::Size16K, Granule::Size64K] {
        for (stage, input_bits, coherent) in [(Stage::One, 48, true), (Stage::Two, 40, false)] {
            let config = Config { granule, stage, input_bits, bbml2: true, ..Config::default() };
            for way in [Shortage::Once, Shortage::From] {
                let mut after = 0;
                // Until there is no such allocation any more.
                while run(config, coherent, way(after)) == 1 {
                    failures += 1;
                    after += 1;
                }
                assert!(after >= 5, "{config:?} took {after} tables");
            }
        }
    }
    assert!(failures >= 100, "{failures}");
}

#[test]
fn no_memory_for_a_root_is_an_error() {
    let machine = Machine::new(Options::default());
    machine.set_shortage(Shortage::From(0));
    let config = Config { stage: Stage::Two, input_bits: 40, ..Config::default() };
    let error = PageTable::new(config, &machine).map(drop).unwrap_err();
    assert_eq!(error, ConfigError::NoRoot(8192));
    machine.assert_sound();
    assert_eq!(machine.tables(), 0);
}
