//! Pictures of messages: what the wires did while a message lasted, and a drawing of it in characters.
//!
//! Messages come without the changes of levels that they were made from, or memory would grow with them. [`Waves`] reads the
//! capture once more and keeps the changes around the messages that are to be drawn.

mod gather;
pub mod perfetto;
mod text;

use std::path::Path;

use crate::capture::{Capture, Channel, Edge, Tick, name_of};
use crate::decode::{Message, Wires};
use crate::error::ScopeError;
use crate::glitch::Filter;
use crate::kinds::{Kind, plain};
use crate::scope::{Options, Summary};
pub use gather::{FIRST, Gathered, Kept, POINTS, Point, SLOWEST, SPACED};
pub use text::{Paper, draw};

/// A message, and the changes of its wires from shortly before it to shortly behind it. Times are ticks of the capture.
#[derive(Clone, Debug)]
pub struct Wave {
    /// The message.
    pub message: Message,
    /// The first tick that is drawn.
    pub from: u64,
    /// The last one.
    pub to: u64,
    /// Levels of the wires, the others being 0. The first is at `from`.
    pub edges: Vec<Edge>,
    /// The first and the last sampling edge of each word.
    pub words: Vec<(u64, u64)>,
    /// The message has more changes than are kept: `to` lies within it.
    pub shortened: bool,
}

/// A wire of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its role, and its channel's name where that does not tell the role.
    pub name: String,
    /// Its channel's bit.
    pub bit: u8,
    /// Whether MOSI's words stand below it, and MISO's.
    pub words: (bool, bool),
}

/// The wires of a message behind the chip select at `select`, from top to bottom.
#[must_use]
pub fn lines(wires: &Wires, channels: &[Channel], select: Option<usize>) -> Vec<Line> {
    let line = |role: &str, bit: u8, words| {
        let name = name_of(channels, bit).unwrap_or("?");
        let tells = role == "CS" || name.to_ascii_uppercase().contains(role);
        let name = if tells { name.to_owned() } else { format!("{role} {name}") };
        Line { name, bit, words }
    };
    let mut lines = Vec::new();
    lines.extend(select.map(|place| line("CS", wires.selects[place].bit, (false, false))));
    lines.push(line("SCK", wires.sck, (false, false)));
    if wires.mosi.is_some() && wires.mosi == wires.miso {
        lines.extend(wires.mosi.map(|bit| line("DATA", bit, (true, false))));
    } else {
        lines.extend(wires.mosi.map(|bit| line("MOSI", bit, (true, false))));
        lines.extend(wires.miso.map(|bit| line("MISO", bit, (false, true))));
    }
    lines
}

/// The place in `kinds` of the kind of a message behind the chip select at `select`, which its chip calls `told`, with the
/// words and bits over of `length`.
#[must_use]
pub fn kind_of(
    kinds: &[Kind],
    select: Option<usize>,
    told: &str,
    length: (u64, u8),
    first: Option<u32>,
    word_bits: u8,
) -> Option<usize> {
    let place =
        |name: &str| kinds.iter().position(|kind| kind.select == select && kind.name == name);
    if !told.is_empty() {
        return place(told);
    }
    let of = |first| place(&plain(length.0, length.1, first, word_bits));
    of(first).or_else(|| of(None))
}

/// A message that lasts from the capture's beginning to its end: [`Waves`] of it have all changes.
#[must_use]
pub fn all(summary: &Summary) -> Message {
    Message { end: summary.duration, ..Message::default() }
}

/// The changes around messages, in the making.
#[derive(Debug)]
pub struct Waves {
    capture: Capture,
    filter: Option<Filter>,
    wires: Wires,
    waves: Vec<Wave>,
    edges_max: usize,
    /// So many waves are whole.
    done: usize,
    levels: Option<u64>,
    mask: u64,
}

impl Waves {
    /// Opens the capture at `path` once more, for `messages` in the order of their times. A message keeps its first
    /// `edges_max` changes.
    ///
    /// # Errors
    /// Those of [`Capture::open`].
    pub fn open(
        path: &Path,
        options: &Options,
        wires: &Wires,
        messages: &[Message],
        edges_max: usize,
    ) -> Result<Self, ScopeError> {
        let capture = Capture::open(path, options.samplerate)?;
        let limit = capture.tick().at_least(options.glitch_ns);
        let selects = wires.selects.iter().map(|select| select.bit);
        let bits = [Some(wires.sck), wires.mosi, wires.miso].into_iter().flatten().chain(selects);
        let wave = |message: &Message| {
            let beside = ((message.end - message.start) / 12).max(2);
            // Not the message before it too.
            let before = message.inactive.map_or(beside, |inactive| beside.min(inactive / 2 + 1));
            Wave {
                from: message.start.saturating_sub(before),
                to: message.end + beside,
                message: message.clone(),
                edges: Vec::new(),
                words: Vec::new(),
                shortened: false,
            }
        };
        Ok(Self {
            filter: (limit > 0).then(|| Filter::new(limit)),
            wires: wires.clone(),
            waves: messages.iter().map(wave).collect(),
            edges_max,
            done: 0,
            levels: None,
            mask: bits.fold(0, |mask, bit| mask | 1 << bit),
            capture,
        })
    }

