//! A capture from its file to its messages, piece by piece.

use std::path::Path;

use crate::capture::{Capture, Edge, Tick, name_of};
use crate::chip::{Chip, Told};
use crate::decode::{Decoder, Message, Wires};
use crate::error::ScopeError;
use crate::find::{self, Hints};
use crate::glitch::Filter;
use crate::kinds::{Kind, Kinds};

/// Changes from which the wires are found: of most captures all.
const FIND_EDGES: usize = 1 << 20;

/// How a capture is to be read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Samples a second, in place of what a sigrok file says.
    pub samplerate: Option<u64>,
    /// Pulses that are shorter are left out, in nanoseconds.
    pub glitch_ns: f64,
    /// Without chip selects, a longer pause is a border, in nanoseconds.
    pub pause_ns: Option<f64>,
    /// What is said of the wires.
    pub hints: Hints,
    /// The chips behind the chip selects; one without a name is behind all others.
    pub chips: Vec<(Option<String>, Chip)>,
}

/// Messages of a capture, and what they sum up to.
#[derive(Debug)]
pub struct Scope {
    capture: Capture,
    options: Options,
    filter: Option<Filter>,
    /// What was read before the wires were found.
    begin: Vec<Edge>,
    decoding: Option<Decoding>,
    /// Channels that moved while the wires were found.
    moved: u64,
    late: Vec<(u8, u64)>,
    levels: Option<u64>,
    read: Vec<Edge>,
    passed: Vec<Edge>,
    edges: u64,
}

#[derive(Debug)]
struct Decoding {
    decoder: Decoder,
    wires: Wires,
    why: Vec<String>,
    /// By chip select; one for a bus without.
    chips: Vec<Option<Chip>>,
    kinds: Kinds,
    tick: Tick,
    messages: u64,
    empty: u64,
}

/// What a capture has, once it was read.
#[derive(Debug)]
pub struct Summary {
    /// How the wires were read.
    pub wires: Wires,
    /// What speaks for it.
    pub why: Vec<String>,
    /// What else is to be known.
    pub notes: Vec<String>,
    /// The kinds of messages.
    pub kinds: Vec<Kind>,
    /// Ticks from the capture's beginning to its end.
    pub duration: u64,
    /// Ticks within messages, and from SCK's first edge to its last in each.
    pub selected: u64,
    /// The same of SCK alone.
    pub clocked: u64,
    /// Messages.
    pub messages: u64,
    /// Of them, those without any edge of SCK.
    pub empty: u64,
    /// Edges of SCK while no chip select was active.
    pub outside: u64,
    /// Glitches that were left out, by the channels' names.
    pub glitches: Vec<(String, u64)>,
    /// Changes in the file.
    pub edges: u64,
}

impl Scope {
    /// Opens the capture at `path`.
    ///
    /// # Errors
    /// Those of [`Capture::open`].
    pub fn open(path: &Path, options: Options) -> Result<Self, ScopeError> {
        let capture = Capture::open(path, options.samplerate)?;
        let tick = capture.tick();
        let limit = tick.at_least(options.glitch_ns);
        let filter = (limit > 0).then(|| Filter::new(limit));
        let mut options = options;
        options.hints.pause = options.pause_ns.map(|ns| tick.at_least(ns));
        Ok(Self {
            capture,
            options,
            filter,
            begin: Vec::new(),
            decoding: None,
            moved: 0,
            late: Vec::new(),
            levels: None,
            read: Vec::new(),
            passed: Vec::new(),
            edges: 0,
        })
    }

    /// The file.
    #[must_use]
    pub fn capture(&self) -> &Capture {
        &self.capture
    }

    /// How the wires are read, and what speaks for it; none before they were found.
    #[must_use]
    pub fn found(&self) -> Option<(&Wires, &[String])> {
        self.decoding.as_ref().map(|decoding| (&decoding.wires, &*decoding.why))
    }

    /// Reads a piece of the file, and gives the messages that end in it. Returns whether there is more.
    ///
    /// # Errors
    /// The file is wrong, or the wires are not found.
    pub fn step(
        &mut self,
        each: &mut dyn FnMut(&Wires, &Message, &Told),
    ) -> Result<bool, ScopeError> {
        self.read.clear();
        let more = self.capture.fill(&mut self.read)?;
        self.edges += self.read.len() as u64;
        let mut passed = std::mem::take(&mut self.passed);
        passed.clear();
        let edges = match &mut self.filter {
            Some(filter) => {
                self.read.iter().for_each(|edge| filter.push(*edge, &mut passed));
                if !more {
                    filter.finish(&mut passed);
                }
                &passed
            }
            None => &self.read,
        };
        if let Some(decoding) = &mut self.decoding {
            for edge in edges {
                late(&mut self.moved, &mut self.late, self.levels.replace(edge.levels), *edge);
            }
            decoding.push(edges, each);
        } else {
            self.begin.extend_from_slice(edges);
            if !more || self.begin.len() >= FIND_EDGES {
                self.find(each)?;
            }
        }
        self.passed = passed;
        if let (false, Some(decoding)) = (more, &mut self.decoding) {
            decoding.finish(self.capture.end(), each);
        }
        Ok(more)
    }

