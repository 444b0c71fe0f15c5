//! What differs, as a table or JSON.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use barewire_scope::Summary;
use barewire_scope::capture::Tick;
use barewire_scope::diff::{Compared, Diff, Found, Group, Pair};
use barewire_scope::trace::{Trace, TraceKind};
use serde::Serialize;

use crate::command::scope;
use crate::command::scope::traced::{self, named};
use crate::shared::text::figure;

/// The result. Scripts rely on its field names.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    a: SideReport,
    b: SideReport,
    percentile: u8,
    /// Of all intervals together.
    confidence: f64,
    method: &'static str,
    intervals: u64,
    changed: usize,
    differs: bool,
    kinds: Vec<PairReport>,
    only_a: Vec<GroupReport>,
    only_b: Vec<GroupReport>,
}

/// What was compared.
#[derive(Debug, Serialize)]
pub(super) struct SideReport {
    file: String,
    format: &'static str,
    tick_ns: f64,
    duration_ns: f64,
    messages: u64,
    /// Of a capture.
    mode: Option<u8>,
    word_bits: Option<u8>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct PairReport {
    select: String,
    kind: String,
    messages: [u64; 2],
    figures: Vec<FigureReport>,
}

#[derive(Debug, Serialize)]
struct FigureReport {
    figure: &'static str,
    n: [u64; 2],
    a: f64,
    b: f64,
    difference: f64,
    found: &'static str,
    /// The interval of the difference.
    low: Option<f64>,
    high: Option<f64>,
    /// So many values an interval needs.
    needed: Option<u64>,
}

#[derive(Debug, Serialize)]
struct GroupReport {
    select: String,
    kind: String,
    messages: u64,
}

impl SideReport {
    pub(super) fn new(path: &Path, format: &'static str, tick: Tick, summary: &Summary) -> Self {
        Self {
            file: path.display().to_string(),
            format,
            tick_ns: tick.ns(1),
            duration_ns: tick.ns(summary.duration),
            messages: summary.messages,
            mode: Some(summary.wires.mode),
            word_bits: Some(summary.wires.word_bits),
            notes: summary.notes.clone(),
        }
    }

    pub(super) fn of_trace(path: &Path, trace: &Trace) -> Self {
        Self {
            file: path.display().to_string(),
            format: "trace",
            tick_ns: trace.tick_ns as f64,
            duration_ns: trace.duration_ns as f64,
            messages: trace.messages.len() as u64,
            mode: None,
            word_bits: None,
            notes: traced::notes(trace),
        }
    }
}

impl FigureReport {
    fn new(compared: &Compared) -> Self {
        let Compared { figure, n, quantiles: [a, b], found } = *compared;
        let (name, interval, needed) = match found {
            Found::Changed(interval) => ("changed", Some(interval), None),
            Found::Same(interval) => ("same", Some(interval), None),
            Found::TooFew(needed) => ("too-few", None, Some(needed)),
        };
        let [low, high] = [0, 1].map(|end| interval.map(|interval| interval[end]));
        Self { figure, n, a, b, difference: compared.difference(), found: name, low, high, needed }
    }

    fn show(&self, value: f64) -> String {
        match self.figure {
            "sck_hz" => figure::measured_clock(value),
            _ => figure::time(value),
        }
    }

    fn signed(&self, value: f64) -> String {
        format!("{}{}", if value < 0.0 { "-" } else { "+" }, self.show(value.abs()))
    }

