//! `barewire scope`: a logic analyzer's capture or a kernel's trace, taken apart into messages.
//!
//! The capture is read and decoded by [`barewire_scope`]; docs/scope.md explains the figures.

mod draw;
mod joined;
mod meaning;
mod message;
mod picture;
mod report;
pub(crate) mod traced;

use std::fmt::Display;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use barewire_scope::chip::{Chip, Told};
use barewire_scope::decode::{Message, Wires};
use barewire_scope::find::Hints;
use barewire_scope::meaning::WireSigns;
use barewire_scope::{Options, Scope, ScopeError};
use serde::Serialize;

use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::output;
use crate::shared::progress::{BYTES, Progress};
use crate::shared::text::{near, number};
use message::Lines;
use picture::{Subject, Whole};
use report::Report;
pub(crate) use report::title;

/// Lines of messages are written in pieces of this size.
const PIECE_BYTES: usize = 64 << 10;

const WIRES: &str = "Wires, where what is found is wrong";

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The capture: sigrok's .sr, a VCD, or Saleae's digital CSV or binary export (one of its files, or their directory);
    /// or a kernel's trace of events/spi: tracefs' text, trace-cmd report's, or perf script's
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Join the capture with a kernel's trace of the same traffic: the software's share of each message, and the wire's
    #[arg(long, value_name = "TRACE")]
    trace: Option<PathBuf>,
    /// Print each message, before the table
    #[arg(long)]
    messages: bool,
    /// Print the table as one line of JSON; with --messages a line for each message before it
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the table as CSV; with --messages the messages in its place
    #[arg(long)]
    csv: bool,
    /// SCK's nominal frequency, to compare with (k and M: by 1000)
    #[arg(long, value_name = "HZ", value_parser = number::hertz)]
    sck: Option<u32>,
    /// Draw the message of that number, from 0, as --messages --json counts, in place of the table
    #[arg(long, value_name = "N", conflicts_with_all = ["messages", "json", "csv", "trace"])]
    draw: Option<u64>,
    /// Write a page of waveforms, timeline and histograms (.html), a trace for Perfetto (.pftrace), or with --draw the
    /// message's drawing (.svg)
    #[arg(short, long, value_name = "FILE", conflicts_with = "trace")]
    out: Option<PathBuf>,
    #[command(flatten)]
    reading: Reading,
}

/// How captures are read.
#[derive(clap::Args, Debug)]
pub(crate) struct Reading {
    /// The chip behind all chip selects, or behind that of channel CS, whose messages have names then
    #[arg(long = "chip", value_name = "[CS=]NAME", value_parser = chip)]
    chips: Vec<(Option<String>, Chip)>,
    /// Leave out pulses that are shorter than TIME (20ns), and count them
    #[arg(long, value_name = "TIME", value_parser = time_ns, default_value = "0")]
    glitch: f64,
    /// Samples a second, in place of what a sigrok file says (k, M and G: by 1000)
    #[arg(long, value_name = "HZ", value_parser = number::count::<NonZeroU64>)]
    samplerate: Option<NonZeroU64>,
    /// The channel of SCK
    #[arg(long, value_name = "CHANNEL", help_heading = WIRES)]
    clk: Option<String>,
    /// The channel of MOSI; the same as MISO's on a bus of three wires
    #[arg(long, value_name = "CHANNEL", help_heading = WIRES)]
    mosi: Option<String>,
    /// The channel of MISO
    #[arg(long, value_name = "CHANNEL", help_heading = WIRES)]
    miso: Option<String>,
    /// The channels of the chip selects, or none
    #[arg(long, value_name = "CHANNEL,…|none", value_delimiter = ',', help_heading = WIRES)]
    cs: Option<Vec<String>>,
    /// The level at which chip selects are active
    #[arg(long, value_name = "low|high", value_parser = level, help_heading = WIRES)]
    cs_active: Option<bool>,
    /// The SPI mode
    #[arg(long, value_name = "0-3", value_parser = clap::value_parser!(u8).range(0..=3), help_heading = WIRES)]
    mode: Option<u8>,
    /// The bits of a word
    #[arg(long, value_name = "1-32", value_parser = clap::value_parser!(u8).range(1..=32), help_heading = WIRES)]
    bits: Option<u8>,
    /// The first bit of a word is its lowest
    #[arg(long, help_heading = WIRES)]
    lsb_first: bool,
    /// An edge of SCK in the sample in which a chip select is released belongs to the message
    #[arg(long, help_heading = WIRES)]
    late_edges: bool,
    /// Without chip selects, a pause of SCK longer than TIME ends a message [default: 16 clocks]
    #[arg(long, value_name = "TIME", value_parser = time_ns, help_heading = WIRES)]
    gap: Option<f64>,
}

