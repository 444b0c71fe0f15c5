//! `barewire lab report`: all of the lab on one HTML page.

use std::path::PathBuf;

use barewire_lab::outcome::SweepRequest;
use barewire_lab::report::{self, OwnOnPage, Page, TELLING};

use super::given::{self, CostFile, Experiments};
use super::run::outcome;
use crate::shared::failure::Failure;
use crate::shared::files::{NamedFile, Output};
use crate::shared::output::note;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The page; - is stdout
    #[arg(long, value_name = "FILE.html")]
    out: PathBuf,
    #[command(flatten)]
    experiments: Experiments,
    #[command(flatten)]
    costs: CostFile,
}

/// Values of the sweep on the page: every half microsecond.
const DELAYS: u32 = 25;

/// Writes it.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let out = NamedFile { by: "--out", path: &args.out };
    args.experiments.check(&[out])?;
    let out = Output::create(out, false)?;
    let lab = args.experiments.lab(&args.costs)?;
    // Reports each chart that is left out.
    let missing = |what: &str, error: &dyn std::fmt::Display| {
        note!("the page has no chart of {what}: {error}")
    };
    let explain = |id: &&str| lab.explain(id, &[]).inspect_err(|error| missing(id, error)).ok();
    let explanations: Vec<_> = TELLING.iter().filter_map(explain).collect();
    let delay = SweepRequest {
        path: "spidev-4.4".into(),
        board: "rpi3".into(),
        parameter: "delay".into(),
        values: (0..DELAYS).map(|nth| f64::from(nth) * 500.0).collect(),
    };
    let sweeps: Vec<_> =
        lab.sweep(&delay).inspect_err(|error| missing("batching", error)).into_iter().collect();
    let on_page = |own| {
        let outcome = lab.messages(own)?;
        let calls = outcome.messages.iter();
        let calls = calls.map(|message| lab.explain_message(own, (&message.name, None), &[]));
        Ok(OwnOnPage { calls: calls.collect::<Result<_, _>>()?, outcome })
    };
    let own = lab.own().map(on_page).collect::<Result<Vec<_>, _>>().map_err(given::refused)?;
    let page = Page {
        outcome: &outcome(&lab, false),
        experiments: &lab.list(),
        explanations: &explanations,
        sweeps: &sweeps,
        rules: lab.rules(),
        own: &own,
        held_out: &lab.held_out(),
    };
    let to_stdout = out.is_stdout();
    out.write(&report::html(&page))?;
    if !to_stdout {
        note!("written: {}", args.out.display());
    }
    Ok(())
}
