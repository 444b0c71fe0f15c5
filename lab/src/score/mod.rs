//! How well differences are predicted, beside simple predictors fitted on the same figures.
//!
//! *Read first*: the comments at the top of `lab/scoring.toml`, which are the definition; this module only computes it.
//!
//! A score is Σ|predicted - published difference| / Σ|published difference| over effects. Each difference is first
//! divided by the published figure before the change. So 0 is perfect, and 1 is what "nothing changes" scores.
//!
//! # What counts
//! 1. A pair counts if it is an effect and at most one of its ends is in the fit set. The lab and the simple
//!    predictors are summed over the same pairs.
//! 2. If an end was not replayed, an effect is predicted to be none, and a null is out of its bound. A figure that was
//!    not replayed is not covered.
//! 3. A thread whose costs had been fitted before the rules were written has a score too, marked as fitted. It is part
//!    of [`Score::with_fitted`] and not of [`Score::all`].

mod simple;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

#[cfg(test)]
pub(crate) use simple::batch_rate;
pub use simple::{Simple, simple_predictions};

use crate::band::{Band, Kind, Replays};
use crate::cost::Checks;
use crate::figure::Figure;
use crate::rules::{Class, Pair, Rules};
use simple::{Values, is_polling_share};

/// The score.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    /// The score that [`leave_one_out`](Self::leave_one_out) should reach.
    pub goal: f64,
    /// The score over all predicted effects where each thread's figures are predicted by the fit that leaves the thread
    /// out; not a number if that was not computed.
    pub leave_one_out: f64,
    /// The factor by which both ends of each band are moved outwards, so that four of five predicted figures are in the band
    /// around what the fit that leaves their thread out makes of them; 1 without bands.
    pub bands_widened: f64,
    /// The part of the predicted figures that are in it then; 0 without bands.
    pub covered_left_out: f64,
    /// The median score of costs drawn at random from their assumed ranges; not a number if that was not computed.
    pub random: f64,
    /// The threads, in the order of the figures.
    pub threads: Vec<ThreadScore>,
    /// The predicted threads together. Its strongest predictor is the strongest of each thread.
    pub all: ThreadScore,
    /// The same with the fitted threads.
    pub with_fitted: ThreadScore,
    /// The threads where the lab's score is below the strongest simple predictor's, fitted ones among them.
    pub beaten: usize,
    /// The predicted threads among `beaten`.
    pub beaten_predicted: usize,
    /// Figures that a change should not affect, and whether it did.
    pub nulls: Vec<NullCheck>,
    /// How well the bands of predicted figures contain the published values.
    pub coverage: Coverage,
    /// The same by thread.
    pub coverage_by_thread: BTreeMap<String, Coverage>,
    /// Each pair, in the order of the rules.
    pub pairs: Vec<PairScore>,
    /// The figures that were not replayed. Inputs are not among them.
    pub not_replayed: Vec<String>,
}

/// The score of a thread, or of several. A score of no pairs is not a number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadScore {
    /// The thread; `all` for several.
    pub thread: String,
    /// Fitted if the thread's costs had been fitted before the rules were written, else predicted.
    pub kind: Kind,
    /// The effects that count.
    pub effects: usize,
    /// The effects of which one end was not replayed.
    pub missing: usize,
    /// The lab's score.
    pub lab: f64,
    /// The score of a constant ratio.
    pub ratio: f64,
    /// The score of constant time a message or MiB.
    pub constant: f64,
    /// The score of constant time a message where a processor that polls is known to be busy.
    pub busy: f64,
    /// The score of the author's own formula, where the thread has one.
    pub formula: Option<f64>,
    /// The simple predictor with the lowest score.
    pub strongest: Strongest,
    /// Whether the lab's score is lower than that.
    pub beats: bool,
    /// The lab's score by change.
    pub by_change: BTreeMap<String, Sums>,
    /// The lab's score by unit, of undivided differences.
    pub by_unit: BTreeMap<String, Sums>,
}

/// The simple predictor that is hardest to beat.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Strongest {
    /// `ratio`, `constant`, `busy`, `formula`; `each thread's strongest` of several threads.
    pub name: &'static str,
    /// Its score.
    pub score: f64,
}

