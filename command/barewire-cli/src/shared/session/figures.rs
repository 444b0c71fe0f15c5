//! A simulated board's counts: virtual time, use of the wire, register accesses.

use barewire_open::SimBoard;
use serde::Serialize;

use crate::shared::costs::Costs;
use crate::shared::text::figure;

const PS_PER_NS: u64 = 1_000;

/// The figures of a stretch of virtual time. Their names are part of each command's JSON.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Figures {
    /// The profile whose costs were charged.
    pub(crate) profile: &'static str,
    /// The end of the costs' ranges that was charged.
    pub(crate) costs: Costs,
    /// Virtual time.
    pub(crate) virtual_ns: u64,
    /// Virtual time in seconds.
    pub(crate) seconds_virtual: f64,
    /// The share of virtual time in which SCK ran.
    pub(crate) bus_use: f64,
    /// The share of the time from first to last clock of each selection in which SCK ran.
    pub(crate) bus_use_in_transfers: f64,
    /// Bits clocked.
    pub(crate) bits: u64,
    /// Register reads, controller and GPIO.
    pub(crate) register_reads: u64,
    /// Register writes, controller and GPIO.
    pub(crate) register_writes: u64,
    /// Rules broken on the wire.
    pub(crate) violations: u64,
}

impl Figures {
    /// The counts of `simulated` since its figures began.
    pub(crate) fn of(simulated: &SimBoard) -> Self {
        let board = &simulated.board;
        let elapsed_ps = board.elapsed_ps();
        let wire_use = board.wire_use();
        let counts = board.access_counts();
        Self {
            profile: board.profile().name,
            costs: Costs::of(simulated.costs),
            virtual_ns: elapsed_ps / PS_PER_NS,
            seconds_virtual: (elapsed_ps / PS_PER_NS) as f64 / 1e9,
            bus_use: wire_use.bus_use(elapsed_ps),
            bus_use_in_transfers: wire_use.bus_use_in_transfers(),
            bits: wire_use.bits,
            register_reads: counts.iter().map(|count| count.reads).sum(),
            register_writes: counts.iter().map(|count| count.writes).sum(),
            violations: board.harms_total(),
        }
    }

    /// One line for people.
    pub(crate) fn summary(&self) -> String {
        format!(
            "simulated, profile {}{}: {} of virtual time, bus use {} ({} inside transfers), {} register accesses",
            self.profile,
            self.costs.suffix(),
            figure::time(self.virtual_ns as f64),
            figure::percent(self.bus_use),
            figure::percent(self.bus_use_in_transfers),
            figure::grouped(self.register_reads + self.register_writes),
        )
    }

    /// The rate of `bytes`; empty if no time has passed.
    pub(crate) fn bytes_per_second(&self, bytes: u64) -> Option<f64> {
        (bytes > 0 && self.virtual_ns > 0).then(|| bytes as f64 / self.seconds_virtual)
    }

    /// "in 419 ms, 2.50 MB/s", with a comma before it.
    pub(crate) fn pace(&self, bytes: u64) -> String {
        match self.bytes_per_second(bytes) {
            Some(rate) => {
                let time = figure::time(self.virtual_ns as f64);
                format!(", in {time} of virtual time, {}", figure::rate(rate))
            }
            None => String::new(),
        }
    }
}
