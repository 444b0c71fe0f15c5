//! Every sequence of a few calls on a few ranges around table boundaries, for every granule and
//! stage: against the naive map, on the hungriest hardware.

use barewire_iommu::{Config, Costs, Granule, Stage, Strategy};
use barewire_iommu_model::Shape;

use crate::bench::{Bench, Kind, machine};

#[derive(Clone, Copy, Debug)]
enum Step {
    /// By blocks where the range permits.
    Map(usize),
    /// To memory that lies a page off: only pages fit.
    MapPages(usize),
    /// In pieces of one and two pages and the rest, from all over.
    MapPieces(usize),
    Unmap(usize),
    UnmapChecked(usize),
}

const STRATEGIES: [Strategy; 4] = [
    Strategy::ByPage,
    Strategy::ByRange,
    Strategy::ByContext,
    Strategy::Adaptive(Costs {
        address_ps: 100,
        range_ps: 150,
        context_ps: 1000,
        wait_ps: 10,
        miss_ps: 30,
        tlb_entries: 4,
    }),
];

/// Where tables meet: of the last level, and of each above it; the middle if there is one table.
fn boundaries(shape: &Shape) -> Vec<u64> {
    let end = shape.input_end();
    let spans = (shape.start..3).map(|level| shape.span(level)).filter(|span| span * 2 <= end);
    let found: Vec<u64> = spans.collect();
    if found.is_empty() { vec![end / 2] } else { found }
}

/// Ranges around `at`: pages, whole tables, and ranges that end a page beyond a table.
fn ranges(at: u64, page: u64, table: u64) -> [(u64, u64); 5] {
    [
        (at - page, page),
        (at, page),
        (at - page, 2 * page),
        (at, table),
        (at - page, table + 2 * page),
    ]
}

fn take(bench: &mut Bench<'_>, step: Step, ranges: &[(u64, u64)], phys: u64) {
    // Refusals are judged by the bench.
    let _ = match step {
        Step::Map(range) => {
            let (iova, len) = ranges[range];
            bench.map(iova, phys + iova, len, Kind::Plain).is_ok()
        }
        Step::MapPages(range) => {
            let (iova, len) = ranges[range];
            bench.map(iova, phys + iova + bench.page(), len, Kind::ReadOnly).is_ok()
        }
        Step::MapPieces(range) => {
            let (iova, len) = ranges[range];
            let page = bench.page();
            let mut left = len;
            let mut pieces = Vec::new();
            for (n, want) in [page, 2 * page, len].into_iter().enumerate() {
                let piece = want.min(left);
                if piece > 0 {
                    pieces.push((phys + len * 2 * (3 - n as u64), piece));
                    left -= piece;
                }
            }
            bench.map_sg(iova, &pieces, Kind::Plain).is_ok()
        }
        Step::Unmap(range) => bench.unmap(ranges[range].0, ranges[range].1).is_ok(),
        Step::UnmapChecked(range) => bench.unmap_checked(ranges[range].0, ranges[range].1).is_ok(),
    };
}

/// Runs one sequence; the strategy and whether each step is flushed at once follow from `seed`.
fn sequence(config: Config, at: u64, steps: &[Step], seed: usize) {
    let machine = machine(&config, !seed.is_multiple_of(3));
    let mut bench = Bench::new(&machine, config);
    bench.strategy = STRATEGIES[seed % 4];
    let table = if bench.shape.start == 3 { 16 * bench.page() } else { bench.shape.span(2) };
    let ranges = ranges(at, bench.page(), table);
    for (n, step) in steps.iter().enumerate() {
        take(&mut bench, *step, &ranges, (n as u64 + 1) << 33);
        if seed & 1 << n == 0 {
            bench.flush().expect("nothing fails unasked");
        }
        if !machine.violations().is_empty() {
            eprintln!("{config:?} at {at:#x}: {:?} with seed {seed}", &steps[..=n]);
        }
        machine.assert_sound();
        bench.check_tables();
    }
    bench.check_lookups();
    bench.finish();
}

/// Steps of these kinds over these ranges.
fn steps(kinds: &[fn(usize) -> Step], ranges: &[usize]) -> Vec<Step> {
    kinds.iter().flat_map(|step| ranges.iter().map(move |range| step(*range))).collect()
}

/// Every sequence of `depth` steps.
fn all_sequences(config: Config, at: u64, steps: &[Step], depth: u32) -> usize {
    let count = steps.len().pow(depth);
    for mut number in 0..count {
        let seed = number;
        let next = |_| {
            let step = steps[number % steps.len()];
            number /= steps.len();
            step
        };
        sequence(config, at, &(0..depth).map(next).collect::<Vec<_>>(), seed);
    }
    count
}

const ALL: [fn(usize) -> Step; 5] =
    [Step::Map, Step::MapPages, Step::MapPieces, Step::Unmap, Step::UnmapChecked];

/// Pairs at every boundary of these shapes.
fn pairs(granule: Granule, input_bits: &[u8], ranges: &[usize]) -> usize {
    let mut count = 0;
    for stage in [Stage::One, Stage::Two] {
        for &input_bits in input_bits {
            let config = Config { granule, stage, input_bits, ..Config::default() };
            for at in boundaries(&Shape::new(&config)) {
                count += all_sequences(config, at, &steps(&ALL, ranges), 2);
            }
        }
    }
    count
}

#[test]
#[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
fn pairs_of_4k() {
    let count = pairs(Granule::Size4K, &[32, 39, 40, 48], &[0, 1, 2, 3, 4]);
    assert_eq!(count, 18 * 25 * 25);
}

#[test]
#[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
fn pairs_of_16k() {
    let count = pairs(Granule::Size16K, &[36, 41, 48], &[0, 2, 3, 4]);
    assert_eq!(count, 11 * 20 * 20);
}

#[test]
#[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
fn pairs_of_64k() {
    let count = pairs(Granule::Size64K, &[32, 43, 47], &[2, 3]);
    assert_eq!(count, 9 * 10 * 10);
}

/// One deeper, where two tables of the last level and two of the one above meet.
#[test]
#[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
fn triples_of_4k() {
    let kinds = [Step::Map, Step::MapPages, Step::Unmap];
    let mut count = 0;
    for stage in [Stage::One, Stage::Two] {
        let config = Config { stage, input_bits: 39, ..Config::default() };
        count += all_sequences(config, 1 << 30, &steps(&kinds, &[1, 2, 3, 4]), 3);
    }
    assert_eq!(count, 2 * 12 * 12 * 12);
}

/// With blocks that may be split, which without FEAT_BBM is refused.
#[test]
#[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
fn triples_with_bbml2() {
    let config = Config { input_bits: 39, bbml2: true, ..Config::default() };
    let kinds = [Step::Map, Step::Unmap];
    let count = all_sequences(config, 1 << 30, &steps(&kinds, &[1, 2, 3, 4]), 3);
    assert_eq!(count, 8 * 8 * 8);
}
