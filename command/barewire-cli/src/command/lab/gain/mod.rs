//! `barewire lab gain`: what each measure saves of the time of a user's messages.

mod table;

use std::path::{Path, PathBuf};

use barewire_lab::own::OwnExperiment;
use barewire_lab::report;
use barewire_scope::Options;
use barewire_scope::capture::name_of;

use super::given::{self, CostFile};
use super::{fit, own};
use crate::command::scope;
use crate::shared::failure::Failure;
use crate::shared::files::{self, NamedFile, Output};
use crate::shared::output::{self, note};
use crate::shared::progress::Progress;

const NOTES: &str = "\
Of each message: where the time of a call goes today (of a batch, of a part), what each measure
saves alone, and the time with those above it that are taken too. Low and high are over the sets
of costs that the lab has. Below 5 % of today's time a saving is little.

  kernel-upgrade   Linux 6.12; its steps as counted in guests
  polling-limit    the driver polls: polling_limit_us of spi-imx and spi-bcm2835
  batch            ten messages in one call
  cs-change-delay  no wait at a cs_change
  batch-no-delay   both
  stay-awake       no idle states, governor performance: what it saves at most
  native-select    the controller's own select, not a GPIO line through the kernel
  module           barewire's module in place of the kernel's driver: once a message, as
                   counted for 4 bytes; with the upgrade, if today's kernel is before 6.1
  module-api       the module's own interface: not counted yet
  user-polled      barewire in the process, on mapped registers, polling
  user-interrupt   the same, asleep until the interrupt

Examples:
  barewire lab new mine.toml --board imx8mp --kernel 6.1
  barewire lab gain mine.toml
  barewire lab gain mine.toml --costs mine-costs.toml --out gain.html
  barewire lab gain --trace TRACE --board imx8mp --kernel 6.1
  barewire lab gain --capture before.vcd --board rpi3 --kernel 6.1";

#[derive(clap::Args, Debug)]
#[command(after_help = NOTES)]
pub(crate) struct Args {
    /// The experiment, a file of `barewire lab new`
    #[arg(
        value_name = "FILE.toml",
        required_unless_present = "recorded",
        conflicts_with = "recorded"
    )]
    own: Option<PathBuf>,
    #[command(flatten)]
    recorded: Recorded,
    #[command(flatten)]
    costs: CostFile,
    /// Write a page with a chart into this file too; - is stdout
    #[arg(short, long, value_name = "FILE.html")]
    out: Option<PathBuf>,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// A trace or a capture in the place of an experiment.
#[derive(clap::Args, Debug)]
struct Recorded {
    /// Take the messages of a kernel's trace of events/spi, sent by a client in the kernel; - is stdin
    #[arg(long, value_name = "TRACE", group = "recorded", requires_all = ["board", "kernel"])]
    trace: Option<PathBuf>,
    /// Take the messages of a logic analyzer's capture, each as one transfer of a client in the kernel; `barewire scope`
    /// says how its wires are read
    #[arg(long, value_name = "CAPTURE", group = "recorded", requires_all = ["board", "kernel"])]
    capture: Option<PathBuf>,
    /// The board of the trace or the capture
    #[arg(long, value_name = "BOARD", requires = "recorded")]
    board: Option<String>,
    /// The kernel there: 3.14 to 6.12
    #[arg(long, value_name = "VERSION", requires = "recorded")]
    kernel: Option<String>,
    /// SPI's clock, in Hz; without it, the capture's, or in a trace by what a byte more takes
    #[arg(long, value_name = "HZ", requires = "recorded")]
    speed_hz: Option<u64>,
}

/// The experiment of a capture, as text.
fn captured(path: &Path, origin: own::Origin<'_>, silent: bool) -> Result<String, Failure> {
    let mut capture = scope::open(path, &Options::default())?;
    let tick = capture.capture().tick();
    let mut captured = own::Captured::default();
    scope::read(&mut capture, silent, &mut |wires, message, _| {
        captured.add(wires, message, tick);
    })?;
    let channels = capture.capture().channels().to_vec();
    let selects = capture.finish().map(|summary| summary.wires.selects).unwrap_or_default();
    let name = |place: usize| {
        let select = selects.get(place).and_then(|select| name_of(&channels, select.bit));
        select.unwrap_or_default().to_owned()
    };
    captured.text(origin, tick, name).map_err(Failure::Failed)
}

impl Args {
    fn experiment(&self) -> Result<OwnExperiment, Failure> {
        let Recorded { trace, capture, board, kernel, speed_hz } = &self.recorded;
        let (Some(path), Some(board), Some(kernel)) =
            (trace.as_ref().or(capture.as_ref()), board, kernel)
        else {
            return given::own(self.own.as_deref().expect("clap asks for one"));
        };
        let shown = path.display().to_string();
        let origin = own::Origin { file: &shown, board, kernel, speed_hz: *speed_hz };
        let (name, text) = match trace {
            Some(_) => {
                ("trace", own::traced(&fit::trace_of(path)?, origin).map_err(Failure::Failed)?)
            }
            None => ("capture", captured(path, origin, self.json)?),
        };
        // The text is the command's: its lines say nothing to the user.
        OwnExperiment::read(name, &text, &|name| given::board(Path::new(""), name))
            .map_err(|what| Failure::Usage(own::without_place(&what)))
    }
}

/// Runs.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let out: Vec<NamedFile<'_>> =
        args.out.iter().map(|path| NamedFile { by: "--out", path }).collect();
    let Recorded { trace, capture, .. } = &args.recorded;
    let inputs = [("the experiment", &args.own), ("--trace", trace), ("--capture", capture)];
    let inputs =
        inputs.iter().filter_map(|(by, path)| Some(NamedFile { by, path: path.as_ref()? }));
    files::check(&out, &inputs.collect::<Vec<_>>())?;
    let own = args.experiment()?;
    let lab = args.costs.lab()?;
    given::check_board(&lab, &own)?;
    let out = out.first().map(|&file| Output::create(file, args.json)).transpose()?;
    let mut bar = None;
    let mut progress = |done: usize, all: usize| {
        let bar = bar.get_or_insert_with(|| Progress::counting("measures", all as u64, args.json));
        bar.set(done as u64);
    };
    let gain = lab.gain(&own, &mut progress).map_err(given::refused)?;
    drop(bar);
    if let Some(out) = out {
        let to_stdout = out.is_stdout();
        out.write(&report::gain_html(&gain))?;
        if to_stdout {
            return Ok(());
        }
        note!("written: {}", args.out.as_ref().expect("there is one").display());
    }
    if args.json { output::json(&gain) } else { output::text(&table::text(&gain)) }
}
