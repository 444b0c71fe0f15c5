//! Value change dumps: of sigrok, PulseView, simulators.
//!
//! Each bit of a variable is a channel. A level that is not 1 (`0`, `x`, `z`) is low. Reals are left out. Variables of one
//! name in several scopes have their scope's name before them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use super::{CHANNELS_MAX, Channel, Edge, Format, Opened, Source, Tick};
use crate::error::io;

/// Changes that are read in one piece.
const PIECE_EDGES: usize = 4_096;
/// The longest word: a vector's value, or what is no VCD.
const WORD_MAX: usize = 64 << 10;

/// A variable's bits: the channel of its lowest one, and how many it has. Without channels: what is left out.
#[derive(Clone, Copy, Debug, Default)]
struct Variable {
    bit: u8,
    width: u8,
}

struct Vcd {
    words: Words,
    variables: HashMap<Vec<u8>, Variable>,
    levels: u64,
    /// The first time in the file, which is the capture's 0.
    base: Option<u64>,
    at: u64,
    /// The levels that were appended last.
    told: Option<u64>,
    notes: Vec<String>,
}

/// The words of a file, between blanks.
struct Words {
    reader: BufReader<File>,
    word: Vec<u8>,
    read_bytes: u64,
}

impl Words {
    /// The next word; none at the end.
    fn next(&mut self) -> Result<Option<&[u8]>, String> {
        self.word.clear();
        loop {
            let buffer = self.reader.fill_buf().map_err(io)?;
            if buffer.is_empty() {
                return Ok(Some(&self.word[..]).filter(|word| !word.is_empty()));
            }
            let blanks = if self.word.is_empty() {
                buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
            } else {
                0
            };
            let rest = &buffer[blanks..];
            let len = rest.iter().position(u8::is_ascii_whitespace);
            self.word.extend_from_slice(&rest[..len.unwrap_or(rest.len())]);
            let used = blanks + len.map_or(rest.len(), |len| len + 1);
            let ends = len.is_some();
            self.reader.consume(used);
            self.read_bytes += used as u64;
            if self.word.len() > WORD_MAX {
                return Err("a word of more than 64 KiB: this is no VCD".into());
            }
            if ends && !self.word.is_empty() {
                return Ok(Some(&self.word));
            }
        }
    }

    /// The words up to `$end`, as text; the first ones of many.
    fn until_end(&mut self) -> Result<Vec<String>, String> {
        let mut words = Vec::new();
        loop {
            match self.next()? {
                Some(b"$end") => return Ok(words),
                Some(word) if words.len() < 64 => {
                    words.push(String::from_utf8_lossy(word).into_owned())
                }
                Some(_) => {}
                None => {
                    return Err("it ends within a command: no $end follows; the file is cut".into());
                }
            }
        }
    }
}

/// Variables of a header, in their order.
#[derive(Default)]
struct Header {
    tick: Option<Tick>,
    scopes: Vec<String>,
    /// Scope and name of each channel.
    names: Vec<(String, String)>,
    variables: HashMap<Vec<u8>, Variable>,
    beyond: usize,
}

pub(super) fn open(path: &Path) -> Result<Opened, String> {
    let reader = BufReader::with_capacity(256 << 10, File::open(path).map_err(io)?);
    let mut words = Words { reader, word: Vec::new(), read_bytes: 0 };
    let mut header = Header::default();
    while header.command(&mut words)? {}
    let tick = header.tick.ok_or("a VCD without $timescale: its times have no unit")?;
    if header.names.is_empty() {
        return Err("a VCD without variables ($var wire 1 …)".into());
    }
    let is_twice = |name: &str| header.names.iter().filter(|(_, other)| other == name).count() > 1;
    let full = |(scope, name): &(String, String)| {
        if is_twice(name) { format!("{scope}.{name}") } else { name.clone() }
    };
    let channels =
        (0..).zip(&header.names).map(|(bit, name)| Channel { name: full(name), bit }).collect();
    let mut notes = Vec::new();
    if header.beyond > 0 {
        notes.push(format!("{} bits of variables beyond the first 64 are left out", header.beyond));
    }
    let source =
        Vcd { words, variables: header.variables, levels: 0, base: None, at: 0, told: None, notes };
    Ok(Opened { format: Format::Vcd, channels, tick, source: Box::new(source) })
}

impl Header {
    /// Reads one command. Returns whether the header goes on.
    fn command(&mut self, words: &mut Words) -> Result<bool, String> {
        let Some(word) = words.next()? else {
            return Err("a VCD's header without $enddefinitions: the file is cut".into());
        };
        match word {
            b"$enddefinitions" => words.until_end().map(|_| false),
            b"$timescale" => {
                let text = words.until_end()?.concat();
                self.tick = Some(timescale(&text).ok_or_else(|| {
                    format!("$timescale {text} is none: 1, 10 or 100 of s to fs")
                })?);
                Ok(true)
            }
            b"$scope" => {
                self.scopes.push(words.until_end()?.pop().unwrap_or_default());
                Ok(true)
            }
            b"$upscope" => {
                self.scopes.pop();
                words.until_end().map(|_| true)
            }
            b"$var" => {
                let found = words.until_end()?;
                self.variable(&found)
                    .ok_or_else(|| format!("$var {} is no variable", found.join(" ")))?;
                Ok(true)
            }
            word if word.starts_with(b"$") => words.until_end().map(|_| true),
            word => {
                let word = String::from_utf8_lossy(&word[..word.len().min(32)]).into_owned();
                Err(format!("\"{word}\" stands in a VCD's header, where only commands ($…) may be"))
            }
        }
    }

