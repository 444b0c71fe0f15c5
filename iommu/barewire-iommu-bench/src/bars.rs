//! The library's performance promises, and whether this run met them.
//!
//! Tests fail on counts only. Times are only reported, here.

use serde::Serialize;

use crate::list::Layout;
use crate::row::{Op, Row};
use crate::scaling::Scaling;
use crate::subject::Implementation;
use crate::thread_table::ThreadTable;

/// A promise.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    /// The measured operation.
    pub what: String,
    /// The measured value.
    pub value: f64,
    /// The promised value.
    pub limit: f64,
    /// Whether the limit is a maximum. Otherwise it is a minimum.
    pub at_most: bool,
    /// Whether the promise was met.
    pub met: bool,
}

impl Bar {
    fn at_most(what: impl Into<String>, value: f64, limit: f64) -> Self {
        Self { what: what.into(), value, limit, at_most: true, met: value <= limit }
    }

    fn at_least(what: impl Into<String>, value: f64, limit: f64) -> Self {
        Self { what: what.into(), value, limit, at_most: false, met: value >= limit }
    }
}

/// Finds a row.
pub fn find<'r>(
    rows: &'r [Row],
    implementation: Implementation,
    (op, size, layout): (Op, &str, Layout),
    strategy: Option<&str>,
) -> Option<&'r Row> {
    rows.iter().find(|row| {
        row.implementation == implementation
            && (row.op, row.size, row.layout) == (op, size, layout)
            && row.strategy == strategy
    })
}

/// All promises that were measured.
pub fn bars(rows: &[Row], scaling: Option<&Scaling>, thread: &ThreadTable) -> Vec<Bar> {
    const SCATTERED: Layout = Layout::Scattered;
    let ours = |of, strategy| find(rows, Implementation::Barewire, of, strategy);
    let map = |size, layout| ours((Op::MapSg, size, layout), None);
    let unmap = |strategy| ours((Op::Unmap, "32M", SCATTERED), Some(strategy));
    let mut bars = Vec::new();
    for (size, limit) in [("32M", 1.25), ("2M", 1.5)] {
        bars.extend(map(size, SCATTERED).map(|row| {
            Bar::at_most(format!("map_sg {size} scattered, x floor_b"), row.ratio_to_floor, limit)
        }));
    }
    for size in ["32M", "2M"] {
        bars.extend(map(size, SCATTERED).map(|row| {
            let what = format!("map_sg {size} scattered, x {}", row.strict_floor.name());
            Bar::at_most(what, row.ratio_to_strict_floor, 1.5)
        }));
    }
    bars.extend(
        map("32M", Layout::Contiguous)
            .map(|row| Bar::at_most("map_sg 32M contiguous, ns", row.ns_median, 200.0)),
    );
    bars.extend(
        unmap("gathered")
            .map(|row| Bar::at_most("unmap 32M gathered, x floor_drop", row.ratio_to_floor, 2.5)),
    );
    bars.extend(
        ours((Op::UnmapLeaf, "1M", SCATTERED), Some("gathered"))
            .map(|row| Bar::at_most("unmap_leaf 1M, x floor_leaf", row.ratio_to_floor, 1.5)),
    );
    bars.extend(small(rows));
    for peer in Implementation::PEERS {
        let theirs = find(rows, peer, (Op::MapSg, "32M", SCATTERED), None);
        if let (Some(theirs), Some(ours)) = (theirs, map("32M", SCATTERED)) {
            let times = (theirs.ns_median / ours.ns_median * 10.0).round() / 10.0;
            bars.push(Bar::at_least(format!("{} map 32M, x ours", peer.name()), times, 10.0));
        }
    }
    for (strategy, limit) in [("by_page", 8192.0), ("by_asid", 16.0), ("gathered", 1.0)] {
        let count = unmap(strategy).and_then(|row| row.invalidations);
        bars.extend(count.map(|count| {
            Bar::at_most(format!("invalidations of unmap 32M, {strategy}"), count as f64, limit)
        }));
    }
    bars.extend(scaling.map(two_threads));
    let worst = (thread.worst_error() * 1e3).round() / 10.0;
    bars.push(Bar::at_most("the thread's unmaps, worst fit in percent", worst, 20.0));
    bars
}

