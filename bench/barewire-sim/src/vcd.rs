//! Records the wire as a VCD file, for sigrok, GTKWave and similar programs.
//!
//! *Read first*: IEEE 1364, clause 18 (value change dump); [`crate::wire`] for where in a cell data
//! changes and is sampled.
//!
//! # How it works
//! A recorder keeps one [`Event`] for each word and each level change. It computes edges only when
//! the file is written, piece by piece: the text of an event is ten times as long as the event. Without a recorder the wire records nothing. A full recorder counts the
//! events it loses, and the file reports that number.
//!
//! Signals: `sck`, `mosi`, `miso`, `cs0`, `cs1` and so on, in module `barewire`; then the connected input
//! pins of the chips, as `cs0_dc`, and the pads that a program drives, where they are
//! [recorded](crate::Board::record). Times count from
//! the start of the recording. The unit is 1 ns while half an SCK period is at least 5 ns, and
//! finer otherwise; times are rounded down to it.
//!
//! A file decodes with `sigrok-cli -i x.vcd -I vcd -P spi:clk=sck:mosi=mosi:miso=miso:cs=cs0 -A
//! spi=mosi-data:miso-data` (add `:cpol=1:cpha=1` for mode 3).
//!
//! # Not supported
//! - Output pins of chips (INT, BUSY). A pin that is connected after the recording began is shown with
//!   its first level from the beginning.
//! - Strengths and unknown values: MISO without a driver is the 1 of its pull-up.

use std::fmt::Write as _;
use std::io;

use crate::chip::Ps;
use crate::run::Run;

/// The default number of events: some 256 KiB of data in 32-bit words, and some 60 MB of file.
pub const MAX_EVENTS: usize = 65_536;

/// An event on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A chip select line changed.
    Cs {
        /// The time.
        at: Ps,
        /// The line's number.
        cs: u8,
        /// The new level.
        level: bool,
    },
    /// The level at a chip's input pin, or at a recorded pad, changed.
    Pin {
        /// The time.
        at: Ps,
        /// The pin's number in the recording: the count of pins before it.
        pin: u8,
        /// The new level.
        level: bool,
    },
    /// SCK's idle level changed.
    Sck {
        /// The time.
        at: Ps,
        /// The new level.
        level: bool,
    },
    /// MOSI's idle level was set.
    Mosi {
        /// The time.
        at: Ps,
        /// The new level.
        level: bool,
    },
    /// Bits were clocked.
    Run {
        /// The run.
        run: Run,
        /// The bits on MISO.
        miso: u32,
    },
}

impl Event {
    fn at(&self) -> Ps {
        match *self {
            Self::Cs { at, .. }
            | Self::Pin { at, .. }
            | Self::Sck { at, .. }
            | Self::Mosi { at, .. } => at,
            Self::Run { run, .. } => run.clocking.at,
        }
    }

    fn end(&self) -> Ps {
        match self {
            Self::Run { run, .. } => run.end(),
            _ => self.at(),
        }
    }
}

/// How much a recording has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VcdSummary {
    /// The words and level changes in the file.
    pub events: u64,
    /// Those that are missing at its end, because the recorder was full.
    pub lost_events: u64,
    /// From the beginning to the last event in the file.
    pub duration_ps: Ps,
}

/// A finished recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The VCD file.
    pub vcd: Vec<u8>,
    /// The number of events missing at the end, because the recorder was full.
    pub lost_events: u64,
}

/// Records events on the wire.
#[derive(Debug)]
pub struct Recorder {
    begin: Ps,
    max_events: usize,
    sck: bool,
    mosi: bool,
    /// Level and polarity of each line at the start.
    lines: Vec<(bool, bool)>,
    /// Name and first level of each connected input pin and each recorded pad.
    pins: Vec<(String, bool)>,
    events: Vec<Event>,
    lost_events: u64,
}

const SCK: usize = 0;
const MOSI: usize = 1;
const MISO: usize = 2;
const CS: usize = 3;

impl Recorder {
    pub(crate) fn new(
        begin: Ps,
        max_events: usize,
        (sck, mosi): (bool, bool),
        lines: Vec<(bool, bool)>,
    ) -> Self {
        let (pins, events) = (Vec::new(), Vec::new());
        Self { begin, max_events, sck, mosi, lines, pins, events, lost_events: 0 }
    }

    /// One more pin, which had `level` since the recording began. Returns its number in
    /// [`Event::Pin`]: the count of pins before it.
    pub(crate) fn add_pin(&mut self, name: String, level: bool) -> u8 {
        self.pins.push((name, level));
        // The wire has fewer.
        u8::try_from(self.pins.len() - 1).unwrap_or(u8::MAX)
    }

    pub(crate) fn record(&mut self, event: Event) {
        if self.events.len() < self.max_events {
            self.events.push(event);
        } else {
            self.lost_events += 1;
        }
    }

    /// The recorded events, in the order they ended.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Converts the recording to a VCD file.
    #[must_use]
    pub fn into_capture(self) -> Capture {
        let (mut vcd, lost_events) = (Vec::new(), self.lost_events);
        // Memory takes all of it.
        let _ = self.write_to(&mut vcd);
        Capture { vcd, lost_events }
    }

