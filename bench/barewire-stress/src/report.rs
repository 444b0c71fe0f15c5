//! The report of a stress run.

use std::fmt::Write as _;

use indicatif::HumanCount;
use serde::Serialize;

use super::context::Counts;
use super::sabotage::Sabotage;
use super::{Costs, Failure, Pumps};

/// Differences that are printed; the rest are counted.
const TOLD: usize = 5;

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) bus: String,
    pub(super) simulated: bool,
    pub(super) profile: &'static str,
    pub(super) costs: Costs,
    pub(super) contexts: usize,
    /// Messages given; fewer than asked if it was stopped.
    pub(super) messages: u64,
    pub(super) seed: u64,
    pub(super) faults: f64,
    pub(super) pump: Pumps,
    pub(super) inheritance: bool,
    pub(super) sabotage: Option<Sabotage>,
    pub(super) order_violations: u64,
    pub(super) interleavings: u64,
    pub(super) lost: u64,
    pub(super) duplicated: u64,
    pub(super) statistics_mismatches: u64,
    pub(super) wrong_results: u64,
    pub(super) wire_violations: u64,
    pub(super) trace_hash: String,
    pub(super) virtual_ns: u64,
    pub(super) real_ns: u64,
    pub(super) sabotaged: u64,
    pub(super) failed: u64,
    pub(super) cancelled: u64,
    pub(super) busy: u64,
    pub(super) waited: u64,
    pub(super) priority_overtakes: u64,
    pub(super) overtaken_max: u64,
    pub(super) wire_messages: u64,
    pub(super) wire_bytes: u64,
    pub(super) selections: u64,
    pub(super) thread_switches: u64,
    pub(super) paths: Counts,
    pub(super) differences: Vec<String>,
}

/// Nanoseconds for people.
fn time(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    if ms < 1e3 { format!("{ms:.1} ms") } else { format!("{:.1} s", ms / 1e3) }
}

impl Report {
    /// The broken promises, by name.
    fn broken(&self) -> Vec<String> {
        let named = [
            ("order violations", self.order_violations),
            ("interleavings", self.interleavings),
            ("lost", self.lost),
            ("duplicated", self.duplicated),
            ("statistics mismatches", self.statistics_mismatches),
            ("wrong results", self.wrong_results),
            ("rules of the wire broken", self.wire_violations),
        ];
        let broken = named.into_iter().filter(|&(_, count)| count > 0);
        broken.map(|(name, count)| format!("{name}: {}", HumanCount(count))).collect()
    }

    /// Fails if a promise was broken.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let broken = self.broken();
        if broken.is_empty() {
            return Ok(());
        }
        let again = format!("--contexts {} --seed {}", self.contexts, self.seed);
        Err(Failure::failed(format!("promises broken ({again}): {}", broken.join(", "))))
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let [virtual_time, real] = [self.virtual_ns, self.real_ns].map(time);
        let _ = writeln!(
            text,
            "{} messages of {} contexts on {}, simulated, seed {}: {virtual_time} of virtual time, {real} here",
            HumanCount(self.messages),
            self.contexts,
            self.bus,
            self.seed,
        );
        let paths = &self.paths;
        let rows = [
            ("prepared", paths.prepared),
            ("prepared message", paths.prepared_message),
            ("sync", paths.sync),
            ("submitted", paths.submitted),
            ("enqueued", paths.enqueued),
            ("future", paths.future),
            ("transact", paths.transact),
            ("under a lock", paths.locked),
            ("try", paths.r#try),
            ("  found the bus busy", self.busy),
            ("  cancelled", self.cancelled),
            ("  failed", self.failed),
            ("  called back", paths.called_back),
            ("  waited for their turn", self.waited),
            ("  overtook by priority", self.priority_overtakes),
            ("whole on the wire", self.wire_messages),
            ("order violations", self.order_violations),
            ("interleavings", self.interleavings),
            ("lost", self.lost),
            ("duplicated", self.duplicated),
            ("statistics mismatches", self.statistics_mismatches),
            ("wrong results", self.wrong_results),
        ];
        for (name, count) in rows {
            let _ = writeln!(text, "  {name:24} {:>12}", HumanCount(count).to_string());
        }
        for difference in self.differences.iter().take(TOLD) {
            let _ = writeln!(text, "  statistics: {difference}");
        }
        let _ = writeln!(text, "  trace {}", self.trace_hash);
        let broken = self.broken();
        if broken.is_empty() {
            text += "all promises kept\n";
        } else {
            let _ = writeln!(text, "PROMISES BROKEN: {}", broken.join(", "));
        }
        text
    }
}
