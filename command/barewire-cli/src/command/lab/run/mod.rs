//! `barewire lab run`: every experiment, each figure published, simulated and barewire's, and the score.

mod checks;
mod score;
mod table;

use barewire_lab::{Lab, Outcome};

use super::given::{self, Experiments};
use crate::shared::failure::Failure;
use crate::shared::output;
use crate::shared::progress::Progress;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Show this thread alone: jander-rfc, ellis, ranjan, jander-v2, pitchen; own, of your experiments
    #[arg(long, value_name = "THREAD")]
    thread: Option<String>,
    #[command(flatten)]
    experiments: Experiments,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Runs.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let lab = args.experiments.lab()?;
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
    if args.json {
        return output::json(&outcome);
    }
    let whole = args.thread.is_none();
    let mut text = table::text(&outcome.figures, &outcome.told);
    text += &score::text(&outcome.score, whole);
    if whole {
        text += &checks::text(&outcome);
    }
    output::text(&text)
}

/// All experiments, with a progress bar unless `silent`.
pub(super) fn outcome(lab: &Lab, silent: bool) -> Outcome {
    let mut bar = None;
    lab.run(&mut |done, all| {
        let bar = bar.get_or_insert_with(|| Progress::counting("runs", all as u64, silent));
        bar.set(done as u64);
    })
}
