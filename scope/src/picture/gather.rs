//! What a page keeps of a capture of any length: some messages whole, a point for each message or the slowest of each few, and
//! how busy the bus was when.

use std::cmp::Reverse;

use super::kind_of;
use crate::Kind;
use crate::chip::Told;
use crate::decode::Message;

/// Messages that are kept whole: the first, those that lasted longest, and evenly spaced ones.
pub const FIRST: usize = 8;
/// See [`FIRST`].
pub const SLOWEST: usize = 24;
/// See [`FIRST`].
pub const SPACED: usize = 48;
/// The most points.
pub const POINTS: usize = 4_096;
/// The most parts of the capture's time in which the bus's use is told.
const PARTS: usize = 512;
/// Words that are kept of a message.
const WORDS: usize = 2_048;

/// A message that is kept whole, but for words behind the first 2,048.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Its number in the capture, from 0.
    pub nth: u64,
    /// The message.
    pub message: Message,
    /// What its chip calls it.
    pub told: Told,
}

/// A message as a point of the timeline.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its number in the capture, from 0.
    pub nth: u64,
    /// When it begins and ends, in ticks.
    pub start: u64,
    /// See `start`.
    pub end: u64,
    told: String,
    select: Option<usize>,
    words: u64,
    bits_over: u8,
    first: Option<u32>,
}

impl Point {
    /// How long it lasts, in ticks.
    #[must_use]
    pub fn ticks(&self) -> u64 {
        self.end - self.start
    }

    /// The place of its kind in `kinds`.
    #[must_use]
    pub fn kind(&self, kinds: &[Kind], word_bits: u8) -> Option<usize> {
        let length = (self.words, self.bits_over);
        kind_of(kinds, self.select, &self.told, length, self.first, word_bits)
    }
}

/// What is kept, in memory that does not grow with the capture.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    count: u64,
    first: Vec<Kept>,
    slowest: Vec<Kept>,
    spaced: Vec<Kept>,
    /// One of so many messages is in `spaced`.
    space: u64,
    points: Vec<Point>,
    /// Each point is the slowest of so many messages.
    stride: u64,
    /// Ticks with a message, in parts of `part` ticks.
    busy: Vec<u64>,
    part: u64,
}

