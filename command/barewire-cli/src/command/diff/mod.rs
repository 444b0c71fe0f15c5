//! `barewire diff`: two captures, or two kernel's traces, before and after a change: which figures of which kinds of messages
//! differ.
//!
//! [`barewire_scope::diff`] says how they are compared.

mod report;

use std::path::{Path, PathBuf};

use barewire_scope::Options;
use barewire_scope::diff::{How, Side, compare};

use crate::command::scope::{self, Reading, traced};
use crate::shared::failure::Failure;
use crate::shared::output;
use report::{Report, SideReport};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The capture or the kernel's trace before: any that `barewire scope` reads
    #[arg(value_name = "A")]
    before: PathBuf,
    /// The one after, of the same sort
    #[arg(value_name = "B")]
    after: PathBuf,
    /// Compare this percentile in place of the median: 99 for the slow ones, of which it needs many messages
    #[arg(long, value_name = "1-99", default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..=99))]
    percentile: u8,
    /// End with exit code 1 if they differ
    #[arg(long)]
    exit_code: bool,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let paths = [&args.before, &args.after];
    let [(a, before), (b, after)] = match [traced::open(paths[0])?, traced::open(paths[1])?] {
        [None, None] => {
            let options = args.reading.options();
            [side(paths[0], &options, args.json)?, side(paths[1], &options, args.json)?]
        }
        [Some(before), Some(after)] => {
            args.reading.refuse(paths[0], &[])?;
            let side =
                |path: &Path, trace| (SideReport::of_trace(path, trace), Side::of_trace(trace));
            [side(paths[0], &before), side(paths[1], &after)]
        }
        [before, _] => {
            let [trace, capture] = if before.is_some() { paths } else { [paths[1], paths[0]] };
            let (trace, capture) = (trace.display(), capture.display());
            return Err(Failure::Failed(format!(
                "{trace} is a kernel's trace and {capture} is not: they have no figure in common"
            )));
        }
    };
    let how = How { quantile: f64::from(args.percentile) / 100.0, ..How::USUAL };
    let diff = compare([before, after], how);
    let report = Report::new([a, b], args.percentile, how.confidence, &diff);
    match args.json {
        true => output::json(&report)?,
        false => output::text(&report.to_string())?,
    }
    match args.exit_code && diff.differs() {
        true => Err(Failure::Failed(report.verdict())),
        false => Ok(()),
    }
}

/// A capture as a side of the comparison.
fn side(path: &Path, options: &Options, json: bool) -> Result<(SideReport, Side), Failure> {
    let mut scope = scope::open(path, options)?;
    scope::read(&mut scope, json, &mut |_, _, _| ())?;
    let capture = scope.capture();
    let (tick, format, channels) =
        (capture.tick(), capture.format().name(), capture.channels().to_vec());
    let summary = scope
        .finish()
        .ok_or_else(|| Failure::Failed(format!("{} has no messages", path.display())))?;
    let side = Side::of(&summary, &channels, tick);
    Ok((SideReport::new(path, format, tick, &summary), side))
}
