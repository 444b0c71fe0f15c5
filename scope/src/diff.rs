//! Two sets of messages compared: which figures of which kinds changed, and by how much.
//!
//! # How it works
//! 1. [`Side::of`] takes a capture's summary as kinds × figures × values, in nanoseconds or hertz, [`Side::of_trace`] a
//!    kernel's trace. Anything that measures messages may make a [`Side`] of its own.
//! 2. Kinds are paired by chip select or device, and name. Where one side took first words for data and the other did not, the other's
//!    kinds are merged. If each side has one chip select or device, their names do not matter.
//! 3. For each figure of a pair an interval of the difference of the quantiles is made from ranks: in *n* values the
//!    quantile lies between two of them, whose ranks follow from the binomial distribution alone (W. J. Conover, *Practical
//!    Nonparametric Statistics*, section 3.2). From both sides' intervals that of the difference follows (G. Y. Zou and A. Donner,
//!    *Construction of confidence limits about effect measures*, Statistics in Medicine 27, 2008). Nothing is assumed of the
//!    distribution, there may be equal values, and no random numbers are drawn. What is assumed: messages do not depend on
//!    each other. The gaps within one may, and count as one value.
//! 4. Each interval holds so surely that all of a comparison hold together with the confidence asked for (Bonferroni's
//!    inequality), so a comparison of equal things finds a difference in about one of twenty at most, at 95 %, however many
//!    kinds it has.
//! 5. Where times were seen with different resolutions, an interval is widened by both.

use std::collections::BTreeMap;

use crate::capture::{Channel, Tick, name_of};
use crate::counts::Counts;
use crate::kinds::Kind;
use crate::scope::Summary;
use crate::trace::{self, Trace, TraceKind};

/// Values of a figure, in its unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// Different values in their order, and how often each was seen.
    values: Vec<(f64, u64)>,
    /// How exact they are, in their unit.
    resolution: f64,
    /// How many of them do not depend on each other.
    independent: u64,
}

impl Values {
    /// Values and how often each was seen, in any order; each is exact to `resolution`, in their unit.
    #[must_use]
    pub fn new(mut values: Vec<(f64, u64)>, resolution: f64) -> Self {
        values.sort_by(|one, other| one.0.total_cmp(&other.0));
        let independent = values.iter().map(|(_, times)| times).sum();
        Self { values, resolution, independent }
    }

    /// The same of `messages` messages, each of which may have several values that depend on each other.
    #[must_use]
    pub fn of_messages(self, messages: u64) -> Self {
        Self { independent: self.independent.min(messages), ..self }
    }

    fn len(&self) -> u64 {
        self.values.iter().map(|(_, times)| times).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The value of that rank, from 1; the last beyond it. 0 without values.
    fn at(&self, rank: u64) -> f64 {
        let mut seen = 0;
        let found = self.values.iter().find(|(_, times)| {
            seen += times;
            seen >= rank
        });
        found.or(self.values.last()).map_or(0.0, |(value, _)| *value)
    }

    fn merge(&mut self, other: &Self) {
        let values = self.values.iter().chain(&other.values).copied().collect();
        let independent = self.independent + other.independent;
        *self = Self::new(values, self.resolution.max(other.resolution)).of_messages(independent);
    }
}

/// Messages of a kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// The name of the chip select or device, or what else tells kinds of one name apart; may be empty.
    pub place: String,
    /// The kind's name.
    pub kind: String,
    /// How many messages there are.
    pub messages: u64,
    /// Figures by name, in the order in which they are to be told.
    pub figures: Vec<(&'static str, Values)>,
}

/// One of two things to compare: kinds, those first that matter most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// The kinds.
    pub groups: Vec<Group>,
}

