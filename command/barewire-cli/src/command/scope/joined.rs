//! A capture joined with a kernel's trace: of each message, which share of its time is the software's, and which the wire's.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write as _};
use std::path::Path;

use barewire_scope::capture::name_of;
use barewire_scope::chip::Told;
use barewire_scope::joined::{Joined, Shares, Wired, join};
use barewire_scope::meaning::{WireSigns, of_joined, of_trace};
use barewire_scope::trace::Trace;
use barewire_scope::{Counts, Scope};
use serde::Serialize;

use super::meaning::{self, MeaningReport};
use super::message::quoted;
use super::report::Spread;
use super::{Printed, failed, read, traced};
use crate::shared::failure::Failure;
use crate::shared::text::figure;

const CSV: &str = "device,transfers,messages,wire_share,figure,count,p50,p99,max,kind\n";
const CSV_MESSAGES: &str = "message,device,select,transfers,start_ns,gap_ns,client_ns,queue_ns,begin_ns,lead_ns,clocks_ns,pauses_ns,end_ns,\
                            lag_ns,software_ns,wire_ns,kind,detail\n";
/// The figures of a kind, and what a table calls them.
const FIGURES: [(&str, &str); 9] = [
    ("gap_ns", "gap before"),
    ("client_ns", "client"),
    ("queue_ns", "queue"),
    ("begin_ns", "begin"),
    ("pauses_ns", "pauses"),
    ("end_ns", "end"),
    ("software_ns", "software"),
    ("wire_ns", "wire"),
    ("lead_ns", "lead"),
];

/// The result. Scripts rely on its field names.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    trace: String,
    format: &'static str,
    clock: ClockReport,
    selects: BTreeMap<String, Option<String>>,
    notes: Vec<String>,
    /// Messages of the trace that are joined whole, and of how many.
    messages: usize,
    of_messages: usize,
    pairs: usize,
    wire_alone: usize,
    trace_alone: usize,
    kinds: Vec<KindReport>,
    meaning: Vec<MeaningReport>,
}

#[derive(Debug, Serialize)]
struct ClockReport {
    at_ns: f64,
    offset_ns: f64,
    drift_ppm: f64,
    drift_ppm_range: Option<(f64, f64)>,
    residual_ns: f64,
}

#[derive(Debug, Serialize)]
struct KindReport {
    device: String,
    transfers: Vec<u64>,
    /// By the chip; empty without one.
    kind: String,
    messages: usize,
    /// Of the time from submission to end.
    wire_share: f64,
    #[serde(flatten)]
    figures: BTreeMap<&'static str, Option<Spread>>,
}

/// A message. Scripts rely on its field names.
#[derive(Debug, Serialize)]
struct Line<'m> {
    /// Its place in the trace.
    message: usize,
    device: &'m str,
    select: Option<String>,
    transfers: Vec<u64>,
    /// The places of its selections on the wire.
    wired: &'m [usize],
    start_ns: f64,
    /// By the chip: empty without one.
    kind: String,
    detail: String,
    #[serde(flatten)]
    figures: BTreeMap<&'static str, Option<f64>>,
}

/// Reads the capture, joins it with the trace and prints the result.
pub(super) fn run(args: &super::Args, trace_path: &Path) -> Result<(), Failure> {
    let trace = traced::open(trace_path)?.ok_or_else(|| {
        Failure::Failed(format!("{}: no kernel's trace (--trace)", trace_path.display()))
    })?;
    let mut scope = Scope::open(&args.file, args.reading.options()).map_err(failed)?;
    let (tick, channels) = (scope.capture().tick(), scope.capture().channels().to_vec());
    let (mut wired, mut told, mut selects) = (Vec::new(), Vec::new(), Vec::new());
    let mut signs = WireSigns::new(tick);
    read(&mut scope, args.json, &mut |wires, message, what| {
        if selects.is_empty() {
            selects.clone_from(&wires.selects);
        }
        signs.add(message);
        if let Some(one) = Wired::new(message, wires, tick) {
            wired.push(one);
            told.push(what.clone());
        }
    })
    .map_err(|failure| match failure {
        Failure::Interrupted(_) => {
            Failure::Interrupted("stopped as asked, before anything was joined".into())
        }
        other => other,
    })?;
    let (file, of) = (args.file.display().to_string(), trace_path.display().to_string());
    let joined = join(&wired, tick, &trace)
        .map_err(|why| Failure::Failed(format!("{file} and {of} cannot be joined: {why}")))?;
    let name = |place: usize| Some(name_of(&channels, selects.get(place)?.bit)?.to_owned());
    let lines = joined.shares.iter().map(|shares| {
        let first = &wired[shares.wired[0]];
        let message = &trace.messages[shares.message];
        // Of a message that is several on the wire, what each is.
        let of_each = |text: fn(&Told) -> &str| {
            let mut texts: Vec<_> = shares.wired.iter().map(|&place| text(&told[place])).collect();
            texts.dedup();
            texts.retain(|text| !text.is_empty());
            texts.join(" + ")
        };
        Line {
            kind: of_each(|told| &told.kind),
            detail: of_each(|told| &told.detail),
            message: shares.message,
            device: &message.device,
            select: first.select.and_then(name),
            transfers: message.lengths().collect(),
            wired: &shares.wired,
            start_ns: first.start_ns,
            figures: figures(shares),
        }
    });
    let lines: Vec<Line<'_>> = lines.collect();
    args.print_messages(CSV_MESSAGES, &lines)?;
    let all = [of_trace(&trace), of_joined(&joined, &wired, &trace), signs.finish()].concat();
    let meaning = meaning::reports(all, name);
    let selects = joined.selects.iter();
    let selects = selects.map(|(device, place)| (device.clone(), place.and_then(name))).collect();
    args.print_table(&Report::new([file, of], &joined, &trace, &lines, selects, meaning))
}

