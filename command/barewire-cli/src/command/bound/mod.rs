//! `barewire bound`: the worst time from call to return of each task that shares a bus.
//!
//! The analysis and the adversary are the simulator's ([`barewire_sim::bound`]); docs/realtime.md explains both.

mod file;
mod report;

use std::path::PathBuf;

use barewire_sim::bound::analysis::{Analysis, Bound, Terms};
use barewire_sim::bound::cost::TaskError;
use barewire_sim::bound::{Traffic, adversary, analysis, change, cost};
use barewire_sim::profile::CostLevel;
use barewire_sim::{Board, BoardSpec};

use crate::shared::bus_name::{self, BusName};
use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::output;
use crate::shared::progress::Progress;

/// Schedules between two looks at Ctrl-C. Each such slice has a seed of its own.
const SLICE: u64 = 500;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Who uses the bus: a TOML file of tasks, their messages, periods and priorities
    #[arg(value_name = "TRAFFIC")]
    traffic: PathBuf,
    /// The simulated board whose costs, at their high ends, are charged: sim:BOARD
    #[arg(long, env = "BAREWIRE_BUS", value_name = "BUS")]
    bus: String,
    /// Have an adversary run this many random schedules on the simulated board, and print the worst it saw
    #[arg(long, value_name = "N", default_value_t = 0)]
    schedules: u64,
    /// The seed of the first schedule; the same seed gives the same schedules
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// The worst that the adversary saw of a task.
#[derive(Clone, Copy, Debug, Default)]
struct WorstTime {
    ps: u64,
    /// The seed of the slice that had it: `--schedules 500 --seed …` runs it again.
    seed: u64,
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let spec = board(&args.bus)?;
    let traffic = file::read(&args.traffic, spec)?;
    let board = traffic.board(spec, CostLevel::High);
    let refused = |refused: TaskError| Failure::Failed(told(&refused));
    let costs = cost::of(&traffic, &board).map_err(refused)?;
    let analysis = analysis::of(&traffic, &board, &costs);
    let changes = change::best(&traffic, spec, &analysis.bounds);
    let (seen, schedules) = attack(args, &traffic, &board, &analysis)?;
    let report =
        report::Report::new(args, spec, &traffic, &board, &analysis, &changes, &seen, schedules);
    if args.json {
        output::json(&report)?;
    } else {
        output::text(&report.to_string())?;
    }
    if schedules < args.schedules {
        let what = format!("{schedules} of {} schedules ran", args.schedules);
        return Err(Failure::Interrupted(what));
    }
    match report.exceeded() {
        Some(what) => Err(Failure::Failed(what)),
        None => Ok(()),
    }
}

fn board(bus: &str) -> Result<&'static BoardSpec, Failure> {
    match bus_name::parse(bus).map_err(Failure::Usage)? {
        BusName::Sim(options) => Ok(options.board),
        _ => Err(Failure::Usage(format!(
            "{bus}: a bound is made of a board's costs, which only simulated boards have: --bus sim:BOARD \
             (`barewire list --costs`)"
        ))),
    }
}

fn told(refused: &TaskError) -> String {
    match refused {
        TaskError::Device(task, error) => {
            format!("task {task}: its device cannot be opened: {error}")
        }
        TaskError::Message(task, error) => format!("task {task}: {error}"),
    }
}

/// Has the adversary run the schedules. Returns the worst of each task, and how many schedules ran.
fn attack(
    args: &Args,
    traffic: &Traffic,
    board: &Board,
    analysis: &Analysis,
) -> Result<(Vec<WorstTime>, u64), Failure> {
    let mut seen = vec![WorstTime::default(); traffic.tasks.len()];
    let sum =
        |bound: &Bound| if let Bound::Within(terms) = bound { Terms::sum_ps(terms) } else { 0 };
    let meet_ps = analysis.bounds.iter().map(sum).max().unwrap_or(0).max(1);
    let progress = Progress::counting("schedules", args.schedules, args.json);
    let mut ran = 0;
    while ran < args.schedules && !interrupt::asked() {
        let (seed, slice) = (args.seed.wrapping_add(ran / SLICE), SLICE.min(args.schedules - ran));
        let worst = adversary::run(traffic, board, slice, seed, meet_ps)
            .map_err(|refused| Failure::Failed(told(&refused)))?;
        for (seen, &ps) in seen.iter_mut().zip(&worst.call_ps) {
            if ps > seen.ps {
                *seen = WorstTime { ps, seed };
            }
        }
        ran += slice;
        progress.set(ran);
    }
    Ok((seen, ran))
}
