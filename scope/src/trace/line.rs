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
        /// The bytes of all its transfers, where the line says it.
        frame: Option<u64>,
    },
    /// The chip select changed.
    SetCs {
        /// The device.
        device: &'a str,
        /// Whether the chip is selected now.
        active: bool,
    },
    /// A transfer began.
    TransferStart(Sent<'a>),
    /// A transfer ended.
    TransferStop(Sent<'a>),
    /// A processor goes from a task to another.
    Switch {
        /// The task that leaves the processor.
        from: u32,
        /// The task that has it.
        to: u32,
    },
    /// A task is woken: it may run as soon as a processor takes it.
    Wake(u32),
    /// The handler of an interrupt begins.
    Interrupt(&'a str),
    /// The tracer lost this many events here, if it says how many.
    Lost(Option<u64>),
    /// Another event, a comment, an empty line.
    Other,
}

/// A transfer of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent<'a> {
    /// The device.
    pub device: &'a str,
    /// Its length in bytes.
    pub len: u64,
    /// The first bytes in hex, `9f-00`, or nothing.
    pub tx: &'a str,
    /// The same of what came back: as it was before, where the transfer begins.
    pub rx: &'a str,
}

/// A line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceLine<'a> {
    /// On the tracer's clock, of an event that has a time.
    pub time_ns: u64,
    /// What the time is a multiple of: 1,000 ns or 1 ns.
    pub tick_ns: u64,
    /// The processor, where the line says it.
    pub cpu: Option<u32>,
    /// The task that ran, by its number.
    pub task: Option<u32>,
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
    /// The event's time is a count without a unit.
    Clock,
    /// A field is missing or is not what it should be.
    Field(&'static str),
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEvent => f.write_str("it is no line of a tracer"),
            Self::Time => f.write_str("there is no time in seconds before the event: was the line cut?"),
            Self::Clock => f.write_str(
                "its clock counts without a unit: record with one in nanoseconds (echo mono > trace_clock)",
            ),
            Self::Field(field) => write!(f, "there is no {field}: was the line cut?"),
        }
    }
}

/// Reads a line of `trace`, `trace_pipe`, `trace-cmd report` or `perf script`. They differ in the text before the time, and
/// trace-cmd in the fields of events of the scheduler.
///
/// # Errors
/// If it is no line of a tracer, or an event of ours without all that it should have.
pub fn parse(line: &str) -> Result<TraceLine<'_>, LineError> {
    let other = |event| Ok(TraceLine { time_ns: 0, tick_ns: 1, cpu: None, task: None, event });
    let first = line.split_ascii_whitespace().next();
    // trace-cmd's beginning has other lines too: `version = 7`, `CPU 1 is empty`.
    let is_head =
        |word: &str| word.starts_with('#') || word.starts_with("cpus=") || word == "version";
    if first.is_none_or(is_head)
        || line.starts_with("CPU ") && line.trim_end().ends_with("is empty")
    {
        return other(Event::Other);
    }
    if let Some(rest) = line.trim_start().strip_prefix("CPU:")
        && (rest.contains(" LOST") || rest.contains("[LOST") || rest.contains("DROPPED"))
    {
        let cpu = rest.split_ascii_whitespace().next().and_then(|cpu| cpu.parse().ok());
        let count = rest.split_ascii_whitespace().skip(1);
        let count =
            count.map(|word| word.trim_start_matches('[')).find_map(|word| word.parse().ok());
        return Ok(TraceLine { cpu, ..other(Event::Lost(count))? });
    }
    let mut before = ["", ""];
    let mut is_of_tracer = false;
    for word in line.split_ascii_whitespace() {
        let at = word.as_ptr().addr() - line.as_ptr().addr();
        let name = word.strip_suffix(':').unwrap_or(word);
        let name = ["spi:", "sched:", "irq:"]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix))
            .unwrap_or(name);
        let is_lost = word == "PERF_RECORD_LOST";
        if is_lost || word.ends_with(':') && NAMES.contains(&name) {
            let (time_ns, tick_ns) = match before {
                [time, ":"] => microseconds(time).ok_or(LineError::Time)?,
                [_, time] => seconds(time)
                    .or_else(|| microseconds(time.strip_suffix(':')?))
                    .ok_or(match time.strip_suffix(':') {
                        Some(digits) if is_digits(digits) => LineError::Clock,
                        _ => LineError::Time,
                    })?,
            };
            let (cpu, task) = head(&line[..at]);
            let rest = &line[at + word.len()..];
            let event =
                if is_lost { Event::Lost(field(rest, "lost ")) } else { event(name, rest)? };
            return Ok(TraceLine { time_ns, tick_ns, cpu, task, event });
        }
        is_of_tracer |= seconds(word).is_some()
            || word.ends_with(':') && microseconds(&word[..word.len() - 1]).is_some();
        before = [before[1], word];
    }
    if is_of_tracer { other(Event::Other) } else { Err(LineError::NoEvent) }
}

const NAMES: [&str; 11] = [
    "spi_message_submit",
    "spi_message_start",
    "spi_message_done",
    "spi_set_cs",
    "spi_transfer_start",
    "spi_transfer_stop",
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "irq_handler_entry",
];