impl Side {
    /// A capture's: six figures of each kind, times in nanoseconds and `sck_hz` in hertz.
    #[must_use]
    pub fn of(summary: &Summary, channels: &[Channel], tick: Tick) -> Self {
        let selects = &summary.wires.selects;
        let place = |kind: &Kind| {
            let name = kind.select.and_then(|place| name_of(channels, selects[place].bit));
            name.unwrap_or_default().to_owned()
        };
        // Too short a time for `Tick::ns` to tell a single tick's picoseconds.
        let tick_ns = tick.ns(1_000_000) / 1e6;
        let times = |counts: &Counts| {
            let values = counts.iter().map(|(value, times)| (tick.ns(value), times)).collect();
            Values::new(values, tick_ns * counts.quantum() as f64)
        };
        // A word's clocks are timed to a tick.
        let clocks = f64::from(summary.wires.word_bits.max(2) - 1);
        let hertz = |counts: &Counts| {
            let values = counts.iter().map(|(value, times)| (value as f64, times)).collect();
            let hz = counts.percentile(50).unwrap_or(0) as f64;
            Values::new(values, hz * hz * tick_ns / 1e9 / clocks + counts.quantum() as f64)
        };
        let group = |kind: &Kind| Group {
            place: place(kind),
            kind: kind.name.clone(),
            messages: kind.count,
            figures: vec![
                ("cs_inactive_ns", times(&kind.inactive)),
                ("lead_ns", times(&kind.lead)),
                ("clocked_ns", times(&kind.clocked)),
                ("gap_ns", times(&kind.gap).of_messages(kind.count - kind.cut)),
                ("lag_ns", times(&kind.lag)),
                ("sck_hz", hertz(&kind.sck_hz)),
            ],
        };
        Self { groups: summary.kinds.iter().map(group).collect() }
    }

    /// A kernel's trace: the [figures](TraceKind::FIGURES) of each kind, in nanoseconds.
    #[must_use]
    pub fn of_trace(trace: &Trace) -> Self {
        let group = |kind: TraceKind| {
            let figures =
                TraceKind::FIGURES.iter().zip(&kind.figures).map(|((name, _), counts)| {
                    let values = counts.iter().map(|(ns, times)| (ns as f64, times)).collect();
                    let resolution = (trace.tick_ns * counts.quantum()) as f64;
                    (*name, Values::new(values, resolution).of_messages(kind.count))
                });
            Group {
                figures: figures.collect(),
                kind: kind.name(),
                place: kind.device,
                messages: kind.count,
            }
        };
        Self { groups: trace::kinds(trace).into_iter().map(group).collect() }
    }

    fn places(&self) -> Vec<&str> {
        let mut places: Vec<&str> = self.groups.iter().map(|group| group.place.as_str()).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Merges kinds of which the other side took the first word for data.
    fn merge_first_words(&mut self, other: &Self) {
        for any in other.groups.iter().filter(|group| group.kind.starts_with("any, ")) {
            let is_one = |group: &Group| {
                group.place == any.place && rest(&group.kind) == Some(&any.kind[5..])
            };
            let mut parts = Vec::new();
            let first = self.groups.iter().position(is_one);
            self.groups.retain(|group| {
                let is_one = is_one(group);
                parts.extend(is_one.then(|| group.clone()));
                !is_one
            });
            let merged = parts.into_iter().reduce(|mut all, part| {
                all.messages += part.messages;
                let figures = all.figures.iter_mut().zip(&part.figures);
                figures.for_each(|((_, values), (_, more))| values.merge(more));
                all
            });
            if let (Some(first), Some(merged)) = (first, merged) {
                self.groups.insert(first, Group { kind: any.kind.clone(), ..merged });
            }
        }
    }
}

/// `4 words` of `9f…, 4 words`, a kind that has its name of its first word.
fn rest(kind: &str) -> Option<&str> {
    let (first, rest) = kind.split_once(", ")?;
    let hex = first.trim_end_matches('…');
    let is_word = rest.split(' ').nth(1).is_some_and(|word| word.starts_with("word"));
    (is_word && !hex.is_empty() && hex.bytes().all(|digit| digit.is_ascii_hexdigit()))
        .then_some(rest)
}

/// What was found of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// The interval of the difference does not hold 0.
    Changed([f64; 2]),
    /// It does.
    Same([f64; 2]),
    /// One side has fewer values than an interval needs, which is told.
    TooFew(u64),
}

