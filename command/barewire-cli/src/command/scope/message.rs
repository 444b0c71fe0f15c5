//! A line for each message: text, JSON or CSV.

use std::fmt::Write as _;

use barewire_scope::Capture;
use barewire_scope::capture::{Channel, Tick, name_of};
use barewire_scope::chip::Told;
use barewire_scope::decode::{Message, Wires};
use serde::Serialize;

use crate::shared::failure::Failure;
use crate::shared::output;
use crate::shared::text::figure;

/// The most words that a line of text shows.
const WORDS_SHOWN: usize = 16;

const CSV: &str = "message,select,start_ns,end_ns,cs_inactive_ns,lead_ns,clocked_ns,lag_ns,sck_hz,words,bits_over,gap_ns_min,gap_ns_max,\
                   cut,kind,detail,mosi,miso\n";

/// A message. Scripts rely on its field names.
#[derive(Debug, Serialize)]
struct Line {
    message: u64,
    select: Option<String>,
    start_ns: f64,
    end_ns: f64,
    cs_inactive_ns: Option<f64>,
    lead_ns: Option<f64>,
    clocked_ns: Option<f64>,
    lag_ns: Option<f64>,
    sck_hz: Option<u64>,
    words: u64,
    bits_over: u8,
    gaps_ns: Vec<f64>,
    cut: bool,
    kind: String,
    detail: String,
    mosi: Option<String>,
    miso: Option<String>,
}

/// The lines that are not written yet.
pub(super) struct Lines {
    json: bool,
    csv: bool,
    channels: Vec<Channel>,
    tick: Tick,
    count: u64,
    text: String,
    /// The first error of making a line.
    failed: Option<Failure>,
}

impl Lines {
    pub(super) fn new(json: bool, csv: bool, capture: &Capture) -> Self {
        let (channels, tick) = (capture.channels().to_vec(), capture.tick());
        let text = if csv { CSV.into() } else { String::new() };
        Self { json, csv, channels, tick, count: 0, text, failed: None }
    }

    /// Adds a line for `message`.
    pub(super) fn add(&mut self, wires: &Wires, message: &Message, told: &Told) {
        let ns = |ticks: u64| self.tick.ns(ticks);
        let select = message.select.map(|place| wires.selects[place].bit);
        let select = select.and_then(|bit| name_of(&self.channels, bit));
        let values = |words: &[u32], wire: Option<u8>| wire.map(|_| hex(words, wires.word_bits));
        let line = Line {
            message: self.count,
            select: select.map(str::to_owned),
            start_ns: ns(message.start),
            end_ns: ns(message.end),
            cs_inactive_ns: message.inactive.map(ns),
            lead_ns: message.lead().map(ns),
            clocked_ns: message.clocked.map(|(first, last)| ns(last - first)),
            lag_ns: message.lag().map(ns),
            sck_hz: self.tick.hz(message.sck.0, message.sck.1),
            words: message.words,
            bits_over: message.bits_over,
            gaps_ns: message.gaps.iter().map(|&gap| ns(gap)).collect(),
            cut: message.cut,
            kind: told.kind.clone(),
            detail: told.detail.clone(),
            mosi: values(&message.mosi, wires.mosi),
            miso: values(&message.miso, wires.miso),
        };
        self.count += 1;
        if self.json {
            match output::json_line(&line) {
                Ok(line) => self.text += &line,
                Err(failure) => self.failed = self.failed.take().or(Some(failure)),
            }
        } else if self.csv {
            self.text += &line.csv();
        } else {
            self.text += &line.text(message, wires);
        }
    }

    /// Writes the lines, if they are more than `from` bytes.
    pub(super) fn write(&mut self, from: usize) -> Result<(), Failure> {
        if let Some(failure) = self.failed.take() {
            return Err(failure);
        }
        if self.text.len() > from {
            output::text(&self.text)?;
            self.text.clear();
        }
        Ok(())
    }
}

/// Words as hex, each as wide as the largest.
fn hex(words: &[u32], word_bits: u8) -> String {
    let width = usize::from(word_bits).div_ceil(4);
    let mut text = String::with_capacity(words.len() * width);
    for word in words {
        let _ = write!(text, "{word:0width$x}");
    }
    text
}

impl Line {
    fn csv(&self) -> String {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let text = |text: &Option<String>| text.as_deref().map(quoted).unwrap_or_default();
        let gaps = [f64::min, f64::max].map(|pick| self.gaps_ns.iter().copied().reduce(pick));
        format!(
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
            self.message,
            text(&self.select),
            self.start_ns,
            self.end_ns,
            number(self.cs_inactive_ns),
            number(self.lead_ns),
            number(self.clocked_ns),
            number(self.lag_ns),
            self.sck_hz.map_or_else(String::new, |hz| hz.to_string()),
            self.words,
            self.bits_over,
            number(gaps[0]),
            number(gaps[1]),
            self.cut,
            quoted(&self.kind),
            quoted(&self.detail),
            text(&self.mosi),
            text(&self.miso)
        )
    }

    fn text(&self, message: &Message, wires: &Wires) -> String {
        let time = |ns: Option<f64>| ns.map_or_else(|| "-".into(), figure::time);
        let gap = self.gaps_ns.iter().copied().reduce(f64::max);
        let select = self.select.as_deref().unwrap_or("");
        let mut text = format!(
            "{:>14.3} us {select:<6} lead {:>8}  clocked {:>8}  gap {:>8}  lag {:>8}",
            self.start_ns / 1e3,
            time(self.lead_ns),
            time(self.clocked_ns),
            time(gap),
            time(self.lag_ns)
        );
        if !self.kind.is_empty() {
            let _ = write!(text, "  {} {}", self.kind, self.detail);
        }
        for (name, words, wire) in
            [("mosi", &message.mosi, wires.mosi), ("miso", &message.miso, wires.miso)]
        {
            let shown = &words[..words.len().min(WORDS_SHOWN)];
            let more = if message.words > shown.len() as u64 { "…" } else { "" };
            if wire.is_some() && !words.is_empty() {
                let _ = write!(text, "  {name} {}{more}", hex(shown, wires.word_bits));
            }
        }
        if self.bits_over > 0 {
            let _ = write!(text, "  and {} bits", self.bits_over);
        }
        if self.cut {
            text += "  cut";
        }
        text.truncate(text.trim_end().len());
        text + "\n"
    }
}

/// A field of a CSV.
pub(super) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}
