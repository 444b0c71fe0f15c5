//! The steps by hand, the costs from the fit set, and every figure of the thread.

use std::collections::BTreeMap;

use barewire_sim::profile::CostLevel;

use super::table::{LIST_BYTES_MAX, PAGE};
use super::*;
use crate::figure::published;

const M2: u64 = 2 << 20;
const M32: u64 = 32 << 20;
const FLUSHES: [Flush; 3] = [Flush::ByAddress, Flush::ByAsid, Flush::Gathered];

/// An experiment's file, as far as these tests read it.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "the file must have the fields")]
struct Experiment {
    name: String,
    thread: String,
    title: String,
    citation: String,
    board: String,
    workload: String,
    #[serde(default)]
    paths: Vec<String>,
    figures: Vec<String>,
    #[serde(default)]
    figure: Vec<Case>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "the file may have the fields")]
struct Case {
    id: String,
    path: String,
    call: String,
    bytes: u64,
    #[serde(default)]
    unexplained: Option<String>,
}

impl Case {
    fn flush(&self) -> Flush {
        Flush::of_path(&self.path).unwrap_or_else(|error| panic!("{}: {error}", self.id))
    }
}

fn experiments() -> [Experiment; 2] {
    [include_str!("../../experiments/ranjan.toml"), include_str!("../../experiments/camera.toml")]
        .map(|text| toml::from_str(text).expect("an experiment"))
}

fn us(steps: &[StepCount]) -> f64 {
    steps.iter().map(|step| step.ps).sum::<f64>() / 1e6
}

fn times(steps: &[StepCount]) -> Vec<(&'static str, u64)> {
    steps.iter().map(|step| (step.step, step.times)).collect()
}

fn figures() -> BTreeMap<String, f64> {
    let of_thread = published().into_iter().filter(|figure| figure.thread == "ranjan");
    of_thread.map(|figure| (figure.id, figure.value)).collect()
}

/// Whether both are the same but for rounding.
fn close(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() < 2e-5
}

#[test]
fn the_strategies_count_what_the_thread_counts() {
    assert_eq!(FLUSHES.map(|flush| invalidations(M32, flush, &Costs::FITTED)), [8192, 16, 1]);
    assert_eq!(FLUSHES.map(|flush| invalidations(M2, flush, &Costs::FITTED)), [512, 1, 1]);
    // No table becomes empty, so each page is invalidated by its address with every setting for
    // walks.
    assert_eq!(FLUSHES.map(|flush| invalidations(64 << 10, flush, &Costs::FITTED)), [16, 16, 16]);
    assert_eq!(FLUSHES.map(|flush| invalidations(1 << 20, flush, &Costs::FITTED)), [256, 256, 1]);
}

#[test]
fn steps_happen_as_often_as_the_tables_say() {
    let steps = |bytes, flush| times(&unmap(bytes, flush, &Costs::FITTED));
    let leaves = [(CALL, 1), (UNMAP_PAGE, 16), (LEAF_FLUSH, 16)];
    assert!(FLUSHES.iter().all(|&flush| steps(64 << 10, flush) == leaves));
    let tables = |n| [(CALL, 1), (CLEAR_BLOCK, 16), (WALK_FLUSH, n), (FREE_TABLE, 16)];
    for (flush, n) in FLUSHES.into_iter().zip([8192, 16, 1]) {
        assert_eq!(steps(M32, flush), tables(n));
    }
    // One table and a page of the next.
    let mixed = [
        (CALL, 1),
        (UNMAP_PAGE, 1),
        (LEAF_FLUSH, 1),
        (CLEAR_BLOCK, 1),
        (WALK_FLUSH, 1),
        (FREE_TABLE, 1),
    ];
    assert_eq!(steps(M2 + PAGE, Flush::ByAsid), mixed);
    // With the gathered strategy one invalidation of the context covers the page too.
    assert_eq!(invalidations(M2 + PAGE, Flush::Gathered, &Costs::FITTED), 1);
    assert_eq!(times(&map(M32, &Costs::FITTED)), [(CALL, 1), (MAP_PAGE, 8192)]);
}

#[test]
fn a_list_that_begins_inside_a_table_empties_none_that_it_does_not_cover() {
    let mut counted = WorkCounts::default();
    with_table(3 * M2, |table| {
        let (iova, bytes) = (IOVA + M2 - PAGE, M2 + 2 * PAGE);
        table.map(iova, bytes, &mut WorkCounts::default());
        let costs = Costs::FITTED.for_strategy();
        table.unmap(iova, bytes, (Flush::ByAddress, costs), &mut counted);
    });
    assert_eq!((counted.leaves_cleared, counted.tables_unhooked), (2, 1));
    assert_eq!((counted.leaf_flush.by_address, counted.walk_flush.by_address), (2, 512));
}

