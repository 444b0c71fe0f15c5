//! `barewire bench`: what the bus paths cost on this machine, without any wire.
//!
//! # How it works
//! Each operation runs in short rounds, all operations in every round, so that what disturbs the
//! machine disturbs all of them; medians and minima are over the rounds, and the ratio is the
//! median of each round's own ratio to the floor. Times inform; instructions, which callgrind
//! counts exactly, gate (`tests/snapshots/instructions.txt`).

mod count;
mod ops;

use std::time::Instant;

use clap::Args as ClapArgs;
use serde::Serialize;

use ops::Op;

/// Calls of an operation in a round: long enough for the clock, short enough to interleave.
const CALLS_PER_ROUND: u32 = 4_000;

/// Options of `barewire bench`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
    /// How many rounds to time (more is steadier; 1000 take about half a second)
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rounds: u32,
    /// Leave callgrind's instruction counts out (they take a few seconds)
    #[arg(long)]
    no_instructions: bool,
    /// Make calls of one operation and nothing else: what callgrind is given to run
    #[arg(long, hide = true, value_name = "OP")]
    count_op: Option<String>,
}

/// A row of the table, and of the JSON: these names are an interface.
#[derive(Debug, Serialize)]
struct Row {
    op: &'static str,
    ns_median: f64,
    ns_min: f64,
    ratio_to_floor: f64,
    instructions: Option<u64>,
}

/// What somebody else measured of the same thing, on another machine.
#[derive(Debug, Serialize)]
struct Elsewhere {
    what: &'static str,
    compares_with: &'static str,
    ns: &'static str,
    instructions: &'static str,
}

/// Instructions of a driver's prepared 4-byte access, its registers ready at once.
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
    measured_elsewhere: &'static [Elsewhere],
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
pub(crate) fn run(args: &Args) -> Result<(), String> {
    if let Some(name) = &args.count_op {
        let op = Op::from_name(name).ok_or_else(|| format!("no operation is called {name:?}"))?;
        ops::run(op, count::CALLS, || ());
        return Ok(());
    }
    if cfg!(debug_assertions) {
        eprintln!("barewire: bench: this is a debug build; only --release figures mean anything");
    }
    let times = time_all(args.rounds);
    let mut counter = count::Counter::new(!args.no_instructions);
    let rows = Op::ALL.map(|op| row(op, &times, counter.count(op))).into();
    let drivers =
        Op::DRIVERS.map(|op| DriverCount { op: op.name(), instructions: counter.count(op) }).into();
    let report = Report {
        controller: "null",
        rounds: args.rounds,
        rows,
        drivers,
        measured_elsewhere: ELSEWHERE,
    };
    if args.json {
        let line = serde_json::to_string(&report).map_err(|error| error.to_string())?;
        println!("{line}");
    } else {
        print_table(&report);
    }
    Ok(())
}

/// Nanoseconds per operation: a row for each of [`Op::ALL`], a column for each round.
fn time_all(rounds: u32) -> [Vec<f64>; Op::ALL.len()] {
    let mut times = Op::ALL.map(|_| Vec::with_capacity(rounds as usize));
    for round in 0..=rounds {
        for (op, times) in Op::ALL.into_iter().zip(&mut times) {
            let calls = CALLS_PER_ROUND / op.per_call();
            let (begun, ended) = ops::run(op, calls, Instant::now);
            // The first round warms caches and predictors.
            if round > 0 {
                let ns = ended.duration_since(begun).as_nanos() as f64;
                times.push(ns / f64::from(calls * op.per_call()));
            }
        }
    }
    times
}

fn row(op: Op, times: &[Vec<f64>], instructions: Option<u64>) -> Row {
    let of = |op: Op| &times[op as usize];
    let ratios = of(op).iter().zip(of(Op::Floor)).map(|(ns, floor)| ns / floor).collect();
    Row {
        op: op.name(),
        ns_median: round(median(of(op).clone())),
        ns_min: round(of(op).iter().copied().fold(f64::INFINITY, f64::min)),
        ratio_to_floor: round(median(ratios)),
        instructions,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// To hundredths: the clock resolves no more.
fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn print_table(report: &Report) {
    println!("Null controller (no wire), this machine, {} rounds. Time in ns.\n", report.rounds);
    println!(
        "{:<27}{:>8}{:>8}{:>9}{:>14}",
        "operation", "median", "min", "x floor", "instructions"
    );
    for row in &report.rows {
        let instructions = row.instructions.map_or("-".into(), |n| n.to_string());
        println!(
            "{:<27}{:>8.2}{:>8.2}{:>9.2}{:>14}",
            row.op, row.ns_median, row.ns_min, row.ratio_to_floor, instructions
        );
    }
    for driver in &report.drivers {
        let instructions = driver.instructions.map_or("-".into(), |n| n.to_string());
        println!("{:<27}{:>39}", driver.op, instructions);
    }
    println!(
        "\nbare      the controller's calls alone\n\
         floor     a compare-and-swap and an exchange around them: what a bus must cost\n\
         prepared  a 4-byte access prepared once     sync  any 4-byte message\n\
         ..._in_100  per transfer of a 100-transfer sync message\n\
         ecspi_...  a prepared 4-byte access through that driver, its registers ready at once\n"
    );
    println!("Measured elsewhere (not on this machine):");
    for other in report.measured_elsewhere {
        println!("  {:>8} ns {:>10} instructions  {}", other.ns, other.instructions, other.what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_numbers() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn every_operation_runs_and_is_found_by_its_name() {
        for (index, op) in Op::ALL.into_iter().enumerate() {
            assert_eq!(op as usize, index, "rows are found by the operation's number");
            assert_eq!(Op::from_name(op.name()), Some(op));
            ops::run(op, 2, || ());
        }
        for op in Op::DRIVERS {
            assert_eq!(Op::from_name(op.name()), Some(op));
            ops::run(op, 2, || ());
        }
        assert_eq!(Op::from_name("sink"), None);
    }

    #[test]
    fn the_floor_s_ratio_is_one() {
        let times = time_all(1);
        assert_eq!(row(Op::Floor, &times, None).ratio_to_floor, 1.0);
    }
}
