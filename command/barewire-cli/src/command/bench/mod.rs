//! `barewire bench`: what the bus paths cost on this machine, without any wire.
//!
//! # How it works
//! Each operation runs in short rounds, all operations in every round, so that a disturbance of
//! the machine disturbs all of them; medians and minima are over the rounds, and the ratio is
//! the median of each round's own ratio to the floor. Times inform; instructions, which
//! callgrind counts exactly, gate (`tests/snapshots/instructions.txt`). Operations of several
//! threads are measured apart: [`hop`], [`contended`]. Operations that need a wire, interrupts
//! or priorities are [simulated].

mod board;
mod callgrind;
mod can;
mod contended;
mod count;
mod hop;
mod lengths;
mod ops;
mod simulated;
mod stats;
mod still;
mod table;

use std::time::Instant;

use clap::Args as ClapArgs;
use serde::Serialize;

use crate::shared::costs::Costs;
use crate::shared::failure::Failure;
use crate::shared::output::{self, note};
use crate::shared::progress::Progress;
use crate::shared::text::number;
use lengths::LengthCount;
use ops::Op;
use simulated::SimulatedTimes;
use stats::{median, rounded};

/// Calls of an operation in a round: long enough for the clock, short enough to interleave.
const CALLS_PER_ROUND: u32 = 4_000;

/// Rounds, unless told.
const ROUNDS: u32 = 1_000;

/// Options of `barewire bench`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
    /// The number of rounds (more give steadier figures; 1000 take about eight seconds) [default: 1000, or 7 with --board]
    #[arg(long, value_parser = |text: &str| number::within(text, 1..=1_000_000))]
    rounds: Option<u32>,
    /// Skip callgrind's instruction counts, which take a few seconds
    #[arg(long)]
    no_instructions: bool,
    /// Make calls of one operation and nothing else: what callgrind is given to run
    #[arg(long, hide = true, value_name = "OP")]
    count_op: Option<String>,
    /// In the simulated section, charge each cost at the lowest or the highest value that its sources allow
    #[arg(long, value_name = "WHICH", value_enum, default_value = "used")]
    costs: Costs,
    /// Time the paths to the chip on this bus instead (uio:…, mem:…, spidev:…), or a flash's reads
    /// through the kernel (mtd:/dev/mtdN)
    #[arg(long, value_name = "BUS", conflicts_with_all = ["costs", "no_instructions", "count_op"])]
    board: Option<String>,
    /// With --board: which chip select
    #[arg(long, value_name = "N", default_value_t = 0, requires = "board", value_parser = number::count::<u8>)]
    cs: u8,
    /// With --board: the clock asked for
    #[arg(long, value_name = "HZ", default_value = "20M", requires = "board", value_parser = number::hertz)]
    speed_hz: u32,
}

/// A row of the table, and of the JSON: these names are an interface.
#[derive(Debug, Serialize)]
struct Row {
    op: &'static str,
    ns_median: Option<f64>,
    ns_min: Option<f64>,
    ratio_to_floor: Option<f64>,
    instructions: Option<u64>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    contended: Option<Shares>,
}

/// Fields that only rows of several threads have.
#[derive(Debug, Serialize)]
struct Shares {
    ratio_to_fair_mutex: f64,
    ratio_to_std_mutex: f64,
    least_share: f64,
}

/// Someone else's measurement of the same thing, on another machine.
#[derive(Debug, Serialize)]
struct Elsewhere {
    what: &'static str,
    compares_with: &'static str,
    ns: &'static str,
    instructions: &'static str,
}

/// Instructions of a driver's prepared 4-byte access, its registers ready at once, or of a
/// register read through a map.
#[derive(Debug, Serialize)]
struct DriverCount {
    op: &'static str,
    instructions: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Report {
    controller: &'static str,
    rounds: u32,
    rows: Vec<Row>,
    drivers: Vec<DriverCount>,
    lengths: Vec<LengthCount>,
    measured_elsewhere: &'static [Elsewhere],
    simulated: SimulatedTimes,
}

/// Linux 6.12 with a null controller, warm and uncontended: ns from a user-mode kernel with SMP
/// atomics on a 2-core x86-64 VM, instructions counted exactly in an emulator.
const ELSEWHERE: &[Elsewhere] = &[
    Elsewhere {
        what: "Linux 6.12 spi_sync, 1 transfer of 4 bytes",
        compares_with: "sync",
        ns: "95",
        instructions: "2042",
    },
    Elsewhere {
        what: "Linux 6.12 spi_sync at its best (optimised message, own transfer_one_message)",
        compares_with: "prepared",
        ns: "41",
        instructions: "408",
    },
    Elsewhere {
        what: "Linux spidev SPI_IOC_MESSAGE(1) from user space (composed)",
        compares_with: "sync",
        ns: "230-285",
        instructions: "2849-4253",
    },
    Elsewhere {
        what: "Linux 6.12, per transfer in a 100-transfer message",
        compares_with: "transfer_in_100",
        ns: "10-14",
        instructions: "149-331",
    },
    Elsewhere {
        what: "Linux 6.12, per cs_change transfer (delay 0)",
        compares_with: "cs_change_transfer_in_100",
        ns: "64",
        instructions: "1527",
    },
];

/// Runs the bench.
///
/// # Errors
/// A message for the user.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(name) = &args.board {
        let rounds = args.rounds.unwrap_or(board::ROUNDS);
        let (cs, speed_hz, json) = (args.cs, args.speed_hz, args.json);
        return board::run(name, &board::Options { cs, speed_hz, rounds, json });
    }
    if let Some(name) = &args.count_op {
        if name == lengths::COUNT_OP {
            lengths::run::<false>();
            return Ok(());
        }
        let op = Op::from_name(name).ok_or_else(|| format!("no operation is called {name:?}"));
        op.and_then(|op| ops::run(op, count::CALLS, || ())).map_err(Failure::Failed)?;
        return Ok(());
    }
    note_profile();
    let report = measure(args);
    if args.json { output::json(&report) } else { output::text(&table::text(&report)) }
}

