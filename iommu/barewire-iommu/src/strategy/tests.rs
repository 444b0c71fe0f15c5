//! Operations for given runs, and the choice at its threshold.

use core::cell::{Cell, RefCell};
use std::string::ToString;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::address::Iova;
use crate::tlbi::{Context, FlushError, Invalidate};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn run(start: u64, size: u64, stride: u32, tables: bool) -> Run {
    let level = (!tables).then_some(if stride == 12 { 3 } else { 2 });
    Run { start: Iova(start), end: Iova(start + size), stride, tables, level }
}

fn facts(has_ranges: bool, live_entries: u64) -> Facts {
    Facts { page_shift: 12, has_ranges, live_entries }
}

fn operations(strategy: Strategy, runs: &[Run]) -> Vec<Tlbi> {
    strategy.operations(Some(runs), &facts(true, 0)).as_slice().to_vec()
}

fn commands(strategy: Strategy, runs: &[Run]) -> u64 {
    operations(strategy, runs).iter().map(Tlbi::commands).sum()
}

#[test]
fn leaves_are_named_one_by_one_with_their_hints() {
    let pages = run(0x1000, 64 * KIB, 12, false);
    assert_eq!(
        operations(Strategy::ByPage, &[pages]),
        [Tlbi::Pages { iova: Iova(0x1000), stride: 12, count: 16, leaf: true, level: Some(3) }]
    );
    let blocks = run(4 * MIB, 8 * MIB, 21, false);
    assert_eq!(
        operations(Strategy::ByPage, &[blocks]),
        [Tlbi::Pages { iova: Iova(4 * MIB), stride: 21, count: 4, leaf: true, level: Some(2) }]
    );
    let range = Tlbi::Range {
        iova: Iova(4 * MIB),
        page_shift: 12,
        pages: 2048,
        leaf: true,
        level: Some(2),
    };
    assert_eq!(operations(Strategy::ByRange, &[blocks]), [range]);
}

#[test]
fn unhooked_tables_are_named_at_every_granule_without_hints() {
    let tables = Run { level: Some(2), ..run(2 * MIB, 4 * MIB, 12, true) };
    assert_eq!(
        operations(Strategy::ByPage, &[tables]),
        [Tlbi::Pages { iova: Iova(2 * MIB), stride: 12, count: 1024, leaf: false, level: None }]
    );
    let range =
        Tlbi::Range { iova: Iova(2 * MIB), page_shift: 12, pages: 1024, leaf: false, level: None };
    assert_eq!(operations(Strategy::ByRange, &[tables]), [range]);
}

/// 32 MiB as in S. P. Ranjan's patch (see [`Costs`]), and 1 MiB within a live table.
#[test]
fn the_threads_counts() {
    let whole = [run(32 * MIB, 32 * MIB, 12, true)];
    assert_eq!(commands(Strategy::ByPage, &whole), 8192);
    assert_eq!(commands(Strategy::ByContext, &whole), 1);
    assert_eq!(commands(Strategy::ByRange, &whole), 1);
    let each_table: u64 = (0..16)
        .map(|i| commands(Strategy::ByContext, &[run((16 + i) * 2 * MIB, 2 * MIB, 12, true)]))
        .sum();
    assert_eq!(each_table, 16);
    assert_eq!(commands(Strategy::ByPage, &[run(0, MIB, 12, false)]), 256);
    // 8,191 pages are 13 set bits: three groups of five bits.
    assert_eq!(commands(Strategy::ByRange, &[run(0x1000, 32 * MIB - 0x1000, 12, true)]), 3);
}

#[test]
fn nothing_costs_nothing_and_everything_is_the_context() {
    for strategy in [Strategy::ByPage, Strategy::ByContext, Strategy::default()] {
        assert_eq!(operations(strategy, &[]), []);
        let all = strategy.operations(None, &facts(true, 0));
        assert_eq!(all.as_slice(), [Tlbi::Context]);
    }
    let nine = [run(0, 4 * KIB, 12, false); RUNS + 1];
    assert_eq!(operations(Strategy::ByPage, &nine), [Tlbi::Context]);
    assert_eq!(operations(Strategy::ByPage, &nine[1..]).len(), RUNS);
}