/// The sums from which a score is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sums {
    /// The effects that count.
    pub effects: usize,
    /// Σ|predicted - published difference|.
    pub error: f64,
    /// Σ|published difference|.
    pub published: f64,
    /// The first sum divided by the second; NaN if there are no effects.
    pub score: f64,
}

impl Sums {
    /// Sums (predicted, published) differences.
    fn of(differences: impl Iterator<Item = (f64, f64)>) -> Self {
        let mut sums = Self::default();
        for (predicted, published) in differences {
            sums.effects += 1;
            sums.error += (predicted - published).abs();
            sums.published += published.abs();
        }
        sums.score = sums.error / sums.published;
        sums
    }
}

/// A figure that the change should not change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NullCheck {
    /// The thread.
    pub thread: String,
    /// Before the change, by id.
    pub before: String,
    /// After it, by id.
    pub after: String,
    /// The change that the lab predicts, in the figure's unit. None if an end was not replayed.
    pub predicted: Option<f64>,
    /// How far that may be from zero.
    pub bound: f64,
    /// Whether it is no further.
    pub within: bool,
    /// Whether the lab's paths cannot predict anything else, so that it proves nothing: a processor that polls is busy in
    /// each of them. Such a null is listed and not counted.
    pub by_construction: bool,
}

/// How well bands contain the published values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Coverage {
    /// The predicted figures whose published value is from low to high.
    pub covered: usize,
    /// The predicted figures.
    pub of: usize,
    /// The median of (high - low) / used of those that were replayed.
    pub median_width: Option<f64>,
}

/// A pair: published and predicted.
#[derive(Clone, Debug, Serialize)]
pub struct PairScore {
    /// The thread.
    pub thread: String,
    /// The change.
    pub change: String,
    /// Before the change, by id.
    pub before: String,
    /// After it, by id.
    pub after: String,
    /// The unit of the differences.
    pub unit: String,
    /// The meaning of the published difference.
    pub class: Class,
    /// Fitted if both ends are in the fit set or the thread is a fitted one, else predicted.
    pub kind: Kind,
    /// Whether the score counts it: an effect with not both ends in the fit set.
    pub counted: bool,
    /// Whether both ends were replayed.
    pub replayed: bool,
    /// The published figure before the change.
    pub published_before: f64,
    /// The published difference.
    pub published: f64,
    /// The lab's difference: 0 if an end was not replayed.
    pub predicted: f64,
    /// The published difference divided by the published figure before the change.
    pub published_relative: f64,
    /// The lab's difference divided by the same.
    pub predicted_relative: f64,
    /// The simple predictors' differences.
    pub simple: Simple,
}

/// Scores `replays` against the published `figures`.
///
/// # Panics
/// If a pair names a figure that is not in `figures`.
#[must_use]
pub fn score(rules: &Rules, figures: &[Figure], replays: &Replays) -> Score {
    let pairs = pairs(rules, figures, replays);
    let mut names: Vec<&str> = Vec::new();
    for figure in figures {
        if !names.contains(&figure.thread.as_str()) {
            names.push(&figure.thread);
        }
    }
    let threads: Vec<_> = names.iter().map(|thread| of_thread(rules, &pairs, thread)).collect();
    let predicted: Vec<_> =
        threads.iter().filter(|thread| thread.kind == Kind::Predicted).cloned().collect();
    let beaten = |threads: &[ThreadScore]| threads.iter().filter(|thread| thread.beats).count();
    let coverage_of = |thread: Option<&str>| coverage(rules, figures, replays, thread);
    Score {
        goal: rules.goal,
        leave_one_out: f64::NAN,
        random: f64::NAN,
        bands_widened: 1.0,
        covered_left_out: 0.0,
        all: together(&pairs, &predicted, Kind::Predicted),
        with_fitted: together(&pairs, &threads, Kind::Fitted),
        beaten: beaten(&threads),
        beaten_predicted: beaten(&predicted),
        nulls: rules
            .pairs
            .iter()
            .zip(&pairs)
            .filter_map(|(rule, pair)| null_check(rule, pair))
            .collect(),
        coverage: coverage_of(None),
        coverage_by_thread: names
            .iter()
            .map(|&name| (name.to_owned(), coverage_of(Some(name))))
            .collect(),
        not_replayed: figures
            .iter()
            .map(|figure| &figure.id)
            .filter(|id| rules.kind(id) != Kind::Input && replayed(replays, id).is_none())
            .cloned()
            .collect(),
        threads,
        pairs,
    }
}

