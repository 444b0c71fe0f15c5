//! Changes of levels to SPI messages.
//!
//! A message lasts from one edge of its chip select to the next; without a chip select, from a clock after a pause to the
//! clock before one. Bits are taken at the sampling edges of SCK. A time is that of the sample in which the new level is
//! seen first. If chip select and SCK change in one sample, the chip select comes first, as in sigrok's decoder: an edge in
//! the sample in which it is released is left out, and counted. [`Wires::late_edges`] takes it.

use crate::capture::Edge;

/// The most words of a message whose values are kept; all are counted.
pub const WORDS_KEPT: usize = 1 << 20;

/// A chip select line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select {
    /// Its channel's bit.
    pub bit: u8,
    /// Whether it is active when high.
    pub active_high: bool,
}

/// How to read the wires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wires {
    /// SCK's bit.
    pub sck: u8,
    /// MOSI's bit. Of a bus with three wires, both directions are here.
    pub mosi: Option<u8>,
    /// MISO's bit.
    pub miso: Option<u8>,
    /// The chip selects; without any, pauses are borders.
    pub selects: Vec<Select>,
    /// The SPI mode, 0 to 3.
    pub mode: u8,
    /// The bits of a word, 1 to 32.
    pub word_bits: u8,
    /// Whether the first bit is the lowest.
    pub lsb_first: bool,
    /// A pause of SCK of more ticks than this is a border, where there is no chip select.
    pub pause: u64,
    /// An edge of SCK in the sample in which chip select is released belongs to the message: sampling was too slow to show
    /// which came first.
    pub late_edges: bool,
}

impl Wires {
    /// Whether bits are sampled at rising edges.
    #[must_use]
    pub fn samples_rising(&self) -> bool {
        matches!(self.mode, 0 | 3)
    }

    /// The selects that are active at `levels`, by their place in `selects`.
    pub(crate) fn active(&self, levels: u64) -> u64 {
        let active = |select: &Select| (levels >> select.bit & 1 == 1) == select.active_high;
        (0..)
            .zip(&self.selects)
            .fold(0, |all, (index, select)| all | u64::from(active(select)) << index)
    }
}

/// A message on the wire. Times are ticks of the capture.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// Its place in the list of chip selects; none without.
    pub select: Option<usize>,
    /// Chip select becomes active; without one, the first edge of SCK.
    pub start: u64,
    /// Chip select becomes inactive; without one, the last edge of SCK.
    pub end: u64,
    /// SCK's first and last edge between.
    pub clocked: Option<(u64, u64)>,
    /// Whole words.
    pub words: u64,
    /// Bits behind the last whole word.
    pub bits_over: u8,
    /// The values of the first [`WORDS_KEPT`] words; empty without the wire.
    pub mosi: Vec<u32>,
    /// The same of MISO.
    pub miso: Vec<u32>,
    /// From SCK's last edge of a word to its first of the next: half a clock where there is no pause. As many as words are
    /// kept.
    pub gaps: Vec<u64>,
    /// The time between the first and the last sampling edge of each word, summed up, and how many clocks that are.
    pub sck: (u64, u64),
    /// Chip select was inactive so long before; without one, the pause. None for the first.
    pub inactive: Option<u64>,
    /// Begins before the capture, or ends behind it.
    pub cut: bool,
}

impl Message {
    /// From the edge of chip select to the first edge of SCK.
    #[must_use]
    pub fn lead(&self) -> Option<u64> {
        self.select.and(self.clocked).map(|(first, _)| first - self.start)
    }

    /// From the last edge of SCK to the edge of chip select.
    #[must_use]
    pub fn lag(&self) -> Option<u64> {
        self.select.and(self.clocked).map(|(_, last)| self.end - last)
    }
}

/// The message that is on the wire.
#[derive(Debug, Default)]
struct Open {
    message: Message,
    bits: u8,
    mosi: u32,
    miso: u32,
    /// The first sampling edge of the word.
    first_sample: u64,
    /// The word ended at that edge.
    word_end: Option<u64>,
    /// The edge behind the last sampling edge of a word is its end.
    is_ending: bool,
}

/// Takes changes, gives messages.
#[derive(Debug)]
pub struct Decoder {
    wires: Wires,
    levels: Option<u64>,
    open: Option<Open>,
    /// When each chip select became inactive last.
    ended: Vec<Option<u64>>,
    /// Edges of SCK while no chip select was active.
    pub outside: u64,
    /// Edges of SCK in the sample in which chip select was released, which are left out.
    pub late: u64,
    /// Times at which a second chip select became active.
    pub overlaps: u64,
    /// Ticks in which a message lasted, and in which SCK ran, from a message's first to its last edge.
    pub selected: u64,
    /// The same for SCK.
    pub clocked: u64,
}

impl Decoder {
    /// A decoder for these wires.
    #[must_use]
    pub fn new(wires: Wires) -> Self {
        let ended = vec![None; wires.selects.len().max(1)];
        Self {
            wires,
            levels: None,
            open: None,
            ended,
            outside: 0,
            late: 0,
            overlaps: 0,
            selected: 0,
            clocked: 0,
        }
    }