fn figures(shares: &Shares) -> BTreeMap<&'static str, Option<f64>> {
    // To picoseconds, as the capture's own times.
    let ps = |ns: f64| (ns * 1e3).round() / 1e3;
    let all = [
        ("gap_ns", shares.gap_ns),
        ("client_ns", shares.client_ns),
        ("queue_ns", Some(shares.queue_ns)),
        ("begin_ns", Some(shares.begin_ns)),
        ("lead_ns", Some(shares.lead_ns)),
        ("clocks_ns", Some(shares.clocks_ns)),
        ("pauses_ns", Some(shares.pauses_ns)),
        ("end_ns", Some(shares.end_ns)),
        ("lag_ns", Some(shares.lag_ns)),
        ("software_ns", Some(shares.software_ns())),
        ("wire_ns", Some(shares.wire_ns())),
    ];
    all.into_iter().map(|(name, ns)| (name, ns.map(ps))).collect()
}

impl Printed for Line<'_> {
    fn csv(&self) -> String {
        let number = |name: &str| self.figures[name].map_or_else(String::new, |ns| ns.to_string());
        let select = self.select.as_deref().map(quoted).unwrap_or_default();
        let lengths = traced::joined(&self.transfers);
        let (message, device, start_ns) = (self.message, self.device, self.start_ns);
        let [kind, detail] = [&self.kind, &self.detail].map(|text| quoted(text));
        let mut text = format!("{message},{device},{select},{lengths},{start_ns}");
        for name in CSV_MESSAGES.split(',').skip(5).take(self.figures.len()) {
            let _ = write!(text, ",{}", number(name));
        }
        text + &format!(",{kind},{detail}\n")
    }
}

impl Display for Line<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let time = |name: &str| self.figures[name].map_or_else(|| "-".into(), figure::time);
        let wire = self.figures["wire_ns"].unwrap_or(0.0);
        let share = wire / (wire + self.figures["software_ns"].unwrap_or(0.0)).max(1e-3);
        write!(
            f,
            "{:>14.3} us {:<6} {:<8} {:<10} gap {:>8} client {:>8}  software {:>8}: queue {:>8} begin {:>8} pauses {:>8} end {:>8}  wire {:>8}, {}",
            self.start_ns / 1e3,
            self.select.as_deref().unwrap_or(""),
            self.device,
            traced::joined(&self.transfers),
            time("gap_ns"),
            time("client_ns"),
            time("software_ns"),
            time("queue_ns"),
            time("begin_ns"),
            time("pauses_ns"),
            time("end_ns"),
            time("wire_ns"),
            figure::percent(share)
        )?;
        writeln!(f, "{}", format!("  {} {}", self.kind, self.detail).trim_end())
    }
}