impl Score {
    /// The same, with what the checks of the fit say of figures that were not seen.
    #[must_use]
    pub(crate) fn left_out(self, rules: &Rules, figures: &[Figure], checks: &Checks) -> Self {
        let alone = |(id, &used): (&String, &f64)| (id.clone(), Band::of(used));
        let replays: Replays = checks.left_out.iter().map(alone).collect();
        let leave_one_out = match replays.is_empty() {
            true => f64::NAN,
            false => score(rules, figures, &replays).all.lab,
        };
        Self { leave_one_out, random: checks.random_median(), ..self }
    }
}

/// The replayed figure `id`. A band with a part that is no number is no replay.
fn replayed<'a>(replays: &'a Replays, id: &str) -> Option<&'a Band> {
    replays
        .get(id)
        .filter(|band| [band.used, band.low, band.high].iter().all(|value| value.is_finite()))
}

/// Both differences of each pair.
fn pairs(rules: &Rules, figures: &[Figure], replays: &Replays) -> Vec<PairScore> {
    let values = Values::new(figures);
    let units: BTreeMap<_, _> = figures.iter().map(|figure| (&figure.id, &figure.unit)).collect();
    let pair = |(pair, simple): (&Pair, Simple)| {
        let before = values.of(&pair.before);
        let published = values.of(&pair.after) - before;
        let difference = replayed(replays, &pair.after)
            .zip(replayed(replays, &pair.before))
            .map(|(after, before)| after.used - before.used);
        let predicted = difference.unwrap_or(0.0);
        let fit_pair = rules.is_fit_pair(pair);
        PairScore {
            thread: pair.thread.clone(),
            change: pair.change.clone(),
            before: pair.before.clone(),
            after: pair.after.clone(),
            unit: units[&pair.before].clone(),
            class: pair.class,
            kind: if fit_pair || rules.is_fitted_thread(&pair.thread) {
                Kind::Fitted
            } else {
                Kind::Predicted
            },
            counted: pair.class == Class::Effect && !fit_pair,
            replayed: difference.is_some(),
            published_before: before,
            published,
            predicted,
            published_relative: published / before,
            predicted_relative: predicted / before,
            simple,
        }
    };
    rules.pairs.iter().zip(simple_predictions(rules, figures)).map(pair).collect()
}

/// Scores one thread's pairs among `pairs`.
fn of_thread(rules: &Rules, pairs: &[PairScore], thread: &str) -> ThreadScore {
    let kind = if rules.is_fitted_thread(thread) { Kind::Fitted } else { Kind::Predicted };
    let pairs: Vec<_> = pairs.iter().filter(|pair| pair.counted && pair.thread == thread).collect();
    let mut total = total(thread, kind, &pairs);
    if pairs.iter().any(|pair| pair.simple.formula.is_some()) {
        total.formula = Some(relative(&pairs, |pair| pair.simple.formula.unwrap_or(0.0)).score);
    }
    let simple = [
        ("ratio", Some(total.ratio)),
        ("constant", Some(total.constant)),
        ("busy", Some(total.busy).filter(|busy| *busy < total.constant)),
        ("formula", total.formula),
    ];
    let strongest =
        simple.into_iter().filter_map(|(name, score)| score.map(|score| Strongest { name, score }));
    total.strongest = strongest.min_by(|a, b| a.score.total_cmp(&b.score)).expect("two at least");
    total.beats = total.lab < total.strongest.score;
    total
}

