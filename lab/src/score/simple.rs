//! Simple predictors: a difference by a constant ratio, by constant time a message, by the same with the knowledge that a
//! processor that polls is busy, or by the author's own formula.
//!
//! *Read first*: the comments at the top of `lab/scoring.toml`. Where the lab predicts no better than these, its steps
//! explain nothing. Ratio and constant know the published figure before the change and the fit set, and no more. The
//! formula knows the parts that its author states, and computes both figures of a pair.
//!
//! # How a change is fitted
//! 1. A pair with both ends in the fit set is a sample of its change.
//! 2. Two pairs that follow one another, with only the outer ends in the fit set, are a sample of each of the two
//!    changes: the square root of their ratio, and half of their difference.
//! 3. A change takes the geometric mean of its samples' ratios, and the mean of its samples' differences a unit.
//! 4. A change without a sample is predicted to do nothing, and so is a constant for a pair without units.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::figure::Figure;
use crate::rules::{Pair, Rules};

/// The difference of a pair as the simple predictors have it, in the figures' unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Simple {
    /// By a constant ratio.
    pub ratio: f64,
    /// By constant time a message or a MiB.
    pub constant: f64,
    /// The same, but a processor that polls is busy: its share is 100 %.
    pub busy: f64,
    /// By the author's own formula, where the thread has one.
    pub formula: Option<f64>,
}

/// Whether a figure in `unit` is the share of a processor that polls.
pub(super) fn is_polling_share(unit: &str, id: &str) -> bool {
    unit == "%" && id.ends_with("-poll")
}

/// Published values by id.
pub(super) struct Values<'a>(BTreeMap<&'a str, f64>);

impl<'a> Values<'a> {
    pub(super) fn new(figures: &'a [Figure]) -> Self {
        Self(figures.iter().map(|figure| (figure.id.as_str(), figure.value)).collect())
    }

    /// The figure `id`, which the rules name.
    pub(super) fn of(&self, id: &str) -> f64 {
        *self
            .0
            .get(id)
            .unwrap_or_else(|| panic!("the rules name the figure {id:?}, which is not there"))
    }
}

/// The fitted effect of a change.
#[derive(Clone, Copy)]
struct Fit {
    ratio: f64,
    constant: f64,
}

/// Predicts the difference of each of the rules' pairs, in their order.
///
/// # Panics
/// If a pair names a figure that is not in `figures`.
#[must_use]
pub fn simple_predictions(rules: &Rules, figures: &[Figure]) -> Vec<Simple> {
    let values = Values::new(figures);
    let fits = fit(rules, &values);
    let predict = |pair: &Pair| {
        let none = Fit { ratio: 1.0, constant: 0.0 };
        let fit = fits.get(&(pair.thread.as_str(), pair.change.as_str())).copied().unwrap_or(none);
        let constant = fit.constant * pair.units.unwrap_or(0.0);
        let unit =
            figures.iter().find(|figure| figure.id == pair.after).map(|figure| &*figure.unit);
        let polls = is_polling_share(unit.unwrap_or_default(), &pair.after);
        Simple {
            ratio: values.of(&pair.before) * (fit.ratio - 1.0),
            constant,
            busy: if polls { 100.0 - values.of(&pair.before) } else { constant },
            formula: ellis_rate(&values, &pair.after)
                .zip(ellis_rate(&values, &pair.before))
                .map(|(after, before)| after - before),
        }
    };
    rules.pairs.iter().map(predict).collect()
}

/// Samples of one change: logarithms of ratios, and differences a unit.
#[derive(Default)]
struct Samples {
    log_ratios: Vec<f64>,
    constants: Vec<f64>,
}

impl Samples {
    /// Adds `share` of the step from `before` to `after`.
    fn add(&mut self, before: f64, after: f64, share: f64, units: Option<f64>) {
        self.log_ratios.push((after / before).ln() * share);
        self.constants.extend(units.map(|units| (after - before) * share / units));
    }
}

