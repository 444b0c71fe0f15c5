//! A thousand operations at random on the hungriest hardware, judged one by one.

use barewire_iommu::{Config, Costs, Granule, Stage, Strategy as Flushing};
use barewire_iommu_model::{FlushFailure, Machine};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError};

use crate::bench::{Bench, Kind, machine};

#[derive(Clone, Debug)]
enum Operation {
    Map {
        at: Place,
        len: Length,
        shifted: bool,
        kind: Kind,
    },
    Blocks {
        table: u64,
        count: u64,
        level: u32,
        kind: Kind,
    },
    Scattered {
        at: Place,
        pieces: Vec<(u64, bool)>,
        kind: Kind,
    },
    Unmap {
        at: Place,
        len: Length,
        checked: bool,
    },
    /// All or part of something that is mapped.
    UnmapMapped {
        which: usize,
        skip: u64,
        len: Length,
        checked: bool,
    },
    UnmapQuiesced {
        at: Place,
        len: Length,
    },
    /// Unmaps this many mappings without a flush between: more than a gather keeps apart.
    UnmapMany {
        which: usize,
        count: usize,
    },
    Flush(Flushing),
    FailingFlush(FlushFailure),
    /// A mapping, how many of its pages are left alone, and the length.
    Protect {
        which: usize,
        skip: u64,
        len: Length,
        kind: Kind,
    },
    Reclaim,
    /// Whether maps replace empty tables from now on, and how that fails.
    Replacing(Option<Option<FlushFailure>>),
}

/// A table of the last level, and a page in it.
type Place = (u64, u64);

/// A number of tables, and a number of pages.
type Length = (u64, u64);

/// Tables of the last level that the test uses, half of them on each side of a boundary.
const TABLES: u64 = 6;

pub(super) fn flushing() -> impl Strategy<Value = Flushing> {
    prop_oneof![
        Just(Flushing::ByPage),
        Just(Flushing::ByRange),
        Just(Flushing::ByContext),
        Just(Flushing::Adaptive(Costs::default())),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        6 => Just(Kind::Plain),
        2 => Just(Kind::PlainReadOnly),
        1 => Just(Kind::ReadOnly),
        1 => Just(Kind::Registers),
    ]
}

fn place() -> impl Strategy<Value = Place> {
    let page =
        prop_oneof![2 => Just(0), 3 => 0..8_u64, 1 => 0..10_000_u64, 2 => 10_000..10_008_u64];
    (0..TABLES, page)
}

fn length() -> impl Strategy<Value = Length> {
    prop_oneof![8 => (Just(0), 1..9_u64), 1 => (Just(0), 1..300_u64), 3 => (1..3_u64, 0..3_u64)]
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    prop_oneof![
        5 => (place(), length(), any::<bool>(), kind())
            .prop_map(|(at, len, shifted, kind)| Map { at, len, shifted, kind }),
        2 => (0..TABLES, 1..3_u64, 2..4_u32, kind())
            .prop_map(|(table, count, level, kind)| Blocks { table, count, level, kind }),
        4 => (place(), prop::collection::vec((1..40_u64, any::<bool>()), 1..20), kind())
            .prop_map(|(at, pieces, kind)| Scattered { at, pieces, kind }),
        4 => (place(), length(), any::<bool>())
            .prop_map(|(at, len, checked)| Unmap { at, len, checked }),
        6 => (any::<usize>(), 0..3_u64, length(), any::<bool>())
            .prop_map(|(which, skip, len, checked)| UnmapMapped { which, skip, len, checked }),
        1 => (any::<usize>(), 2..14_usize)
            .prop_map(|(which, count)| UnmapMany { which, count }),
        1 => (place(), length()).prop_map(|(at, len)| UnmapQuiesced { at, len }),
        3 => (any::<usize>(), 0..3_u64, length(), kind())
            .prop_map(|(which, skip, len, kind)| Protect { which, skip, len, kind }),
        1 => Just(Reclaim),
        3 => flushing().prop_map(Flush),
        1 => prop_oneof![Just(FlushFailure::Before), Just(FlushFailure::After)]
            .prop_map(FailingFlush),
        2 => prop_oneof![
            1 => Just(None),
            3 => Just(Some(None)),
            1 => Just(Some(Some(FlushFailure::Before))),
            1 => Just(Some(Some(FlushFailure::After))),
        ]
        .prop_map(Replacing),
    ]
}

