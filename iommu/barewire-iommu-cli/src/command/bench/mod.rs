//! `barewire-iommu bench`: the cost of mapping and unmapping on this machine, beside a lower bound.
//!
//! # How it works
//! Times come from `barewire-iommu-bench`, in one thread that stays on its processor; two threads are
//! measured apart, and instructions by callgrind. Counts of invalidations, and the thread's table made
//! of them, are the same everywhere. Times inform; counts gate, in tests.

mod instructions;
mod table;
mod threads;

use std::ops::ControlFlow;

use barewire_iommu_bench::bars::{Bar, bars};
use barewire_iommu_bench::counted::{CALLS, CountedOperation};
use barewire_iommu_bench::measure::{self, Measured, Options};
use barewire_iommu_bench::row::Row;
use barewire_iommu_bench::scaling::Scaling;
use barewire_iommu_bench::thread_table::ThreadTable;
use serde::Serialize;

use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::load::{self, Load};
use crate::shared::number;
use crate::shared::output::{self, note};
use crate::shared::processors::{self, spawn_on};
use crate::shared::progress::Progress;
use instructions::Instructions;

const BUILD: &str = "\
Figures to compare with published ones are of a build with link-time optimisation, which release lacks here:
  cargo run --profile counted -- bench";

#[derive(clap::Args, Debug)]
#[command(after_help = BUILD)]
pub(crate) struct Args {
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
    /// The number of rounds (more rounds give steadier figures; 1000 take about eight seconds). From 20 on, up
    /// to four times as many, until the medians settle
    #[arg(long, default_value_t = 1_000, value_parser = |text: &str| number::within(text, 1..=1_000_000))]
    rounds: u32,
    /// Skip callgrind's instruction counts, which take a few seconds
    #[arg(long)]
    no_instructions: bool,
    /// Make calls of one operation and nothing else: what callgrind is given to run
    #[arg(long, hide = true, value_name = "OP")]
    count_op: Option<String>,
}

/// The printed result. Scripts rely on the names.
#[derive(Debug, Serialize)]
struct Report {
    /// The machine on which the times were measured.
    machine: &'static str,
    /// The number of rounds: those asked for, or more until the medians settled.
    rounds: u32,
    /// Whether the medians settled.
    settled: bool,
    /// The machine's load; none if it is not known.
    load: Option<Load>,
    rows: Vec<Row>,
    /// The times of two threads; none if two threads could not run.
    scaling: Option<Scaling>,
    instructions: Vec<Instructions>,
    thread: ThreadTable,
    bars: Vec<Bar>,
}

const MACHINE: &str = "no IOMMU: tables in this machine's memory, a TLB that counts";

/// Runs the bench.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(key) = &args.count_op {
        let op = CountedOperation::from_key(key)
            .ok_or_else(|| Failure::Usage(format!("no operation is called {key:?}")))?;
        op.run(CALLS);
        return Ok(());
    }
    if cfg!(debug_assertions) {
        note!(
            "barewire-iommu: bench: this is a debug build; only figures of profile counted mean anything"
        );
    }
    let begin = load::average();
    let Measured { rows, rounds, settled } = time(args)?;
    let scaling = threads::measure((args.rounds / 5).clamp(1, 50))?;
    let thread = ThreadTable::new();
    let report = Report {
        machine: MACHINE,
        rounds,
        settled,
        load: begin.zip(load::average()).map(|(begin, end)| Load { begin, end }),
        bars: bars(&rows, scaling.as_ref(), &thread),
        rows,
        scaling,
        instructions: instructions::count_all(!args.no_instructions)?,
        thread,
    };
    if args.json { output::json(&report) } else { output::text(&table::text(&report)) }
}

/// All rows, from a thread that stays where it is.
fn time(args: &Args) -> Result<Measured, Failure> {
    let progress = Progress::count("rounds", args.rounds.into(), args.json);
    let options = Options { rounds: args.rounds };
    let timed = std::thread::scope(|scope| {
        let body = || {
            measure::measure(options, |done| {
                progress.set(done.into());
                match interrupt::check() {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(failure) => ControlFlow::Break(failure),
                }
            })
        };
        let worker = spawn_on(scope, &processors::allowed(), 0, body);
        worker.and_then(|worker| worker.join().expect("nobody panics"))
    })
    .map_err(Failure::Failed)?;
    match timed {
        ControlFlow::Continue(measured) => Ok(measured),
        ControlFlow::Break(failure) => Err(failure),
    }
}