/// Prints a note if this is not the shipped code: only the shipped code's figures mean anything.
fn note_profile() {
    let profile = env!("BAREWIRE_PROFILE");
    if !["dist", "counted"].contains(&profile) {
        note!(
            "barewire: bench: this is a build of profile `{profile}`; what is shipped, and faster, is built with \
             `--profile dist`"
        );
    }
}

fn measure(args: &Args) -> Report {
    let rounds = args.rounds.unwrap_or(ROUNDS);
    let progress = Progress::counting("timing", u64::from(rounds), args.json);
    let times = time_all(rounds, &progress);
    drop(progress);
    let floor = times[Op::Floor as usize].clone();
    let mut counter = count::Counter::new(!args.no_instructions);
    let mut rows: Vec<Row> = Op::ALL
        .into_iter()
        .zip(times)
        .map(|(op, times)| {
            let instructions = counter.count(op);
            row(op.name(), times, &floor, instructions)
        })
        .collect();
    // Paths that take tens of microseconds need fewer rounds.
    let hops = hop::measure(rounds.div_ceil(4)).unwrap_or_else(|why| {
        note!("barewire: bench: the worker's hop is not timed: {why}");
        Default::default()
    });
    for ((name, ..), times) in hop::HOPS.into_iter().zip(hops) {
        rows.push(row(name, times, &floor, None));
    }
    let windows = (rounds / 200).clamp(1, 20);
    for (threads, name) in contended::THREADS {
        let contended = match contended::measure(threads, windows) {
            Ok(contended) => contended,
            Err(why) => {
                note!("barewire: bench: {name} is not timed: {why}");
                rows.push(row(name, vec![], &floor, None));
                continue;
            }
        };
        let shares = Shares {
            ratio_to_fair_mutex: rounded(contended.ratio_to_fair_mutex),
            ratio_to_std_mutex: rounded(contended.ratio_to_std_mutex),
            least_share: rounded(contended.least_share),
        };
        let row = row(name, contended.ns, &floor, None);
        rows.push(Row { contended: Some(shares), ..row });
    }
    let drivers =
        Op::DRIVERS.map(|op| DriverCount { op: op.name(), instructions: counter.count(op) }).into();
    let lengths = lengths::count(&mut counter);
    Report {
        controller: "null",
        rounds,
        rows,
        drivers,
        lengths,
        measured_elsewhere: ELSEWHERE,
        simulated: simulated::run(args.costs),
    }
}

/// Nanoseconds per operation: a row for each of [`Op::ALL`], a column for each round; none where
/// this machine cannot do it.
fn time_all(rounds: u32, progress: &Progress) -> [Vec<f64>; Op::ALL.len()] {
    let mut times = Op::ALL.map(|_| Vec::with_capacity(rounds as usize));
    let mut left_out = [false; Op::ALL.len()];
    for round in 0..=rounds {
        progress.set(round.into());
        for ((op, times), left_out) in Op::ALL.into_iter().zip(&mut times).zip(&mut left_out) {
            if *left_out {
                continue;
            }
            let calls = CALLS_PER_ROUND / op.per_call();
            match ops::run(op, calls, Instant::now) {
                // The first round warms caches and predictors.
                Ok(_) if round == 0 => {}
                Ok((begun, ended)) => {
                    let ns = ended.duration_since(begun).as_nanos() as f64;
                    times.push(ns / f64::from(calls * op.per_call()));
                }
                Err(why) => {
                    note!("barewire: bench: {} is not timed: {why}", op.name());
                    times.clear();
                    *left_out = true;
                }
            }
        }
    }
    times
}

/// A timed row. It was timed in the same rounds as the floor or in others.
fn row(op: &'static str, ns: Vec<f64>, floor: &[f64], instructions: Option<u64>) -> Row {
    let mut row = Row {
        op,
        ns_median: None,
        ns_min: None,
        ratio_to_floor: None,
        instructions,
        contended: None,
    };
    if ns.is_empty() {
        return row;
    }
    let ratio = if ns.len() == floor.len() {
        median(ns.iter().zip(floor).map(|(ns, floor)| ns / floor).collect())
    } else {
        median(ns.clone()) / median(floor.to_vec())
    };
    row.ratio_to_floor = Some(rounded(ratio));
    row.ns_min = Some(rounded(ns.iter().copied().fold(f64::INFINITY, f64::min)));
    row.ns_median = Some(rounded(median(ns)));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_runs_and_is_found_by_its_name() {
        for (index, op) in Op::ALL.into_iter().enumerate() {
            assert_eq!(op as usize, index, "rows are found by the operation's number");
            assert_eq!(Op::from_name(op.name()), Some(op));
            ops::run(op, 2, || ()).expect("it can be made here");
        }
        for op in Op::DRIVERS {
            assert_eq!(Op::from_name(op.name()), Some(op));
            ops::run(op, 2, || ()).expect("it can be made here");
        }
        assert_eq!(Op::from_name("sink"), None);
    }

    #[test]
    fn the_floor_s_ratio_is_one() {
        let floor = &time_all(1, &Progress::counting("timing", 1, true))[Op::Floor as usize];
        assert_eq!(row("floor", floor.clone(), floor, None).ratio_to_floor, Some(1.0));
    }
}