#[test]
fn without_ranges_by_range_is_by_page() {
    let runs = [run(0, 64 * KIB, 12, false)];
    assert_eq!(Strategy::ByRange.choose(&runs, &facts(false, 0)), Method::Pages);
    assert_eq!(Strategy::ByRange.choose(&runs, &facts(true, 0)), Method::Ranges);
}

/// Every list of operations covers all that was removed: the one thing a strategy must not get
/// wrong.
#[test]
fn whatever_the_strategy_every_granule_is_covered() {
    let mut runs = Vec::new();
    for start in [0, 3, 512] {
        for pages in [1, 2, 33, 512, 1024] {
            runs.push(run(start << 12, pages << 12, 12, pages >= 512));
        }
    }
    runs.push(run(4 * MIB, 4 * MIB, 21, false));
    for removed in runs {
        for strategy in [Strategy::ByPage, Strategy::ByRange, Strategy::default()] {
            let list = operations(strategy, &[removed]);
            let step = 1 << removed.step(12);
            let mut iova = removed.start.0;
            while iova < removed.end.0 {
                assert!(list.iter().any(|tlbi| covers(tlbi, iova)), "{iova:#x} {list:?}");
                iova += step;
            }
        }
    }
}

fn covers(tlbi: &Tlbi, at: u64) -> bool {
    match *tlbi {
        Tlbi::Context => true,
        Tlbi::Pages { iova, stride, count, .. } => {
            at >= iova.0
                && (at - iova.0) >> stride < count
                && (at - iova.0).is_multiple_of(1 << stride)
        }
        Tlbi::Range { iova, page_shift, pages, .. } => {
            at >= iova.0 && at - iova.0 < pages << page_shift
        }
    }
}

#[test]
fn the_crossover_is_where_the_costs_say() {
    let costs = Costs {
        address_ps: 100,
        range_ps: 350,
        context_ps: 1000,
        wait_ps: 77,
        miss_ps: 10,
        tlb_entries: 32,
    };
    let of = |pages: u64, has_ranges, live| {
        costs.choice(&[run(0, pages << 12, 12, false)], &facts(has_ranges, live))
    };
    // Nothing else is mapped. Ten addresses cost as much as the context, and invalidate less.
    assert_eq!(of(10, false, 0).method, Method::Pages);
    assert_eq!(of(11, false, 0).method, Method::Context);
    assert_eq!(costs.crossover_addresses(0), Some(11));
    // Five entries to refetch, 50 ps: the threshold is still eleven.
    assert_eq!(of(10, false, 5).method, Method::Pages);
    assert_eq!(of(11, false, 5).method, Method::Context);
    assert_eq!(of(11, false, 10).method, Method::Pages);
    assert_eq!(of(12, false, 10).method, Method::Context);
    // No more can be lost than the TLB holds: 320 ps.
    assert_eq!(of(13, false, 1 << 30).method, Method::Pages);
    assert_eq!(of(14, false, 1 << 30).method, Method::Context);
    assert_eq!(costs.crossover_addresses(1 << 30), Some(14));
    // A power of two is one range command: 350 ps, against 100 each. 33 pages are two commands: 700
    // ps.
    assert_eq!(of(3, true, 0).method, Method::Pages);
    assert_eq!(of(4, true, 0).method, Method::Ranges);
    assert_eq!(of(33, true, 0).method, Method::Ranges);
    // 1,057 pages are three commands, 1,050 ps: now the context is cheaper.
    assert_eq!(of(1057, true, 0).method, Method::Context);
    assert_eq!(of(1057, true, 6).method, Method::Ranges);
}

#[test]
fn the_choice_says_why() {
    let costs = Costs::default();
    let runs = [run(0, 32 * MIB, 12, true)];
    let choice = costs.choice(&runs, &facts(false, 100));
    assert_eq!(choice.by_page.commands, 8192);
    assert_eq!(choice.by_page.total_ps(), 1_024_000_000);
    assert_eq!(choice.by_context.refill_ps, 64 * 290_000);
    assert_eq!(choice.prediction(), choice.by_context);
    assert_eq!(
        choice.to_string(),
        "by context: by page 8192 commands 1024.00 µs, by context 1 command 3.17 µs and 18.56 µs \
         of misses"
    );
    let choice = costs.choice(&runs, &facts(true, 100));
    assert_eq!((choice.method, choice.prediction().commands), (Method::Ranges, 1));
}

