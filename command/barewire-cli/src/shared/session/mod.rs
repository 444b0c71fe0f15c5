//! Runs a command on a bus: opens the bus, closes it on every path, and reports the costs.
//!
//! # How it works
//! Commands see a [`Session`]: the bus of barewire-open, and the state that commands need around it. [`run`] is the
//! frame around each of them.
//!
//! # Ordering
//! 1. Cheap checks come first: the bus name, requests that such a bus cannot meet, the VCD file.
//! 2. The command runs. If the bus knows the cause of an error, the cause is reported instead.
//!    Then, on success or failure, the bus is closed, which completes the flash file, and the
//!    recording is written.
//! 3. Its result is printed, on stdout; then the board's messages, on stderr. A broken
//!    rule of the chip is a failure even if the command succeeded.

mod figures;
mod measure;
mod progress;
mod request;
mod tell;

use std::cell::Cell;
use std::io;
use std::time::Instant;

use barewire::bus::Statistics;
use barewire::middleware::{Fault, When};
use barewire::spi::Mode;
use barewire_linux::shared::ChipLock;
pub(crate) use barewire_open::SimCan;
use barewire_open::{Console, Fitting, Layers, LocalBus, OpenError, OpenOptions, is_stdout};
use barewire_sim::chip::PS_PER_NS;
use barewire_sim::vcd::VcdSummary;
use serde::Serialize;

pub(crate) use figures::Figures;
use measure::{Latencies, MeasuredCosts};
pub(crate) use progress::BusProgress;
pub(crate) use request::{BusArgs, ChipRequest, EndState, Place, Request, TellArgs, VCD_LIMIT};

use crate::shared::bus_name::{self, BusName, FileUse, SimOptions};
use crate::shared::costs::Costs;
use crate::shared::failure::Failure;
use crate::shared::files::{self, NamedFile, Output};
use crate::shared::interrupt;
use crate::shared::output::{self, note};
use crate::shared::text::figure;

/// The fault to inject, and when.
pub(crate) type InjectedFault = (Fault, When);

/// The request of a self-test.
#[derive(Clone, Copy, Debug)]
struct Selftest {
    /// The fault to inject.
    fault: Option<InjectedFault>,
    /// MISO is connected to MOSI.
    wired: bool,
}

/// The report of a command: JSON by its fields, text by `text`.
pub(crate) trait Report: Serialize {
    /// Whether the session's figures belong in its JSON. False if the report has figures of its own for each part.
    const FIGURES: bool = true;

    /// The report for people, lines with their ends; `figures` where the board is simulated.
    fn text(&self, figures: Option<&Figures>) -> String;

    /// Whether the text only says what was done: not wanted with `--quiet`.
    const IS_SUMMARY: bool = false;

    /// The number of bytes moved, if a rate is to be printed.
    fn bytes(&self) -> Option<u64> {
        None
    }

