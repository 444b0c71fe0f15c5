//! The kinds of a capture's messages, as a table, JSON or CSV.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write as _};
use std::path::Path;

use barewire_scope::capture::{Channel, Format, Tick, name_of};
use barewire_scope::meaning::Meaning;
use barewire_scope::{Counts, Kind, Summary};
use serde::Serialize;

use super::Printed;
use super::meaning::{self, MeaningReport};
use super::message::quoted;
use crate::shared::text::figure;

const CSV: &str = "select,kind,messages,cut,words,bus_use,figure,count,p50,p99,max\n";

/// The result. Scripts rely on its field names.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    file: String,
    format: &'static str,
    tick_ns: f64,
    duration_ns: f64,
    wires: WiresReport,
    why: Vec<String>,
    notes: Vec<String>,
    glitches: BTreeMap<String, u64>,
    messages: u64,
    /// Of these, those without any edge of SCK.
    empty: u64,
    /// Edges of SCK while no chip select was active.
    outside: u64,
    /// The share of the capture in which a message lasted, and SCK ran.
    bus_use: f64,
    bus_use_clocked: f64,
    sck_nominal_hz: Option<u32>,
    kinds: Vec<KindReport>,
    meaning: Vec<MeaningReport>,
}

#[derive(Debug, Serialize)]
struct WiresReport {
    sck: String,
    mosi: Option<String>,
    miso: Option<String>,
    selects: Vec<SelectReport>,
    mode: u8,
    word_bits: u8,
    lsb_first: bool,
}

#[derive(Debug, Serialize)]
struct SelectReport {
    channel: String,
    active: &'static str,
}

#[derive(Debug, Serialize)]
struct KindReport {
    select: Option<String>,
    kind: String,
    messages: u64,
    cut: u64,
    words: u64,
    bus_use: f64,
    lead_ns: Option<Spread>,
    sck_hz: Option<Spread>,
    clocked_ns: Option<Spread>,
    gap_ns: Option<Spread>,
    lag_ns: Option<Spread>,
    cs_inactive_ns: Option<Spread>,
}

/// How a figure is distributed.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Spread {
    pub(super) count: u64,
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

impl Spread {
    pub(super) fn new(counts: &Counts, convert: impl Fn(u64) -> f64) -> Option<Self> {
        let [p50, p99] = [50, 99].map(|percent| counts.percentile(percent).map(&convert));
        Some(Self { count: counts.len(), p50: p50?, p99: p99?, max: convert(counts.max()?) })
    }
}

impl Report {
    /// What was read of the capture at `path`, which has that tick and these channels.
    pub(super) fn new(
        path: &Path,
        format: Format,
        (tick, channels): (Tick, &[Channel]),
        summary: &Summary,
        sck_nominal_hz: Option<u32>,
        meaning: Vec<Meaning>,
    ) -> Self {
        let name = |bit| name_of(channels, bit).unwrap_or_default().to_owned();
        let wires = &summary.wires;
        let selects = wires.selects.iter().map(|select| SelectReport {
            channel: name(select.bit),
            active: if select.active_high { "high" } else { "low" },
        });
        let wires = WiresReport {
            sck: name(wires.sck),
            mosi: wires.mosi.map(name),
            miso: wires.miso.map(name),
            selects: selects.collect(),
            mode: wires.mode,
            word_bits: wires.word_bits,
            lsb_first: wires.lsb_first,
        };
        let select = |place: usize| Some(wires.selects.get(place)?.channel.clone());
        let meaning = meaning::reports(meaning, select);
        let share = |ticks: u64| ticks as f64 / summary.duration.max(1) as f64;
        let kinds = summary.kinds.iter().map(|kind| {
            let select = kind.select.map(|place| wires.selects[place].channel.clone());
            KindReport::new(kind, select, tick, share(kind.selected))
        });
        Self {
            file: path.display().to_string(),
            format: format.name(),
            tick_ns: tick.ns(1),
            duration_ns: tick.ns(summary.duration),
            why: summary.why.clone(),
            notes: summary.notes.clone(),
            glitches: summary.glitches.iter().cloned().collect(),
            messages: summary.messages,
            empty: summary.empty,
            outside: summary.outside,
            bus_use: share(summary.selected),
            bus_use_clocked: share(summary.clocked),
            sck_nominal_hz,
            kinds: kinds.collect(),
            meaning,
            wires,
        }
    }

    fn wires(&self) -> String {
        let WiresReport { sck, mosi, miso, selects, mode, word_bits, lsb_first } = &self.wires;
        let mut text = format!("SCK {sck}");
        match (mosi, miso) {
            (Some(mosi), Some(miso)) if mosi == miso => {
                text += &format!(", data {mosi} (three wires)")
            }
            _ => {
                for (role, wire) in [("MOSI", mosi), ("MISO", miso)] {
                    text +=
                        &wire.as_ref().map_or_else(String::new, |wire| format!(", {role} {wire}"));
                }
            }
        }
        let selects: Vec<_> = selects
            .iter()
            .map(|select| format!("CS {} (active {})", select.channel, select.active))
            .collect();
        let selects = if selects.is_empty() { "no CS".into() } else { selects.join(", ") };
        let order = if *lsb_first { ", the lowest bit first" } else { "" };
        format!("{text}, {selects}; mode {mode}, words of {word_bits} bits{order}")
    }
}