    /// The file.
    #[must_use]
    pub fn capture(&self) -> &Capture {
        &self.capture
    }

    /// Reads a piece of the file. Returns whether there is more to read.
    ///
    /// # Errors
    /// The file is wrong.
    pub fn step(&mut self) -> Result<bool, ScopeError> {
        let (mut read, mut passed) = (Vec::new(), Vec::new());
        let more = self.capture.fill(&mut read)?;
        if let Some(filter) = &mut self.filter {
            read.iter().for_each(|edge| filter.push(*edge, &mut passed));
            if !more {
                filter.finish(&mut passed);
            }
            read = passed;
        }
        read.iter().for_each(|edge| self.push(*edge));
        Ok(more && self.done < self.waves.len())
    }

    fn push(&mut self, Edge { at, levels }: Edge) {
        let levels = levels & self.mask;
        let before = self.levels.replace(levels).unwrap_or(levels);
        for wave in &mut self.waves[self.done..] {
            if wave.from > at {
                break;
            }
            if wave.edges.is_empty() {
                let levels = if at == wave.from { levels } else { before };
                wave.edges.push(Edge { at: wave.from, levels });
            }
            if levels != before && at > wave.from && at <= wave.to && !wave.shortened {
                wave.shortened = wave.edges.len() >= self.edges_max;
                match wave.shortened {
                    true => wave.to = wave.edges.last().map_or(at, |last| last.at),
                    false => wave.edges.push(Edge { at, levels }),
                }
            }
        }
        while self.waves.get(self.done).is_some_and(|wave| wave.to < at) {
            self.done += 1;
        }
    }

    /// The waves, as far as the capture was read.
    #[must_use]
    pub fn finish(mut self) -> Vec<Wave> {
        let end = self.capture.end();
        for wave in &mut self.waves {
            if wave.edges.is_empty() {
                let levels = self.levels.unwrap_or(0);
                wave.edges.push(Edge { at: wave.from, levels });
            }
            // A change in the last tick is seen too.
            wave.to = wave.to.min(end + 1).max(wave.from + 1);
            wave.words = words(wave, &self.wires);
        }
        self.waves
    }
}

/// Where a wave's whole words are.
fn words(wave: &Wave, wires: &Wires) -> Vec<(u64, u64)> {
    let Message { start, end, select, words, .. } = wave.message;
    // An edge in the sample in which chip select is released: see `Wires::late_edges`.
    let end = if select.is_some() && !wires.late_edges { end } else { end + 1 };
    let is_sample = |pair: &&[Edge]| {
        let high = |edge: Edge| edge.levels >> wires.sck & 1 == 1;
        let at = pair[1].at;
        high(pair[0]) != high(pair[1])
            && high(pair[1]) == wires.samples_rising()
            && (start..end).contains(&at)
    };
    // Without a chip select the first edge is where the message begins; it is kept if there is room before it.
    let samples: Vec<u64> =
        wave.edges.windows(2).filter(is_sample).map(|pair| pair[1].at).collect();
    let whole = samples.chunks_exact(usize::from(wires.word_bits));
    let whole = whole.map(|word| (word[0], word[word.len() - 1]));
    whole.take(usize::try_from(words).unwrap_or(usize::MAX)).collect()
}

/// A time for an axis: `1.5 us`.
#[must_use]
pub fn time(ns: f64) -> String {
    let (size, unit) = match ns.abs() {
        ..1e3 => (1.0, "ns"),
        ..1e6 => (1e3, "us"),
        ..1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let text = format!("{:.3}", ns / size);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{} {unit}", if text == "-0" { "0" } else { text })
}

/// The smallest of 1, 2 and 5 by a power of ten that is not below `least`, which is above 0.
#[must_use]
pub fn round_step(least: f64) -> f64 {
    let decade = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|digit| digit * decade);
    steps.into_iter().find(|step| *step >= least * 0.999_999).unwrap_or(decade * 10.0)
}

/// `at` as nanoseconds from `origin`, which may lie behind it.
#[must_use]
pub fn ns_from(tick: Tick, origin: u64, at: u64) -> f64 {
    tick.ns(at.abs_diff(origin)) * if at < origin { -1.0 } else { 1.0 }
}
