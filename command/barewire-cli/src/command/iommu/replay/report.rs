//! What a replay found, for readers and for programs.

use std::fmt::Write as _;

use serde::Serialize;

use super::costs::{Price, Prices};
use super::engine::Engine;
use super::replayer::{Device, Input};
use crate::shared::text::figure;

/// A strategy's row. These names are an interface.
#[derive(Serialize, Debug)]
pub(super) struct Row {
    strategy: &'static str,
    calls: u64,
    leaf_stores: u64,
    flushes: u64,
    invalidations: u64,
    by_address: u64,
    by_range: u64,
    by_context: u64,
    refill_misses: u64,
    misses: u64,
    unmap_ns: f64,
    refill_ns: f64,
    total_ns: f64,
    window_worst_ns: Option<f64>,
    window_share: Option<f64>,
    forced_flushes: u64,
    held_bytes_max: u64,
}

/// The report.
#[derive(Serialize, Debug)]
pub(super) struct Report {
    pub(super) trace: String,
    pub(super) about: Option<&'static str>,
    pub(super) input: Input,
    pub(super) costs: Vec<Price>,
    pub(super) working_set: u32,
    pub(super) device: Device,
    pub(super) window_ms: f64,
    pub(super) strategies: Vec<Row>,
    /// What an invalidation by address would have to cost for the thread's complaint of 100 ms per
    /// 100 MB to be true of `by_page`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) complaint_address_ns: Option<f64>,
}

impl Row {
    pub(super) fn new(engine: &Engine<'_>, prices: &Prices, window_ns: u64, timed: bool) -> Self {
        let counts = &engine.counts;
        let ns = |ps: u64| ps as f64 / 1e3;
        let refill_ns = ns(counts.refill_misses * u64::from(prices.strategy.miss_ps));
        let worst_ns = timed.then(|| ns(engine.window.worst_ps()));
        Self {
            strategy: engine.name,
            calls: counts.calls,
            leaf_stores: counts.leaf_stores,
            flushes: counts.flushes,
            invalidations: counts.invalidations(),
            by_address: counts.by_address,
            by_range: counts.by_range,
            by_context: counts.by_context,
            refill_misses: counts.refill_misses,
            misses: counts.misses,
            unmap_ns: ns(counts.unmap_ps),
            refill_ns,
            total_ns: ns(counts.unmap_ps) + refill_ns,
            window_worst_ns: worst_ns,
            window_share: worst_ns.map(|worst_ns| worst_ns / window_ns as f64),
            forced_flushes: counts.forced,
            held_bytes_max: counts.held_bytes_max,
        }
    }
}

/// What the thread's camera lost: 100 ms for 100 MB.
const COMPLAINT_NS_PER_BYTE: f64 = 1.0;

/// See [`Report::complaint_address_ns`].
pub(super) fn complaint_address_ns(engine: &Engine<'_>, input: &Input, prices: &Prices) -> f64 {
    let counts = &engine.counts;
    let named_ps = counts.by_address * u64::from(prices.strategy.address_ps);
    let rest_ns = (counts.unmap_ps - named_ps) as f64 / 1e3;
    (input.unmapped_bytes as f64 * COMPLAINT_NS_PER_BYTE - rest_ns) / counts.by_address as f64
}

impl Report {
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "{}", self.trace);
        if let Some(about) = self.about {
            let _ = writeln!(text, "  {about}");
        }
        self.input_text(&mut text);
        let Device { accesses, misses_compulsory, misses_capacity } = self.device;
        let _ = writeln!(
            text,
            "device: {} accesses: each leaf once when it is mapped, and {} pages beside that stay; \
             {} first misses,\n{} for want of room\n",
            figure::grouped(accesses),
            self.working_set,
            figure::grouped(misses_compulsory),
            figure::grouped(misses_capacity),
        );
        self.rows_text(&mut text);
        text.push_str(EXPLAINED);
        if let Some(ns) = self.complaint_address_ns {
            let _ = writeln!(
                text,
                "\nThe thread's camera lost over 100 ms for each 100 MB. by_page takes that where an \
                 invalidation by address\ncosts {ns:.0} ns (--address-ns)."
            );
        }
        text.push_str("\nCosts:\n");
        for alike in self.costs.chunk_by(|one, next| one.source == next.source) {
            let values: Vec<String> =
                alike.iter().map(|price| format!("{} {}", price.name, price.value)).collect();
            let Price { basis, source, .. } = alike[0];
            let _ = writeln!(text, "  {}\n      {basis}: {source}", values.join(", "));
        }
        text
    }

    fn input_text(&self, text: &mut String) {
        let input = &self.input;
        let mb = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
        let _ = write!(
            text,
            "{} maps of {} and {} unmaps of {}",
            figure::grouped(input.maps),
            mb(input.mapped_bytes),
            figure::grouped(input.unmaps),
            mb(input.unmapped_bytes),
        );
        let _ = match input.duration_ns {
            Some(ns) if ns > 0 => {
                let rate = figure::rate(input.unmapped_bytes as f64 / (ns as f64 / 1e9));
                writeln!(text, " in {}: {rate} unmapped", figure::time(ns as f64))
            }
            _ => writeln!(text),
        };
        for (count, what) in [
            (input.lost_events, "events lost by the tracer"),
            (input.assumed_mapped_bytes, "bytes unmapped that no line had mapped: mapped before"),
            (input.assumed_unmapped_bytes, "bytes mapped again: unmapped unseen in between"),
            (input.short_unmaps, "unmaps that removed less than asked"),
            (input.other_lines, "lines of other events, passed over"),
            (input.backward_times, "lines older than the one before"),
            (input.untimed, "events without a time in seconds"),
            (u64::from(input.cut_line), "line at the end, cut, left out"),
        ] {
            if count > 0 {
                let _ = writeln!(text, "  {} {what}", figure::grouped(count));
            }
        }
    }

    fn rows_text(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "{:<22}{:>9}{:>8}{:>8}{:>9}{:>9}{:>10}{:>10}{:>10}{:>16}",
            "strategy",
            "address",
            "range",
            "context",
            "flushes",
            "refills",
            "unmap",
            "refill",
            "total",
            format!("worst {} ms", self.window_ms),
        );
        for row in &self.strategies {
            let worst = match (row.window_worst_ns, row.window_share) {
                (Some(ns), Some(share)) => {
                    format!("{} {:5.2} %", figure::time(ns), share * 100.0)
                }
                _ => "-".into(),
            };
            let _ = writeln!(
                text,
                "{:<22}{:>9}{:>8}{:>8}{:>9}{:>9}{:>10}{:>10}{:>10}{:>18}",
                row.strategy,
                figure::grouped(row.by_address),
                figure::grouped(row.by_range),
                figure::grouped(row.by_context),
                figure::grouped(row.flushes),
                figure::grouped(row.refill_misses),
                figure::time(row.unmap_ns),
                figure::time(row.refill_ns),
                figure::time(row.total_ns),
                worst,
            );
        }
    }
}

const EXPLAINED: &str = "
by_page               each table's span named page by page before the table is freed, as the thread found it
by_context_each_walk  the context invalidated for each table, leaves named, as the thread made it
by_range              one flush a call, by range commands (SMMUv3.2)
by_context            one flush a call, of the context
adaptive              one flush a call, by whichever costs least, refills included
deferred              one flush of the context for many calls; memory goes back after it
refills               misses that an invalidation of more than was unmapped has caused
unmap                 the processor's time at the costs below; worst: the most in any such stretch
";