    /// Takes a change, and gives the messages that it ends.
    pub fn push(&mut self, edge: Edge, each: &mut dyn FnMut(Message)) {
        let Edge { at, levels } = edge;
        let Some(before) = self.levels.replace(levels) else {
            if let Some(select) = first(self.wires.active(levels)) {
                self.begin(at, Some(select), true);
            }
            return;
        };
        let mut clocks = (before ^ levels) >> self.wires.sck & 1 == 1;
        if !self.wires.selects.is_empty() {
            if clocks && self.open.is_some() && self.wires.active(levels) == 0 {
                clocks = false;
                if self.wires.late_edges {
                    self.clock(at, levels);
                } else {
                    self.late += 1;
                }
            }
            self.select(at, before, levels, each);
        }
        if clocks {
            if self.wires.selects.is_empty() {
                self.pause(at, each);
            }
            self.clock(at, levels);
        }
    }

    /// Ends the message that the capture's end cuts. Without a chip select it may have ended before.
    pub fn finish(&mut self, at: u64, each: &mut dyn FnMut(Message)) {
        if self.wires.selects.is_empty() {
            self.pause(at, each);
        }
        self.end(at, true, each);
    }

    fn select(&mut self, at: u64, before: u64, levels: u64, each: &mut dyn FnMut(Message)) {
        let (were, active) = (self.wires.active(before), self.wires.active(levels));
        if were == active {
            return;
        }
        if let Some(select) = self.open.as_ref().and_then(|open| open.message.select)
            && active >> select & 1 == 0
        {
            self.end(at, false, each);
        }
        self.overlaps += u64::from(active.count_ones() > 1 && active & !were != 0);
        if let Some(select) = first(active).filter(|_| self.open.is_none()) {
            self.begin(at, Some(select), false);
        }
    }

    fn pause(&mut self, at: u64, each: &mut dyn FnMut(Message)) {
        let last = self.open.as_ref().and_then(|open| open.message.clocked).map(|(_, last)| last);
        if last.is_some_and(|last| at - last > self.wires.pause) {
            self.end(at, false, each);
        }
    }

    fn begin(&mut self, at: u64, select: Option<usize>, cut: bool) {
        let ended = self.ended[select.unwrap_or(0)];
        let inactive = ended.map(|ended| at - ended);
        let message = Message { select, start: at, inactive, cut, ..Message::default() };
        self.open = Some(Open { message, ..Open::default() });
    }

    fn end(&mut self, at: u64, cut: bool, each: &mut dyn FnMut(Message)) {
        let Some(Open { mut message, bits, .. }) = self.open.take() else { return };
        let last = message.clocked.map_or(at, |(_, last)| last);
        message.end = if message.select.is_some() { at } else { last };
        message.bits_over = bits;
        message.cut |= cut;
        self.ended[message.select.unwrap_or(0)] = Some(message.end);
        self.selected += message.end - message.start;
        self.clocked += message.clocked.map_or(0, |(first, last)| last - first);
        each(message);
    }

    fn clock(&mut self, at: u64, levels: u64) {
        if self.open.is_none() {
            if !self.wires.selects.is_empty() {
                self.outside += 1;
                return;
            }
            self.begin(at, None, false);
        }
        let Some(open) = &mut self.open else { return };
        let wires = &self.wires;
        let before = open.message.clocked.map(|(_, last)| last);
        open.message.clocked = Some((open.message.clocked.map_or(at, |(first, _)| first), at));
        if (levels >> wires.sck & 1 == 1) == wires.samples_rising() {
            let cpha = wires.mode & 1 == 1;
            open.sample(at, if cpha { before.unwrap_or(at) } else { at }, levels, wires);
        } else if std::mem::take(&mut open.is_ending) {
            open.word_end = Some(at);
        }
    }
}

impl Open {
    /// Takes a bit. `begin` is the first edge of its clock.
    fn sample(&mut self, at: u64, begin: u64, levels: u64, wires: &Wires) {
        if self.bits == 0 {
            self.first_sample = at;
            if let Some(end) = self.word_end.take().filter(|_| self.message.gaps.len() < WORDS_KEPT)
            {
                self.message.gaps.push(begin - end);
            }
        }
        let shift = |word: u32, wire: Option<u8>| {
            let bit = wire.map_or(0, |wire| (levels >> wire & 1) as u32);
            if wires.lsb_first { word | bit << self.bits } else { word << 1 | bit }
        };
        (self.mosi, self.miso) = (shift(self.mosi, wires.mosi), shift(self.miso, wires.miso));
        self.bits += 1;
        if self.bits < wires.word_bits {
            return;
        }
        let message = &mut self.message;
        message.words += 1;
        message.sck.0 += at - self.first_sample;
        message.sck.1 += u64::from(self.bits - 1);
        for (values, wire, word) in
            [(&mut message.mosi, wires.mosi, self.mosi), (&mut message.miso, wires.miso, self.miso)]
        {
            if wire.is_some() && values.len() < WORDS_KEPT {
                values.push(word);
            }
        }
        (self.bits, self.mosi, self.miso) = (0, 0, 0);
        self.is_ending = wires.mode & 1 == 0;
        self.word_end = (!self.is_ending).then_some(at);
    }
}

/// The first bit that is set.
fn first(bits: u64) -> Option<usize> {
    (bits != 0).then_some(bits.trailing_zeros() as usize)
}