/// What two threads on one table do. If two that share nothing get less than the limit, two processors were
/// not there: then those are what is compared with.
fn two_threads(scaling: &Scaling) -> Bar {
    const LIMIT: f64 = 1.7;
    // With other work on the machine, two threads do not have two processors all the time.
    let running = scaling.ratio_while_running.zip(scaling.ratio_apart_while_running);
    let (ratio, apart) = running.unwrap_or((scaling.ratio, scaling.ratio_apart));
    if ratio < LIMIT && apart < LIMIT {
        let share = (ratio / apart * 100.0).round() / 100.0;
        return Bar::at_least("two threads, x two with a table each", share, LIMIT / 2.0);
    }
    let while_running = if running.is_some() { ", while running" } else { "" };
    Bar::at_least(format!("two threads, x one{while_running}"), ratio, LIMIT)
}

/// Small buffers, and what a contiguous large one shares with them: each call does little.
fn small(rows: &[Row]) -> Vec<Bar> {
    let mut bars = Vec::new();
    let mut of_peer = |op: Op, size, layout: Layout| {
        let row = find(rows, Implementation::Barewire, (op, size, layout), None);
        bars.extend(row.and_then(|row| {
            let (peer, ratio) = row.best_peer.zip(row.ratio_to_best_peer)?;
            let (op, layout, peer) = (op.name(), layout.name(), peer.name());
            Some(Bar::at_most(format!("{op} {size} {layout}, x {peer}"), ratio, 1.1))
        }));
    };
    for size in ["4K", "64K"] {
        for layout in [Layout::Scattered, Layout::Contiguous] {
            of_peer(Op::MapTable, size, layout);
            of_peer(Op::UnmapTable, size, layout);
        }
    }
    of_peer(Op::UnmapTable, "32M", Layout::Contiguous);
    for (op, table) in [(Op::DomainMap, Op::MapTable), (Op::DomainUnmap, Op::UnmapTable)] {
        for size in ["4K", "64K"] {
            let of = (op, size, Layout::Scattered);
            let Some(row) = find(rows, Implementation::Barewire, of, None) else { continue };
            let base = row.on_top_of.zip(row.ns_on_top);
            // Of a map, both are the same.
            let alone = row.ns_on_top_of_table.filter(|_| row.on_top_of != Some(table));
            for (base, ns) in base.into_iter().chain(alone.map(|ns| (table, ns))) {
                let what = format!("{} {size} scattered, ns on top of {}", op.name(), base.name());
                bars.push(Bar::at_most(what, ns, 20.0));
            }
        }
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_are_judged_by_two_that_share_nothing_where_the_machine_has_no_more() {
        let scaling = |ratio, apart, running: bool| Scaling {
            size: "2M",
            one_per_s: 1.0,
            two_per_s: 2.0,
            ratio,
            ratio_while_running: running.then_some(ratio),
            ratio_apart: apart,
            ratio_apart_while_running: running.then_some(apart),
        };
        let judged = |ratio, apart, running| {
            let bar = two_threads(&scaling(ratio, apart, running));
            (bar.what, bar.value, bar.met)
        };
        let one = "two threads, x one, while running";
        assert_eq!(judged(2.0, 2.0, true), (one.into(), 2.0, true));
        assert_eq!(judged(1.8, 1.2, true), (one.into(), 1.8, true));
        assert_eq!(judged(1.2, 2.0, true), (one.into(), 1.2, false));
        assert_eq!(judged(1.7, 1.7, false), ("two threads, x one".into(), 1.7, true));
        let apart = "two threads, x two with a table each";
        assert_eq!(judged(1.0, 1.02, true), (apart.into(), 0.98, true));
        assert_eq!(judged(1.0, 1.5, true), (apart.into(), 0.67, false));
    }
}
