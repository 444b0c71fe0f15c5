//! Messages as columns: one piece of bytes for each, in the byte order of Arrow's and NumPy's columns on these machines,
//! little endian.

use barewire_scope::Capture;
use barewire_scope::capture::{Channel, Tick};
use barewire_scope::chip::Told;
use barewire_scope::decode::{Message, Wires};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// A column of integers. What was not seen has the value 0 and is not valid.
#[derive(Debug, Default)]
struct Integers {
    /// Eight bytes a row.
    values: Vec<u8>,
    /// A byte a row: 1, or 0 for none.
    valid: Vec<u8>,
}

impl Integers {
    fn push(&mut self, value: Option<i64>) {
        self.values.extend_from_slice(&value.unwrap_or(0).to_le_bytes());
        self.valid.push(value.is_some().into());
    }
}

/// A column of byte strings.
#[derive(Debug)]
struct Blobs {
    data: Vec<u8>,
    /// Where each begins in `data`, and where the last ends: eight bytes each.
    offsets: Vec<u8>,
    valid: Vec<u8>,
}

impl Default for Blobs {
    fn default() -> Self {
        Self { data: Vec::new(), offsets: 0_i64.to_le_bytes().to_vec(), valid: Vec::new() }
    }
}

impl Blobs {
    /// Ends a row, whose bytes were appended to `data`.
    fn end(&mut self, is_valid: bool) {
        self.offsets.extend_from_slice(&(self.data.len() as u64).to_le_bytes());
        self.valid.push(is_valid.into());
    }

    fn text(&mut self, text: &str) {
        self.data.extend_from_slice(text.as_bytes());
        self.end(!text.is_empty());
    }

    fn words(&mut self, words: &[u32], is_wired: bool, word_bytes: usize) {
        words
            .iter()
            .for_each(|word| self.data.extend_from_slice(&word.to_le_bytes()[..word_bytes]));
        self.end(is_wired);
    }
}

/// The bytes of a word in `mosi` and `miso`: 1, 2 or 4.
pub(super) fn word_bytes(wires: &Wires) -> usize {
    usize::from(wires.word_bits).div_ceil(8).next_power_of_two()
}

const INTEGERS: [&str; 11] = [
    "start_ns",
    "end_ns",
    "cs_inactive_ns",
    "lead_ns",
    "clocked_ns",
    "gap_ns_median",
    "gap_ns_max",
    "lag_ns",
    "sck_hz",
    "words",
    "bits_over",
];
const BLOBS: [&str; 5] = ["select", "kind", "detail", "mosi", "miso"];

/// The columns of the messages that were not taken yet.
#[derive(Debug)]
pub(super) struct Columns {
    channels: Vec<Channel>,
    tick: Tick,
    pub(super) rows: usize,
    integers: [Integers; INTEGERS.len()],
    blobs: [Blobs; BLOBS.len()],
    cut: Vec<u8>,
    /// The gaps of a message, in their order by length.
    gaps: Vec<u64>,
}

impl Columns {
    pub(super) fn new(capture: &Capture) -> Self {
        Self::of(capture.channels().to_vec(), capture.tick())
    }

    fn of(channels: Vec<Channel>, tick: Tick) -> Self {
        Self {
            channels,
            tick,
            rows: 0,
            integers: Default::default(),
            blobs: Default::default(),
            cut: Vec::new(),
            gaps: Vec::new(),
        }
    }

    /// The same without a row.
    pub(super) fn emptied(&self) -> Self {
        Self::of(self.channels.clone(), self.tick)
    }

    pub(super) fn add(&mut self, wires: &Wires, message: &Message, told: &Told) {
        let ns = |ticks: u64| self.tick.ns(ticks).round() as i64;
        self.gaps.clone_from(&message.gaps);
        let middle = self.gaps.len().div_ceil(2).checked_sub(1);
        let median = middle.map(|middle| *self.gaps.select_nth_unstable(middle).1);
        let row = [
            Some(ns(message.start)),
            Some(ns(message.end)),
            message.inactive.map(ns),
            message.lead().map(ns),
            message.clocked.map(|(first, last)| ns(last - first)),
            median.map(ns),
            self.gaps.iter().max().copied().map(ns),
            message.lag().map(ns),
            self.tick.hz(message.sck.0, message.sck.1).map(|hz| hz as i64),
            Some(message.words as i64),
            Some(message.bits_over.into()),
        ];
        self.integers.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        let bit = message.select.map(|place| wires.selects[place].bit);
        let select = self.channels.iter().find(|channel| Some(channel.bit) == bit);
        let [by_select, kind, detail, mosi, miso] = &mut self.blobs;
        by_select.text(select.map_or("", |channel| &channel.name));
        kind.text(&told.kind);
        detail.text(&told.detail);
        mosi.words(&message.mosi, wires.mosi.is_some(), word_bytes(wires));
        miso.words(&message.miso, wires.miso.is_some(), word_bytes(wires));
        self.cut.push(message.cut.into());
        self.rows += 1;
    }

    /// The columns by name, each as (values, valid) or (bytes, valid, offsets).
    pub(super) fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let bytes = |bytes| PyBytes::new(py, bytes);
        for (name, column) in INTEGERS.iter().zip(&self.integers) {
            dict.set_item(name, (bytes(&column.values), bytes(&column.valid)))?;
        }
        for (name, column) in BLOBS.iter().zip(&self.blobs) {
            let (data, offsets) = (bytes(&column.data), bytes(&column.offsets));
            dict.set_item(name, (data, bytes(&column.valid), offsets))?;
        }
        dict.set_item("cut", (bytes(&self.cut),))?;
        Ok(dict)
    }
}