    fn find(&mut self, each: &mut dyn FnMut(&Wires, &Message, &Told)) -> Result<(), ScopeError> {
        let begin = std::mem::take(&mut self.begin);
        let channels = self.capture.channels();
        let found = find::find(channels, &begin, &self.options.hints)
            .map_err(|what| self.capture.error(what))?;
        let name = |bit| name_of(channels, bit);
        let mut names: Vec<_> = found.wires.selects.iter().map(|select| name(select.bit)).collect();
        names.resize(names.len().max(1), None);
        let mut used = vec![false; self.options.chips.len()];
        let mut chip = |name: Option<&str>| {
            let is_at = |at: &Option<String>| {
                at.as_deref().zip(name).is_some_and(|(at, name)| at.eq_ignore_ascii_case(name))
            };
            let chips = &self.options.chips;
            let found = chips
                .iter()
                .position(|(at, _)| is_at(at))
                .or_else(|| chips.iter().position(|(at, _)| at.is_none()))?;
            used[found] = true;
            Some(chips[found].1.clone())
        };
        let chips: Vec<_> = names.iter().map(|name| chip(*name)).collect();
        if let Some(((Some(at), _), _)) =
            self.options.chips.iter().zip(&used).find(|(_, used)| !**used)
        {
            let selects: Vec<&str> = names.into_iter().flatten().collect();
            let what = format!(
                "no chip select is called \"{at}\" (--chip); there are: {}",
                selects.join(", ")
            );
            return Err(self.capture.error(what));
        }
        if found.wires.word_bits != 8 && chips.iter().any(Option::is_some) {
            let what = format!(
                "words have {} bits: chips (--chip) are read by bytes, --bits 8",
                found.wires.word_bits
            );
            return Err(self.capture.error(what));
        }
        for pair in begin.windows(2) {
            self.moved |= pair[0].levels ^ pair[1].levels;
        }
        self.levels = begin.last().map(|edge| edge.levels);
        let mut decoding = Decoding {
            decoder: Decoder::new(found.wires.clone()),
            wires: found.wires,
            why: found.why,
            chips,
            kinds: Kinds::default(),
            tick: self.capture.tick(),
            messages: 0,
            empty: 0,
        };
        decoding.push(&begin, each);
        self.decoding = Some(decoding);
        Ok(())
    }

    /// What the messages so far sum up to; none before the wires were found.
    #[must_use]
    pub fn finish(self) -> Option<Summary> {
        let Decoding { decoder, wires, why, kinds, messages, empty, .. } = self.decoding?;
        let channels = self.capture.channels();
        let name = |bit| name_of(channels, bit).unwrap_or("?");
        let mut notes = self.capture.notes();
        let is_given = self.options.hints.cs.is_some();
        for (bit, at) in &self.late {
            let at = self.capture.tick().ns(*at) / 1e9;
            let hint = if is_given { "" } else { ": if it is a chip select, name all with --cs" };
            notes.push(format!(
                "{} moves for the first time at {at:.6} s, after the wires were found{hint}",
                name(*bit)
            ));
        }
        if decoder.outside > 0 {
            notes.push(format!(
                "{} edges of SCK while no chip select was active are left out",
                decoder.outside
            ));
        }
        if decoder.late > 0 {
            let (late, of) = (
                decoder.late,
                "edges of SCK in the sample in which chip select is released are left out",
            );
            notes.push(format!(
                "{late} {of}: --late-edges takes them; sample faster to see the order"
            ));
        }
        if decoder.overlaps > 0 {
            notes.push(format!(
                "{} times a second chip select became active: its message is left out",
                decoder.overlaps
            ));
        }
        if empty > 0 {
            notes.push(format!("{empty} selections without a clock: if they are glitches, --glitch leaves short pulses out"));
        }
        let counts = self.filter.map(|filter| filter.counts);
        let glitches = |counts: [u64; 64]| {
            let of = |channel: &crate::capture::Channel| {
                (channel.name.clone(), counts[usize::from(channel.bit)])
            };
            channels.iter().map(of).filter(|(_, count)| *count > 0).collect()
        };
        Some(Summary {
            kinds: kinds.finish(wires.word_bits),
            wires,
            why,
            notes,
            duration: self.capture.end(),
            selected: decoder.selected,
            clocked: decoder.clocked,
            messages,
            empty,
            outside: decoder.outside,
            glitches: counts.map(glitches).unwrap_or_default(),
            edges: self.edges,
        })
    }
}

/// Notes channels that move for the first time.
fn late(moved: &mut u64, late: &mut Vec<(u8, u64)>, before: Option<u64>, edge: Edge) {
    let mut new = before.map_or(0, |before| before ^ edge.levels) & !*moved;
    *moved |= new;
    while new != 0 {
        late.push((new.trailing_zeros() as u8, edge.at));
        new &= new - 1;
    }
}

impl Decoding {
    fn push(&mut self, edges: &[Edge], each: &mut dyn FnMut(&Wires, &Message, &Told)) {
        self.run(|decoder, tell| edges.iter().for_each(|edge| decoder.push(*edge, tell)), each);
    }

    fn finish(&mut self, at: u64, each: &mut dyn FnMut(&Wires, &Message, &Told)) {
        self.run(|decoder, tell| decoder.finish(at, tell), each);
    }

    /// Has the decoder do something, and counts and gives the messages that end by it.
    fn run(
        &mut self,
        decode: impl FnOnce(&mut Decoder, &mut dyn FnMut(Message)),
        each: &mut dyn FnMut(&Wires, &Message, &Told),
    ) {
        let Self { decoder, wires, chips, kinds, tick, messages, empty, .. } = self;
        decode(decoder, &mut |message: Message| {
            *messages += 1;
            *empty += u64::from(message.clocked.is_none() && !message.cut);
            let chip = chips[message.select.unwrap_or(0)].as_mut();
            let told = chip.map(|chip| chip.tell(&message));
            kinds.add(&message, told.as_ref().map(|told| told.kind.as_str()), *tick);
            each(wires, &message, &told.unwrap_or_default());
        });
    }
}
