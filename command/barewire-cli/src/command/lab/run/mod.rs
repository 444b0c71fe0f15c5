//! `barewire lab run`: every experiment, each figure published, simulated and barewire's, and the score.

mod checks;
mod held_out;
mod score;
mod table;

use std::path::PathBuf;

use barewire_lab::held_out::{HeldOut, HeldOutScore};
use barewire_lab::messages::OwnOutcome;
use barewire_lab::{Lab, Outcome};
use serde::Serialize;

use super::given::{self, CostFile, Experiments};
use super::own;
use crate::shared::failure::Failure;
use crate::shared::output;
use crate::shared::progress::Progress;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Run this experiment of your own alone, a file of `barewire lab new`; may be several
    #[arg(value_name = "FILE.toml", conflicts_with_all = ["thread", "files"])]
    own: Vec<PathBuf>,
    /// Show this thread alone: jander-rfc, ellis, ranjan, jander-v2, pitchen; own, of your experiments
    #[arg(long, value_name = "THREAD")]
    thread: Option<String>,
    /// Show the figures not seen before alone
    #[arg(long, conflicts_with_all = ["thread", "own", "files"])]
    held_out: bool,
    #[command(flatten)]
    experiments: Experiments,
    #[command(flatten)]
    costs: CostFile,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Figures not seen before: no cost was fitted to them.
#[derive(Serialize)]
struct NotSeenBefore<'h> {
    held_out: &'h [HeldOut],
    held_out_score: HeldOutScore,
}

/// All of it; these names are an interface.
#[derive(Serialize)]
struct Whole<'o> {
    #[serde(flatten)]
    outcome: &'o Outcome,
    #[serde(flatten)]
    not_seen_before: NotSeenBefore<'o>,
    /// The experiments of `--experiment` that have messages.
    own: &'o [OwnOutcome],
}

/// Runs.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let lab = args.experiments.lab(&args.costs)?;
    if !args.own.is_empty() {
        return run_own(&lab, args);
    }
    if args.held_out {
        return run_held_out(&lab, args.json);
    }
    if let Some(thread) = &args.thread {
        let mut known: Vec<&str> =
            lab.figures().iter().map(|figure| figure.thread.as_str()).collect();
        known.dedup();
        given::one_of("thread", thread, &known)?;
    }
    let mut outcome = outcome(&lab, args.json);
    if let Some(thread) = &args.thread {
        outcome.figures.retain(|row| row.thread == *thread);
        outcome.told.retain(|told| told.thread == *thread);
        score::retain(&mut outcome.score, thread);
    }
    let own: Result<Vec<OwnOutcome>, _> = lab.own().map(|own| lab.messages(own)).collect();
    let own = own.map_err(given::refused)?;
    let held_out = lab.held_out();
    if args.json {
        let not_seen_before = not_seen_before(&held_out);
        return output::json(&Whole { outcome: &outcome, not_seen_before, own: &own });
    }
    let whole = args.thread.is_none();
    let mut text = table::text(&outcome.figures, &outcome.told);
    text += &score::text(&outcome.score, whole);
    if whole {
        text += &held_out::text(&held_out);
        text += &checks::text(&outcome);
    }
    for own in &own {
        text += &format!("\n{}", own::text(own));
    }
    output::text(&text)
}

fn not_seen_before(held_out: &[HeldOut]) -> NotSeenBefore<'_> {
    NotSeenBefore { held_out, held_out_score: HeldOutScore::of(held_out) }
}

/// The figures not seen before alone.
fn run_held_out(lab: &Lab, json: bool) -> Result<(), Failure> {
    let held_out = lab.held_out();
    if json {
        return output::json(&not_seen_before(&held_out));
    }
    output::text(held_out::text(&held_out).trim_start())
}

/// The user's experiments alone.
fn run_own(lab: &Lab, args: &Args) -> Result<(), Failure> {
    let all: Result<Vec<OwnOutcome>, Failure> =
        args.own.iter().map(|path| own::outcome(lab, path)).collect();
    let all = all?;
    if args.json {
        return output::json(&all);
    }
    let texts: Vec<String> = all.iter().map(own::text).collect();
    output::text(&texts.join("\n"))
}

/// All experiments, with a progress bar unless `silent`.
pub(super) fn outcome(lab: &Lab, silent: bool) -> Outcome {
    let mut bar = None;
    lab.run(&mut |done, all| {
        let bar = bar.get_or_insert_with(|| Progress::counting("runs", all as u64, silent));
        bar.set(done as u64);
    })
}
