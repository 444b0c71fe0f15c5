//! Messages of a kind: how many, and the distribution of their times.

use std::collections::BTreeMap;

use crate::capture::Tick;
use crate::counts::Counts;
use crate::decode::Message;

/// The most kinds that are kept apart.
const KINDS_MAX: usize = 1_024;
/// If messages of a chip select without a known chip have one length and more different first words than these, the first
/// word is taken for data, not for a command.
const FIRST_WORDS_MAX: usize = 8;

/// What makes messages one kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// By a chip's name for it.
    Named(Option<usize>, String),
    /// By its words, the bits over, and the first word.
    Plain(Option<usize>, u64, u8, Option<u32>),
    /// All that came after [`KINDS_MAX`] others.
    Others,
}

/// Messages of a kind. Times are ticks of the capture.
#[derive(Clone, Debug, Default)]
pub struct Kind {
    /// Their place in the list of chip selects; none without, or if they have different ones.
    pub select: Option<usize>,
    /// `9f…, 4 words`, or what the chip calls it.
    pub name: String,
    /// How many there are.
    pub count: u64,
    /// Of these, how many the capture cuts. They count for nothing below but words.
    pub cut: u64,
    /// Words in all.
    pub words: u64,
    /// Chip select active to SCK's first edge.
    pub lead: Counts,
    /// SCK's frequency within words, in hertz, of each message with a word of two bits or more.
    pub sck_hz: Counts,
    /// SCK's first edge to its last.
    pub clocked: Counts,
    /// Between words: from SCK's last edge to its first.
    pub gap: Counts,
    /// SCK's last edge to chip select inactive.
    pub lag: Counts,
    /// Chip select inactive, before the message.
    pub inactive: Counts,
    /// How long the messages took, in all.
    pub selected: u64,
}

impl Kind {
    fn add(&mut self, message: &Message, tick: Tick) {
        (self.count, self.words) = (self.count + 1, self.words + message.words);
        self.cut += u64::from(message.cut);
        self.selected += message.end - message.start;
        if message.cut {
            return;
        }
        let put = |counts: &mut Counts, value: Option<u64>| {
            value.into_iter().for_each(|value| counts.add(value))
        };
        put(&mut self.lead, message.lead());
        put(&mut self.lag, message.lag());
        put(&mut self.sck_hz, tick.hz(message.sck.0, message.sck.1));
        put(&mut self.clocked, message.clocked.map(|(first, last)| last - first));
        put(&mut self.inactive, message.inactive);
        message.gaps.iter().for_each(|&gap| self.gap.add(gap));
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.cut += other.cut;
        self.words += other.words;
        self.selected += other.selected;
        let ours = [
            &mut self.lead,
            &mut self.sck_hz,
            &mut self.clocked,
            &mut self.gap,
            &mut self.lag,
            &mut self.inactive,
        ];
        let theirs =
            [&other.lead, &other.sck_hz, &other.clocked, &other.gap, &other.lag, &other.inactive];
        ours.into_iter().zip(theirs).for_each(|(our, their)| our.merge(their));
    }
}

/// All kinds of a capture.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    kinds: BTreeMap<Key, Kind>,
}

impl Kinds {
    /// Counts a message, which a chip calls `name`.
    pub(crate) fn add(&mut self, message: &Message, name: Option<&str>, tick: Tick) {
        let first = message.mosi.first().or(message.miso.first()).copied();
        let mut key = match name {
            Some(name) => Key::Named(message.select, name.into()),
            None => Key::Plain(message.select, message.words, message.bits_over, first),
        };
        if !self.kinds.contains_key(&key) && self.kinds.len() >= KINDS_MAX {
            key = Key::Others;
        }
        self.kinds.entry(key).or_default().add(message, tick);
    }

    /// The kinds, those of the longest time on the bus first. `word_bits` is the width of a first word.
    pub(crate) fn finish(self, word_bits: u8) -> Vec<Kind> {
        let mut of_length: BTreeMap<(Option<usize>, u64, u8), usize> = BTreeMap::new();
        for key in self.kinds.keys() {
            if let Key::Plain(select, words, over, _) = *key {
                *of_length.entry((select, words, over)).or_default() += 1;
            }
        }
        let mut merged: BTreeMap<Key, Kind> = BTreeMap::new();
        for (key, kind) in self.kinds {
            let key = match key {
                Key::Plain(select, words, over, _)
                    if of_length[&(select, words, over)] > FIRST_WORDS_MAX =>
                {
                    Key::Plain(select, words, over, None)
                }
                key => key,
            };
            merged.entry(key).or_default().merge(&kind);
        }
        let named = |(key, kind): (Key, Kind)| {
            let (select, name) = match key {
                Key::Named(select, name) => (select, name),
                Key::Plain(select, words, over, first) => {
                    (select, plain(words, over, first, word_bits))
                }
                Key::Others => (None, "all others".into()),
            };
            Kind { select, name, ..kind }
        };
        let mut kinds: Vec<Kind> = merged.into_iter().map(named).collect();
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.selected));
        kinds
    }
}

/// The name of a kind without a chip's: by its length, and its first word unless that is data.
pub(crate) fn plain(words: u64, over: u8, first: Option<u32>, word_bits: u8) -> String {
    let width = usize::from(word_bits).div_ceil(4);
    let first = match (words, first) {
        (0, _) => String::new(),
        (1, Some(first)) => format!("{first:0width$x}, "),
        (_, Some(first)) => format!("{first:0width$x}…, "),
        (_, None) => "any, ".into(),
    };
    let plural = if words == 1 { "" } else { "s" };
    let over = if over > 0 { format!(" and {over} bits") } else { String::new() };
    format!("{first}{words} word{plural}{over}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(first: u32, words: u64) -> Message {
        Message {
            mosi: vec![first],
            words,
            start: 10,
            end: 30,
            clocked: Some((14, 28)),
            select: Some(0),
            ..Message::default()
        }
    }

    #[test]
    fn first_words_are_commands_unless_there_are_too_many() {
        let mut kinds = Kinds::default();
        (0..9).for_each(|first| kinds.add(&message(first, 2), None, Tick::PS));
        (0..8).for_each(|first| kinds.add(&message(first, 3), None, Tick::PS));
        kinds.add(&Message { cut: true, ..message(0, 3) }, None, Tick::PS);
        let kinds = kinds.finish(8);
        let found: Vec<_> =
            kinds.iter().map(|kind| (kind.name.as_str(), kind.count, kind.cut)).collect();
        assert_eq!(found[..2], [("any, 2 words", 9, 0), ("00…, 3 words", 2, 1)]);
        assert_eq!(found.len(), 9);
        assert_eq!(
            (kinds[0].lead.percentile(50), kinds[0].lag.max(), kinds[0].lead.len()),
            (Some(4), Some(2), 9)
        );
        assert_eq!(kinds[1].lead.len(), 1, "one that is cut has no times");
    }

    #[test]
    fn kinds_are_bounded() {
        let mut kinds = Kinds::default();
        (0..3_000).for_each(|n| kinds.add(&message(n % 7, n.into()), None, Tick::PS));
        assert!(kinds.kinds.len() <= KINDS_MAX + 1);
        let all: u64 = kinds.finish(8).iter().map(|kind| kind.count).sum();
        assert_eq!(all, 3_000);
    }
}