/// A figure of a kind that both sides have.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Its name.
    pub figure: &'static str,
    /// How many values each side has, those of one message being one; none is 0.
    pub n: [u64; 2],
    /// The quantile of each side.
    pub quantiles: [f64; 2],
    /// What was found; intervals are of the second less the first.
    pub found: Found,
}

impl Compared {
    /// The second side's quantile less the first's.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.quantiles[1] - self.quantiles[0]
    }

    /// Whether a difference was seen.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        matches!(self.found, Found::Changed(_))
    }
}

/// A kind that both sides have.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The chip select's name in the first.
    pub place: String,
    /// The kind's name.
    pub kind: String,
    /// How many messages each side has.
    pub messages: [u64; 2],
    /// The figures that both sides have values of.
    pub figures: Vec<Compared>,
}

/// The result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff {
    /// Kinds of both sides, in the first's order.
    pub pairs: Vec<Pair>,
    /// Kinds that only the first has, and that only the second has.
    pub only: [Vec<Group>; 2],
    /// How many intervals were made.
    pub intervals: u64,
}

impl Diff {
    /// Figures of which a difference was seen.
    #[must_use]
    pub fn changed(&self) -> usize {
        self.pairs
            .iter()
            .flat_map(|pair| &pair.figures)
            .filter(|figure| figure.is_changed())
            .count()
    }

    /// Whether the sides differ: in a figure, or in their kinds.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.changed() > 0 || self.only.iter().any(|only| !only.is_empty())
    }
}

/// How to compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct How {
    /// The quantile, above 0 and below 1: 0.5 is the median.
    pub quantile: f64,
    /// The confidence with which all intervals hold together, above 0 and below 1.
    pub confidence: f64,
}

impl How {
    /// Medians, with 95 %.
    pub const USUAL: Self = Self { quantile: 0.5, confidence: 0.95 };
}

/// Compares `sides`, the first before and the second after.
#[must_use]
pub fn compare(sides: [Side; 2], how: How) -> Diff {
    let [mut first, mut second] = sides;
    if let ([one], [other]) = (&first.places()[..], &second.places()[..]) {
        let (one, other) = ((*one).to_owned(), (*other).to_owned());
        let other_groups = second.groups.iter_mut().filter(|group| group.place == other);
        other_groups.for_each(|group| group.place.clone_from(&one));
    }
    first.merge_first_words(&second);
    second.merge_first_words(&first);
    let mut seconds: BTreeMap<(String, String), (usize, Group)> = BTreeMap::new();
    for (nth, group) in second.groups.into_iter().enumerate() {
        seconds.insert((group.place.clone(), group.kind.clone()), (nth, group));
    }
    let (mut both, mut only) = (Vec::new(), Vec::new());
    for group in first.groups {
        match seconds.remove(&(group.place.clone(), group.kind.clone())) {
            Some((_, other)) => both.push([group, other]),
            None => only.push(group),
        }
    }
    let mut rest: Vec<_> = seconds.into_values().collect();
    rest.sort_by_key(|(nth, _)| *nth);
    let values = |groups: &[Group; 2]| {
        let [one, other] = groups.clone().map(|group| group.figures);
        let pair = |(figure, one): (&'static str, Values)| {
            let (_, other) = other.iter().find(|(name, _)| *name == figure)?;
            (!one.is_empty() && !other.is_empty()).then(|| (figure, [one, other.clone()]))
        };
        one.into_iter().filter_map(pair).collect::<Vec<_>>()
    };
    let figures: Vec<_> = both.iter().map(values).collect();
    // Figures with too few values have no interval, and cost the others no confidence.
    let n = |sides: &[Values; 2]| sides[0].independent.min(sides[1].independent);
    let smallest = || figures.iter().flatten().map(|(_, sides)| n(sides));
    let tail = |intervals: u64| (1.0 - how.confidence) / 2.0 / intervals.max(1) as f64;
    let needed = least(how.quantile, tail(smallest().count() as u64));
    let intervals = smallest().filter(|n| *n >= needed).count() as u64;
    let tail = tail(intervals);
    let compared = |(figure, sides): (&'static str, [Values; 2])| {
        let n = [sides[0].independent, sides[1].independent];
        let rank = |n: u64| ((n as f64 * how.quantile - 1e-9).ceil() as u64).max(1);
        let quantiles = [0, 1].map(|side| sides[side].at(rank(sides[side].len())));
        let found = if n[0].min(n[1]) < needed {
            Found::TooFew(needed)
        } else {
            judged(&sides, quantiles, n.map(|n| ranks(n, how.quantile, tail)))
        };
        Compared { figure, n, quantiles, found }
    };
    let pairs = both.into_iter().zip(figures).map(|([one, other], figures)| Pair {
        place: one.place,
        kind: one.kind,
        messages: [one.messages, other.messages],
        figures: figures.into_iter().map(compared).collect(),
    });
    let only = [only, rest.into_iter().map(|(_, group)| group).collect()];
    Diff { pairs: pairs.collect(), only, intervals }
}