/// What is printed as JSON, as CSV, or as it is displayed.
trait Printed: Serialize + Display {
    /// Its lines of CSV.
    fn csv(&self) -> String;
}

impl Args {
    /// What is printed, as asked.
    fn styled(&self, printed: &impl Printed) -> Result<String, Failure> {
        match (self.json, self.csv) {
            (true, _) => output::json_line(printed),
            (_, true) => Ok(printed.csv()),
            _ => Ok(printed.to_string()),
        }
    }

    /// Prints messages if they are asked for; CSV has `head` before them.
    fn print_messages(&self, head: &str, lines: &[impl Printed]) -> Result<(), Failure> {
        if !self.messages {
            return Ok(());
        }
        let mut text = if self.csv { head.to_owned() } else { String::new() };
        for line in lines {
            text += &self.styled(line)?;
        }
        output::text(&text)
    }

    /// Prints a table. Messages are in its place in CSV.
    fn print_table(&self, table: &impl Printed) -> Result<(), Failure> {
        match self.csv && self.messages {
            true => Ok(()),
            false => output::text(&self.styled(table)?),
        }
    }
}

/// A level, as whether it is high.
fn level(text: &str) -> Result<bool, String> {
    match text {
        "low" => Ok(false),
        "high" => Ok(true),
        _ => Err("low or high".into()),
    }
}

/// `20ns`, `1.5us`, `2ms` or `1s`, in nanoseconds.
fn time_ns(text: &str) -> Result<f64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "" if number == "0" => 1.0,
        _ => return Err("a time has a unit: 20ns, 1.5us, 2ms".into()),
    };
    number.parse().map(|number: f64| number * factor).map_err(|_| "write 20ns, 1.5us or 2ms".into())
}

/// `nor` or `CS0=nor`.
fn chip(text: &str) -> Result<(Option<String>, Chip), String> {
    let (select, name) = match text.rsplit_once('=') {
        Some((select, name)) => (Some(select.to_owned()), name),
        None => (None, text),
    };
    let chip = Chip::find(name).ok_or_else(|| near::unknown("chip", name, &Chip::NAMES))?;
    Ok((select, chip))
}

impl Reading {
    pub(crate) fn options(&self) -> Options {
        let cs = self.cs.clone().map(|names| if names == ["none"] { Vec::new() } else { names });
        let hints = Hints {
            clk: self.clk.clone(),
            mosi: self.mosi.clone(),
            miso: self.miso.clone(),
            cs,
            cs_active_high: self.cs_active,
            mode: self.mode,
            word_bits: self.bits,
            lsb_first: self.lsb_first,
            pause: None,
            late_edges: self.late_edges,
        };
        Options {
            samplerate: self.samplerate.map(NonZeroU64::get),
            glitch_ns: self.glitch,
            pause_ns: self.gap,
            hints,
            chips: self.chips.clone(),
        }
    }

    /// Refuses them, and others of a command, for `trace`, which has no wires.
    pub(crate) fn refuse(&self, trace: &Path, others: &[(&str, bool)]) -> Result<(), Failure> {
        let own = [
            ("--chip", !self.chips.is_empty()),
            ("--glitch", self.glitch > 0.0),
            ("--samplerate", self.samplerate.is_some()),
            ("--clk", self.clk.is_some()),
            ("--mosi", self.mosi.is_some()),
            ("--miso", self.miso.is_some()),
            ("--cs", self.cs.is_some()),
            ("--cs-active", self.cs_active.is_some()),
            ("--mode", self.mode.is_some()),
            ("--bits", self.bits.is_some()),
            ("--lsb-first", self.lsb_first),
            ("--late-edges", self.late_edges),
            ("--gap", self.gap.is_some()),
        ];
        let trace = trace.display();
        own.iter().chain(others).find(|(_, given)| *given).map_or(Ok(()), |(option, _)| {
            Err(Failure::Usage(format!("{trace} is a kernel's trace: {option} is for captures")))
        })
    }
}

fn failed(error: ScopeError) -> Failure {
    Failure::Failed(error.to_string())
}

