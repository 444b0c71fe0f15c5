//! The costs of threads, interrupts and priorities, measured exactly in simulation.
//!
//! The scenarios are the simulator's ([`barewire_sim::scenario`]); virtual nanoseconds with the
//! costs of a board's profile, the same on every machine.

use std::fmt::{self, Display, Formatter};

use barewire_sim::scenario::hop::WAYS;
use barewire_sim::scenario::readout::READERS;
use barewire_sim::scenario::{PROFILE, SPEED_HZ, hop, priority, readout};
use serde::Serialize;

use crate::shared::costs::Costs;

/// The section: these names are an interface.
#[derive(Debug, Serialize)]
pub(super) struct SimulatedTimes {
    simulated: bool,
    profile: &'static str,
    costs: Costs,
    speed_hz: u32,
    worker_hop: Vec<Hop>,
    readout: Vec<Readout>,
    priority: Priority,
}

#[derive(Debug, Serialize)]
struct Hop {
    way: &'static str,
    ns_median: u64,
    ns_longest: u64,
}

#[derive(Debug, Serialize)]
struct Readout {
    reader: &'static str,
    entry_ns: u64,
    read_ns: u64,
    in_hand_ns: u64,
    in_hand_longest_ns: u64,
}

#[derive(Debug, Serialize)]
struct Priority {
    one_cpu: Vec<OneCpu>,
    queue: Vec<Queue>,
}

#[derive(Debug, Serialize)]
struct OneCpu {
    inheritance: bool,
    wait_ns_median: u64,
    wait_ns_longest: u64,
    longest_message_ns: u64,
    own_ns: u64,
}

#[derive(Debug, Serialize)]
struct Queue {
    urgent: bool,
    pausing: bool,
    begun_ns_median: u64,
    begun_ns_longest: u64,
    wait_ns_median: u64,
    wait_ns_longest: u64,
    longest_message_ns: u64,
    own_ns: u64,
}

/// Runs every scenario.
pub(super) fn run(costs: Costs) -> SimulatedTimes {
    let level = costs.level();
    let worker_hop = WAYS.map(|(name, way)| {
        let cost = hop::run(way, level);
        Hop { way: name, ns_median: cost.median_ns, ns_longest: cost.longest_ns }
    });
    let readout = READERS.map(|(name, reader)| {
        let times = readout::run(reader, level);
        Readout {
            reader: name,
            entry_ns: times.entry_ns,
            read_ns: times.read_ns,
            in_hand_ns: times.in_hand_ns,
            in_hand_longest_ns: times.in_hand_max_ns,
        }
    });
    let one_cpu = [false, true].map(|inheritance| {
        let waits = priority::inversion(inheritance, level);
        OneCpu {
            inheritance,
            wait_ns_median: waits.median_ns,
            wait_ns_longest: waits.longest_ns,
            longest_message_ns: waits.message_ns,
            own_ns: waits.own_ns,
        }
    });
    let queue = [(false, false), (true, false), (true, true)].map(|(urgent, pausing)| {
        let waits = priority::queueing(urgent, pausing, level);
        Queue {
            urgent,
            pausing,
            begun_ns_median: waits.begun_median_ns,
            begun_ns_longest: waits.begun_longest_ns,
            wait_ns_median: waits.median_ns,
            wait_ns_longest: waits.longest_ns,
            longest_message_ns: waits.message_ns,
            own_ns: waits.own_ns,
        }
    });
    SimulatedTimes {
        simulated: true,
        profile: PROFILE,
        costs,
        speed_hz: SPEED_HZ,
        worker_hop: worker_hop.into(),
        readout: readout.into(),
        priority: Priority { one_cpu: one_cpu.into(), queue: queue.into() },
    }
}

impl Display for SimulatedTimes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { profile, costs, speed_hz, priority, .. } = self;
        let (suffix, mhz) = (costs.suffix(), speed_hz / 1_000_000);
        writeln!(f, "Simulated on {profile}{suffix} at {mhz} MHz. Virtual ns.")?;
        writeln!(f, "\n{:<41}{:>10}{:>10}", "4-byte message, call to result", "median", "longest")?;
        for hop in &self.worker_hop {
            writeln!(f, "  {:<39}{:>10}{:>10}", hop.way, hop.ns_median, hop.ns_longest)?;
        }
        let title = "4-byte readout after an interrupt line rose";
        writeln!(f, "\n{title:<43}{:>8}{:>8}{:>9}{:>9}", "entry", "read", "in hand", "longest")?;
        for row in &self.readout {
            let Readout { reader, entry_ns, read_ns, in_hand_ns, in_hand_longest_ns } = row;
            writeln!(
                f,
                "  {reader:<41}{entry_ns:>8}{read_ns:>8}{in_hand_ns:>9}{in_hand_longest_ns:>9}"
            )?;
        }
        let title = "urgent 4-byte access; one cpu: low streams 256 bytes, medium hogs";
        writeln!(f, "\n{title}\n{:<41}{:>10}{:>10}", "  call to result", "median", "longest")?;
        for row in &priority.one_cpu {
            let name = if row.inheritance { "priority inheritance" } else { "no inheritance" };
            writeln!(f, "  {name:<39}{:>10}{:>10}", row.wait_ns_median, row.wait_ns_longest)?;
        }
        writeln!(f, "\nthe same access among 6 cpus that stream 256-byte messages")?;
        writeln!(f, "{:<39}{:>20}{:>20}", "", "until it begins", "call to result")?;
        let [median, longest] = ["median", "longest"];
        writeln!(f, "{:<39}{median:>10}{longest:>10}{median:>10}{longest:>10}", "")?;
        for row in &priority.queue {
            let name = match (row.urgent, row.pausing) {
                (false, _) => "equal priority, queue always full",
                (true, false) => "priority 7, queue always full",
                (true, true) => "priority 7, bus idle now and then",
            };
            let begun = (row.begun_ns_median, row.begun_ns_longest);
            let waits = (row.wait_ns_median, row.wait_ns_longest);
            writeln!(
                f,
                "  {name:<37}{:>10}{:>10}{:>10}{:>10}",
                begun.0, begun.1, waits.0, waits.1
            )?;
        }
        let longest = priority.queue.iter().map(|row| row.longest_message_ns).max();
        writeln!(f, "  {:<37}{:>20}", "longest message on the wire", longest.unwrap_or(0))
    }
}
