//! A kernel's trace: the kinds of its messages, and the messages, as tables, JSON or CSV.

use std::fmt::{self, Display, Formatter, Write as _};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use barewire_scope::meaning::of_trace;
use barewire_scope::trace::{self, Mark, Message, SkippedLine, Trace, TraceKind};
use serde::Serialize;

use super::meaning::{self, MeaningReport};
use super::message::quoted;
use super::report::Spread;
use super::{Args, Printed};
use crate::shared::failure::Failure;
use crate::shared::text::figure;

const CSV: &str = "device,transfers,messages,bus_use,figure,count,p50,p99,max\n";
const CSV_MESSAGES: &str = "message,device,transfers,submit_ns,start_ns,done_ns,transfers_ns,waiter_ns,submitter,runner,\
                            interrupts,tx,rx\n";

/// The result. Scripts rely on its field names.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    format: &'static str,
    tick_ns: u64,
    duration_ns: u64,
    lines: usize,
    skipped_lines: usize,
    skipped: Vec<SkippedLine>,
    incomplete: usize,
    lost: usize,
    lost_events: u64,
    notes: Vec<String>,
    messages: usize,
    bus_use: f64,
    kinds: Vec<KindReport>,
    meaning: Vec<MeaningReport>,
}

#[derive(Debug, Serialize)]
struct KindReport {
    #[serde(skip)]
    name: String,
    device: String,
    transfers: Vec<u64>,
    messages: u64,
    /// Of these, those that another task than the submitter began.
    pumped: u64,
    bus_use: f64,
    #[serde(flatten)]
    figures: std::collections::BTreeMap<&'static str, Option<Spread>>,
}

/// A message. Scripts rely on its field names.
#[derive(Debug, Serialize)]
struct Line<'m> {
    message: usize,
    device: &'m str,
    transfers: Vec<u64>,
    submit_ns: u64,
    start_ns: u64,
    done_ns: u64,
    transfers_ns: Vec<[u64; 2]>,
    waiter_ns: Option<u64>,
    submitter: Option<u32>,
    runner: Option<u32>,
    interrupts: u32,
    tx: Vec<String>,
    rx: Vec<String>,
}

/// The trace in the file, if it is one.
pub(crate) fn open(path: &Path) -> Result<Option<Trace>, Failure> {
    let io = |error| Failure::Failed(format!("{}: {error}", path.display()));
    if !path.is_file() {
        return Ok(None);
    }
    let mut head = Vec::new();
    let file = File::open(path).map_err(io)?;
    file.take(trace::HEAD_BYTES as u64).read_to_end(&mut head).map_err(io)?;
    if !trace::is_trace(&head) {
        return Ok(None);
    }
    let read = trace::read(&String::from_utf8_lossy(&fs::read(path).map_err(io)?));
    if !read.messages.is_empty() {
        return Ok(Some(read));
    }
    let why = read.skipped.first();
    let why = why.map_or_else(String::new, |line| format!("; line {}: {}", line.line, line.why));
    Err(Failure::Failed(format!(
        "{}: a kernel's trace without a whole message in its {} lines ({} incomplete, {} lines not read{why}): trace events/spi",
        path.display(),
        read.lines,
        read.incomplete,
        read.skipped_lines
    )))
}

/// Prints it.
pub(super) fn run(args: &Args, trace: &Trace) -> Result<(), Failure> {
    let shown = if args.messages { &trace.messages[..] } else { &[] };
    let lines: Vec<_> = (0..).zip(shown).map(|(nth, message)| Line::new(nth, message)).collect();
    args.print_messages(CSV_MESSAGES, &lines)?;
    args.print_table(&Report::new(&args.file, trace))
}

/// What is to be known of the trace beside its figures.
pub(crate) fn notes(trace: &Trace) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |count: usize, what: String| {
        if count > 0 {
            notes.push(what);
        }
    };
    let (lost, events) = (trace.lost, trace.lost_events);
    note(
        lost,
        format!(
            "events were lost {lost} times ({events} that it counts): messages that last there are left out"
        ),
    );
    let incomplete = trace.incomplete;
    note(
        incomplete,
        format!(
            "{incomplete} messages are left out: they lack their begin, their end, or a part of their bytes"
        ),
    );
    note(trace.skipped_lines, format!("{} lines cannot be read", trace.skipped_lines));
    for line in &trace.skipped {
        note(1, format!("line {}: {}", line.line, line.why));
    }
    let reordered = trace.reordered;
    note(
        reordered,
        format!(
            "{reordered} lines stand behind later ones of other processors; they are put in order"
        ),
    );
    let restarts = trace.restarts;
    note(
        restarts,
        format!("the clock goes back {restarts} times: several recordings, each by itself"),
    );
    notes
}

impl Report {
    fn new(path: &Path, trace: &Trace) -> Self {
        let share = |ns: u64| ns as f64 / trace.duration_ns.max(1) as f64;
        let kinds = trace::kinds(trace);
        let bus_use = kinds.iter().map(|kind| share(kind.transferring_ns)).sum();
        let kinds = kinds.iter().map(|kind| KindReport {
            name: kind.name(),
            device: kind.device.clone(),
            transfers: kind.transfers.clone(),
            messages: kind.count,
            pumped: kind.pumped,
            bus_use: share(kind.transferring_ns),
            figures: (TraceKind::FIGURES.iter().zip(&kind.figures))
                .map(|((name, _), counts)| (*name, Spread::new(counts, |ns| ns as f64)))
                .collect(),
        });
        Self {
            file: path.display().to_string(),
            format: "trace",
            tick_ns: trace.tick_ns,
            duration_ns: trace.duration_ns,
            lines: trace.lines,
            skipped_lines: trace.skipped_lines,
            skipped: trace.skipped.clone(),
            incomplete: trace.incomplete,
            lost: trace.lost,
            lost_events: trace.lost_events,
            notes: notes(trace),
            messages: trace.messages.len(),
            bus_use,
            kinds: kinds.collect(),
            meaning: meaning::reports(of_trace(trace), |_| None),
        }
    }
}