#[test]
fn enormous_runs_do_not_overflow() {
    let costs = Costs { address_ps: u32::MAX, wait_ps: u32::MAX, ..Costs::default() };
    let all = [run(0, 1 << 48, 12, true); 2];
    assert_eq!(costs.choice(&all, &facts(false, u64::MAX)).method, Method::Context);
}

/// A clock that advances while it flushes.
struct ClockedStrategy {
    now_ps: Cell<u64>,
    seen: RefCell<Vec<Tlbi>>,
    fails: bool,
}

impl Invalidate for ClockedStrategy {
    fn flush(&self, _: Context, operations: &[Tlbi]) -> Result<(), FlushError> {
        let ps: u64 = operations
            .iter()
            .map(|tlbi| match tlbi {
                Tlbi::Context => 9_000,
                Tlbi::Pages { count, .. } => 300 * count,
                Tlbi::Range { .. } => 500,
            })
            .sum();
        // The first try is always slower.
        let cold = if self.seen.borrow().contains(&operations[0]) { 0 } else { 5_000 };
        self.seen.borrow_mut().extend_from_slice(operations);
        self.now_ps.set(self.now_ps.get() + 2_000 + ps + cold);
        if self.fails { Err(FlushError::Timeout) } else { Ok(()) }
    }

    fn has_ranges(&self) -> bool {
        true
    }
}

#[test]
fn costs_are_measured() {
    let clocked =
        |fails| ClockedStrategy { now_ps: Cell::new(0), seen: RefCell::new(vec![]), fails };
    let smmu = clocked(false);
    let measured =
        Costs::default().measure(&smmu, Context::Asid(1), 12, || smmu.now_ps.get()).unwrap();
    let expected = Costs {
        address_ps: 300,
        range_ps: 500,
        context_ps: 9_000,
        wait_ps: 2_000,
        ..Costs::default()
    };
    assert_eq!(measured, expected);
    let broken = clocked(true);
    let failed = Costs::default().measure(&broken, Context::Asid(1), 12, || 0);
    assert_eq!(failed, Err(FlushError::Timeout));
}

/// Operations are chosen without the costs to show, and for one address without any.
#[test]
fn the_short_ways_to_a_choice_choose_the_same() {
    let costs = Costs::default();
    let all = [
        costs,
        Costs { address_ps: 1, range_ps: 1, context_ps: 1, ..costs },
        Costs { address_ps: 2, range_ps: 1, ..costs },
        Costs { address_ps: 2, context_ps: 1, miss_ps: 0, ..costs },
        Costs { address_ps: 2, context_ps: 1, miss_ps: 1, ..costs },
        Costs { wait_ps: u32::MAX, context_ps: 0, ..costs },
        Costs { address_ps: 0, ..costs },
    ];
    for costs in all {
        for (has_ranges, live_entries) in [(false, 0), (true, 0), (false, 1), (true, 1 << 40)] {
            let facts = Facts { page_shift: 12, has_ranges, live_entries };
            for (stride, tables) in [(12, false), (21, false), (12, true), (30, false)] {
                for pages in [1, 2, 33, 512] {
                    let (start, end) = (Iova(1 << 30), Iova((1 << 30) + (pages << 12)));
                    let run = Run { start, end, stride, tables, level: None };
                    let strategy = Strategy::Adaptive(costs);
                    let method = costs.choice(&[run], &facts).method;
                    assert_eq!(strategy.choose(&[run], &facts), method, "{costs:?} {run:?}");
                    let operations = strategy.operations(Some(&[run]), &facts);
                    let expected = method.operations(&[run], facts.page_shift);
                    assert_eq!(operations.as_slice(), expected.as_slice(), "{costs:?} {run:?}");
                }
            }
        }
    }
}

#[test]
fn too_many_addresses_are_the_context() {
    let most = run(0, super::PAGES_MAX << 12, 12, true);
    let more = run(1 << 40, 4096, 12, true);
    for strategy in [Strategy::ByPage, Strategy::ByRange] {
        let list = |runs: &[Run]| strategy.operations(Some(runs), &facts(false, 0));
        let pages = list(&[most]);
        let count: u64 = pages.as_slice().iter().map(Tlbi::commands).sum();
        assert_eq!(count, super::PAGES_MAX, "{strategy:?}");
        assert_eq!(list(&[most, more]).as_slice(), [Tlbi::Context], "{strategy:?}");
    }
}