    /// Fails if the report itself is of a failure.
    fn verdict(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// The bus that a command works with.
pub(crate) struct Session {
    /// Which bus it is.
    pub(crate) place: Place,
    /// The bus.
    pub(crate) open: LocalBus,
    /// The chip select of the chip that the command uses.
    pub(crate) chip_select: u8,
    /// Whether progress and notes are suppressed.
    pub(crate) silent: bool,
    /// Statistics where the figures begin.
    begin: Cell<Statistics>,
    latencies: Option<Latencies>,
}

impl Session {
    /// Figures count from here, without the messages that identified the chip.
    pub(crate) fn begin_figures(&self) {
        if let Some(simulated) = self.open.board() {
            simulated.board.reset_marks();
        }
        self.begin.set(self.open.bus().statistics());
        if let Some(latencies) = &self.latencies {
            latencies.reset();
        }
    }

    /// Notes it if the controller uses another clock than requested.
    pub(crate) fn note_clock(&self, asked_hz: u32, effective_hz: u32) {
        if asked_hz != effective_hz && !self.silent {
            let [asked, made] = [asked_hz, effective_hz].map(|hz| figure::clock(hz.into()));
            note!("{asked} asked: the controller makes {made}");
        }
    }

    /// The mode flags that a device on that chip select needs. Prints a note if no line is driven.
    pub(crate) fn mode(&self, chip_select: u8) -> Mode {
        let mode = self.open.mode(chip_select);
        if mode.contains(Mode::NO_CS) && !self.silent {
            let bus = &self.place.bus;
            match self.open.board() {
                // Only some of a board's lines may be the program's.
                Some(_) => note!(
                    "{bus}: chip select {chip_select} is not the controller's: none is driven"
                ),
                None => note!("{bus} has no chip select: none is driven"),
            }
        }
        mode
    }

    /// A simulated board's counts since the figures began.
    pub(crate) fn figures(&self) -> Option<Figures> {
        self.open.board().map(Figures::of)
    }

    /// The lock of a chip that other processes may use.
    pub(crate) fn chip_lock(&self, chip_select: u8) -> Result<Option<ChipLock>, Failure> {
        let console = if self.silent { HUSHED } else { CONSOLE };
        Ok(self.open.chip_lock(chip_select)?.map(|lock| console.attend(lock)))
    }

    /// The lock of a chip that is held for the whole command, because the driver remembers the
    /// chip's state between its operations.
    pub(crate) fn keep_chip(&self, chip_select: u8) -> Result<Option<ChipLock>, Failure> {
        let Some(mut lock) = self.chip_lock(chip_select)? else { return Ok(None) };
        let path = lock.path().display().to_string();
        let refused = |why: String| {
            let what = "the chip cannot be had for this command alone";
            Failure::Failed(format!("{what}: {why} (lock {path})"))
        };
        match lock.try_acquire() {
            Ok(true) => Ok(Some(lock)),
            Ok(false) => Err(refused("another process uses it".into())),
            Err(errno) => Err(refused(errno.to_string())),
        }
    }

    fn measured(&self, stats: bool) -> MeasuredCosts {
        let named = || measure::named(&self.open.bus().statistics(), &self.begin.get());
        MeasuredCosts {
            statistics: stats.then(named),
            latency_ns: self.latencies.as_ref().map(Latencies::latency),
        }
    }

    /// Fails if a rule of a chip was broken, or another driver took the bus: data received then cannot
    /// be trusted.
    pub(crate) fn check_rules(&self) -> Result<(), Failure> {
        self.open.check()?;
        match self.open.board().map(|simulated| simulated.board.harms_total()) {
            None | Some(0) => Ok(()),
            Some(total) => Err(tell::broken_rules(total)),
        }
    }

    /// Replaces `failure` by its cause, if the bus knows the cause.
    fn explain(&self, failure: Failure) -> Failure {
        if failure == Failure::BrokenPipe {
            return failure;
        }
        let cause = || self.open.cause().map(OpenError::Failed);
        self.open.stopped().or_else(cause).map_or(failure, Failure::from)
    }
}

/// This command's user.
const CONSOLE: Console = Console { tell: |text| note!("{text}"), flow: interrupt::flow };

/// This command's user, who wants no notes.
const HUSHED: Console = Console { tell: |_| (), ..CONSOLE };

/// Opens the bus of that name as `request` says, its messages timed by `latencies`. Notes are printed even where they are
/// not wanted, unless a program is served: a file's name may be a slip.
fn open(
    name: &BusName,
    request: &Request<'_>,
    latencies: Option<Latencies>,
) -> Result<LocalBus, Failure> {
    let Request { selftest, linux_process, can, .. } = *request;
    let console = if request.is_hushed() { HUSHED } else { CONSOLE };
    let options = OpenOptions {
        layers: Layers {
            fault: selftest.and_then(|selftest| selftest.fault),
            // The suite has no other way to be stopped: after Ctrl-C its messages fail.
            stop: selftest.map(|_| interrupt::asked as fn() -> bool),
            trace: latencies.map(Latencies::sink),
        },
        fitted: match selftest {
            None => Fitting::Chips(can),
            Some(Selftest { wired: true, .. }) => Fitting::Jumpers,
            Some(_) => Fitting::Nothing,
        },
        linux_process,
        console: Some(console),
    };
    Ok(LocalBus::open_with(name, options, &mut |text| (console.tell)(text))?)
}

/// The JSON line: the report's fields, then the figures' where there are some.
#[derive(Serialize)]
struct JsonLine<'r, R> {
    #[serde(flatten)]
    report: &'r R,
    #[serde(flatten)]
    figures: Option<&'r Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_second_virtual: Option<f64>,
    #[serde(flatten)]
    measured: &'r MeasuredCosts,
}

impl<'r, R: Report> JsonLine<'r, R> {
    fn new(report: &'r R, figures: Option<&'r Figures>, measured: &'r MeasuredCosts) -> Self {
        let figures = figures.filter(|_| R::FIGURES);
        let rate = |figures: &Figures| figures.bytes_per_second(report.bytes()?);
        Self { report, figures, bytes_per_second_virtual: figures.and_then(rate), measured }
    }
}

/// Runs `command` on the bus that is asked for and tells of it.
pub(crate) fn run<R: Report>(
    request: &Request<'_>,
    command: impl FnOnce(&Session) -> Result<R, Failure>,
) -> Result<(), Failure> {
    let begun = StartedSession::new(request)?;
    let result = command(&begun.session);
    begun.end(request, result)
}

/// A session that has begun: a command's, or one of several that a command serves.
pub(crate) struct StartedSession {
    /// The bus that the command works with.
    pub(crate) session: Session,
    vcd: Option<Output>,
    begun: Instant,
}

impl StartedSession {
    /// Opens the bus that is asked for.
    pub(crate) fn new(request: &Request<'_>) -> Result<Self, Failure> {
        let Request { name, tell, .. } = *request;
        let mut bus_name = bus_name::parse(name).map_err(Failure::Usage)?;
        request.check(&bus_name)?;
        request.note_forgotten(&bus_name);
        if let BusName::Sim(options) = &mut bus_name {
            options.costs = tell.costs.unwrap_or_default().level();
            if request.only_reads {
                options.file_use = FileUse::There;
            }
        }
        // The picture of a display is written by the bus.
        for file in bus_name.files().into_iter().filter(|file| is_stdout(file.path)) {
            files::has_stdout(file, tell.json)?;
        }
        let vcd = tell.vcd.as_deref().map(|path| NamedFile { by: "--vcd", path });
        let vcd = vcd.map(|vcd| Output::create(vcd, tell.json)).transpose()?;
        let latencies = tell.latency.then(Latencies::new).transpose()?;
        let session = Session {
            place: Place::of(&bus_name),
            chip_select: request.chip_select(&bus_name),
            open: open(&bus_name, request, latencies.clone())?,
            silent: tell.quiet || tell.json,
            begin: Cell::new(Statistics::default()),
            latencies,
        };
        session.open.bus().set_counting(tell.stats);
        if let (Some(_), Some(simulated)) = (&vcd, session.open.board()) {
            simulated.board.start_vcd_limited(tell.vcd_limit);
        }
        Ok(Self { session, vcd, begun: Instant::now() })
    }

