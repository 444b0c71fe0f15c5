//! Lines in, messages out.

use std::collections::BTreeMap;

use serde::Serialize;

use super::line::{Event, bus_of, parse};

/// Skipped lines whose reason is kept. The others are counted.
const REASONS_MAX: usize = 5;

/// A stretch of a message's time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Between what: `start to CS on`, `transfer 1, 4 bytes`.
    pub name: String,
    /// How long.
    pub us: f64,
}

/// A message that the trace has from its submission to its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// Its device: `spi0.0`.
    pub device: String,
    /// The lengths of its transfers in bytes, and how long each took.
    pub transfers: Vec<(u64, f64)>,
    /// Its time, divided: these add up to `us`.
    pub phases: Vec<Phase>,
    /// From submission to end.
    pub us: f64,
    /// From its end to the submission of the device's next message; `None` for the device's last message,
    /// or if the next one was submitted before this one ended.
    pub done_to_submit_us: Option<f64>,
}

/// A line that was not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedLine {
    /// Its number, from 1.
    pub line: usize,
    /// Why.
    pub why: String,
}

/// A trace as read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Trace {
    /// How many lines it has.
    pub lines: usize,
    /// The lines that could not be read.
    pub skipped_lines: usize,
    /// The first of them.
    pub skipped: Vec<SkippedLine>,
    /// Messages that lack their begin, their end, or something between.
    pub incomplete: usize,
    /// Places where the tracer lost events.
    pub lost: usize,
    /// The messages, in the order of their ends.
    pub messages: Vec<Message>,
}

/// Something that happened to a message.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mark {
    Submit,
    Start,
    CsOn,
    CsOff,
    Begin(u64),
    End,
    Done,
}

/// A message in the making.
#[derive(Debug)]
struct Open {
    device: String,
    address: String,
    marks: Vec<(u64, Mark)>,
}

/// Reads a trace. Bytes that are no UTF-8 are for the caller to replace.
#[must_use]
pub fn read(text: &str) -> Trace {
    let mut reader = Reader::default();
    for (nth, line) in text.lines().enumerate() {
        reader.trace.lines += 1;
        match parse(line) {
            Ok(line) => reader.event(line.time_ns, line.event),
            Err(why) => {
                reader.trace.skipped_lines += 1;
                if reader.trace.skipped.len() < REASONS_MAX {
                    reader.trace.skipped.push(SkippedLine { line: nth + 1, why: why.to_string() });
                }
            }
        }
    }
    reader.trace.incomplete += reader.submitted.len() + reader.running.len();
    reader.trace
}

#[derive(Default)]
struct Reader {
    trace: Trace,
    /// When a message that has not begun was submitted, by device and address.
    submitted: BTreeMap<(String, String), u64>,
    /// The message that each controller runs.
    running: BTreeMap<u32, Open>,
    /// The last finished message of each device, by its place in the trace, and when it ended.
    last: BTreeMap<String, (usize, u64)>,
}

impl Reader {
    fn event(&mut self, time_ns: u64, event: Event<'_>) {
        match event {
            Event::Submit { device, message } => {
                if let Some((nth, end_ns)) = self.last.remove(device) {
                    let after = time_ns.checked_sub(end_ns).map(us);
                    self.trace.messages[nth].done_to_submit_us = after;
                }
                if self.submitted.insert((device.into(), message.into()), time_ns).is_some() {
                    self.trace.incomplete += 1;
                }
            }
            Event::Start { device, message } => self.start(time_ns, device, message),
            Event::SetCs { device, active } => {
                self.mark(time_ns, device, if active { Mark::CsOn } else { Mark::CsOff });
            }
            Event::TransferStart { device, len } => self.mark(time_ns, device, Mark::Begin(len)),
            Event::TransferStop { device } => self.mark(time_ns, device, Mark::End),
            Event::Done { device, message } => self.done(time_ns, device, message),
            Event::Lost => {
                self.trace.lost += 1;
                self.drop_open();
            }
            Event::Other => {}
        }
    }

    fn start(&mut self, time_ns: u64, device: &str, message: &str) {
        let Some(bus) = bus_of(device) else { return };
        // A message whose submission is not in the trace is counted when it ends.
        let Some(submit_ns) = self.submitted.remove(&(device.to_owned(), message.to_owned()))
        else {
            return;
        };
        let open = Open {
            device: device.into(),
            address: message.into(),
            marks: vec![(submit_ns, Mark::Submit), (time_ns, Mark::Start)],
        };
        if self.running.insert(bus, open).is_some() {
            self.trace.incomplete += 1;
        }
    }

    fn mark(&mut self, time_ns: u64, device: &str, mark: Mark) {
        // A chip select may change outside of messages: when its device is set up.
        let open = bus_of(device).and_then(|bus| self.running.get_mut(&bus));
        if let Some(open) = open.filter(|open| open.device == device) {
            open.marks.push((time_ns, mark));
        }
    }

    fn done(&mut self, time_ns: u64, device: &str, message: &str) {
        let open = bus_of(device).and_then(|bus| self.running.remove(&bus));
        let Some(mut open) = open.filter(|open| open.device == device && open.address == message)
        else {
            self.trace.incomplete += 1;
            return;
        };
        open.marks.push((time_ns, Mark::Done));
        match Message::of(open) {
            Some(message) => {
                // The next message was not submitted yet: else nothing lies between them.
                if !self.submitted.keys().any(|(other, _)| other == device) {
                    self.last.insert(device.into(), (self.trace.messages.len(), time_ns));
                }
                self.trace.messages.push(message);
            }
            None => self.trace.incomplete += 1,
        }
    }

    /// Forgets unfinished messages. If the trace has the end of one later, it is counted there.
    fn drop_open(&mut self) {
        self.submitted.clear();
        self.running.clear();
        self.last.clear();
    }
}

impl Message {
    /// The phases between the marks; none if the clock goes back or a transfer has only one end.
    fn of(open: Open) -> Option<Self> {
        let mut phases = Vec::new();
        let mut transfers = Vec::new();
        for pair in open.marks.windows(2) {
            let [(from_ns, from), (to_ns, to)] = [pair[0], pair[1]];
            let us = us(to_ns.checked_sub(from_ns)?);
            let name = match (from, to) {
                (Mark::Begin(len), Mark::End) => {
                    transfers.push((len, us));
                    let unit = if len == 1 { "byte" } else { "bytes" };
                    format!("transfer {}, {len} {unit}", transfers.len())
                }
                (Mark::Begin(_), _) | (_, Mark::End) => return None,
                _ => format!("{} to {}", from.name(transfers.len()), to.name(transfers.len() + 1)),
            };
            phases.push(Phase { name, us });
        }
        let sum = phases.iter().map(|phase| phase.us).sum();
        Some(Self { device: open.device, transfers, phases, us: sum, done_to_submit_us: None })
    }
}

impl Mark {
    /// In words; `transfer` is the number of the one that it belongs to.
    fn name(self, transfer: usize) -> String {
        match self {
            Self::Submit => "submit".into(),
            Self::Start => "start".into(),
            Self::CsOn => "CS on".into(),
            Self::CsOff => "CS off".into(),
            Self::Begin(_) | Self::End => format!("transfer {transfer}"),
            Self::Done => "done".into(),
        }
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}
