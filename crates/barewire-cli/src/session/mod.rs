//! A command's time on a bus: opened, used, closed on every path, and what it cost.
//!
//! # How it works
//! Commands see an [`OpenBus`]: the bus, a timer, and, if the board is simulated, what only such
//! a board can say. [`run`] is the frame around each of them.
//!
//! # Ordering
//! 1. What can be refused cheaply is: the bus name, the VCD file.
//! 2. The command runs. Whatever it returns, the bus is then closed, which writes the flash file
//!    back, and the recording is written.
//! 3. Its result is printed, on stdout; then what the board has to say, on stderr. A rule of the
//!    chip that was broken is a failure even if the command was content.

mod figures;
mod flash_file;
mod sim;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::time::Timer;
use barewire_sim::Violation;
use barewire_sim::vcd::Capture;
use serde::Serialize;

pub(crate) use figures::Figures;
use sim::SimBus;

use crate::bus_name::{self, BusName};
use crate::failure::Failure;
use crate::out_file::OutFile;
use crate::output::{self, note};
use crate::text::number;

/// Violations shown; the rest are counted.
const VIOLATIONS_SHOWN: usize = 5;

/// Which bus, how fast, and how to tell.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct BusArgs {
    /// The bus: sim:BOARD[,OPTION…]; `barewire list` names the boards, `barewire --help` the
    /// options [default: sim:imx8mp]
    #[arg(long, value_name = "BUS")]
    pub(crate) bus: Option<String>,
    /// The chip select, by its number in `barewire list`
    #[arg(long = "cs", value_name = "N", default_value_t = 0)]
    pub(crate) chip_select: u8,
    /// The fastest clock allowed; the controller's next slower one is used (k and M: by 1000)
    #[arg(long, value_name = "HZ", default_value = "20000000", value_parser = number::hertz)]
    pub(crate) speed_hz: u32,
    #[command(flatten)]
    pub(crate) tell: TellArgs,
}

/// How to tell what happened.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TellArgs {
    /// Print the result as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Record the wire into FILE, for sigrok, PulseView or GTKWave (simulated boards)
    #[arg(long, value_name = "FILE")]
    pub(crate) vcd: Option<PathBuf>,
    /// No progress bar, no summary, no notes; errors are still told
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// What a command has to report: JSON by its fields, text by `text`.
pub(crate) trait Report: Serialize {
    /// Whether the session's figures belong into its JSON: not where it has its own for each part.
    const FIGURES: bool = true;

    /// The report for people, lines with their ends; `figures` where the board is simulated.
    fn text(&self, figures: Option<&Figures>) -> String;

    /// Bytes moved, where a rate is to be made of them.
    fn bytes(&self) -> Option<u64> {
        None
    }
}

/// A bus in use.
pub(crate) trait OpenBus {
    /// The bus.
    fn bus(&self) -> &Bus<dyn Controller + '_>;

    /// A timer for a chip driver.
    fn timer(&self) -> Box<dyn Timer>;

    /// What only a simulated board can say.
    fn simulated(&self) -> Option<&dyn Simulated>;

    /// Writes back what is to be kept. Called once, after the last command.
    fn close(&mut self) -> Result<(), Failure>;
}

/// A board that knows its time and its wire.
pub(crate) trait Simulated {
    /// Begins all figures anew.
    fn reset_figures(&self);

    /// What was used since then.
    fn figures(&self) -> Figures;

    /// The rules broken so far, as far as they are kept, and how many in all.
    fn violations(&self) -> (Vec<Violation>, u64);

    /// In what state the flash chip is left, if that is not unselected and write-disabled.
    fn left_open(&self) -> Option<&'static str>;

    /// Begins to record the wire.
    fn start_vcd(&self);

    /// The recording.
    fn take_vcd(&self) -> Option<Capture>;
}

/// What a command works with.
pub(crate) struct Session {
    /// The bus's name, without options.
    pub(crate) name: String,
    /// The bus.
    pub(crate) open: Box<dyn OpenBus>,
    /// Neither progress nor notes.
    pub(crate) silent: bool,
}

impl Session {
    /// Figures count from here: what identified the chip is not the transfer that was asked.
    pub(crate) fn begin_figures(&self) {
        if let Some(simulated) = self.open.simulated() {
            simulated.reset_figures();
        }
    }

    /// Fails if a rule of a chip was broken: what came in then is not to be relied upon.
    pub(crate) fn check_rules(&self) -> Result<(), Failure> {
        match self.open.simulated().map(|simulated| simulated.violations().1) {
            None | Some(0) => Ok(()),
            Some(total) => Err(broken_rules(total)),
        }
    }
}

fn broken_rules(total: u64) -> Failure {
    let times = if total == 1 { "once" } else { &format!("{total} times") };
    Failure::Failed(format!("the wire's rules were broken {times}: the data is not to be trusted"))
}