#[test]
fn tables_are_freed_by_every_flush() {
    for flush in FLUSHES {
        // The arena has room for one list, so the next list would lack a table that is not freed.
        with_table(M32, |table| {
            let mut counted = WorkCounts::default();
            for _ in 0..10 {
                table.map(IOVA, M32, &mut WorkCounts::default());
                table.unmap(IOVA, M32, (flush, Costs::FITTED.for_strategy()), &mut counted);
            }
            assert_eq!((counted.tables_unhooked, counted.tables_freed), (160, 160));
        });
    }
}

#[test]
fn a_gathered_flush_goes_by_the_costs_it_is_given() {
    let told = |by_asid_ps| {
        let costs = Costs { by_asid_ps, ..Costs::FITTED };
        times(&unmap(M2, Flush::Gathered, &costs))[2]
    };
    assert_eq!(told(512.0 * Costs::FITTED.by_address_ps - 1e3), (WALK_FLUSH, 1));
    assert_eq!(told(512.0 * Costs::FITTED.by_address_ps + 1e3), (WALK_FLUSH, 512));
}

/// Each cost is found in some unmap or map, and only where its step happens.
#[test]
fn every_cost_is_charged() {
    let time = |costs: &Costs| {
        let unmaps = FLUSHES.map(|flush| us(&unmap(M2 + PAGE, flush, costs)));
        [us(&map(M2, costs)), unmaps[0], unmaps[1], unmaps[2]]
    };
    let base = time(&Costs::FITTED);
    let more = |change: fn(&mut Costs)| {
        let mut costs = Costs::FITTED;
        change(&mut costs);
        let time = time(&costs);
        [0, 1, 2, 3].map(|n| ((time[n] - base[n]) * 1e3).round())
    };
    // One more nanosecond for each step, and by how many ns the result then grows.
    assert_eq!(more(|costs| costs.map_call_ps += 1e3), [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(more(|costs| costs.map_page_ps += 1e3), [512.0, 0.0, 0.0, 0.0]);
    assert_eq!(more(|costs| costs.unmap_call_ps += 1e3), [0.0, 1.0, 1.0, 1.0]);
    assert_eq!(more(|costs| costs.unmap_page_ps += 1e3), [0.0, 1.0, 1.0, 1.0]);
    assert_eq!(more(|costs| costs.block_ps += 1e3), [0.0, 1.0, 1.0, 1.0]);
    assert_eq!(more(|costs| costs.by_address_ps += 1e3), [0.0, 513.0, 1.0, 0.0]);
    assert_eq!(more(|costs| costs.by_asid_ps += 1e3), [0.0, 0.0, 1.0, 1.0]);
}

/// Six figures and an assumption determine seven costs. Solved one by one, with the counts of the paths.
#[test]
fn the_fitted_costs_are_those_of_the_fit_set() {
    let figures = figures();
    let us = |id: &str| figures[id];
    let count = |steps: &[StepCount], step| {
        steps.iter().find(|known| known.step == step).map_or(0.0, |known| known.times as f64)
    };
    let any = Costs::FITTED;

    let pages = [PAGE, M2].map(|bytes| count(&map(bytes, &any), MAP_PAGE));
    let maps = ["ranjan-4K-map_sg_before", "ranjan-2M-map_sg_before"].map(us);
    let map_page = (maps[1] - maps[0]) / (pages[1] - pages[0]);

    let small = [PAGE, 64 << 10].map(|bytes| unmap(bytes, Flush::ByAddress, &any));
    let pages = small.each_ref().map(|steps| count(steps, UNMAP_PAGE));
    assert_eq!(pages, small.each_ref().map(|steps| count(steps, LEAF_FLUSH)));
    let unmaps = ["ranjan-4K-unmap_before", "ranjan-64K-unmap_before"].map(us);
    let both = (unmaps[1] - unmaps[0]) / (pages[1] - pages[0]);
    let unmap_call = unmaps[0] - both * pages[0];

    // With block = page = both - address.
    let before = count(&unmap(M2, Flush::ByAddress, &any), WALK_FLUSH);
    let address = (us("ranjan-2M-unmap_before") - unmap_call - both) / (before - 1.0);
    let page = both - address;
    let after = count(&unmap(M2, Flush::ByAsid, &any), WALK_FLUSH);
    let asid = (us("ranjan-2M-unmap_after") - unmap_call - page) / after;

    let solved = Costs {
        map_call_ps: maps[0] - map_page,
        map_page_ps: map_page,
        unmap_call_ps: unmap_call,
        unmap_page_ps: page,
        block_ps: page,
        by_address_ps: address,
        by_asid_ps: asid,
    };
    for (used, solved) in all(&any).into_iter().zip(all(&solved)) {
        assert!(close(used / 1e6, solved), "{used} ps, and {solved} us solved");
    }
}

fn all(costs: &Costs) -> [f64; 7] {
    let Costs {
        map_call_ps,
        map_page_ps,
        unmap_call_ps,
        unmap_page_ps,
        block_ps,
        by_address_ps,
        by_asid_ps,
    } = *costs;
    [map_call_ps, map_page_ps, unmap_call_ps, unmap_page_ps, block_ps, by_address_ps, by_asid_ps]
}

#[test]
fn the_experiments_answer_every_figure_of_the_thread_once() {
    let [ranjan, camera] = experiments();
    let ids: Vec<&String> = ranjan.figure.iter().map(|case| &case.id).collect();
    assert_eq!(ids, ranjan.figures.iter().collect::<Vec<_>>());
    let mut sorted = ids;
    sorted.sort();
    assert_eq!(sorted, figures().keys().collect::<Vec<_>>());
    for case in &ranjan.figure {
        let parts: Vec<&str> = case.id.split('-').collect();
        if case.call == "invalidations" {
            continue;
        }
        // The id says all: size, call, before or after.
        let (number, unit) = parts[1].split_at(parts[1].len() - 1);
        let bytes = number.parse::<u64>().expect("a number") << if unit == "K" { 10 } else { 20 };
        let after = if case.flush() == Flush::ByAddress { "before" } else { "after" };
        assert_eq!((bytes, format!("{}_{after}", case.call).as_str()), (case.bytes, parts[2]));
    }
    assert!(camera.figures.is_empty() && camera.figure.is_empty());
    let flushes = camera.paths.iter().map(|path| Flush::of_path(path).expect("a path"));
    assert_eq!(flushes.collect::<Vec<_>>(), FLUSHES);
    for experiment in [ranjan, camera] {
        assert_eq!((experiment.thread.as_str(), experiment.board.as_str()), ("ranjan", "sm8150"));
    }
}

/// The thread's camera takes more than 100 ms. No costs within its own table explain that, see `camera.toml`.
#[test]
fn the_camera_s_100_ms_are_not_explained() {
    let [before, after, gathered] = FLUSHES.map(|flush| camera(&Costs::FITTED, flush));
    assert_eq!((before.bytes, before.calls), (99_901_440, 60));
    // A table and 253 pages, and 48 pages, 30 times.
    assert_eq!(before.invalidations, 30 * (512 + 253 + 48));
    assert_eq!(after.invalidations, 30 * (1 + 253 + 48));
    // The large buffer at once; the small one by page, because a flush of the context would be for more.
    assert_eq!(gathered.invalidations, 30 * (1 + 48));
    let ms = [&before, &after, &gathered].map(Camera::unmap_ms_per_s);
    assert!(ms[0] > ms[1] && ms[1] > ms[2], "{ms:?}");
    let high = Costs::of(&crate::cost::Costs::assumed().at(CostLevel::High));
    assert!(camera(&high, Flush::ByAddress).unmap_ms_per_s() < 100.0, "explained: say so");
    let text =
        "6.24 ms in iommu_unmap per second of video: 99.9 MB in 60 calls, 24390 invalidations";
    assert_eq!(before.to_string(), text);
}

#[test]
#[should_panic(expected = "whole pages")]
fn a_list_is_whole_pages() {
    let _ = map(PAGE + 1, &Costs::FITTED);
}

#[test]
#[should_panic(expected = "a list of 536875008 bytes")]
fn a_list_is_no_larger_than_it_may_be() {
    let _ = map(LIST_BYTES_MAX + PAGE, &Costs::FITTED);
}

/// A table's flushes before the patch less those after it: the two figures of 2M predict those outside the fit set.
#[test]
fn what_the_patch_saves_is_within_a_hundredth() {
    let published = figures();
    for (name, mib) in [("12M", 12), ("16M", 16), ("24M", 24), ("32M", 32)] {
        let [before, after] =
            ["before", "after"].map(|end| published[&format!("ranjan-{name}-unmap_{end}")]);
        let time = |flush| us(&unmap(mib << 20, flush, &Costs::FITTED));
        let saved = time(Flush::ByAddress) - time(Flush::ByAsid);
        let error = saved / (before - after) - 1.0;
        assert!(error.abs() < 0.01, "{name}: {saved} us saved");
    }
}