impl Report {
    fn new(
        [file, of]: [String; 2],
        joined: &Joined,
        trace: &Trace,
        lines: &[Line<'_>],
        selects: BTreeMap<String, Option<String>>,
        meaning: Vec<MeaningReport>,
    ) -> Self {
        let clock = joined.clock;
        let ppm = |drift: f64| (drift * 1e9).round() / 1e3;
        let mut notes = joined.notes.clone();
        notes.extend(traced::notes(trace));
        if joined.wired_alone + joined.traced_alone > 0 {
            notes.push(format!(
                "{} messages of the capture and {} selections of the trace, in the time that both have, are without the other side",
                joined.wired_alone, joined.traced_alone
            ));
        }
        let mut kinds: BTreeMap<(&str, &[u64], &str), Vec<&Line<'_>>> = BTreeMap::new();
        for line in lines {
            kinds.entry((line.device, &line.transfers, &line.kind)).or_default().push(line);
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, lines)| std::cmp::Reverse(lines.len()));
        let kinds = kinds.into_iter().map(|((device, transfers, kind), lines)| {
            let sum = |name: &str| lines.iter().filter_map(|line| line.figures[name]).sum::<f64>();
            let (wire, software) = (sum("wire_ns"), sum("software_ns"));
            let spread = |name: &'static str| {
                let mut counts = Counts::default();
                let each = lines.iter().filter_map(|line| line.figures[name]);
                each.for_each(|ns| counts.add(ns.round() as u64));
                (name, Spread::new(&counts, |ns| ns as f64))
            };
            KindReport {
                device: device.into(),
                transfers: transfers.to_vec(),
                kind: kind.into(),
                messages: lines.len(),
                wire_share: wire / (wire + software).max(1e-3),
                figures: FIGURES.iter().map(|(name, _)| spread(name)).collect(),
            }
        });
        Self {
            file,
            trace: of,
            format: "joined",
            clock: ClockReport {
                at_ns: clock.at_ns,
                offset_ns: clock.offset_ns.round(),
                drift_ppm: ppm(clock.drift),
                drift_ppm_range: clock.drift_range.map(|(least, most)| (ppm(least), ppm(most))),
                residual_ns: clock.residual_ns.round(),
            },
            selects,
            notes,
            messages: joined.shares.len(),
            of_messages: trace.messages.len(),
            pairs: joined.pairs,
            wire_alone: joined.wired_alone,
            trace_alone: joined.traced_alone,
            kinds: kinds.collect(),
            meaning,
        }
    }
}

impl Printed for Report {
    fn csv(&self) -> String {
        let mut text = String::from(CSV);
        for kind in &self.kinds {
            let KindReport { device, messages, wire_share, .. } = kind;
            let (lengths, name) = (traced::joined(&kind.transfers), quoted(&kind.kind));
            for (figure, _) in FIGURES {
                let Some(Spread { count, p50, p99, max }) = kind.figures[figure] else { continue };
                let _ = writeln!(
                    text,
                    "{device},{lengths},{messages},{wire_share:.6},{figure},{count},{p50},{p99},{max},{name}"
                );
            }
        }
        text
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { file, trace, messages, of_messages, clock, .. } = self;
        writeln!(
            f,
            "{file} joined with {trace}: {messages} of the trace's {}",
            figure::counted(*of_messages as u64, "message")
        )?;
        let drift = match clock.drift_ppm_range {
            Some((least, most)) => {
                format!("{:+.1} ppm ({least:+.1} to {most:+.1})", clock.drift_ppm)
            }
            None => "too short to tell".into(),
        };
        writeln!(
            f,
            "the capture's clock less the trace's: {:.3} us, within {}; drift {drift}",
            clock.offset_ns / 1e3,
            figure::time(clock.residual_ns)
        )?;
        for (device, select) in &self.selects {
            writeln!(f, "  {device} is {}", select.as_deref().unwrap_or("the bus without CS"))?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))?;
        self.kinds.iter().try_for_each(|kind| {
            let (messages, wire) =
                (figure::counted(kind.messages as u64, "message"), kind.wire_share);
            let lengths = traced::joined(&kind.transfers);
            let [wire, software] = [wire, 1.0 - wire].map(figure::percent);
            let KindReport { device, kind: name, .. } = kind;
            let name = if name.is_empty() { String::new() } else { format!(" ({name})") };
            writeln!(
                f,
                "\n{device}  {lengths} bytes{name}: {messages}; wire {wire}, software {software}"
            )?;
            writeln!(f, "  {:<12}{:>12}{:>12}{:>12}", "", "p50", "p99", "max")?;
            FIGURES.iter().try_for_each(|(name, title)| {
                let Some(spread) = kind.figures[name] else { return Ok(()) };
                let [p50, p99, max] = [spread.p50, spread.p99, spread.max].map(figure::time);
                writeln!(f, "  {title:<12}{p50:>12}{p99:>12}{max:>12}")
            })
        })?;
        f.write_str(&meaning::text(&self.meaning))
    }
}
