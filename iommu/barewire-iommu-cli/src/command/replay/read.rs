//! A trace from a file or a pipe, line by line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use super::domains::Domains;
use super::replayer::{Refusal, Replayer};
use super::trace::{self, Event, TraceLine};
use crate::shared::failure::Failure;
use crate::shared::progress::Progress;
use crate::shared::{interrupt, output};

/// Lines between two checks for Ctrl-C.
const LINES_PER_CHECK: u64 = 1024;

/// The longest line read, in bytes. Most lines of a trace have some hundred bytes; those of scatter
/// lists are longer.
const LINE_MAX: u64 = 1 << 20;

/// A line of more bytes than this ends the replay: it has no end, or is of no trace.
const ENDLESS: u64 = 64 << 20;

/// Skipped lines whose reason is printed. The others are counted.
const REASONS_MAX: u64 = 5;

/// Which lines end a replay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// The first that is malformed.
    pub(super) strict: bool,
    /// No progress is shown.
    pub(super) silent: bool,
}

/// Opens and reads the trace; `-` is stdin.
pub(super) fn read<'m, F: Fn() -> Result<Replayer<'m>, String>>(
    domains: &mut Domains<'m, F>,
    path: &str,
    manner: Manner,
) -> Result<(), Failure> {
    if path == "-" {
        return lines(domains, io::stdin().lock(), ("stdin", 0), manner);
    }
    let file =
        File::open(path).map_err(|error| Failure::io(format_args!("open {path:?}"), &error))?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    lines(domains, BufReader::new(file), (path, bytes), manner)
}

fn lines<'m, F: Fn() -> Result<Replayer<'m>, String>>(
    domains: &mut Domains<'m, F>,
    mut from: impl BufRead,
    (name, all): (&str, u64),
    manner: Manner,
) -> Result<(), Failure> {
    // A pipe does not say how much there is.
    let progress = Progress::bytes("replay", all, manner.silent || all == 0);
    let mut bytes = Vec::new();
    let mut done = 0;
    for number in 1.. {
        if number % LINES_PER_CHECK == 0 {
            interrupt::check()?;
            progress.set(done);
        }
        let length = next(&mut from, &mut bytes)
            .map_err(|error| Failure::io(format_args!("read {name:?}"), &error))?;
        if length == 0 {
            break;
        }
        done += length;
        domains.input.lines += 1;
        let reason = if length > bytes.len() as u64 {
            format!("more than {LINE_MAX} bytes")
        } else {
            let text = String::from_utf8_lossy(&bytes);
            let parsed = trace::parse(&text);
            // A number that lacks digits is still a number, so no number of an unfinished line is
            // used.
            if !bytes.ends_with(b"\n") && is_ours(&parsed) {
                domains.input.cut_line = true;
                break;
            }
            let taken = parsed
                .map_err(|error| Refusal::Line(error.to_string()))
                .and_then(|line| domains.line(&line));
            match taken {
                Ok(()) => continue,
                Err(Refusal::Line(reason)) => reason,
                Err(Refusal::Replay(reason)) => return Err(failed(name, number, &reason)),
            }
        };
        if manner.strict {
            return Err(failed(name, number, &reason));
        }
        domains.input.malformed_lines += 1;
        if domains.input.malformed_lines <= REASONS_MAX {
            output::note!("{name} line {number} skipped: {reason}");
        }
    }
    drop(progress);
    nothing(domains, name)
}

/// Reads a line, of which no more than [`LINE_MAX`] bytes are kept. Returns how many it had.
fn next(from: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<u64> {
    bytes.clear();
    let mut length = 0;
    loop {
        let mut rest = Vec::new();
        let into = if length == 0 { &mut *bytes } else { &mut rest };
        match from.by_ref().take(LINE_MAX).read_until(b'\n', into) {
            Ok(0) => return Ok(length),
            Ok(more) => length += more as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if into.ends_with(b"\n") {
            return Ok(length);
        }
        if length > ENDLESS {
            let why = format!("a line has more than {ENDLESS} bytes: this is no trace");
            return Err(io::Error::other(why));
        }
        interrupt::check().map_err(|_| ErrorKind::Interrupted)?;
    }
}

fn is_ours(parsed: &Result<TraceLine<'_>, trace::LineError>) -> bool {
    let ours = |event: &Event<'_>| {
        matches!(event, Event::Map { .. } | Event::Unmap { .. } | Event::Dma { .. })
    };
    parsed.as_ref().map_or(true, |line| ours(&line.event))
}

fn failed(name: &str, number: u64, reason: &str) -> Failure {
    Failure::Failed(format!("{name} line {number}: {reason}"))
}

/// A trace of which nothing was replayed is the wrong one, or asked for the wrong device.
fn nothing<'m, F: Fn() -> Result<Replayer<'m>, String>>(
    domains: &Domains<'m, F>,
    name: &str,
) -> Result<(), Failure> {
    let input = &domains.input;
    let replayed = |events: &super::replayer::Events| events.maps + events.unmaps > 0;
    if domains.all.iter().any(|domain| replayed(&domain.replayer.input)) {
        return Ok(());
    }
    if input.unselected_events > 0 {
        let names: Vec<&str> = domains.unselected.iter().map(String::as_str).collect();
        return Err(Failure::Failed(format!(
            "{name} has no event of such a device (--device); it has {}",
            names.join(", ")
        )));
    }
    let skipped = match input.malformed_lines {
        0 => String::new(),
        count => format!(", and {count} that cannot be read"),
    };
    Err(Failure::Failed(format!(
        "{name} has no iommu:map, iommu:unmap or dma:dma_* event in its {} lines{skipped}: trace those",
        input.lines
    )))
}
