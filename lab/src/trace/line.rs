//! Parses a line of a trace into an event.

use std::fmt;

/// The event of a line. Devices are `spi0.0`; messages and transfers are named by an address, which the kernel may
/// reuse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// A message was given to the controller's queue, or to its short path.
    Submit {
        /// The device.
        device: &'a str,
        /// The message.
        message: &'a str,
    },
    /// The controller began a message.
    Start {
        /// The device.
        device: &'a str,
        /// The message.
        message: &'a str,
    },
    /// A message ended.
    Done {
        /// The device.
        device: &'a str,
        /// The message.
        message: &'a str,
    },
    /// The chip select changed.
    SetCs {
        /// The device.
        device: &'a str,
        /// Whether the chip is selected now.
        active: bool,
    },
    /// A transfer began.
    TransferStart {
        /// The device.
        device: &'a str,
        /// Its length in bytes.
        len: u64,
    },
    /// A transfer ended.
    TransferStop {
        /// The device.
        device: &'a str,
    },
    /// The tracer lost events here.
    Lost,
    /// Another event, a comment, an empty line.
    Other,
}

/// A line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceLine<'a> {
    /// On the tracer's clock, of an event that has a time.
    pub time_ns: u64,
    /// The event.
    pub event: Event<'a>,
}

/// Why a line cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineError {
    /// It is no line of a tracer.
    NoEvent,
    /// The event has no time in seconds.
    Time,
    /// A field is missing or is not what it should be.
    Field(&'static str),
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEvent => f.write_str("it is no line of a tracer"),
            Self::Time => f.write_str("there is no time in seconds before the event"),
            Self::Field(field) => write!(f, "there is no {field}: was the line cut?"),
        }
    }
}

/// Reads a line of `trace`, `trace_pipe`, `trace-cmd report` or `perf script`. They differ in the text before the time.
///
/// # Errors
/// If it is no line of a tracer, or an event of ours without all that it should have.
pub fn parse(line: &str) -> Result<TraceLine<'_>, LineError> {
    let other = |event| Ok(TraceLine { time_ns: 0, event });
    let first = line.split_ascii_whitespace().next();
    if first.is_none_or(|word| word.starts_with('#') || word.starts_with("cpus=")) {
        return other(Event::Other);
    }
    let mut before = "";
    let mut is_of_tracer = false;
    let mut words = line.split_ascii_whitespace();
    while let Some(word) = words.next() {
        let name = word.strip_suffix(':').map(|name| name.strip_prefix("spi:").unwrap_or(name));
        if let Some(name) = name.filter(|name| NAMES.contains(name)) {
            let time_ns = seconds(before).ok_or(LineError::Time)?;
            return Ok(TraceLine { time_ns, event: event(name, words)? });
        }
        if word == "[LOST" {
            return other(Event::Lost);
        }
        is_of_tracer |= seconds(word).is_some();
        before = word;
    }
    if is_of_tracer { other(Event::Other) } else { Err(LineError::NoEvent) }
}

const NAMES: [&str; 6] = [
    "spi_message_submit",
    "spi_message_start",
    "spi_message_done",
    "spi_set_cs",
    "spi_transfer_start",
    "spi_transfer_stop",
];

/// The fields of an event by name.
fn event<'a>(
    name: &str,
    mut fields: impl Iterator<Item = &'a str>,
) -> Result<Event<'a>, LineError> {
    let device = fields
        .next()
        .filter(|device| bus_of(device).is_some())
        .ok_or(LineError::Field("device"))?;
    let second = fields.next();
    if name == "spi_set_cs" {
        // A comma and flags may follow.
        let active = match second.map(|word| word.trim_end_matches(',')) {
            Some("activate") => true,
            Some("deactivate") => false,
            _ => return Err(LineError::Field("activate or deactivate")),
        };
        return Ok(Event::SetCs { device, active });
    }
    let address = second.filter(|word| !word.contains('=')).ok_or(LineError::Field("address"))?;
    match name {
        "spi_message_submit" => Ok(Event::Submit { device, message: address }),
        "spi_message_start" => Ok(Event::Start { device, message: address }),
        "spi_message_done" => Ok(Event::Done { device, message: address }),
        "spi_transfer_stop" => Ok(Event::TransferStop { device }),
        _ => {
            let len = fields.next().and_then(|word| word.strip_prefix("len="));
            let len = len.and_then(|len| len.parse().ok()).ok_or(LineError::Field("len="))?;
            Ok(Event::TransferStart { device, len })
        }
    }
}

/// The controller of a device: 0 of `spi0.1`.
pub(super) fn bus_of(device: &str) -> Option<u32> {
    let (bus, cs) = device.strip_prefix("spi")?.split_once('.')?;
    cs.parse::<u32>().ok()?;
    bus.parse().ok()
}

/// `12.345678:` in nanoseconds.
fn seconds(word: &str) -> Option<u64> {
    let (whole, fraction) = word.strip_suffix(':')?.split_once('.')?;
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let below = fraction.parse::<u64>().ok()? * 10_u64.pow(9 - fraction.len() as u32);
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(below)
}