impl Printed for Report {
    fn csv(&self) -> String {
        let mut text = String::from(CSV);
        for kind in &self.kinds {
            let select = kind.select.as_deref().map(quoted).unwrap_or_default();
            for (figure, _, spread) in kind.figures() {
                let Some(Spread { count, p50, p99, max }) = spread else { continue };
                let KindReport { messages, cut, words, bus_use, .. } = kind;
                let name = quoted(&kind.kind);
                let _ = writeln!(
                    text,
                    "{select},{name},{messages},{cut},{words},{bus_use:.6},{figure},{count},{p50},{p99},{max}"
                );
            }
        }
        text
    }
}

impl KindReport {
    fn new(kind: &Kind, select: Option<String>, tick: Tick, bus_use: f64) -> Self {
        let times = |counts| Spread::new(counts, |ticks| tick.ns(ticks));
        Self {
            select,
            kind: kind.name.clone(),
            messages: kind.count,
            cut: kind.cut,
            words: kind.words,
            bus_use,
            lead_ns: times(&kind.lead),
            sck_hz: Spread::new(&kind.sck_hz, |hz| hz as f64),
            clocked_ns: times(&kind.clocked),
            gap_ns: times(&kind.gap),
            lag_ns: times(&kind.lag),
            cs_inactive_ns: times(&kind.inactive),
        }
    }

    /// Its figures by name and by what the table calls them, in the order of a message.
    fn figures(&self) -> [(&'static str, &'static str, Option<Spread>); 6] {
        [
            ("cs_inactive_ns", self.cs_inactive_ns),
            ("lead_ns", self.lead_ns),
            ("clocked_ns", self.clocked_ns),
            ("gap_ns", self.gap_ns),
            ("lag_ns", self.lag_ns),
            ("sck_hz", self.sck_hz),
        ]
        .map(|(name, spread)| (name, title(name), spread))
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { file, format, tick_ns, duration_ns, messages, .. } = self;
        writeln!(
            f,
            "{file}: {format}, {}, a tick is {}",
            figure::time(*duration_ns),
            figure::tick(*tick_ns)
        )?;
        writeln!(f, "{}", self.wires())?;
        self.why.iter().try_for_each(|why| writeln!(f, "  {why}"))?;
        for (channel, count) in &self.glitches {
            writeln!(f, "  {channel}: {} glitches left out", figure::grouped(*count))?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))?;
        writeln!(
            f,
            "{}; a message lasts in {} of the time, SCK runs in {}",
            figure::counted(*messages, "message"),
            figure::percent(self.bus_use),
            figure::percent(self.bus_use_clocked)
        )?;
        self.kinds.iter().try_for_each(|kind| {
            let select =
                kind.select.as_ref().map_or_else(String::new, |select| format!("{select}  "));
            let cut = if kind.cut > 0 { format!(", {} cut", kind.cut) } else { String::new() };
            let (messages, words) =
                (figure::counted(kind.messages, "message"), figure::counted(kind.words, "word"));
            let share = figure::percent(kind.bus_use);
            writeln!(f, "\n{select}{}: {messages}{cut}, {words}, {share} of the time", kind.kind)?;
            writeln!(f, "  {:<12}{:>12}{:>12}{:>12}", "", "p50", "p99", "max")?;
            kind.figures().into_iter().try_for_each(|(name, title, spread)| {
                let Some(spread) = spread else { return Ok(()) };
                let is_clock = name == "sck_hz";
                let show = |value: f64| {
                    if is_clock { figure::measured_clock(value) } else { figure::time(value) }
                };
                let [p50, p99, max] = [spread.p50, spread.p99, spread.max].map(show);
                write!(f, "  {title:<12}{p50:>12}{p99:>12}{max:>12}")?;
                if let Some(nominal) = self.sck_nominal_hz.filter(|_| is_clock) {
                    let off = 100.0 * (spread.p50 / f64::from(nominal) - 1.0);
                    write!(f, "  p50 {off:+.1} % against {}", figure::clock(nominal.into()))?;
                }
                writeln!(f)
            })
        })?;
        f.write_str(&meaning::text(&self.meaning))
    }
}

/// What tables call a figure.
pub(crate) fn title(figure: &str) -> &'static str {
    match figure {
        "cs_inactive_ns" => "CS inactive",
        "lead_ns" => "lead",
        "clocked_ns" => "clocked",
        "gap_ns" => "gap",
        "lag_ns" => "lag",
        _ => "SCK",
    }
}