    fn told(&self) -> String {
        let (Some(low), Some(high)) = (self.low, self.high) else {
            let ([a, b], needed) = (self.n, self.needed.unwrap_or_default());
            return format!("too few to tell: of {a} and {b} messages, of {needed} needed");
        };
        let interval = format!("{} to {}", self.signed(low), self.signed(high));
        match self.found {
            "same" => format!("no difference seen ({interval})"),
            _ if self.a == 0.0 => format!("{} ({interval})", self.signed(self.difference)),
            _ => {
                let percent = 100.0 * self.difference / self.a;
                format!("{}, {percent:+.1} % ({interval})", self.signed(self.difference))
            }
        }
    }
}

impl Report {
    pub(super) fn new(
        [a, b]: [SideReport; 2],
        percentile: u8,
        confidence: f64,
        diff: &Diff,
    ) -> Self {
        let pair = |pair: &Pair| PairReport {
            select: pair.place.clone(),
            kind: pair.kind.clone(),
            messages: pair.messages,
            figures: pair.figures.iter().map(FigureReport::new).collect(),
        };
        let group = |group: &Group| GroupReport {
            select: group.place.clone(),
            kind: group.kind.clone(),
            messages: group.messages,
        };
        let [only_a, only_b] = diff.only.each_ref().map(|only| only.iter().map(group).collect());
        Self {
            a,
            b,
            percentile,
            confidence,
            method: "rank",
            intervals: diff.intervals,
            changed: diff.changed(),
            differs: diff.differs(),
            kinds: diff.pairs.iter().map(pair).collect(),
            only_a,
            only_b,
        }
    }

    /// The result in a sentence.
    pub(super) fn verdict(&self) -> String {
        let mut text = match (self.changed, self.intervals) {
            (0, 0) => "no figure has values enough to compare".into(),
            (0, of) => format!("no difference seen in {}", figure::counted(of, "figure")),
            (changed, of) => format!("{changed} of {} differ", figure::counted(of, "figure")),
        };
        for (side, only) in [("A", &self.only_a), ("B", &self.only_b)] {
            if !only.is_empty() {
                let verb = if only.len() == 1 { "is" } else { "are" };
                let kinds = figure::counted(only.len() as u64, "kind");
                text += &format!("; {kinds} {verb} only in {side}");
            }
        }
        text
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (name, side) in [("A", &self.a), ("B", &self.b)] {
            let SideReport { file, mode, word_bits, .. } = side;
            let format = if side.format == "trace" { "a kernel's trace" } else { side.format };
            let messages = figure::counted(side.messages, "message");
            let (lasts, tick) = (figure::time(side.duration_ns), figure::tick(side.tick_ns));
            write!(f, "{name}  {file}: {format}, {lasts}, {messages}; a tick is {tick}")?;
            if let (Some(mode), Some(bits)) = (mode, word_bits) {
                write!(f, ", mode {mode}, words of {bits} bits")?;
            }
            writeln!(f)?;
            side.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))?;
        }
        let Self { percentile, intervals, confidence, .. } = self;
        writeln!(
            f,
            "p{percentile} of each, and B less A with its interval, from ranks: all {intervals} hold together with {:.0} %",
            100.0 * confidence
        )?;
        let figures = self.kinds.iter().flat_map(|pair| &pair.figures);
        let width = figures.map(|found| title(found.figure).len() + 1).max().unwrap_or(0).max(12);
        for pair in &self.kinds {
            let place = named(&pair.select);
            let [a, b] = pair.messages.map(figure::grouped);
            write!(f, "\n{place}{}: {a} and {b} messages", pair.kind)?;
            // Said once where it is so of each figure.
            let is_few = pair.figures.iter().all(|found| found.found == "too-few");
            let needed = pair.figures.iter().find_map(|found| found.needed).filter(|_| is_few);
            needed.map_or(Ok(()), |needed| write!(f, ", too few to tell, of {needed} needed"))?;
            writeln!(f)?;
            writeln!(f, "  {:<width$}{:>12}{:>12}", "", "A", "B")?;
            for found in &pair.figures {
                let [a, b] = [found.a, found.b].map(|value| found.show(value));
                let told = if is_few { String::new() } else { format!("  {}", found.told()) };
                writeln!(f, "  {:<width$}{a:>12}{b:>12}{told}", title(found.figure))?;
            }
        }
        for (side, only) in [("A", &self.only_a), ("B", &self.only_b)] {
            if !only.is_empty() {
                writeln!(f, "\nonly in {side}")?;
            }
            for group in only {
                let messages = figure::counted(group.messages, "message");
                writeln!(f, "  {}{}: {messages}", named(&group.select), group.kind)?;
            }
        }
        writeln!(f, "\n{}", self.verdict())
    }
}

fn title(figure: &str) -> &'static str {
    let of_trace = TraceKind::FIGURES.iter().find(|(name, _)| *name == figure);
    of_trace.map_or_else(|| scope::title(figure), |(_, title)| title)
}
