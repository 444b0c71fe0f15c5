//! The result of a replay, for readers and for programs.

use std::fmt::Write as _;

use serde::Serialize;

use super::costs::{Price, Prices};
use super::domains::{DEVICES_MAX, Domain, Input, UNNAMED};
use super::engine::Engine;
use super::replayer::{Device, Events};
use crate::shared::figure;

/// A strategy's row. These names are an interface.
#[derive(Serialize, Clone, Debug)]
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

/// A device's part. These names are an interface.
#[derive(Serialize, Debug)]
pub(super) struct DeviceReport {
    device: String,
    /// Whether an IOMMU translates for the device; null if no map event gives a physical address.
    translated: Option<bool>,
    input: Events,
    duration_ns: Option<u64>,
    pub(super) accesses: Device,
    /// Empty for a device without an IOMMU: nothing is invalidated.
    strategies: Vec<Row>,
}

/// The report.
#[derive(Serialize, Debug)]
pub(super) struct Report {
    pub(super) trace: String,
    pub(super) about: Option<&'static str>,
    pub(super) input: Input,
    pub(super) costs: Vec<Price>,
    pub(super) working_set: u32,
    /// Of all devices.
    pub(super) device: Device,
    pub(super) window_ms: f64,
    /// The sums of the devices' rows; without a worst window if there are several.
    pub(super) strategies: Vec<Row>,
    pub(super) devices: Vec<DeviceReport>,
    /// Devices named by events of the group `iommu`. These events do not say which mappings belong
    /// to the device.
    pub(super) attached: Vec<String>,
    /// The cost of an invalidation by address at which `by_page` would take the 100 ms per 100 MB
    /// of the thread's complaint.
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

    /// Another device's row of the same strategy. Their worst windows need not be at the same time.
    fn add(&mut self, more: &Self) {
        self.calls += more.calls;
        self.leaf_stores += more.leaf_stores;
        self.flushes += more.flushes;
        self.invalidations += more.invalidations;
        self.by_address += more.by_address;
        self.by_range += more.by_range;
        self.by_context += more.by_context;
        self.refill_misses += more.refill_misses;
        self.misses += more.misses;
        self.unmap_ns += more.unmap_ns;
        self.refill_ns += more.refill_ns;
        self.total_ns += more.total_ns;
        self.window_worst_ns = None;
        self.window_share = None;
        self.forced_flushes += more.forced_flushes;
        self.held_bytes_max = self.held_bytes_max.max(more.held_bytes_max);
    }
}

/// The devices by name, those without one last.
pub(super) fn devices(
    domains: &[Domain<'_>],
    prices: &Prices,
    window_ns: u64,
) -> Vec<DeviceReport> {
    let report = |domain: &Domain<'_>| {
        let replayer = &domain.replayer;
        let (translated, duration_ns) = (replayer.is_translated(), replayer.duration_ns());
        let row = |engine| Row::new(engine, prices, window_ns, duration_ns.is_some());
        let strategies = match translated {
            Some(false) => Vec::new(),
            _ => replayer.engines.iter().map(row).collect(),
        };
        DeviceReport {
            device: domain.name.clone(),
            translated,
            input: replayer.input,
            duration_ns,
            accesses: replayer.device,
            strategies,
        }
    };
    let mut devices: Vec<DeviceReport> = domains.iter().map(report).collect();
    devices.sort_by(|one, other| {
        let key = |device: &DeviceReport| (device.device == UNNAMED, device.device.clone());
        key(one).cmp(&key(other))
    });
    devices
}

/// The sums over all devices with a name; over the others if there are no such.
pub(super) fn total(devices: &[DeviceReport]) -> Vec<Row> {
    let has_rows = |device: &&DeviceReport| !device.strategies.is_empty();
    let named: Vec<&DeviceReport> =
        devices.iter().filter(has_rows).filter(|device| device.device != UNNAMED).collect();
    let counted: Vec<&DeviceReport> =
        if named.is_empty() { devices.iter().filter(has_rows).collect() } else { named };
    let Some((first, rest)) = counted.split_first() else { return Vec::new() };
    let mut rows = first.strategies.clone();
    for device in rest {
        for (row, more) in rows.iter_mut().zip(&device.strategies) {
            row.add(more);
        }
    }
    rows
}

/// The time that the thread's camera lost: 100 ms for 100 MB.
const COMPLAINT_NS_PER_BYTE: f64 = 1.0;