/// The addresses and sizes that places and lengths stand for.
struct Ground {
    start: u64,
    end: u64,
    page: u64,
    table: u64,
}

impl Ground {
    fn new(bench: &Bench<'_>) -> Self {
        let (page, table) = (bench.page(), bench.shape.span(2));
        // The end of the second table of the level above, if there is one.
        let upper = if bench.shape.start < 2 { bench.shape.span(1) } else { 0 };
        let fits = upper != 0 && upper + TABLES / 2 * table <= bench.shape.input_end();
        let start = if fits { upper - TABLES / 2 * table } else { 0 };
        Self { start, end: start + TABLES * table, page, table }
    }

    fn iova(&self, (table, page): Place) -> u64 {
        let pages = self.table / self.page;
        // Numbers from 10,000 on count from the table's end.
        let page = if page >= 10_000 { pages - 1 - (page - 10_000) } else { page % pages };
        self.start + table * self.table + page * self.page
    }

    fn len(&self, iova: u64, (tables, pages): Length) -> u64 {
        // If whole tables are meant, extends the range to the table's boundary.
        let rest = if tables > 0 { (iova / self.table + tables) * self.table - iova } else { 0 };
        (rest + pages * self.page).min(self.end - iova).max(self.page)
    }
}

/// One operation; refusals are judged by the bench.
fn perform(bench: &mut Bench<'_>, ground: &Ground, number: u64, operation: &Operation) {
    // Its own stretch of physical memory.
    let phys = (number % 64 + 1) << 34;
    match operation {
        Operation::Map { at, len, shifted, kind } => {
            let iova = ground.iova(*at);
            let offset = if *shifted { ground.page } else { 0 };
            let _ = bench.map(iova, phys + iova + offset, ground.len(iova, *len), *kind);
        }
        Operation::Blocks { table, count, level, kind } => {
            let iova = ground.start + table * ground.table;
            let count = (*count).min(TABLES - table);
            let _ = bench.map_pages(iova, phys + iova, *level, count, *kind);
        }
        Operation::Scattered { at, pieces, kind } => {
            let iova = ground.iova(*at);
            let mut list = Vec::new();
            let (mut left, mut next) = (ground.end - iova, phys);
            for (pages, continues) in pieces {
                let len = (pages * ground.page).min(left);
                if len > 0 {
                    next += if *continues { 0 } else { 3 * ground.page };
                    list.push((next, len));
                    next += len;
                    left -= len;
                }
            }
            let _ = bench.map_sg(iova, &list, *kind);
        }
        Operation::Unmap { at, len, checked } => {
            let iova = ground.iova(*at);
            let len = ground.len(iova, *len);
            let _ = if *checked { bench.unmap_checked(iova, len) } else { bench.unmap(iova, len) };
        }
        Operation::UnmapMapped { which, skip, len, checked } => {
            let pieces: Vec<_> =
                bench.map.pieces().map(|(iova, piece)| (iova, piece.len)).collect();
            let Some(&(iova, all)) = pieces.get(which % pieces.len().max(1)) else { return };
            let skip = if all > skip * ground.page { skip * ground.page } else { 0 };
            let iova = iova + skip;
            // All of it, or a part.
            let len =
                if len.1 % 2 == 0 { all - skip } else { ground.len(iova, *len).min(all - skip) };
            let _ = if *checked { bench.unmap_checked(iova, len) } else { bench.unmap(iova, len) };
        }
        Operation::UnmapMany { which, count } => {
            let pieces: Vec<_> =
                bench.map.pieces().map(|(iova, piece)| (iova, piece.len)).collect();
            let first = which % pieces.len().max(1);
            // Every second, so that they do not touch.
            for &(iova, len) in pieces[first..].iter().step_by(2).take(*count) {
                let _ = bench.unmap(iova, len);
            }
        }
        Operation::UnmapQuiesced { at, len } => {
            let iova = ground.iova(*at);
            bench.flush().expect("nothing fails unasked");
            bench.unmap_quiesced(iova, ground.len(iova, *len)).expect("any part can be unmapped");
        }
        Operation::Protect { which, skip, len, kind } => {
            let pieces: Vec<_> =
                bench.map.pieces().map(|(iova, piece)| (iova, piece.len)).collect();
            let Some(&(iova, all)) = pieces.get(which % pieces.len().max(1)) else { return };
            let skip = (skip * bench.page()).min(all - bench.page());
            let iova = iova + skip;
            let len =
                if len.1 % 2 == 0 { all - skip } else { ground.len(iova, *len).min(all - skip) };
            bench.flush().expect("nothing fails unasked");
            let _ = bench.protect(iova, len, *kind);
            bench.flush().expect("nothing fails unasked");
        }
        Operation::Reclaim => {
            bench.reclaim();
        }
        Operation::Flush(strategy) => {
            bench.strategy = *strategy;
            bench.flush().expect("nothing fails unasked");
        }
        Operation::FailingFlush(how) => {
            bench.machine.fail_flush(0, *how);
            bench.flush().expect_err("it was told to fail");
        }
        Operation::Replacing(replacing) => bench.replacing = *replacing,
    }
}

