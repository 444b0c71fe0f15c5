//! `barewire lab fit`: costs fitted to the fit set, to a user's own figures or experiments, or a profile from a kernel's
//! trace.

mod costs;
mod own;
mod profile;

use std::path::PathBuf;

use barewire_lab::Lab;
use barewire_lab::fit::{Extent, Fit};

use super::given::{self, CostFile, Experiments};
use crate::shared::failure::Failure;
use crate::shared::files::{self, NamedFile, Output};
use crate::shared::output;
use crate::shared::progress::Progress;

pub(super) use profile::trace_of;

const EXAMPLES: &str = "\
A trace is text, from any of:
  echo 1 > /sys/kernel/tracing/events/spi/enable; cat /sys/kernel/tracing/trace_pipe > TRACE
  trace-cmd record -e spi …; trace-cmd report > TRACE
  perf record -a -e 'spi:*' …; perf script --ns > TRACE

Examples:
  barewire lab fit
  barewire lab fit --figures mine.csv      with lines as: jander-rfc-irq-A,171
  barewire lab fit --experiment mine.toml  to the figures that it publishes
  barewire lab fit --experiment mine.toml --out mine-costs.toml
  barewire lab run mine.toml --costs mine-costs.toml
  ssh board cat /sys/kernel/tracing/trace | barewire lab fit --trace -
  barewire lab fit --trace TRACE --board 'my board' --json";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Fit to your own board's figures instead: lines of id,value, with ids of `barewire lab list --figures`
    #[arg(long, value_name = "FILE.csv", conflicts_with = "trace")]
    figures: Option<PathBuf>,
    #[command(flatten)]
    experiments: Experiments,
    /// Make a profile of a kernel's trace of events/spi instead; - is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    trace: Option<PathBuf>,
    /// Fail at a line of the trace that cannot be read
    #[arg(long, requires = "trace")]
    strict: bool,
    /// The board whose clock the trace has
    #[arg(long, value_name = "NAME", requires = "trace")]
    board: Option<String>,
    /// Write the costs into this file too, which --costs of run, explain, sweep, gain and report takes
    #[arg(long, value_name = "FILE.toml", conflicts_with = "trace")]
    out: Option<PathBuf>,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Fits.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(path) = &args.trace {
        return profile::run(path, args.strict, args.board.as_deref(), args.json);
    }
    let out: Vec<NamedFile<'_>> =
        args.out.iter().map(|path| NamedFile { by: "--out", path }).collect();
    args.experiments.check(&out)?;
    let figures = args.figures.iter().map(|path| NamedFile { by: "--figures", path });
    files::check(&out, &figures.collect::<Vec<_>>())?;
    let out = out.first().map(|&file| Output::create(file, args.json)).transpose()?;
    let fit = if args.figures.is_none() && !args.experiments.is_given() {
        refit(args.json)?
    } else {
        let lab = args.experiments.lab(&CostFile::default())?;
        let figures = match &args.figures {
            Some(path) => {
                let wrong = |error: String| Failure::Failed(format!("{}: {error}", path.display()));
                own::parse(&files::read_text(path)?).map_err(wrong)?
            }
            None => lab.own_figures(),
        };
        lab.fit_to(&figures).map_err(given::refused)?
    };
    let to_stdout = out.as_ref().is_some_and(Output::is_stdout);
    out.map_or(Ok(()), |out| out.write(&costs::file(&fit)))?;
    match (to_stdout, args.json) {
        (true, _) => Ok(()),
        (_, true) => output::json(&fit),
        _ => output::text(&costs::text(&fit)),
    }
}

/// The lab's own fit, with a progress bar unless `silent`.
fn refit(silent: bool) -> Result<Fit, Failure> {
    let mut bar = None;
    let mut progress = |done: usize, all: usize| {
        let bar = bar.get_or_insert_with(|| Progress::counting("fit", all as u64, silent));
        bar.set(done as u64);
    };
    Lab::new()
        .refit(Extent::WHOLE, &mut progress)
        .map_err(|error| Failure::Failed(error.to_string()))
}