/// Fits each change of each thread.
fn fit<'a>(rules: &'a Rules, values: &Values<'_>) -> BTreeMap<(&'a str, &'a str), Fit> {
    let mut samples: BTreeMap<_, Samples> = BTreeMap::new();
    let mut add = |pair: &'a Pair, before: &str, after: &str, share| {
        let samples = samples.entry((pair.thread.as_str(), pair.change.as_str())).or_default();
        samples.add(values.of(before), values.of(after), share, pair.units);
    };
    for first in &rules.pairs {
        // 1. The pair itself.
        if rules.is_fit_pair(first) {
            add(first, &first.before, &first.after, 1.0);
        }
        for second in rules.pairs.iter().filter(|second| second.before == first.after) {
            let (before, after) = (&first.before, &second.after);
            // 2. A chain of two pairs. If its middle figure is in the fit set, step 1 has both
            //    pairs already.
            if rules.in_fit_set(before)
                && rules.in_fit_set(after)
                && !rules.in_fit_set(&first.after)
            {
                add(first, before, after, 0.5);
                add(second, before, after, 0.5);
            }
        }
    }
    let fit = |samples: Samples| Fit {
        ratio: mean(&samples.log_ratios).exp(),
        constant: mean(&samples.constants),
    };
    samples.into_iter().map(|(change, samples)| (change, fit(samples))).collect()
}

/// The mean, or 0 of nothing.
fn mean(of: &[f64]) -> f64 {
    if of.is_empty() { 0.0 } else { of.iter().sum::<f64>() / of.len() as f64 }
}

/// Samples a second as Ellis's article computes them: a batch of n is n transfers, n - 1 toggles of the chip select, and
/// the gap between two ioctls, each in microseconds.
pub(crate) fn batch_rate(batch: u32, [transfer_us, toggle_us, gap_us]: [f64; 3]) -> f64 {
    let batch = f64::from(batch);
    1e6 * batch / (batch * transfer_us + (batch - 1.0) * toggle_us + gap_us)
}

