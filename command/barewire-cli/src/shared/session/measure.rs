//! Measurements on request: the bus's statistics, and the time of each message.
//!
//! # How it works
//! Both are reset when a command's figures start, so messages that only identified the chip do not
//! count. A message's time runs from its start in the controller to its end. On simulated boards it
//! is virtual time, and reading the clock for it costs none; elsewhere it is the machine's.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use barewire::bus::{HISTO_BUCKETS, Statistics};
use barewire::trace::Event;
use barewire_open::TraceSink;
use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};

use crate::shared::failure::Failure;
use crate::shared::text::figure;

/// Three digits of each time are kept.
const DIGITS: u8 = 3;
/// The longest time recorded, a quarter of an hour. A longer one counts as this.
const LONGEST_NS: u64 = 900_000_000_000;

/// The latencies of messages: a handle, all clones one.
#[derive(Clone, Debug)]
pub(crate) struct Latencies(Arc<Mutex<Histogram<u64>>>);

/// A summary of the latencies.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Latency {
    count: u64,
    p50: u64,
    p90: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

impl Latencies {
    /// None yet.
    pub(super) fn new() -> Result<Self, Failure> {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
            .map_err(|error| Failure::Failed(format!("no latency histogram: {error}")))?;
        Ok(Self(Arc::new(Mutex::new(histogram))))
    }

    pub(super) fn reset(&self) {
        self.histogram().reset();
    }

    pub(super) fn latency(&self) -> Latency {
        let histogram = self.histogram();
        let at = |quantile| histogram.value_at_quantile(quantile);
        Latency {
            count: histogram.len(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max(),
        }
    }

    /// A sink that times each message by its events.
    pub(super) fn sink(self) -> TraceSink {
        let mut begun = 0;
        Box::new(move |event| match *event {
            Event::MessageStart { at_ticks, .. } => begun = at_ticks,
            Event::MessageDone { at_ticks, .. } | Event::MessageFailed { at_ticks, .. } => {
                self.histogram().saturating_record(at_ticks.saturating_sub(begun));
            }
            Event::Transfer { .. } => {}
        })
    }

    fn histogram(&self) -> MutexGuard<'_, Histogram<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Statistics by name, in order.
#[derive(Clone, Debug)]
pub(super) struct NamedCounts(Vec<(String, u64)>);

impl Serialize for NamedCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// The measurements, as in a command's JSON.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MeasuredCosts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) statistics: Option<NamedCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) latency_ns: Option<Latency>,
}

impl MeasuredCosts {
    /// The text for people, without the last line end; empty if no measurement was asked for.
    pub(super) fn text(&self) -> Option<String> {
        let mut text = String::new();
        if let Some(statistics) = &self.statistics {
            text += "statistics";
            for (name, value) in &statistics.0 {
                let count = figure::grouped(*value);
                let _ = write!(text, "\n  {name:32} {count:>14}");
            }
        }
        if let Some(Latency { count, p50, p90, p99, p999, max }) = self.latency_ns {
            let [p50, p90, p99, p999, max] =
                [p50, p90, p99, p999, max].map(|ns| figure::time(ns as f64));
            let end = if text.is_empty() { "" } else { "\n" };
            let messages = if count == 1 { "message" } else { "messages" };
            let count = figure::grouped(count);
            let _ = write!(
                text,
                "{end}latency of {count} {messages}: p50 {p50}, p90 {p90}, p99 {p99}, p99.9 {p999}, max {max}"
            );
        }
        (!text.is_empty()).then_some(text)
    }
}

/// The statistics by the kernel's names, in its order; those from `begin` on.
pub(super) fn named(now: &Statistics, begin: &Statistics) -> NamedCounts {
    let mut named = Vec::new();
    let mut add = |name: &str, now: u64, begin: u64| {
        named.push((name.into(), now - begin));
    };
    add("messages", now.messages, begin.messages);
    add("transfers", now.transfers, begin.transfers);
    add("errors", now.errors, begin.errors);
    add("timedout", now.timedout, begin.timedout);
    add("spi_sync", now.spi_sync, begin.spi_sync);
    add("spi_sync_immediate", now.spi_sync_immediate, begin.spi_sync_immediate);
    add("spi_async", now.spi_async, begin.spi_async);
    add("bytes", now.bytes, begin.bytes);
    add("bytes_rx", now.bytes_rx, begin.bytes_rx);
    add("bytes_tx", now.bytes_tx, begin.bytes_tx);
    for index in 0..HISTO_BUCKETS {
        let name = format!("transfer_bytes_histo_{}", Statistics::bucket_name(index));
        add(&name, now.transfer_bytes_histo[index], begin.transfer_bytes_histo[index]);
    }
    let split = (now.transfers_split_maxsize, begin.transfers_split_maxsize);
    add("transfers_split_maxsize", split.0, split.1);
    NamedCounts(named)
}