fn judged(sides: &[Values; 2], quantiles: [f64; 2], ranks: [(u64, u64); 2]) -> Found {
    let [one, other] = [0, 1].map(|side| {
        let (low, high) = ranks[side];
        // As if each message's values were equal.
        let of_each = sides[side].len() as f64 / sides[side].independent as f64;
        let low = ((low - 1) as f64 * of_each) as u64 + 1;
        [sides[side].at(low), sides[side].at((high as f64 * of_each).ceil() as u64)]
    });
    let is_one = sides[0].resolution == sides[1].resolution;
    let wider = if is_one { 0.0 } else { sides[0].resolution + sides[1].resolution };
    let [a, b] = quantiles;
    let low = b - a - (b - other[0]).hypot(one[1] - a) - wider;
    let high = b - a + (other[1] - b).hypot(a - one[0]) + wider;
    let interval = [low, high];
    match interval[0] <= 0.0 && interval[1] >= 0.0 {
        true => Found::Same(interval),
        false => Found::Changed(interval),
    }
}

/// The fewest values of which the least and the greatest enclose the quantile, each with an error of at most `tail`.
fn least(quantile: f64, tail: f64) -> u64 {
    let share = quantile.max(1.0 - quantile);
    (tail.ln() / share.ln() - 1e-9).ceil().max(1.0) as u64
}

/// The ranks, from 1, of the values of `n` that enclose the quantile, each with an error of at most `tail`: of the values that
/// lie below the quantile there are fewer than the lower rank, or at least the higher one, with such a probability. `n` is
/// at least [`least`].
fn ranks(n: u64, quantile: f64, tail: f64) -> (u64, u64) {
    // The binomial distribution by the ratio of neighbours, from its mode: no factorial, and nothing underflows that
    // matters.
    let mode = ((n + 1) as f64 * quantile) as u64;
    let odds = quantile / (1.0 - quantile);
    let mode = mode.min(n);
    let mut weights = vec![(mode, 1.0)];
    let (mut k, mut weight) = (mode, 1.0);
    while k > 0 && weight > 1e-30 {
        weight *= k as f64 / (n - k + 1) as f64 / odds;
        k -= 1;
        weights.push((k, weight));
    }
    weights.reverse();
    (k, weight) = (mode, 1.0);
    while k < n && weight > 1e-30 {
        weight *= (n - k) as f64 / (k + 1) as f64 * odds;
        k += 1;
        weights.push((k, weight));
    }
    let limit = tail * weights.iter().map(|(_, weight)| weight).sum::<f64>();
    let low = beyond(limit, weights.iter()).unwrap_or(1);
    let high = beyond(limit, weights.iter().rev()).map_or(n, |k| k + 1);
    (low.max(1), high.min(n))
}

