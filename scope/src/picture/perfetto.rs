//! A capture as a trace for Perfetto's viewer: a track of messages for each chip select, and one for each wire.
//!
//! # Read first
//! Perfetto, *Track events* and *Advanced system tracing: synthetic track event*, and its `perfetto_trace.proto`, from which the
//! numbers of fields are; *Encoding* of Protocol Buffers.
//!
//! # How it works
//! A trace is a sequence of packets. A descriptor gives a track its number and name; an event begins or ends a slice on a
//! track, or sets a counter. A wire is a counter of 0 and 1. Times are whole nanoseconds from the capture's beginning.

use super::{Line, Wave};
use crate::capture::{Channel, Tick, name_of};
use crate::chip::Told;
use crate::decode::{Message, Wires};
use crate::kinds::plain;

/// Words that a message's slice has as text.
const WORDS: usize = 64;
/// The track above all others, that of the first chip select, and that of channel 0.
const ROOT: u64 = 1;
const SELECTS: u64 = 100;
const LINES: u64 = 1_000;

/// Numbers of fields.
mod field {
    pub(super) const PACKET: u64 = 1;
    /// Of a packet.
    pub(super) const TIMESTAMP: u64 = 8;
    pub(super) const SEQUENCE: u64 = 10;
    pub(super) const EVENT: u64 = 11;
    pub(super) const SEQUENCE_FLAGS: u64 = 13;
    pub(super) const DESCRIPTOR: u64 = 60;
    /// Of a track's descriptor.
    pub(super) const UUID: u64 = 1;
    pub(super) const NAME: u64 = 2;
    pub(super) const PARENT: u64 = 5;
    pub(super) const COUNTER: u64 = 8;
    /// Of an event.
    pub(super) const ANNOTATION: u64 = 4;
    pub(super) const TYPE: u64 = 9;
    pub(super) const TRACK: u64 = 11;
    pub(super) const EVENT_NAME: u64 = 23;
    pub(super) const VALUE: u64 = 30;
    /// Of an annotation.
    pub(super) const TEXT: u64 = 6;
    pub(super) const ANNOTATION_NAME: u64 = 10;
}

/// What an event is.
#[derive(Clone, Copy)]
enum Type {
    Begin = 1,
    End = 2,
    Counter = 4,
}

/// A message of Protocol Buffers in the making.
#[derive(Debug, Default)]
struct Proto(Vec<u8>);

impl Proto {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }
}

/// A trace in the making.
#[derive(Debug)]
pub struct Trace {
    out: Proto,
    file: String,
    tick: Tick,
    channels: Vec<Channel>,
    has_tracks: bool,
    has_packets: bool,
}

impl Trace {
    /// A trace of the capture in `file`.
    #[must_use]
    pub fn new(file: &str, tick: Tick, channels: &[Channel]) -> Self {
        Self {
            out: Proto::default(),
            file: file.into(),
            tick,
            channels: channels.to_vec(),
            has_tracks: false,
            has_packets: false,
        }
    }

    /// What was added since it was taken last.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out.0)
    }

    /// Adds a message: a slice with its lead, clocked time and lag within, and its words.
    pub fn message(&mut self, wires: &Wires, message: &Message, told: &Told) {
        if !self.has_tracks {
            self.tracks(wires);
        }
        let track = SELECTS + message.select.unwrap_or(0) as u64;
        let first = message.mosi.first().or(message.miso.first()).copied();
        let name = if told.kind.is_empty() {
            plain(message.words, message.bits_over, first, wires.word_bits)
        } else {
            format!("{} {}", told.kind, told.detail)
        };
        let digits = usize::from(wires.word_bits).div_ceil(4);
        let mut annotations = Vec::new();
        for (name, words) in [("mosi", &message.mosi), ("miso", &message.miso)] {
            let mut text: String =
                words.iter().take(WORDS).map(|word| format!("{word:0digits$x} ")).collect();
            text += if words.len() > WORDS { "…" } else { "" };
            let annotation = Proto::default()
                .text(field::ANNOTATION_NAME, name)
                .text(field::TEXT, text.trim_end());
            annotations.extend((!words.is_empty()).then_some(annotation));
        }
        self.begin(track, message.start, name.trim_end(), &annotations);
        if let (Some((first, last)), Some(_)) = (message.clocked, message.select) {
            for (name, from, to) in [
                ("lead", message.start, first),
                ("clocked", first, last),
                ("lag", last, message.end),
            ] {
                self.begin(track, from, name, &[]);
                self.event(track, to, Type::End, |event| event);
            }
        }
        self.event(track, message.end, Type::End, |event| event);
    }

    /// Adds the levels of wires over the time of `wave`.
    pub fn lines(&mut self, lines: &[Line], wave: &Wave) {
        for line in lines {
            let track = LINES + u64::from(line.bit);
            self.track(track, Some(ROOT), &line.name, true);
            let mut before = None;
            for edge in &wave.edges {
                let level = edge.levels >> line.bit & 1;
                if before.replace(level) != Some(level) {
                    self.event(track, edge.at, Type::Counter, |event| {
                        event.number(field::VALUE, level)
                    });
                }
            }
        }
    }

    fn tracks(&mut self, wires: &Wires) {
        self.has_tracks = true;
        let file = self.file.clone();
        self.track(ROOT, None, &file, false);
        let name = |bit| name_of(&self.channels, bit).unwrap_or("?");
        let mut names: Vec<_> =
            wires.selects.iter().map(|select| format!("{} messages", name(select.bit))).collect();
        if names.is_empty() {
            names.push("messages".into());
        }
        (SELECTS..)
            .zip(&names)
            .for_each(|(track, name)| self.track(track, Some(ROOT), name, false));
    }

    fn track(&mut self, uuid: u64, parent: Option<u64>, name: &str, is_counter: bool) {
        let mut track = Proto::default().number(field::UUID, uuid).text(field::NAME, name);
        if let Some(parent) = parent {
            track = track.number(field::PARENT, parent);
        }
        if is_counter {
            track = track.bytes(field::COUNTER, &[]);
        }
        self.packet(Proto::default().bytes(field::DESCRIPTOR, &track.0));
    }

    fn begin(&mut self, track: u64, at: u64, name: &str, annotations: &[Proto]) {
        self.event(track, at, Type::Begin, |event| {
            let event = event.text(field::EVENT_NAME, name);
            annotations.iter().fold(event, |event, one| event.bytes(field::ANNOTATION, &one.0))
        });
    }

    fn event(&mut self, track: u64, at: u64, of: Type, more: impl FnOnce(Proto) -> Proto) {
        let event =
            more(Proto::default().number(field::TYPE, of as u64).number(field::TRACK, track));
        let ns = self.tick.ns(at).round() as u64;
        self.packet(Proto::default().number(field::TIMESTAMP, ns).bytes(field::EVENT, &event.0));
    }

    fn packet(&mut self, packet: Proto) {
        // The first packet of a sequence says that nothing before it counts.
        let is_first = !std::mem::replace(&mut self.has_packets, true);
        let packet = packet.number(field::SEQUENCE, 1);
        let packet = if is_first { packet.number(field::SEQUENCE_FLAGS, 1) } else { packet };
        self.out = std::mem::take(&mut self.out).bytes(field::PACKET, &packet.0);
    }
}
