//! `barewire selftest`: the conformance suite on a bus whose controller can loop back.
//!
//! CS is driven as in any message, so a chip behind it receives the test's bytes; its answers
//! are ignored. On simulated boards the chips are removed during the test.

use std::fmt::Write as _;

use barewire::middleware::{Fault, When};
use barewire::spi::{Error, MODE_0, Mode, Settings, Transfer};
use barewire_conformance::{Clock, LENGTHS_MAX, Options, run_watched};
use serde::Serialize;

use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::output::note;
use crate::shared::session::{
    self, BusArgs, BusProgress, EndState, Figures, InjectedFault, Place, Request, Session,
};
use crate::shared::text::{figure, number};

/// The transfer that goes wrong without a number given: full duplex, and some way into the suite.
const FAULT_AT: u64 = 100;
/// With a seed, one transfer in this many goes wrong.
const FAULT_ONE_IN: u32 = 100;
/// The default longest transfer on QEMU's boards.
const EMULATED_MAX_LEN: usize = 4_099;
/// The bit that flips: one inside the first byte.
const FLIPPED_BIT: usize = 5;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    bus: BusArgs,
    /// MISO is connected to MOSI by a wire: the controller needs no loopback mode (simulated boards:
    /// the wire is put on)
    #[arg(long)]
    wired: bool,
    /// Leave out lengths beyond N [default: all, to 131072; on QEMU's boards 4099: all of them take
    /// some ten minutes there]
    #[arg(long, value_name = "N", value_parser = number::bytes)]
    max_len: Option<u64>,
    /// Leave out messages with delays: over spidev, Linux's PL022 driver sleeps for them in a tasklet,
    /// which can bring the kernel down
    #[arg(long)]
    no_delays: bool,
    /// Inject a fault into a transfer; the self-test must detect it and fail
    #[arg(long, value_name = "FAULT")]
    fault: Option<Kind>,
    /// The transfer that goes wrong, counted from 0 over all messages [default: 100]
    #[arg(long, value_name = "TRANSFER", requires = "fault", conflicts_with = "fault_seed", value_parser = number::count::<u64>)]
    fault_at: Option<u64>,
    /// Inject the fault into one transfer in 100, chosen by SEED: the same seed chooses the same
    #[arg(long, value_name = "SEED", requires = "fault", value_parser = number::count::<u64>)]
    fault_seed: Option<u64>,
}

/// What goes wrong.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// The transfer does not finish
    Timeout,
    /// MISO reads low throughout
    StuckLow,
    /// MISO reads high throughout
    StuckHigh,
    /// One received bit is wrong
    BitFlip,
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    place: Place,
    chip_select: u8,
    speed_hz: u32,
    effective_speed_hz: u32,
    wired: bool,
    max_len: usize,
    fault: Option<RequestedFault>,
    iterations: usize,
    /// Left out: longer than `max_message_bytes`.
    too_long: usize,
    max_message_bytes: usize,
    bytes: u64,
    passed: bool,
    failed: usize,
    failures: Vec<FailedCheck>,
    /// The cause of the last failure, if the bus knows more than the failure says.
    cause: Option<String>,
}

/// The fault that was asked.
#[derive(Clone, Copy, Serialize)]
struct RequestedFault {
    kind: Kind,
    at: Option<u64>,
    seed: Option<u64>,
}

#[derive(Serialize)]
struct FailedCheck {
    case: &'static str,
    len: usize,
    tx_offset: usize,
    rx_offset: usize,
    what: String,
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let asked = args.asked();
    let request = Request::of(&args.bus, EndState::AsSent)
        .for_selftest(asked.map(|asked| asked.injected()), args.wired);
    session::run(&request, |session| test(args, asked, session))
}

impl Args {
    fn asked(&self) -> Option<RequestedFault> {
        let seed = self.fault_seed;
        let at = seed.is_none().then(|| self.fault_at.unwrap_or(FAULT_AT));
        self.fault.map(|kind| RequestedFault { kind, at, seed })
    }
}

impl RequestedFault {
    fn injected(self) -> InjectedFault {
        let fault = match self.kind {
            Kind::Timeout => Fault::Timeout,
            Kind::StuckLow => Fault::StuckLow,
            Kind::StuckHigh => Fault::StuckHigh,
            Kind::BitFlip => Fault::BitFlip { bit: FLIPPED_BIT },
        };
        let when = match (self.seed, self.at) {
            (Some(seed), _) => When::Random { seed, one_in: FAULT_ONE_IN },
            (None, Some(at)) => When::Transfer(at),
            (None, None) => When::Never,
        };
        (fault, when)
    }
}