/// Opens the bus of that name.
fn open(name: &BusName) -> Result<Box<dyn OpenBus>, Failure> {
    match name {
        BusName::Sim(options) => Ok(Box::new(SimBus::open(options)?)),
    }
}

/// The JSON line: the report's fields, then the figures' where there are some.
#[derive(Serialize)]
struct Line<'r, R> {
    #[serde(flatten)]
    report: &'r R,
    #[serde(flatten)]
    figures: Option<&'r Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_second_virtual: Option<f64>,
}

impl<'r, R: Report> Line<'r, R> {
    fn new(report: &'r R, figures: Option<&'r Figures>) -> Self {
        let figures = figures.filter(|_| R::FIGURES);
        let rate = |figures: &Figures| figures.bytes_per_second(report.bytes()?);
        Self { report, figures, bytes_per_second_virtual: figures.and_then(rate) }
    }
}

/// Runs `command` on the bus `name` and tells of it.
pub(crate) fn run<R: Report>(
    name: Option<&str>,
    tell: &TellArgs,
    settled: Settled,
    command: impl FnOnce(&Session) -> Result<R, Failure>,
) -> Result<(), Failure> {
    let bus_name = bus_name::parse(name.unwrap_or(bus_name::DEFAULT)).map_err(Failure::Failed)?;
    if name.is_none() && !tell.quiet {
        note!("no --bus given: using {}, a simulated board", bus_name::DEFAULT);
    }
    let vcd = tell.vcd.as_deref().map(OutFile::create).transpose()?;
    let mut session = Session {
        name: bus_name.to_string(),
        open: open(&bus_name)?,
        silent: tell.quiet || tell.json,
    };
    if vcd.is_some() {
        match session.open.simulated() {
            Some(simulated) => simulated.start_vcd(),
            None => return Err(Failure::Usage("--vcd needs a simulated board".into())),
        }
    }
    let begun = Instant::now();
    let result = command(&session);
    let took = begun.elapsed();
    let figures = session.open.simulated().map(Simulated::figures);
    let recorded = vcd.map_or(Ok(()), |vcd| write_vcd(vcd, &session));
    let closed = session.open.close();
    let printed = match &result {
        Ok(report) if tell.json => output::json(&Line::new(report, figures.as_ref())),
        Ok(report) => output::text(&report.text(figures.as_ref())),
        Err(_) => Ok(()),
    };
    let done = result.is_ok();
    let kept = tell_simulated(&session, tell, settled, figures.as_ref(), took, done);
    // The first error is the one that explains the others.
    result.map(drop).and(recorded).and(closed).and(kept).and(printed)
}

/// Whether the command promises to leave the chip unselected and write-disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// It does: whatever else happens, that is checked.
    Promised,
    /// The user's own bytes decide.
    AsSent,
}

fn write_vcd(mut vcd: OutFile, session: &Session) -> Result<(), Failure> {
    let capture = session.open.simulated().and_then(Simulated::take_vcd);
    let Some(Capture { vcd: bytes, lost_events }) = capture else { return Ok(()) };
    vcd.write_all(&bytes)?;
    vcd.commit()?;
    if lost_events > 0 {
        note!("the recording was full: {lost_events} later events are not in the VCD file");
    }
    Ok(())
}

/// Says what the board has seen; fails if a rule was broken.
fn tell_simulated(
    session: &Session,
    tell: &TellArgs,
    settled: Settled,
    figures: Option<&Figures>,
    took: Duration,
    done: bool,
) -> Result<(), Failure> {
    let (Some(simulated), Some(figures)) = (session.open.simulated(), figures) else {
        return Ok(());
    };
    if !tell.quiet && figures.virtual_ns > 0 {
        let took = match took.as_secs_f64() {
            ..0.1 => String::new(),
            seconds => format!(" (took {seconds:.1} s here)"),
        };
        note!("{}{took}", figures.summary());
    }
    let (violations, total) = simulated.violations();
    if total > 0 {
        // Of a command that failed it is likely a consequence, and its error says more.
        let what = if done { "RULES OF THE WIRE BROKEN" } else { "rules of the wire broken" };
        note!("{what}: {total}");
        for violation in violations.iter().take(VIOLATIONS_SHOWN) {
            note!("  at {violation}");
        }
        if total > VIOLATIONS_SHOWN as u64 {
            note!("  … and {} more", total - VIOLATIONS_SHOWN as u64);
        }
    }
    let left = simulated.left_open().filter(|_| settled == Settled::Promised);
    if let Some(left) = left {
        note!("THE CHIP WAS LEFT {left}");
    }
    match left {
        Some(left) => Err(Failure::Failed(format!("the chip was left {left}"))),
        None if total > 0 => Err(broken_rules(total)),
        None => Ok(()),
    }
}