    /// `wire 1 ! sck`, perhaps with `[7:0]` behind it.
    fn variable(&mut self, words: &[String]) -> Option<()> {
        let [kind, width, id, name, ..] = words else { return None };
        let width: usize = width.parse().ok()?;
        let id = id.clone().into_bytes();
        let is_level =
            !matches!(kind.as_str(), "real" | "realtime" | "string" | "event" | "parameter");
        if !is_level || self.variables.contains_key(&id) {
            self.variables.entry(id).or_default();
            return Some(());
        }
        if self.names.len() + width > CHANNELS_MAX {
            self.beyond += width;
            self.variables.insert(id, Variable::default());
            return Some(());
        }
        let bit = self.names.len() as u8;
        let scope = self.scopes.join(".");
        for index in 0..width {
            let name = if width == 1 { name.clone() } else { format!("{name}[{index}]") };
            self.names.push((scope.clone(), name));
        }
        self.variables.insert(id, Variable { bit, width: width as u8 });
        Some(())
    }
}

fn timescale(text: &str) -> Option<Tick> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let under = match unit {
        "s" => 1,
        "ms" => 1_000,
        "us" => 1_000_000,
        "ns" => 1_000_000_000,
        "ps" => 1_000_000_000_000,
        "fs" => 1_000_000_000_000_000,
        _ => return None,
    };
    let number = number.parse().ok().filter(|number| (1..=1_000_000).contains(number))?;
    Some(Tick { seconds: (number, under) })
}

impl Vcd {
    /// Ends what happens at one time.
    fn tell(&mut self, edges: &mut Vec<Edge>) {
        if self.base.is_some() && self.told != Some(self.levels) {
            self.told = Some(self.levels);
            edges.push(Edge { at: self.at, levels: self.levels });
        }
    }

    fn time(&mut self, digits: &[u8], edges: &mut Vec<Edge>) -> Result<(), String> {
        let text = String::from_utf8_lossy(&digits[..digits.len().min(32)]);
        let time: u64 = text.parse().map_err(|_| format!("#{text} is no time"))?;
        let at = time.checked_sub(*self.base.get_or_insert(time));
        let at = at
            .filter(|&at| at >= self.at)
            .ok_or_else(|| format!("time #{time} stands behind a later one"))?;
        if at > self.at {
            self.tell(edges);
        }
        self.at = at;
        Ok(())
    }

    /// A variable's new value: digits, the highest bit first.
    fn value(&mut self, digits: &[u8], id: &[u8]) -> Result<(), String> {
        let Some(variable) = self.variables.get(id) else {
            let id = String::from_utf8_lossy(&id[..id.len().min(32)]).into_owned();
            return Err(format!("a value of \"{id}\", which no $var declares"));
        };
        for index in 0..variable.width {
            // A short value is extended by zeros.
            let one = digits.iter().rev().nth(index.into()) == Some(&b'1');
            let mask = 1_u64 << (variable.bit + index);
            self.levels = if one { self.levels | mask } else { self.levels & !mask };
        }
        Ok(())
    }
}

impl Source for Vcd {
    fn fill(&mut self, edges: &mut Vec<Edge>) -> Result<bool, String> {
        let begun = edges.len();
        // A file without any change at all is read in pieces, too.
        for _ in 0..16 * PIECE_EDGES {
            if edges.len() - begun >= PIECE_EDGES {
                break;
            }
            let Some(word) = self.words.next()? else {
                if self.base.is_none() {
                    return Err("a VCD without any time (#0)".into());
                }
                self.tell(edges);
                return Ok(false);
            };
            match word[0] {
                b'#' => {
                    let digits = word[1..].to_vec();
                    self.time(&digits, edges)?;
                }
                b'0' | b'1' | b'x' | b'X' | b'z' | b'Z' if word.len() > 1 => {
                    let (digits, id) = ([word[0]], word[1..].to_vec());
                    self.value(&digits, &id)?;
                }
                b'b' | b'B' => {
                    let digits = word[1..].to_vec();
                    let id = self
                        .words
                        .next()?
                        .ok_or("it ends within a value: the file is cut")?
                        .to_vec();
                    self.value(&digits, &id)?;
                }
                b'r' | b'R' | b's' | b'S' => drop(self.words.next()?),
                b'$' if word == b"$comment" => {
                    let text = self.words.until_end()?.join(" ");
                    if text.starts_with("cut:") {
                        self.notes.push(format!("the file says: {text}"));
                    }
                }
                b'$' => {}
                _ => {
                    let word = String::from_utf8_lossy(&word[..word.len().min(32)]).into_owned();
                    return Err(format!("\"{word}\" is no change of a VCD"));
                }
            }
        }
        Ok(true)
    }

    fn end(&self) -> u64 {
        self.at
    }

    fn read_bytes(&self) -> u64 {
        self.words.read_bytes
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