fn test(args: &Args, asked: Option<RequestedFault>, session: &Session) -> Result<Report, Failure> {
    let (chip_select, speed_hz) = (session.chip_select, args.bus.speed_hz);
    let mode = if args.wired { MODE_0 } else { Mode::LOOP };
    let settings = Settings::new(chip_select, speed_hz).with_mode(mode | session.mode(chip_select));
    let device = session.open.bus().device(&settings).map_err(|error| match error {
        Error::NoLoopback => Failure::Failed(format!("{error}, and say --wired")),
        _ => error.into(),
    })?;
    let longest = LENGTHS_MAX.last().copied().unwrap_or_default();
    // Each word is a message to QEMU and one back.
    let default = if session.open.misuse().is_some() { EMULATED_MAX_LEN } else { longest };
    let max_len = args.max_len.map_or(default, |len| usize::try_from(len).unwrap_or(longest));
    let max_len = max_len.min(longest);
    // A controller without loopback refuses this as it would each of 1,801; a fault's count begins
    // with the suite.
    if session.open.board().is_none() && asked.is_none() {
        device.sync(&mut [Transfer::in_place(&mut [0xa5])])?;
    }
    if session.open.board().is_none() && !session.silent {
        note!("whatever chip is selected hears the test's bytes: take one off that might mind");
    }
    let mut timer = session.open.timer();
    let hz = timer.frequency_hz();
    let mut now_ns = || {
        let ns = u128::from(timer.now_ticks()) * 1_000_000_000 / u128::from(hz);
        u64::try_from(ns).unwrap_or(u64::MAX)
    };
    session.begin_figures();
    let options = Options { max_len, loopback: true, delays: !args.no_delays };
    let progress = BusProgress::new(session, "testing", options.bytes());
    let mut clock = Clock::Nanoseconds(&mut now_ns);
    let ran = run_watched(&device, &options, &mut clock, |bytes| progress.set(bytes));
    drop(progress);
    // Taken even if no case failed, so that it does not show as the cause of a later error.
    let cause = session.open.cause().filter(|_| ran.failed > 0);
    interrupt::check()?;
    Ok(Report {
        place: session.place.clone(),
        chip_select,
        speed_hz,
        effective_speed_hz: device.effective().speed_hz,
        wired: args.wired,
        max_len,
        fault: asked,
        iterations: ran.iterations,
        too_long: ran.too_long,
        max_message_bytes: device.limits().max_message_bytes,
        bytes: ran.bytes,
        passed: ran.failed == 0,
        failed: ran.failed,
        cause,
        failures: ran.failures.iter().map(FailedCheck::of).collect(),
    })
}

impl FailedCheck {
    fn of(failure: &barewire_conformance::Failure) -> Self {
        let barewire_conformance::Failure { case, len, tx_offset, rx_offset, what } = *failure;
        Self { case, len, tx_offset, rx_offset, what: what.to_string() }
    }
}

impl session::Report for Report {
    fn text(&self, _: Option<&Figures>) -> String {
        let Self { place, chip_select, iterations, bytes, failed, failures, .. } = self;
        let [iterations, failed_text] = [*iterations, *failed].map(|n| figure::grouped(n as u64));
        let result =
            if self.passed { "all passed".into() } else { format!("{failed_text} FAILED") };
        let mut text = format!(
            "{iterations} iterations in loopback, lengths to {}: {result}\n  {} bytes at {} on {}, chip select {chip_select}{}\n",
            figure::grouped(self.max_len as u64),
            figure::grouped(*bytes),
            figure::clock(self.effective_speed_hz.into()),
            place.bus,
            place.kind(),
        );
        if self.too_long > 0 {
            let _ = writeln!(
                text,
                "  {} left out: longer than a message may be on this bus, {} bytes",
                figure::grouped(self.too_long as u64),
                figure::grouped(self.max_message_bytes as u64)
            );
        }
        for FailedCheck { case, len, tx_offset, rx_offset, what } in failures {
            let _ = writeln!(
                text,
                "  {case}, length {len}, offsets {tx_offset} and {rx_offset}: {what}"
            );
        }
        if *failed > failures.len() {
            let _ = writeln!(text, "  … and {} more", failed - failures.len());
        }
        if let Some(cause) = &self.cause {
            let _ = writeln!(text, "  the last: {cause}");
        }
        text
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }

    fn verdict(&self) -> Result<(), Failure> {
        if self.passed && self.fault.is_some() {
            let what = "the fault went unnoticed: no such transfer, or one that receives nothing";
            return Err(Failure::Failed(what.into()));
        }
        if self.passed {
            return Ok(());
        }
        let [failed, iterations] =
            [self.failed, self.iterations].map(|n| figure::grouped(n as u64));
        Err(Failure::Failed(format!("{failed} of {iterations} iterations failed")))
    }
}
