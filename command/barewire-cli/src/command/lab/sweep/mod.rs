//! `barewire lab sweep`: a figure over a parameter, and where one column begins to be better than another.

mod range;
mod table;

use std::path::PathBuf;

use barewire_lab::Lab;
use barewire_lab::outcome::SweepRequest;
use barewire_lab::report;

use super::given;
use crate::shared::failure::Failure;
use crate::shared::files::{self, NamedFile, Output};
use crate::shared::output;
use range::{Dimension, Range};

const EXAMPLES: &str = "\
A range is A..B, A..B:N for N values or A..B:STEP; STEP has a unit (0..12us:500ns), or + where the parameter has none (1..500:+10).
A without a unit has that of B, but for suffixes of counts and bytes: 1..4K begins at 1.

Examples:
  barewire lab sweep --path spidev-4.4 --board rpi3 --delay 0..12us
  barewire lab sweep --path spidev-4.4 --board rpi3 --batch 1..500 --csv batch.csv
  barewire lab sweep --path spidev-4.4 --board rpi3 --clock 1500k..3600k --svg clock.svg";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(group(clap::ArgGroup::new("parameter").required(true)))]
pub(crate) struct Args {
    /// The kernel's path: `barewire lab list` has those of the experiments
    #[arg(long, value_name = "PATH")]
    path: String,
    /// The simulated board
    #[arg(long, value_name = "BOARD")]
    board: String,
    /// Vary the delay between transfers: ns, us, ms
    #[arg(long, value_name = "RANGE", group = "parameter", value_parser = time)]
    delay: Option<Range>,
    /// Vary the SPI clock: Hz, k, M
    #[arg(long, value_name = "RANGE", group = "parameter", value_parser = clock)]
    clock: Option<Range>,
    /// Vary how many transfers a call has
    #[arg(long, value_name = "RANGE", group = "parameter", value_parser = count)]
    batch: Option<Range>,
    /// Vary how many bytes a message has: K is 1,024
    #[arg(long, value_name = "RANGE", group = "parameter", value_parser = bytes)]
    length: Option<Range>,
    /// Vary how long a transfer may be polled: ns, us, ms
    #[arg(long, value_name = "RANGE", group = "parameter", value_parser = time)]
    polling_limit: Option<Range>,
    /// Vary how long an interrupt takes to arrive: ns, us, ms
    #[arg(long, value_name = "RANGE", group = "parameter", value_parser = time)]
    irq_latency: Option<Range>,
    /// Write the table as CSV; - is stdout, instead of the table for readers
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw the chart into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

fn time(text: &str) -> Result<Range, String> {
    Range::parse(text, Dimension::Time)
}

fn clock(text: &str) -> Result<Range, String> {
    Range::parse(text, Dimension::Clock)
}

fn count(text: &str) -> Result<Range, String> {
    Range::parse(text, Dimension::Count)
}

fn bytes(text: &str) -> Result<Range, String> {
    Range::parse(text, Dimension::Bytes)
}

impl Args {
    /// The parameter that varies, by the lab's name, with its range.
    fn varied(&self) -> Option<(&'static str, &Range)> {
        let all = [
            ("delay", &self.delay),
            ("clock", &self.clock),
            ("batch", &self.batch),
            ("length", &self.length),
            ("polling-limit", &self.polling_limit),
            ("irq-latency", &self.irq_latency),
        ];
        all.into_iter().find_map(|(name, range)| Some((name, range.as_ref()?)))
    }
}

/// Sweeps.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let [csv, svg] = [("--csv", &args.csv), ("--svg", &args.svg)]
        .map(|(by, path)| Some(NamedFile { by, path: path.as_deref()? }));
    files::check(&csv.into_iter().chain(svg).collect::<Vec<_>>(), &[])?;
    let (parameter, range) = args
        .varied()
        .ok_or_else(|| Failure::Usage("name what varies: --delay, --batch…".into()))?;
    let request = SweepRequest {
        path: args.path.clone(),
        board: args.board.clone(),
        parameter: parameter.into(),
        values: range.values(),
    };
    let sweep = Lab::new().sweep(&request).map_err(given::refused)?;
    let begin = |output: Option<NamedFile<'_>>| {
        output.map(|output| Output::create(output, args.json)).transpose()
    };
    let (csv, svg) = (begin(csv)?, begin(svg)?);
    let to_stdout = csv.as_ref().is_some_and(Output::is_stdout);
    svg.map_or(Ok(()), |svg| svg.write(&report::sweep_svg(&sweep)))?;
    csv.map_or(Ok(()), |csv| csv.write(&table::csv(&sweep)))?;
    match (to_stdout, args.json) {
        (true, _) => Ok(()),
        (_, true) => output::json(&sweep),
        _ => output::text(&table::text(&sweep)),
    }
}