/// See [`Report::complaint_address_ns`].
pub(super) fn complaint_address_ns(engine: &Engine<'_>, input: &Events, prices: &Prices) -> f64 {
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
        text.push_str(&events_text(&self.input.events, self.input.duration_ns));
        self.input_text(&mut text);
        let several =
            self.devices.len() > 1 || self.devices.iter().any(|one| one.device != UNNAMED);
        if !several {
            counts_text(&mut text, &self.input.events);
        }
        self.device_text(&mut text);
        for device in &self.devices {
            text.push('\n');
            if several {
                let line = events_text(&device.input, device.duration_ns);
                let _ = write!(text, "{}: {line}", device.device);
                counts_text(&mut text, &device.input);
                self.kind_text(&mut text, device);
            }
            if !device.strategies.is_empty() {
                self.rows_text(&mut text, &device.strategies);
            }
        }
        let counted = self.devices.iter().filter(|device| !device.strategies.is_empty()).count();
        if counted > 1 {
            let _ = writeln!(text, "\nall devices with a name");
            self.rows_text(&mut text, &self.strategies);
        }
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

    /// Text about irregularities of the trace as a whole.
    fn input_text(&self, text: &mut String) {
        let input = &self.input;
        for (count, what) in [
            (input.malformed_lines, "lines that cannot be read, skipped"),
            (input.lost_events, "events lost by the tracer"),
            (input.other_lines, "lines of other events, passed over"),
            (input.unselected_events, "events of other devices, passed over (--device)"),
            (input.left_out_events, "events of further devices, left out: choose some (--device)"),
            (input.backward_times, "lines older than the one before"),
            (input.untimed, "events without a time in seconds"),
            (u64::from(input.cut_line), "line at the end, cut, left out"),
        ] {
            count_text(text, count, what);
        }
        for (name, count) in &input.not_replayed {
            count_text(text, *count, &format!("events {name}, which change no mapping"));
        }
        if input.left_out_events > 0 {
            let _ = writeln!(text, "  {DEVICES_MAX} devices are replayed at most");
        }
    }

    fn device_text(&self, text: &mut String) {
        let Device { accesses, misses_compulsory, misses_capacity } = self.device;
        let _ = writeln!(
            text,
            "device: {} accesses: each leaf once when it is mapped, and {} pages beside that stay; \
             {} first misses,\n{} for want of room",
            figure::grouped(accesses),
            self.working_set,
            figure::grouped(misses_compulsory),
            figure::grouped(misses_capacity),
        );
    }

    /// Text about the device's IOMMU, as far as it is known.
    fn kind_text(&self, text: &mut String, device: &DeviceReport) {
        let Events { located_maps, identity_maps, .. } = device.input;
        let _ = match device.translated {
            Some(false) => writeln!(
                text,
                "  no IOMMU: dma_addr is phys_addr in {}. Nothing is invalidated",
                match located_maps {
                    1 => "the only map".into(),
                    maps => format!("all {} maps", figure::grouped(maps)),
                }
            ),
            Some(true) if identity_maps > 0 => writeln!(
                text,
                "  dma_addr is phys_addr in {} of {} maps: there may be no IOMMU",
                figure::grouped(identity_maps),
                figure::grouped(located_maps)
            ),
            None => writeln!(text, "  no map says where its memory lies: there may be no IOMMU"),
            Some(true) => Ok(()),
        };
        if device.device == UNNAMED && self.devices.len() > 1 {
            let _ = writeln!(
                text,
                "  iommu events, which name no device: these may be the maps of the devices above"
            );
        }
        if device.device == UNNAMED && !self.attached.is_empty() {
            let _ = writeln!(text, "  attached: {}", self.attached.join(", "));
        }
    }

    fn rows_text(&self, text: &mut String, rows: &[Row]) {
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
        for row in rows {
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

/// A line of how much was mapped and unmapped.
fn events_text(events: &Events, duration_ns: Option<u64>) -> String {
    let mb = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let text = format!(
        "{} maps of {} and {} unmaps of {}",
        figure::grouped(events.maps),
        mb(events.mapped_bytes),
        figure::grouped(events.unmaps),
        mb(events.unmapped_bytes),
    );
    match duration_ns {
        Some(ns) if ns > 0 => {
            let rate = figure::rate(events.unmapped_bytes as f64 / (ns as f64 / 1e9));
            format!("{text} in {}: {rate} unmapped\n", figure::time(ns as f64))
        }
        _ => text + "\n",
    }
}

/// Text about irregularities in a device's events.
fn counts_text(text: &mut String, events: &Events) {
    for (count, what) in [
        (events.unmatched_unmaps, "unmaps of what no line had mapped"),
        (events.assumed_mapped_bytes, "bytes unmapped that no line had mapped: mapped before"),
        (events.assumed_unmapped_bytes, "bytes mapped again: unmapped unseen in between"),
        (events.short_unmaps, "unmaps that removed less than asked"),
        (events.failed_maps, "maps that the kernel refused"),
        (events.truncated_lists, "scatter lists of which the trace has the beginning alone"),
    ] {
        count_text(text, count, what);
    }
}

fn count_text(text: &mut String, count: u64, what: &str) {
    if count > 0 {
        let _ = writeln!(text, "  {} {what}", figure::grouped(count));
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
