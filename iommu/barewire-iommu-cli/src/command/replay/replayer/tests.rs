//! Events by hand, and at random beside a map of pages.

use std::collections::BTreeMap;

use barewire_iommu::{Access, Arena, Attributes, Config, Stage, Strategy};

use super::super::costs::Prices;
use super::super::engine::{Bounds, Plan};
use super::super::memory::Memory;
use super::super::window::Window;
use super::*;

const PAGE: u64 = 4096;
const M2: u64 = 2 << 20;

const PRICES: Prices = Prices {
    call_ps: 1_000_000,
    page_ps: 1_000,
    strategy: barewire_iommu::Costs {
        address_ps: 1_000,
        range_ps: 10_000,
        context_ps: 100_000,
        wait_ps: 0,
        miss_ps: 1_000,
        tlb_entries: 8,
    },
    has_ranges: false,
};

const PLANS: [(&str, Plan); 4] = [
    ("by_page", Plan::EachWalk { walk: Strategy::ByPage }),
    ("each_walk", Plan::EachWalk { walk: Strategy::ByContext }),
    ("by_context", Plan::Gathered(Strategy::ByContext)),
    ("deferred", Plan::Deferred(Bounds { calls: 3, age_ns: 1_000 })),
];

/// Lets `test` have a replayer with all of [`PLANS`] and a working set of 2 pages.
fn with_replayer<R>(test: impl FnOnce(&mut Replayer<'_>) -> R) -> R {
    let config = Config { bbml2: true, ..Config::default() };
    let geometry = Geometry::new(config).expect("a shape");
    let mut memories: Vec<Memory> = PLANS.iter().map(|_| Memory::new(512, 4096)).collect();
    let arenas: Vec<Arena<'_>> =
        memories.iter_mut().map(|memory| memory.arena(4096).expect("aligned")).collect();
    let engines = PLANS.into_iter().zip(&arenas).map(|(plan, arena)| {
        let attributes = Attributes::new(Stage::One, Access::ReadWrite);
        Engine::new(plan, config, attributes, arena, PRICES, Window::new(1_000)).expect("room")
    });
    test(&mut Replayer::new(engines.collect(), geometry, 512, 8, 2))
}

fn map(replayer: &mut Replayer<'_>, time_ns: u64, iova: u64, phys: u64, size: u64) {
    let event = Event::Map { iova, phys, size };
    replayer.event(Some(time_ns), &event).expect("maps");
}

fn unmap(replayer: &mut Replayer<'_>, time_ns: u64, iova: u64, size: u64) {
    let event = Event::Unmap { iova, size, unmapped: size };
    replayer.event(Some(time_ns), &event).expect("unmaps");
}

/// Addresses, contexts, leaf stores and refills of each engine.
fn counts(replayer: &Replayer<'_>) -> Vec<[u64; 4]> {
    let of = |engine: &Engine<'_>| {
        let counts = &engine.counts;
        [counts.by_address, counts.by_context, counts.leaf_stores, counts.refill_misses]
    };
    replayer.engines.iter().map(of).collect()
}

#[test]
fn what_each_strategy_does_to_a_table_and_three_pages() {
    with_replayer(|replayer| {
        for page in 0..515 {
            map(replayer, 0, M2 + page * PAGE, (1 << 32) + 2 * page * PAGE, PAGE);
        }
        assert_eq!([replayer.live, replayer.device.accesses], [515, 2 + 2 * 515]);
        unmap(replayer, 1, M2, M2 + 3 * PAGE);
        assert_eq!(counts(replayer), [[515, 0, 3, 0], [3, 1, 3, 2], [0, 1, 3, 2], [0, 0, 3, 0]]);
        let times: Vec<u64> =
            replayer.engines.iter().map(|engine| engine.counts.unmap_ps).collect();
        assert_eq!(times, [1_518_000, 1_106_000, 1_103_000, 1_003_000]);
        assert_eq!(replayer.live, 0);
        // Deferred by age; and the working set has to be fetched again.
        map(replayer, 1_001, M2, 0, PAGE);
        assert_eq!(counts(replayer)[3], [0, 1, 3, 1]);
        replayer.finish();
        assert_eq!(replayer.device.misses_compulsory, 2 + 515 + 1);
        assert_eq!(replayer.device.misses_capacity, 0);
    });
}

#[test]
fn deferred_flushes_by_calls_and_before_an_iova_comes_back() {
    with_replayer(|replayer| {
        let deferred = |replayer: &Replayer<'_>| {
            let counts = &replayer.engines[3].counts;
            [counts.flushes, counts.forced, counts.held_bytes_max]
        };
        for n in 0..3 {
            map(replayer, 0, n * M2, 0, PAGE);
        }
        unmap(replayer, 0, 0, PAGE);
        unmap(replayer, 0, M2, PAGE);
        assert_eq!(deferred(replayer), [0, 0, 2 * PAGE]);
        unmap(replayer, 0, 2 * M2, PAGE);
        assert_eq!(deferred(replayer), [1, 0, 3 * PAGE]);
        map(replayer, 0, 0, 0, 2 * PAGE);
        unmap(replayer, 0, PAGE, PAGE);
        map(replayer, 0, 2 * PAGE, 0, PAGE);
        assert_eq!(deferred(replayer), [1, 0, 3 * PAGE]);
        map(replayer, 0, PAGE, 0, PAGE);
        assert_eq!(deferred(replayer), [2, 1, 3 * PAGE]);
        unmap(replayer, 0, 0, PAGE);
        replayer.finish();
        assert_eq!(deferred(replayer), [3, 1, 3 * PAGE]);
    });
}