/// Opens a capture.
pub(crate) fn open(path: &Path, options: &Options) -> Result<Scope, Failure> {
    Scope::open(path, options.clone()).map_err(failed)
}

/// Reads a capture whole, without a progress bar if `silent`.
pub(crate) fn read(
    scope: &mut Scope,
    silent: bool,
    each: &mut dyn FnMut(&Wires, &Message, &Told),
) -> Result<(), Failure> {
    let progress = Progress::with_template("reading", scope.capture().file_bytes(), silent, BYTES);
    while scope.step(each).map_err(failed)? {
        progress.set(scope.capture().read_bytes());
        interrupt::check()?;
    }
    Ok(())
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(trace) = &args.trace {
        return joined::run(args, trace);
    }
    if let Some(trace) = traced::open(&args.file)? {
        let others = [
            ("--sck", args.sck.is_some()),
            ("--draw", args.draw.is_some()),
            ("--out", args.out.is_some()),
        ];
        args.reading.refuse(&args.file, &others)?;
        return traced::run(args, &trace);
    }
    let options = args.reading.options();
    let begin = |out| picture::begin(out, &args.file, args.json, args.draw.is_some());
    let out = args.out.as_deref().map(begin).transpose()?;
    if let Some(nth) = args.draw {
        return draw::run(&args.file, &options, nth, args.out.as_deref().zip(out));
    }
    let mut scope = Scope::open(&args.file, options.clone()).map_err(failed)?;
    let mut whole = args
        .out
        .as_deref()
        .zip(out)
        .map(|(path, out)| (path, Whole::new(out, path, &args.file, scope.capture())));
    let progress =
        Progress::with_template("reading", scope.capture().file_bytes(), args.json, BYTES);
    let mut lines = args.messages.then(|| Lines::new(args.json, args.csv, scope.capture()));
    let mut signs = WireSigns::new(scope.capture().tick());
    let mut stopped = false;
    loop {
        let more = scope.step(&mut |wires, message, told| {
            signs.add(message);
            if let Some(lines) = &mut lines {
                lines.add(wires, message, told);
            }
            if let Some((_, whole)) = &mut whole {
                whole.add(wires, message, told);
            }
        });
        if let Some(lines) = &mut lines {
            lines.write(PIECE_BYTES)?;
        }
        if let Some((_, whole)) = &mut whole {
            whole.write()?;
        }
        if !more.map_err(failed)? {
            break;
        }
        progress.set(scope.capture().read_bytes());
        stopped = interrupt::asked();
        if stopped {
            break;
        }
    }
    drop(progress);
    if let Some(lines) = &mut lines {
        lines.write(0)?;
    }
    let (read, bytes) = (scope.capture().read_bytes(), scope.capture().file_bytes());
    let capture = scope.capture();
    let (tick, format, channels) = (capture.tick(), capture.format(), capture.channels().to_vec());
    let summary = scope.finish();
    let meaning = signs.finish();
    let report = summary.as_ref().map(|summary| {
        Report::new(&args.file, format, (tick, &channels), summary, args.sck, meaning)
    });
    report.as_ref().map_or(Ok(()), |report| args.print_table(report))?;
    if stopped {
        return Err(Failure::Interrupted(format!(
            "stopped as asked, after {read} of {bytes} bytes"
        )));
    }
    let (Some((path, whole)), Some(summary), Some(report)) = (whole, &summary, &report) else {
        return Ok(());
    };
    let file = args.file.display().to_string();
    let subject = Subject { file, tick, channels: &channels, wires: &summary.wires };
    let table = report.to_string();
    whole.finish((path, &args.file), &options, (subject, summary, &table), args.json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_chips_and_levels_are_read() {
        assert_eq!(
            ["20ns", "1.5us", "2ms", "1s", "0"].map(time_ns),
            [20.0, 1_500.0, 2e6, 1e9, 0.0].map(Ok)
        );
        for wrong in ["20", "ns", "1..5us", "-1ns", "5 weeks"] {
            assert!(time_ns(wrong).is_err(), "{wrong}");
        }
        assert_eq!(chip("CS#=nor").expect("is right").0.as_deref(), Some("CS#"));
        assert!(chip("mcp2518").expect_err("none").contains("mcp2518fd"));
        assert_eq!((level("low"), level("high")), (Ok(false), Ok(true)));
    }
}