/// Scores `threads` together. They are compared with each thread's strongest predictor, so with a combination
/// that no single predictor can reach.
fn together(pairs: &[PairScore], threads: &[ThreadScore], kind: Kind) -> ThreadScore {
    let of_threads = |pair: &&PairScore| {
        pair.counted && threads.iter().any(|thread| thread.thread == pair.thread)
    };
    let pairs: Vec<_> = pairs.iter().filter(of_threads).collect();
    let mut total = total("all", kind, &pairs);
    let strongest = |pair: &PairScore| {
        let thread =
            threads.iter().find(|thread| thread.thread == pair.thread).expect("filtered by it");
        match thread.strongest.name {
            "ratio" => pair.simple.ratio,
            "constant" => pair.simple.constant,
            "busy" => pair.simple.busy,
            _ => pair.simple.formula.unwrap_or(0.0),
        }
    };
    total.strongest =
        Strongest { name: "each thread's strongest", score: relative(&pairs, strongest).score };
    total.beats = total.lab < total.strongest.score;
    total
}

/// Sums that need no choice of a strongest predictor, over counted `pairs`.
fn total(thread: &str, kind: Kind, pairs: &[&PairScore]) -> ThreadScore {
    let mut by_change: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    let mut by_unit: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for pair in pairs {
        by_change
            .entry(&pair.change)
            .or_default()
            .push((pair.predicted_relative, pair.published_relative));
        by_unit.entry(&pair.unit).or_default().push((pair.predicted, pair.published));
    }
    let sums = |groups: BTreeMap<&str, Vec<(f64, f64)>>| {
        groups
            .into_iter()
            .map(|(name, pairs)| (name.to_owned(), Sums::of(pairs.into_iter())))
            .collect()
    };
    ThreadScore {
        thread: thread.to_owned(),
        kind,
        effects: pairs.len(),
        missing: pairs.iter().filter(|pair| !pair.replayed).count(),
        lab: relative(pairs, |pair| pair.predicted).score,
        ratio: relative(pairs, |pair| pair.simple.ratio).score,
        constant: relative(pairs, |pair| pair.simple.constant).score,
        busy: relative(pairs, |pair| pair.simple.busy).score,
        formula: None,
        strongest: Strongest { name: "", score: f64::NAN },
        beats: false,
        by_change: sums(by_change),
        by_unit: sums(by_unit),
    }
}

/// Sums over `pairs` with the differences that `predicted` gives, divided by the figures before the change.
fn relative(pairs: &[&PairScore], predicted: impl Fn(&PairScore) -> f64) -> Sums {
    Sums::of(
        pairs.iter().map(|pair| (predicted(pair) / pair.published_before, pair.published_relative)),
    )
}

/// Checks a null; none if the pair is no null.
fn null_check(rule: &Pair, pair: &PairScore) -> Option<NullCheck> {
    let bound = rule.null_bound?;
    let predicted = pair.replayed.then_some(pair.predicted);
    Some(NullCheck {
        thread: pair.thread.clone(),
        before: pair.before.clone(),
        after: pair.after.clone(),
        predicted,
        bound,
        within: predicted.is_some_and(|predicted| predicted.abs() <= bound),
        by_construction: is_polling_share(&pair.unit, &pair.after),
    })
}

/// Counts the predicted figures of `thread`, or of all threads, that lie within their bands.
fn coverage(
    rules: &Rules,
    figures: &[Figure],
    replays: &Replays,
    thread: Option<&str>,
) -> Coverage {
    let mut coverage = Coverage { covered: 0, of: 0, median_width: None };
    let mut widths = Vec::new();
    for figure in
        figures.iter().filter(|figure| thread.is_none_or(|thread| figure.thread == thread))
    {
        if rules.kind(&figure.id) != Kind::Predicted {
            continue;
        }
        coverage.of += 1;
        if let Some(band) = replayed(replays, &figure.id) {
            coverage.covered += usize::from((band.low..=band.high).contains(&figure.value));
            widths.push((band.high - band.low) / band.used);
        }
    }
    // A figure replayed as 0 has no relative width.
    widths.retain(|width: &f64| width.is_finite());
    widths.sort_by(f64::total_cmp);
    if let Some(last) = widths.len().checked_sub(1) {
        coverage.median_width = Some((widths[last / 2] + widths[last.div_ceil(2)]) / 2.0);
    }
    coverage
}