impl Gathered {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self { space: 1, stride: 1, part: 1, ..Self::default() }
    }

    /// Takes the next message.
    pub fn add(&mut self, message: &Message, told: &Told) {
        let nth = self.count;
        self.count += 1;
        let kept = || {
            let some = |words: &[u32]| words[..words.len().min(WORDS)].to_vec();
            let (mosi, miso) = (some(&message.mosi), some(&message.miso));
            let gaps = message.gaps[..message.gaps.len().min(WORDS)].to_vec();
            // The words would be copied for nothing.
            let rest = Message { mosi, miso, gaps, ..*message };
            Kept { nth, message: rest, told: told.clone() }
        };
        if self.first.len() < FIRST {
            self.first.push(kept());
        }
        let ticks = |message: &Message| message.end - message.start;
        let is_slow = self.slowest.last().is_none_or(|last| ticks(message) > ticks(&last.message));
        if is_slow || self.slowest.len() < SLOWEST {
            self.slowest.push(kept());
            self.slowest.sort_by_key(|kept| (Reverse(ticks(&kept.message)), kept.nth));
            self.slowest.truncate(SLOWEST);
        }
        if nth.is_multiple_of(self.space) {
            self.spaced.push(kept());
            if self.spaced.len() > SPACED {
                self.space *= 2;
                self.spaced.retain(|kept| kept.nth.is_multiple_of(self.space));
            }
        }
        self.point(nth, message, told);
        self.busy(message.start, message.end);
    }

    fn point(&mut self, nth: u64, message: &Message, told: &Told) {
        let point = Point {
            nth,
            start: message.start,
            end: message.end,
            told: told.kind.clone(),
            select: message.select,
            words: message.words,
            bits_over: message.bits_over,
            first: message.mosi.first().or(message.miso.first()).copied(),
        };
        match self.points.last_mut().filter(|last| last.nth / self.stride == nth / self.stride) {
            Some(last) if last.ticks() < point.ticks() => *last = point,
            Some(_) => {}
            None => self.points.push(point),
        }
        if self.points.len() > POINTS {
            self.stride *= 2;
            let stride = self.stride;
            self.points.dedup_by(|next, kept| {
                let is_one = next.nth / stride == kept.nth / stride;
                if is_one && kept.ticks() < next.ticks() {
                    std::mem::swap(next, kept);
                }
                is_one
            });
        }
    }

    fn busy(&mut self, start: u64, end: u64) {
        while end / self.part >= PARTS as u64 {
            self.part *= 2;
            self.busy = self.busy.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        for part in start / self.part..=end / self.part {
            let (from, to) = (start.max(part * self.part), end.min((part + 1) * self.part));
            let part = part as usize;
            self.busy.resize(self.busy.len().max(part + 1), 0);
            self.busy[part] += to - from;
        }
    }

    /// How many messages there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Points, and of how many messages each is the slowest.
    #[must_use]
    pub fn points(&self) -> (&[Point], u64) {
        (&self.points, self.stride)
    }

    /// Ticks with a message, in parts of so many ticks.
    #[must_use]
    pub fn use_of_bus(&self) -> (&[u64], u64) {
        (&self.busy, self.part)
    }

    /// The messages that are kept, in their order.
    #[must_use]
    pub fn messages(&self) -> Vec<Kept> {
        let mut all: Vec<Kept> =
            [&self.first, &self.slowest, &self.spaced].into_iter().flatten().cloned().collect();
        all.sort_by_key(|kept| kept.nth);
        all.dedup_by_key(|kept| kept.nth);
        all
    }

    /// Why a message is kept: `first`, `slowest`, `sample`.
    #[must_use]
    pub fn why(&self, nth: u64) -> Vec<&'static str> {
        let has = |list: &[Kept]| list.iter().any(|kept| kept.nth == nth);
        let lists = [("first", &self.first), ("slowest", &self.slowest), ("sample", &self.spaced)];
        lists.into_iter().filter(|(_, list)| has(list)).map(|(why, _)| why).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_capture_keeps_its_outliers_in_bounded_memory() {
        let mut gathered = Gathered::new();
        for nth in 0..100_000 {
            let ticks = if nth == 77_777 { 900 } else { 400 + nth % 7 };
            let message = Message {
                start: 1_000 * nth,
                end: 1_000 * nth + ticks,
                words: 1,
                mosi: vec![6],
                select: Some(0),
                ..Message::default()
            };
            gathered.add(&message, &Told::default());
        }
        let (points, stride) = gathered.points();
        assert!(points.len() <= POINTS && points.len() * 2 > POINTS / 2, "{}", points.len());
        assert_eq!(points.len() as u64, 100_000_u64.div_ceil(stride));
        assert!(points.iter().any(|point| point.nth == 77_777), "the slowest is a point");
        assert!(points.windows(2).all(|pair| pair[0].nth < pair[1].nth));
        let kept = gathered.messages();
        assert!(
            kept.len() <= FIRST + SLOWEST + SPACED && kept.iter().any(|kept| kept.nth == 77_777)
        );
        assert_eq!((gathered.why(3), gathered.why(77_777)), (vec!["first"], vec!["slowest"]));
        let spaced: Vec<u64> = gathered.spaced.iter().map(|kept| kept.nth).collect();
        assert!(
            spaced.len() > SPACED / 2
                && spaced.windows(2).all(|pair| pair[1] - pair[0] == gathered.space)
        );
        let (busy, part) = gathered.use_of_bus();
        assert!(busy.len() <= PARTS && busy.len() as u64 * part >= 99_999_000);
        let all: u64 =
            (0..100_000).map(|nth| if nth == 77_777 { 900 } else { 400 + nth % 7 }).sum();
        assert_eq!(busy.iter().sum::<u64>(), all);
        assert!(busy.iter().all(|busy| *busy <= part));
    }
}