    /// The counts so far, as a line of JSON after the fields of `report`.
    pub(crate) fn line(&self, report: &impl Report) -> Result<String, Failure> {
        let figures = self.session.figures();
        let measured = self.session.measured(true);
        let line = JsonLine::new(report, figures.as_ref(), &measured);
        output::json_line(&line)
    }

    /// Closes the bus and tells of it; `result` is what the command reports.
    pub(crate) fn end<R: Report>(
        self,
        request: &Request<'_>,
        result: Result<R, Failure>,
    ) -> Result<(), Failure> {
        let Request { tell, settled, .. } = *request;
        let Self { mut session, vcd, begun } = self;
        let result = result.map_err(|failure| session.explain(failure));
        let result =
            result.and_then(|report| session.open.check().map_err(Failure::from).map(|()| report));
        let took = begun.elapsed();
        let figures = session.figures();
        let measured = session.measured(tell.stats);
        let recorded = vcd.map_or(Ok(()), |vcd| write_vcd(vcd, &session, request));
        let misuse = session.open.misuse().transpose().map_err(Failure::from);
        let closed = session.open.close().map_err(Failure::from);
        let printed = match &result {
            Ok(report) if tell.json => {
                output::json(&JsonLine::new(report, figures.as_ref(), &measured))
            }
            Ok(_) if tell.quiet && R::IS_SUMMARY => Ok(()),
            Ok(report) => output::text(&report.text(figures.as_ref())),
            Err(_) => Ok(()),
        };
        let done = result.is_ok();
        if let Some(text) = measured.text().filter(|_| !tell.json && !request.is_hushed()) {
            note!("{text}");
        }
        let kept = tell::simulated(&session, tell, settled, figures.as_ref(), took, done)
            .and(misuse.and_then(|misuse| tell::emulated(tell, settled, misuse.as_deref())));
        // The first error is the one that explains the others.
        let verdict = result.and_then(|report| report.verdict());
        verdict.and(recorded).and(closed).and(kept).and(printed)
    }
}

/// Runs `command` again on another board of the same kind, simulated at other costs, without any output.
/// No chip's file is read or written: a flash is erased.
pub(crate) fn rerun<R>(
    request: &Request<'_>,
    costs: Costs,
    command: impl FnOnce(&Session) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let name = bus_name::parse(request.name).map_err(Failure::Usage)?;
    let BusName::Sim(options) = name else {
        return Err(Failure::Failed(format!("{name} is no simulated board")));
    };
    let name =
        BusName::Sim(SimOptions { costs: costs.level(), file_use: FileUse::Unused, ..options });
    let mut session = Session {
        place: Place::of(&name),
        chip_select: request.chip_select(&name),
        open: open(&name, request, None)?,
        silent: true,
        begin: Cell::new(Statistics::default()),
        latencies: None,
    };
    let report = command(&session).map_err(|failure| session.explain(failure))?;
    session.check_rules()?;
    session.open.close()?;
    Ok(report)
}

/// Writes the recording. One that was full is an error of a command, and a note where a program was served: the program's
/// exit code is not the recording's.
fn write_vcd(mut vcd: Output, session: &Session, request: &Request<'_>) -> Result<(), Failure> {
    let Some(simulated) = session.open.board() else { return Ok(()) };
    let mut sink = VcdSink { output: &mut vcd, failure: None };
    let written = simulated.board.write_vcd(&mut sink);
    if let Some(failure) = sink.failure {
        return Err(failure);
    }
    let written = written.map_err(|error| Failure::io("write the recording", &error))?;
    vcd.commit()?;
    let Some(VcdSummary { events, lost_events: lost @ 1.., duration_ps }) = written else {
        return Ok(());
    };
    let [events, lost] = [events, lost].map(figure::grouped);
    let time = figure::time(duration_ps as f64 / PS_PER_NS as f64);
    let text = format!(
        "the recording was full: the VCD file has the first {events} words and level changes ({time}), {lost} are \
         missing; --vcd-limit N records more"
    );
    if request.settled != EndState::AsServed {
        return Err(Failure::Failed(text));
    }
    if !request.tell.quiet {
        note!("{text}");
    }
    Ok(())
}

/// Passes the pieces of a recording on to its file.
struct VcdSink<'o> {
    output: &'o mut Output,
    failure: Option<Failure>,
}

impl io::Write for VcdSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.output.write_all(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(failure) => {
                self.failure = Some(failure);
                Err(io::ErrorKind::Other.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