#[test]
fn a_trace_that_began_in_the_middle_loses_nothing() {
    with_replayer(|replayer| {
        // The trace never mapped the rest of the table; the unmap is replayed as if it had.
        map(replayer, 0, M2 + PAGE, 0, PAGE);
        unmap(replayer, 0, M2, M2);
        assert_eq!(replayer.input.assumed_mapped_bytes, M2 - PAGE);
        assert_eq!(counts(replayer)[0], [512, 0, 0, 0]);
        assert_eq!(counts(replayer)[1][..2], [0, 1]);
        // The trace never unmapped this page of the block; the replay assumes it did.
        map(replayer, 0, 0, 1 << 30, M2);
        map(replayer, 0, PAGE, 0, PAGE);
        assert_eq!(replayer.input.assumed_unmapped_bytes, PAGE);
        assert_eq!(replayer.live, 512);
        assert_eq!(counts(replayer)[0], [512, 0, 0, 0], "at no cost");
        unmap(replayer, 0, 0, M2);
        assert_eq!(replayer.live, 0);
        // Asked for more than there was.
        map(replayer, 0, 0, 0, PAGE);
        let event = Event::Unmap { iova: 0, size: M2, unmapped: PAGE };
        replayer.event(None, &event).expect("unmaps");
        let event = Event::Unmap { iova: 0, size: M2, unmapped: 0 };
        replayer.event(None, &event).expect("does nothing");
        assert_eq!(replayer.input.short_unmaps, 2);
        assert_eq!(replayer.input.unmatched_unmaps, 1);
        assert_eq!(replayer.engines[0].counts.calls, 4);
        assert_eq!(replayer.live, 0);
    });
}

#[test]
fn what_no_table_can_hold_is_refused_with_the_option_that_helps() {
    with_replayer(|replayer| {
        for (event, part) in [
            (Event::Map { iova: 0x800, phys: 0, size: PAGE }, "iova 0x800 is no multiple"),
            (Event::Map { iova: 0, phys: 0x800, size: PAGE }, "paddr 0x800 is no multiple"),
            (Event::Map { iova: 0, phys: 0, size: 0x800 }, "size 0x800 is no multiple"),
            (Event::Unmap { iova: 0, size: PAGE, unmapped: 1 }, "unmapped_size 0x1 is no multiple"),
            (Event::Unmap { iova: 1 << 48, size: PAGE, unmapped: 0 }, "(--input-bits)"),
            (Event::Map { iova: 0, phys: 1 << 48, size: PAGE }, "(--output-bits)"),
            (Event::Unmap { iova: 0, size: 1 << 40, unmapped: 1 << 40 }, "(--tables-mib"),
        ] {
            match replayer.event(None, &event) {
                Err(Refusal::Line(error)) => assert!(error.contains(part), "{error}"),
                other => panic!("{event:?}: {other:?}"),
            }
        }
    });
}

#[test]
fn random_events_leave_the_tables_as_a_map_of_pages_has_them() {
    let mut state = 7_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    with_replayer(|replayer| {
        let mut pages = BTreeMap::new();
        for time_ns in 0..1_500 {
            let wide = random(3) == 0;
            let (start, size) = if wide {
                (random(3) * 512, (1 + random(2)) * 512)
            } else {
                (random(1_500), 1 + random(40))
            };
            let (iova, size) = (start * PAGE, size * PAGE);
            let range = start..start + size / PAGE;
            if random(2) == 0 {
                let phys = if wide { random(8) * M2 } else { random(4_096) * PAGE };
                map(replayer, time_ns * 100, iova, phys, size);
                pages.extend(range.map(|page| (page, phys + page * PAGE - iova)));
            } else {
                unmap(replayer, time_ns * 100, iova, size);
                pages.retain(|page, _| !range.contains(page));
            }
            for engine in &replayer.engines {
                let there = engine.mapped(&(0..1 << 30));
                let bytes: u64 = there.iter().map(|range| range.end - range.start).sum();
                assert_eq!(bytes, pages.len() as u64 * PAGE, "{}", engine.name);
            }
            assert_eq!(replayer.live, replayer.engines[0].leaves(&(0..1 << 30)).len() as u64);
        }
        replayer.finish();
        let [by_page, .., deferred] = &replayer.engines[..] else { unreachable!() };
        assert_eq!(by_page.counts.refill_misses, 0, "it invalidates only what was unmapped");
        assert!(deferred.counts.forced > 0 && deferred.counts.flushes < by_page.counts.flushes);
        let misses = replayer.device.misses_compulsory + replayer.device.misses_capacity;
        assert_eq!(by_page.counts.misses, misses);
    });
}
