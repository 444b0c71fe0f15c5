//! A message in characters: each wire as two rows of them, its words below, the time at the bottom.
//!
//! A message that fits with a character for half a clock is one strip; else it is folded into strips with two
//! characters for half a clock, and strips in which nothing moves are one line. More strips than [`STRIPS_MAX`] are left out,
//! and counted.

use super::{Line, Wave, ns_from, round_step, time};
use crate::capture::Tick;

/// The most strips that are drawn.
const STRIPS_MAX: usize = 24;
/// The room for names of wires.
const NAME_MAX: usize = 14;
/// The least room between two times of the axis.
const AXIS: f64 = 14.0;

/// What is drawn on.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Its width in characters, at least 40.
    pub columns: usize,
    /// Whether it has no characters beyond ASCII.
    pub ascii: bool,
    /// The bits of a word.
    pub word_bits: u8,
}

/// The characters of a column: level low and high, falling and rising edge, more than one edge. Each has an upper and a
/// lower one.
#[derive(Clone, Copy)]
struct Ink {
    low: [char; 2],
    high: [char; 2],
    falls: [char; 2],
    rises: [char; 2],
    many: [char; 2],
    word: [char; 2],
}

const BOX: Ink = Ink {
    low: [' ', '─'],
    high: ['─', ' '],
    falls: ['┐', '└'],
    rises: ['┌', '┘'],
    many: ['▒', '▒'],
    word: ['└', '┘'],
};

const ASCII: Ink = Ink {
    low: [' ', '_'],
    high: ['_', ' '],
    falls: [' ', '\\'],
    rises: [' ', '/'],
    many: ['#', '#'],
    word: ['[', ']'],
};

/// Draws `wave`.
#[must_use]
pub fn draw(wave: &Wave, lines: &[Line], tick: Tick, paper: Paper) -> String {
    let names = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0).min(NAME_MAX);
    let columns = paper.columns.max(40) - names - 2;
    let all = (wave.to - wave.from) as f64;
    let half = half_clock(wave, lines);
    let is_one = all / half <= columns as f64;
    let ticks = if is_one { all / columns as f64 } else { half / 2.0 };
    let strips = (all / ticks / columns as f64 - 1e-9).ceil() as usize;
    let ink = if paper.ascii { ASCII } else { BOX };
    let sheet = Sheet { wave, lines, tick, ticks, columns, names, ink, word_bits: paper.word_bits };
    let (mut text, mut drawn, mut still) = (String::new(), 0, 0);
    for strip in 0..strips {
        let first = strip * columns;
        if strips > 1 && sheet.is_still(first) {
            still += 1;
            continue;
        }
        text += &sheet.stillness(std::mem::take(&mut still));
        if drawn == STRIPS_MAX {
            let left = time(tick.ns((all - first as f64 * ticks) as u64));
            text += &format!("{:names$}  the last {left} are not drawn\n", "");
            return text;
        }
        let end = columns.min((all / ticks).ceil() as usize - first);
        text += &sheet.strip(first, end);
        drawn += 1;
    }
    text += &sheet.stillness(still);
    if wave.shortened {
        text += &format!("{:names$}  the message goes on: its first changes are drawn\n", "");
    }
    text
}

/// The median time between two edges of SCK, at least a tick; the whole without any.
fn half_clock(wave: &Wave, lines: &[Line]) -> f64 {
    let sck = lines
        .iter()
        .find(|line| line.words == (false, false) && Some(*line) != select(wave, lines));
    let edges: Vec<u64> =
        sck.map_or_else(Vec::new, |sck| changes(wave, sck.bit).map(|(at, _)| at).collect());
    let mut apart: Vec<u64> = edges.windows(2).map(|pair| pair[1] - pair[0]).collect();
    apart.sort_unstable();
    apart.get(apart.len() / 2).map_or((wave.to - wave.from) as f64, |&half| half.max(1) as f64)
}

/// The chip select's line: the first, if there is one.
fn select<'a>(wave: &Wave, lines: &'a [Line]) -> Option<&'a Line> {
    wave.message.select.and(lines.first())
}

/// When the wire at `bit` changes, and to which level.
fn changes(wave: &Wave, bit: u8) -> impl Iterator<Item = (u64, bool)> {
    let changed =
        move |pair: &&[crate::capture::Edge]| (pair[0].levels ^ pair[1].levels) >> bit & 1 == 1;
    wave.edges
        .windows(2)
        .filter(changed)
        .map(move |pair| (pair[1].at, pair[1].levels >> bit & 1 == 1))
}

struct Sheet<'a> {
    wave: &'a Wave,
    lines: &'a [Line],
    tick: Tick,
    /// Ticks of a column.
    ticks: f64,
    columns: usize,
    names: usize,
    ink: Ink,
    word_bits: u8,
}