/// Ellis's sample rate by his formula. `None` if the figure is not one of Ellis's rates.
fn ellis_rate(values: &Values<'_>, id: &str) -> Option<f64> {
    let (toggle, batch) = match id.strip_prefix("ellis-stock-") {
        Some(batch) => ("ellis-stock-toggle", batch),
        None => ("ellis-cs-toggle-patched", id.strip_prefix("ellis-patched-")?),
    };
    let batch: u32 = batch.parse().ok()?;
    let parts = ["ellis-transfer", toggle, "ellis-ioctl-gap"].map(|part| values.of(part));
    Some(batch_rate(batch, parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::published;
    use crate::rules::Class;

    /// A thread `t` whose figures are `t-NAME`.
    fn rules(fit_set: &[&str], pairs: &[(&str, &str, &str, Option<f64>)]) -> Rules {
        let pair = |&(change, before, after, units): &(&str, &str, &str, Option<f64>)| Pair {
            thread: "t".into(),
            change: change.into(),
            before: before.into(),
            after: after.into(),
            class: Class::Effect,
            units,
            null_bound: None,
            why: None,
        };
        Rules {
            fitted_threads: vec![],
            input: vec![],
            arithmetic: vec![],
            fit_set: [("t".to_owned(), fit_set.iter().map(|&id| id.to_owned()).collect())].into(),
            pairs: pairs.iter().map(pair).collect(),
            ..Rules::published()
        }
    }

    fn figures(values: &[(&str, f64)]) -> Vec<Figure> {
        let figure = |&(id, value): &(&str, f64)| Figure {
            id: id.into(),
            thread: "t".into(),
            value,
            unit: "us".into(),
            variant: String::new(),
            metric: String::new(),
        };
        values.iter().map(figure).collect()
    }

    fn close(predictions: &[Simple], expected: &[(f64, f64)]) {
        assert_eq!(predictions.len(), expected.len());
        for (simple, &(ratio, constant)) in predictions.iter().zip(expected) {
            assert!((simple.ratio - ratio).abs() < 1e-9, "{simple:?} {ratio}");
            assert!((simple.constant - constant).abs() < 1e-9, "{simple:?} {constant}");
        }
    }

    #[test]
    fn a_change_takes_the_means_of_its_fit_pairs() {
        // Ratios 1/2 and 1/8: the geometric mean is 1/4. Constants -5/1 and -70/7 a unit: the mean is -7.5.
        let rules = rules(
            &["a0", "a1", "b0", "b1", "c0"],
            &[
                ("fast", "a0", "a1", Some(1.0)),
                ("fast", "b0", "b1", Some(7.0)),
                ("fast", "c0", "c1", Some(2.0)),
                ("fast", "d0", "d1", None),
                ("slow", "c0", "d0", Some(2.0)),
            ],
        );
        let figures = figures(&[
            ("a0", 10.0),
            ("a1", 5.0),
            ("b0", 80.0),
            ("b1", 10.0),
            ("c0", 100.0),
            ("c1", 90.0),
            ("d0", 200.0),
            ("d1", 1.0),
        ]);
        let expected = [(-7.5, -7.5), (-60.0, -52.5), (-75.0, -15.0), (-150.0, 0.0), (0.0, 0.0)];
        close(&simple_predictions(&rules, &figures), &expected);
    }

    #[test]
    fn a_chain_gives_each_of_its_changes_the_half() {
        let pairs = [
            ("one", "a", "b", Some(3.0)),
            ("two", "b", "c", Some(3.0)),
            ("one", "d", "e", Some(6.0)),
            ("two", "e", "f", None),
        ];
        let values = figures(&[
            ("a", 100.0),
            ("b", 60.0),
            ("c", 25.0),
            ("d", 40.0),
            ("e", 30.0),
            ("f", 1.0),
        ]);
        // From 100 to 25 in two steps: each is a half by the ratio, and -37.5 for three units.
        let halves = [(-50.0, -37.5), (-30.0, -37.5), (-20.0, -75.0), (-15.0, 0.0)];
        close(&simple_predictions(&rules(&["a", "c"], &pairs), &values), &halves);
        // With the middle known, each change has its own.
        let own = [(-40.0, -40.0), (-35.0, -35.0), (-16.0, -80.0), (-17.5, 0.0)];
        close(&simple_predictions(&rules(&["a", "b", "c"], &pairs), &values), &own);
        // A pair that is only a half of a known chain tells nothing.
        close(&simple_predictions(&rules(&["a", "d"], &pairs), &values), &[(0.0, 0.0); 4]);
    }

    #[test]
    fn a_change_of_another_thread_tells_nothing() {
        let mut rules =
            rules(&["a", "b"], &[("fast", "a", "b", Some(1.0)), ("fast", "c", "d", Some(1.0))]);
        rules.pairs[1].thread = "u".into();
        let figures = figures(&[("a", 10.0), ("b", 5.0), ("c", 10.0), ("d", 5.0)]);
        close(&simple_predictions(&rules, &figures), &[(-5.0, -5.0), (0.0, 0.0)]);
    }

    #[test]
    fn the_formula_prints_what_ellis_prints() {
        let figures = published();
        let values = Values::new(&figures);
        let thousands = |id: &str, decimals: usize| {
            format!("{:.decimals$}k", ellis_rate(&values, id).expect("a rate") / 1000.0)
        };
        assert_eq!(thousands("ellis-stock-1", 1), "70.4k");
        assert_eq!(thousands("ellis-stock-10", 1), "53.5k");
        assert_eq!(thousands("ellis-stock-100", 2), "52.22k");
        assert_eq!(thousands("ellis-stock-500", 2), "52.11k");
        assert_eq!(thousands("ellis-patched-1", 1), "70.4k");
        assert_eq!(thousands("ellis-patched-10", 1), "100.8k");
        assert_eq!(thousands("ellis-patched-100", 1), "105.3k");
        assert_eq!(thousands("ellis-patched-500", 1), "105.7k");
        for id in ["ellis-stock-toggle", "ellis-cs-setup", "jander-rfc-gap-A"] {
            assert_eq!(ellis_rate(&values, id), None, "{id}");
        }
        // 26 clocks at 3.6 MHz and 2 us are what Ellis calls a transfer.
        assert!((26.0 / 3.6 + 2.0 - values.of("ellis-transfer")).abs() < 0.05);
    }

    #[test]
    fn published_changes_are_fitted_to_the_pairs_that_the_rules_name() {
        let (rules, figures) = (Rules::published(), published());
        let values = Values::new(&figures);
        let fits = fit(&rules, &values);
        let changes: Vec<_> = fits.keys().copied().collect();
        assert_eq!(
            changes,
            [
                ("jander-rfc", "fast"),
                ("jander-v2", "dma-irq"),
                ("jander-v2", "irq-poll"),
                ("pitchen", "tasklet"),
                ("ranjan", "by-asid"),
            ]
        );
        let fast = fits[&("jander-rfc", "fast")];
        assert!((fast.ratio - 55.0 / 144.0).abs() < 1e-12);
        assert!((fast.constant - (55.0 - 144.0) / 3.0).abs() < 1e-12);
        let step = fits[&("jander-v2", "irq-poll")];
        assert!((step.ratio - (1.330_517_f64 / 3.685_375).sqrt()).abs() < 1e-12);
        assert!((step.constant - (1.330_517 - 3.685_375) / 2.0 / 7040.0).abs() < 1e-12);
    }
}