/// The fields of an event by name.
fn event<'a>(name: &str, rest: &'a str) -> Result<Event<'a>, LineError> {
    let missing = LineError::Field;
    match name {
        "sched_switch" => {
            // `prev_comm=a prev_pid=1 … ==> next_comm=b next_pid=2 …`, or trace-cmd's `a:1 [120] S ==> b:2 [120]`.
            let (from, to) = rest.split_once(" ==> ").ok_or(missing("==>"))?;
            return Ok(Event::Switch {
                from: field(from, "prev_pid=").or_else(|| pid(from)).ok_or(missing("prev_pid="))?,
                to: field(to, "next_pid=").or_else(|| pid(to)).ok_or(missing("next_pid="))?,
            });
        }
        "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => {
            return field(rest, " pid=")
                .or_else(|| pid(rest))
                .map(Event::Wake)
                .ok_or(missing("pid="));
        }
        "irq_handler_entry" => {
            let name = rest.split_once("name=").map(|(_, name)| name.trim());
            return name
                .filter(|name| !name.is_empty())
                .map(Event::Interrupt)
                .ok_or(missing("name="));
        }
        _ => {}
    }
    let mut fields = rest.split_ascii_whitespace();
    let device =
        fields.next().filter(|device| bus_of(device).is_some()).ok_or(missing("device"))?;
    let second = fields.next();
    if name == "spi_set_cs" {
        // A comma and flags may follow.
        let active = match second.map(|word| word.trim_end_matches(',')) {
            Some("activate") => true,
            Some("deactivate") => false,
            _ => return Err(missing("activate or deactivate")),
        };
        return Ok(Event::SetCs { device, active });
    }
    let message = second.filter(|word| !word.contains('=')).ok_or(missing("address"))?;
    Ok(match name {
        "spi_message_submit" => Event::Submit { device, message },
        "spi_message_start" => Event::Start { device, message },
        "spi_message_done" => {
            let frame =
                rest.rsplit_once('/').and_then(|(_, frame)| frame.trim_ascii_end().parse().ok());
            Event::Done { device, message, frame }
        }
        _ => {
            let len = field(rest, " len=").ok_or(missing("len="))?;
            let bytes = |names: [&str; 2]| {
                let rest = names.iter().find_map(|name| rest.split_once(name))?.1;
                Some(rest.split_once(']')?.0)
            };
            let tx = bytes([" tx=[", " tx_buf=["]).unwrap_or_default();
            let rx = bytes([" rx=[", " rx_buf=["]).unwrap_or_default();
            let sent = Sent { device, len, tx, rx };
            if name == "spi_transfer_start" {
                Event::TransferStart(sent)
            } else {
                Event::TransferStop(sent)
            }
        }
    })
}

/// The number behind `name`.
fn field<T: std::str::FromStr>(text: &str, name: &str) -> Option<T> {
    let digits = text.rsplit_once(name)?.1;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// The task of `kworker/0:1:42 [120] …`.
fn pid(text: &str) -> Option<u32> {
    text.split_once(" [")?.0.rsplit_once(':')?.1.parse().ok()
}

/// Processor and task of what stands before an event: `dd-133 [000] …`, `dd-133 (133) [000] …` or `dd 133/133 [000] …`.
fn head(text: &str) -> (Option<u32>, Option<u32>) {
    let Some((begin, cpu)) = text.match_indices('[').rev().find_map(|(at, _)| {
        let digits = text[at + 1..].split_once(']')?.0;
        Some((&text[..at], digits.parse().ok()?))
    }) else {
        return (None, None);
    };
    let begin = begin.trim_end();
    let begin = match begin.rfind('(') {
        Some(at) if begin.ends_with(')') => begin[..at].trim_end(),
        _ => begin,
    };
    let task = begin.rsplit(['-', '/', ' ']).next().and_then(|digits| digits.parse().ok());
    (Some(cpu), task)
}

/// The controller of a device: 0 of `spi0.1`.
pub(super) fn bus_of(device: &str) -> Option<u32> {
    let (bus, cs) = device.strip_prefix("spi")?.split_once('.')?;
    cs.parse::<u32>().ok()?;
    bus.parse().ok()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `12.345678:` or `12.345678901:`, in nanoseconds, and its tick. With other digits it was cut.
fn seconds(word: &str) -> Option<(u64, u64)> {
    let (whole, fraction) = word.strip_suffix(':')?.split_once('.')?;
    let tick_ns = match fraction.len() {
        6 => 1_000,
        9 => 1,
        _ => return None,
    };
    if !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let below = fraction.parse::<u64>().ok()? * tick_ns;
    Some((whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(below)?, tick_ns))
}

/// `12us` or, where the step to the next event is long, `12us!`, of the latency format, in nanoseconds.
fn microseconds(word: &str) -> Option<(u64, u64)> {
    let digits = word.trim_end_matches(['+', '!', '#', '*', '@', '$']).strip_suffix("us")?;
    Some((digits.parse::<u64>().ok().filter(|_| is_digits(digits))?.checked_mul(1_000)?, 1_000))
}