    /// Writes the recording to `file` as VCD, piece by piece.
    ///
    /// # Errors
    /// Those of `file`.
    pub fn write_to(self, file: &mut dyn io::Write) -> io::Result<VcdSummary> {
        let scale = self.scale();
        let mut out = Writer {
            file,
            result: Ok(()),
            text: String::new(),
            begin: self.begin,
            ps_per_unit: scale.0,
            unit_at: None,
            levels: vec![self.sck, self.mosi, true],
        };
        out.levels.extend(self.lines.iter().map(|&(level, _)| level));
        out.levels.extend(self.pins.iter().map(|&(_, level)| level));
        out.header(&self, scale.1);

        // A run is recorded when it ends, and a line's edge when it happens. So sorted by their
        // beginning they are in order, except for edges within a run, which `run` inserts at their
        // place.
        let (runs, mut edges): (Vec<&Event>, Vec<&Event>) =
            self.events.iter().partition(|event| matches!(event, Event::Run { .. }));
        edges.sort_by_key(|event| event.at());
        let mut edges = edges.into_iter().peekable();
        let mut active = self.lines.iter().filter(|(level, high)| level == high).count();
        let mut until = |out: &mut Writer<'_>, at: Ps| {
            while let Some(event) = edges.next_if(|event| event.at() <= at) {
                match *event {
                    Event::Cs { at, cs, level } => {
                        let cs = usize::from(cs);
                        out.set(at, CS + cs, level);
                        let selected = self
                            .lines
                            .get(cs)
                            .is_some_and(|&(_, active_high)| level == active_high);
                        active = if selected { active + 1 } else { active.saturating_sub(1) };
                        if active == 0 {
                            out.set(at, MISO, true);
                        }
                    }
                    Event::Pin { at, pin, level } => {
                        out.set(at, CS + self.lines.len() + usize::from(pin), level);
                    }
                    Event::Sck { at, level } => out.set(at, SCK, level),
                    Event::Mosi { at, level } => out.set(at, MOSI, level),
                    Event::Run { .. } => {}
                }
            }
        };
        for event in runs {
            let Event::Run { run, miso } = *event else { continue };
            let idle = run.mode & 2 != 0;
            let cpha = run.mode & 1 != 0;
            for bit in 0..run.bits {
                let at = run.clocking.at + u64::from(bit) * run.clocking.period;
                let shift = run.bits - 1 - bit;
                until(&mut out, at);
                out.set(at, SCK, idle != cpha);
                out.set(at, MOSI, run.mosi >> shift & 1 != 0);
                out.set(at, MISO, miso >> shift & 1 != 0);
                until(&mut out, at + run.half());
                out.set(at + run.half(), SCK, idle == cpha);
            }
            if !cpha {
                until(&mut out, run.end());
                out.set(run.end(), SCK, idle);
            }
        }
        until(&mut out, Ps::MAX);
        if self.lost_events > 0 {
            let _ = writeln!(
                out.text,
                "$comment cut: {} events lost beyond the limit of {} $end",
                self.lost_events, self.max_events
            );
        }
        out.flush();
        out.result?;
        let last = self.events.iter().map(Event::end).max().unwrap_or(self.begin);
        Ok(VcdSummary {
            events: self.events.len() as u64,
            lost_events: self.lost_events,
            duration_ps: last.saturating_sub(self.begin),
        })
    }

    /// The unit fine enough for SCK's edges: picoseconds and name.
    fn scale(&self) -> (Ps, &'static str) {
        let half = self.events.iter().filter_map(|event| match event {
            Event::Run { run, .. } => Some(run.half()),
            _ => None,
        });
        match half.min().unwrap_or(Ps::MAX) {
            5_000.. => (1_000, "1 ns"),
            500.. => (100, "100 ps"),
            _ => (1, "1 ps"),
        }
    }
}

struct Writer<'f> {
    file: &'f mut dyn io::Write,
    /// The first error of the file.
    result: io::Result<()>,
    /// What is not written yet.
    text: String,
    begin: Ps,
    ps_per_unit: Ps,
    unit_at: Option<u64>,
    levels: Vec<bool>,
}

/// Text is written in pieces of this size.
const PIECE_BYTES: usize = 64 << 10;

/// The short name of a signal: one printable character.
fn code(signal: usize) -> char {
    char::from(b'!' + signal as u8)
}

impl Writer<'_> {
    fn flush(&mut self) {
        if self.result.is_ok() {
            self.result = self.file.write_all(self.text.as_bytes());
        }
        self.text.clear();
    }

    fn header(&mut self, recorder: &Recorder, unit: &str) {
        let begin = recorder.begin;
        let mut text = format!(
            "$comment barewire-sim, begun at {begin} ps of virtual time $end\n\
             $timescale {unit} $end\n$scope module barewire $end\n"
        );
        let names = ["sck".into(), "mosi".into(), "miso".into()];
        let lines = (0..recorder.lines.len()).map(|cs| format!("cs{cs}"));
        let pins = recorder.pins.iter().map(|(name, _)| name.clone());
        for (signal, name) in names.into_iter().chain(lines).chain(pins).enumerate() {
            let _ = writeln!(text, "$var wire 1 {} {name} $end", code(signal));
        }
        text.push_str("$upscope $end\n$enddefinitions $end\n#0\n$dumpvars\n");
        for (signal, &level) in self.levels.iter().enumerate() {
            let _ = writeln!(text, "{}{}", u8::from(level), code(signal));
        }
        text.push_str("$end\n");
        self.unit_at = Some(0);
        self.text = text;
    }

    fn set(&mut self, at: Ps, signal: usize, level: bool) {
        if self.levels[signal] == level {
            return;
        }
        self.levels[signal] = level;
        let unit_at = Some(at.saturating_sub(self.begin) / self.ps_per_unit).max(self.unit_at);
        if unit_at != self.unit_at {
            let _ = writeln!(self.text, "#{}", unit_at.unwrap_or(0));
            self.unit_at = unit_at;
        }
        let _ = writeln!(self.text, "{}{}", u8::from(level), code(signal));
        if self.text.len() >= PIECE_BYTES {
            self.flush();
        }
    }
}

#[cfg(test)]
mod tests;