fn run(config: Config, coherent: bool, operations: &[Operation]) -> Result<(), TestCaseError> {
    let machine = machine(&config, coherent);
    run_on(&machine, Bench::new(&machine, config), operations)
}

fn run_on(
    machine: &Machine,
    mut bench: Bench<'_>,
    operations: &[Operation],
) -> Result<(), TestCaseError> {
    let ground = Ground::new(&bench);
    for (number, operation) in (0..).zip(operations) {
        perform(&mut bench, &ground, number, operation);
        let violations = machine.violations();
        let first = violations.first().map(ToString::to_string);
        prop_assert!(first.is_none(), "{}, by {:?}", first.unwrap_or_default(), operation);
        bench.check_tables();
        if number % 100 == 0 {
            bench.check_lookups();
        }
    }
    bench.check_lookups();
    bench.finish();
    Ok(())
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let count = if cfg!(miri) { 5..=10 } else { 1000..=1000 };
    prop::collection::vec(operation(), count)
}

macro_rules! a_thousand {
    ($($(#[$attribute:meta])* $name:ident: $granule:ident $stage:ident $input_bits:literal;)+) => {
        proptest! {
            #![proptest_config(ProptestConfig {
                cases: if cfg!(miri) { 1 } else { 4 },
                rng_seed: RngSeed::Fixed(0x1077),
                failure_persistence: None,
                max_shrink_iters: 300,
                ..ProptestConfig::default()
            })]
            $(
                #[test]
                $(#[$attribute])*
                fn $name(operations in operations(), coherent: bool, bbml2: bool) {
                    let config = Config {
                        granule: Granule::$granule,
                        stage: Stage::$stage,
                        input_bits: $input_bits,
                        bbml2,
                        ..Config::default()
                    };
                    run(config, coherent, &operations)?;
                }
            )+
        }
    };
}

a_thousand! {
    of_4k_stage_1: Size4K One 39;
    of_4k_stage_2_concatenated: Size4K Two 40;
    #[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
    of_4k_stage_2_one_table_above: Size4K Two 34;
    #[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
    of_16k_stage_1: Size16K One 48;
    #[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
    of_16k_stage_2_concatenated: Size16K Two 40;
    #[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
    of_64k_stage_1: Size64K One 42;
    #[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
    of_64k_stage_2: Size64K Two 48;
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4,
        rng_seed: RngSeed::Fixed(0x1077),
        failure_persistence: None,
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    })]

    #[test]
    #[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
    fn of_4k_with_groups(operations in operations(), coherent: bool, bbml2: bool) {
        let config = Config { input_bits: 39, bbml2, ..Config::default() };
        let machine = machine(&config, coherent);
        run_on(&machine, Bench::contiguous(&machine, config), &operations)?;
    }
}