/// Where weights sum up to more than `limit`.
fn beyond<'a>(limit: f64, mut weights: impl Iterator<Item = &'a (u64, f64)>) -> Option<u64> {
    let mut sum = 0.0;
    let found = weights.find(|(_, weight)| {
        sum += weight;
        sum > limit
    });
    found.map(|(k, _)| *k)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: of 7 values all lie above the median with 1/128; of 10 at most one lies below it with 11/1024.
    #[test]
    fn ranks_are_those_of_the_binomial_distribution() {
        assert_eq!(least(0.5, 1.0 / 128.0), 7);
        assert_eq!(ranks(7, 0.5, 1.0 / 128.0 + 1e-9), (1, 7));
        assert_eq!(ranks(10, 0.5, 11.0 / 1024.0 + 1e-9), (2, 9));
        assert_eq!(ranks(10, 0.5, 11.0 / 1024.0 - 1e-9), (1, 10));
        // Of many it is nearly normal: 1.96 times half the root of n.
        let (low, high) = ranks(1_000_000, 0.5, 0.025);
        assert!(low.abs_diff(499_020) <= 2 && high.abs_diff(500_981) <= 2, "{low} {high}");
        // p99: all of 459 lie below it with less than 1 %, of 458 with more.
        assert_eq!(least(0.99, 0.01), 459);
        let (low, high) = ranks(10_000, 0.99, 0.025);
        assert!(low.abs_diff(9_880) <= 1 && high.abs_diff(9_919) <= 1, "{low} {high}");
    }

    /// A kind's chip select, name and values.
    type Kind<'a> = (&'a str, &'a str, &'a [(f64, u64)]);

    fn side(kinds: &[Kind<'_>], resolution: f64) -> Side {
        let group = |&(place, kind, values): &Kind<'_>| Group {
            place: place.into(),
            kind: kind.into(),
            messages: values.iter().map(|(_, times)| times).sum(),
            figures: vec![("lead_ns", Values::new(values.to_vec(), resolution))],
        };
        Side { groups: kinds.iter().map(group).collect() }
    }

    #[test]
    fn kinds_are_paired_and_those_of_one_side_told() {
        let one =
            side(&[("cs", "any, 2 words", &[(5.0, 90)]), ("cs", "06, 1 word", &[(5.0, 90)])], 1.0);
        let other = side(
            &[
                ("D3", "00…, 2 words", &[(5.0, 40)]),
                ("D3", "RDID, 3 bytes", &[(1.0, 9)]),
                ("D3", "7f…, 2 words", &[(9.0, 50)]),
            ],
            1.0,
        );
        let diff = compare([one.clone(), other], How::USUAL);
        assert_eq!(diff.pairs.len(), 1);
        assert_eq!((&*diff.pairs[0].kind, diff.pairs[0].messages), ("any, 2 words", [90, 90]));
        assert_eq!(diff.pairs[0].figures[0].quantiles, [5.0, 9.0]);
        assert_eq!(
            diff.only.each_ref().map(|only| &*only[0].kind),
            ["06, 1 word", "RDID, 3 bytes"]
        );
        let same = compare([one.clone(), one], How::USUAL);
        assert!(!same.differs() && same.intervals == 2);
        assert_eq!(same.pairs[1].figures[0].found, Found::Same([0.0, 0.0]));
    }

    #[test]
    fn too_few_values_and_coarse_ones_say_nothing() {
        let few = |value| side(&[("", "06, 1 word", &[(value, 5)])], 1.0);
        let found = |one, other| compare([one, other], How::USUAL).pairs[0].figures[0].found;
        assert_eq!(found(few(5.0), few(500.0)), Found::TooFew(6));
        let gaps = |messages| {
            let gaps = Values::new((0..100).map(|gap| (f64::from(gap), 1)).collect(), 1.0);
            let figures = vec![("gap_ns", gaps.of_messages(messages))];
            Side { groups: vec![Group { messages, figures, ..Group::default() }] }
        };
        assert_eq!(found(gaps(5), gaps(50)), Found::TooFew(6));
        // By hand: of 10 messages the second and the ninth, which are the gaps from the 11th to the 90th.
        let apart = 39_f64.hypot(40.0);
        assert_eq!(found(gaps(10), gaps(10)), Found::Same([-apart, apart]));
        let many = |value, resolution| side(&[("", "06, 1 word", &[(value, 90)])], resolution);
        assert_eq!(found(many(205.0, 1.0), many(210.0, 1.0)), Found::Changed([5.0, 5.0]));
        assert_eq!(found(many(205.0, 1.0), many(210.0, 10.0)), Found::Same([-6.0, 16.0]));
    }
}
