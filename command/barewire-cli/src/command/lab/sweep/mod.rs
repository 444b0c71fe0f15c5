//! `barewire lab sweep`: a figure over a parameter, and where one column begins to be better than another.

mod range;
mod table;

use std::path::PathBuf;

use barewire_lab::outcome::{Sweep, SweepRequest};
use barewire_lab::report;
use barewire_lab::sweep::OwnSweepRequest;

use super::given::{self, CostFile};
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
  barewire lab sweep --path spidev-4.4 --board rpi3 --clock 1500k..3600k --svg clock.svg
  barewire lab sweep --experiment mine.toml --length 1..64
  barewire lab sweep --experiment mine.toml --message batch --figure rate --batch 1..100 --kernels 4.4,6.12";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(group(clap::ArgGroup::new("parameter").required(true)))]
pub(crate) struct Args {
    /// The kernel's path: `barewire lab list` has those of the experiments
    #[arg(long, value_name = "PATH", required_unless_present = "experiment")]
    path: Option<String>,
    /// The simulated board
    #[arg(long, value_name = "BOARD", required_unless_present = "experiment")]
    board: Option<String>,
    /// Sweep a message of your own experiment instead, a file of `barewire lab new`: --length, --clock, --batch or --delay
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["path", "board"])]
    experiment: Option<PathBuf>,
    /// Its message; the first without this
    #[arg(long, value_name = "NAME", requires = "experiment")]
    message: Option<String>,
    /// Its figure: call without this, or rate, cs-low, cs-high and what else `barewire lab run` prints
    #[arg(long, value_name = "FIGURE", requires = "experiment")]
    figure: Option<String>,
    /// A column for each of these kernels, as 4.4,6.1,6.12; the file's without this
    #[arg(long, value_name = "VERSIONS", requires = "experiment", value_delimiter = ',')]
    kernels: Vec<String>,
    #[command(flatten)]
    costs: CostFile,
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

fn sweep(args: &Args, parameter: &str, values: Vec<f64>) -> Result<Sweep, Failure> {
    let lab = args.costs.lab()?;
    let swept = match &args.experiment {
        Some(path) => {
            let request = OwnSweepRequest {
                message: args.message.clone(),
                figure: args.figure.clone(),
                kernels: args.kernels.clone(),
                parameter: parameter.into(),
                values,
            };
            let own = given::own(path)?;
            given::check_board(&lab, &own)?;
            lab.sweep_messages(&own, &request)
        }
        None => lab.sweep(&SweepRequest {
            path: args.path.clone().unwrap_or_default(),
            board: args.board.clone().unwrap_or_default(),
            parameter: parameter.into(),
            values,
        }),
    };
    swept.map_err(given::refused)
}

/// Sweeps.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let [csv, svg] = [("--csv", &args.csv), ("--svg", &args.svg)]
        .map(|(by, path)| Some(NamedFile { by, path: path.as_deref()? }));
    let input = args.experiment.as_deref().map(|path| NamedFile { by: "--experiment", path });
    files::check(&csv.into_iter().chain(svg).collect::<Vec<_>>(), input.as_slice())?;
    let (parameter, range) = args
        .varied()
        .ok_or_else(|| Failure::Usage("name what varies: --delay, --batch…".into()))?;
    let sweep = sweep(args, parameter, range.values())?;
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