impl Printed for Report {
    fn csv(&self) -> String {
        let mut text = String::from(CSV);
        for kind in &self.kinds {
            for (figure, _) in TraceKind::FIGURES {
                let Some(Spread { count, p50, p99, max }) = kind.figures[figure] else { continue };
                let KindReport { device, messages, bus_use, .. } = kind;
                let lengths = joined(&kind.transfers);
                let _ = writeln!(
                    text,
                    "{device},{lengths},{messages},{bus_use:.6},{figure},{count},{p50},{p99},{max}"
                );
            }
        }
        text
    }
}

/// A kind's chip select or device before its name, if it has one.
pub(crate) fn named(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!("{place}  ") }
}

/// `1+4+512`.
pub(super) fn joined(lengths: &[u64]) -> String {
    lengths.iter().map(u64::to_string).collect::<Vec<_>>().join("+")
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { file, tick_ns, duration_ns, messages, .. } = self;
        let (duration, tick) = (figure::time(*duration_ns as f64), figure::time(*tick_ns as f64));
        writeln!(f, "{file}: a kernel's trace, {duration}, times in {tick}")?;
        self.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))?;
        let share = figure::percent(self.bus_use);
        writeln!(
            f,
            "{}; transfers last in {share} of the time",
            figure::counted(*messages as u64, "message")
        )?;
        for kind in &self.kinds {
            let share = figure::percent(kind.bus_use);
            let pumped = match kind.pumped {
                0 => String::new(),
                pumped => format!(", {} begun by another task", figure::grouped(pumped)),
            };
            let KindReport { device, name, .. } = kind;
            let messages = figure::counted(kind.messages, "message");
            writeln!(f, "\n{}{name}: {messages}{pumped}, {share} of the time", named(device))?;
            writeln!(f, "  {:<24}{:>12}{:>12}{:>12}", "", "p50", "p99", "max")?;
            for (figure, title) in TraceKind::FIGURES {
                let Some(spread) = kind.figures[figure] else { continue };
                let [p50, p99, max] = [spread.p50, spread.p99, spread.max].map(figure::time);
                writeln!(f, "  {title:<24}{p50:>12}{p99:>12}{max:>12}")?;
            }
        }
        f.write_str(&meaning::text(&self.meaning))
    }
}

impl<'m> Line<'m> {
    fn new(nth: usize, message: &'m Message) -> Self {
        let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let times = message.transfers.iter().map(|transfer| [transfer.start_ns, transfer.stop_ns]);
        Self {
            message: nth,
            device: &message.device,
            transfers: message.lengths().collect(),
            submit_ns: message.submit_ns(),
            start_ns: message.first_ns(|mark| mark == Mark::Start).unwrap_or(message.submit_ns()),
            done_ns: message.done_ns(),
            transfers_ns: times.collect(),
            waiter_ns: message.waiter_ns,
            submitter: message.submitter,
            runner: message.runner,
            interrupts: message.interrupts.values().sum(),
            tx: message.transfers.iter().map(|transfer| hex(&transfer.tx)).collect(),
            rx: message.transfers.iter().map(|transfer| hex(&transfer.rx)).collect(),
        }
    }

    fn within_ns(&self) -> u64 {
        self.transfers_ns.iter().map(|[start, stop]| stop - start).sum()
    }
}

impl Printed for Line<'_> {
    fn csv(&self) -> String {
        let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        format!(
            "{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
            self.message,
            quoted(self.device),
            joined(&self.transfers),
            self.submit_ns,
            self.start_ns,
            self.done_ns,
            self.within_ns(),
            number(self.waiter_ns),
            number(self.submitter.map(u64::from)),
            number(self.runner.map(u64::from)),
            self.interrupts,
            self.tx.join("+"),
            self.rx.join("+")
        )
    }
}

impl Display for Line<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let time = |ns: Option<u64>| ns.map_or_else(|| "-".into(), |ns| figure::time(ns as f64));
        write!(
            f,
            "{:>17.3} us {:<8} {:<12} queue {:>8}  begin {:>8}  transfers {:>8}  end {:>8}  waiter {:>8}",
            self.submit_ns as f64 / 1e3,
            self.device,
            joined(&self.transfers),
            time(Some(self.start_ns - self.submit_ns)),
            time(self.transfers_ns.first().map(|[start, _]| start - self.start_ns)),
            time(Some(self.within_ns())),
            time(self.transfers_ns.last().map(|[_, stop]| self.done_ns - stop)),
            time(self.waiter_ns.map(|ran| ran - self.done_ns))
        )?;
        for (name, bytes) in [("tx", self.tx.concat()), ("rx", self.rx.concat())] {
            let shown: String = bytes.chars().take(32).collect();
            if !shown.is_empty() {
                let more = if bytes.len() > 32 { "…" } else { "" };
                write!(f, "  {name} {shown}{more}")?;
            }
        }
        writeln!(f)
    }
}