impl Sheet<'_> {
    /// The column of a time.
    fn column(&self, at: u64) -> usize {
        ((at - self.wave.from) as f64 / self.ticks + 1e-9) as usize
    }

    fn is_still(&self, first: usize) -> bool {
        let within = first..first + self.columns;
        !self.wave.edges[1..].iter().any(|edge| within.contains(&self.column(edge.at)))
    }

    fn stillness(&self, strips: usize) -> String {
        if strips == 0 {
            return String::new();
        }
        let ns = self.tick.ns((strips as f64 * self.columns as f64 * self.ticks) as u64);
        format!("{:1$}  ... {2} in which nothing moves ...\n\n", "", self.names, time(ns))
    }

    /// The columns from `first`, `count` of them.
    fn strip(&self, first: usize, count: usize) -> String {
        let mut text = String::new();
        for line in self.lines {
            let rows = self.wire(line.bit, first, count);
            let name: String = line.name.chars().take(NAME_MAX).collect();
            for (name, row) in [(name.as_str(), &rows[0]), ("", &rows[1])] {
                self.row(&mut text, name, row);
            }
            let Wave { message, .. } = self.wave;
            for (is_shown, words) in [(line.words.0, &message.mosi), (line.words.1, &message.miso)]
            {
                if is_shown {
                    self.row(&mut text, "", &self.words(words, first, count));
                }
            }
        }
        self.row(&mut text, "", &self.axis(first, count));
        text + "\n"
    }

    fn row(&self, text: &mut String, name: &str, row: &[char]) {
        let row: String = row.iter().collect();
        *text += format!("{name:0$}  {row}", self.names).trim_end();
        text.push('\n');
    }

    /// A wire's upper and lower row.
    fn wire(&self, bit: u8, first: usize, count: usize) -> [Vec<char>; 2] {
        let mut high = self.wave.edges[0].levels >> bit & 1 == 1;
        let mut changes = changes(self.wave, bit).peekable();
        while changes.next_if(|(at, _)| self.column(*at) < first).is_some() {
            high = !high;
        }
        let mut rows = [Vec::new(), Vec::new()];
        for column in first..first + count {
            let mut edges = 0;
            while changes.next_if(|(at, _)| self.column(*at) <= column).is_some() {
                (high, edges) = (!high, edges + 1);
            }
            let [upper, lower] = match (edges, high) {
                (0, false) => self.ink.low,
                (0, true) => self.ink.high,
                (1, false) => self.ink.falls,
                (1, true) => self.ink.rises,
                _ => self.ink.many,
            };
            rows[0].push(upper);
            rows[1].push(lower);
        }
        rows
    }

    /// Words in hex, each from its first to its last sampling edge, where they have room.
    fn words(&self, words: &[u32], first: usize, count: usize) -> Vec<char> {
        let mut row = vec![' '; count];
        let digits = usize::from(self.word_bits).div_ceil(4);
        for (&(begin, end), word) in self.wave.words.iter().zip(words) {
            let (begin, end) = (self.column(begin), self.column(end));
            // A word of which a strip has a part is written there if its middle is in it.
            let hex: Vec<char> = format!("{word:0digits$x}").chars().collect();
            let middle = (begin + end).div_ceil(2).saturating_sub(digits / 2);
            if end + 1 < begin + digits || middle < first || middle + digits > first + count {
                continue;
            }
            row[middle - first..][..digits].copy_from_slice(&hex);
            let brackets = [(begin, self.ink.word[0]), (end, self.ink.word[1])];
            for (at, bracket) in brackets.into_iter().filter(|_| end - begin > digits + 1) {
                if let Some(place) = at.checked_sub(first).and_then(|at| row.get_mut(at)) {
                    *place = bracket;
                }
            }
        }
        row
    }

    /// Times since the message's beginning.
    fn axis(&self, first: usize, count: usize) -> Vec<char> {
        let mut row = Vec::new();
        let Wave { from, message, .. } = self.wave;
        let origin = ns_from(self.tick, message.start, *from);
        // A tick may be too short for `Tick::ns` to tell a single one.
        let column_ns = self.tick.ns(1_000_000) / 1e6 * self.ticks;
        let step = round_step(AXIS * column_ns);
        let mut nth = ((origin + first as f64 * column_ns) / step - 1e-9).ceil();
        loop {
            let column = ((nth * step - origin) / column_ns + 1e-9).floor() - first as f64;
            let label = format!("|{}", time(nth * step));
            if column as usize + label.len() > count {
                return row;
            }
            row.resize(column.max(0.0) as usize, ' ');
            row.extend(label.chars());
            nth += 1.0;
        }
    }
}
