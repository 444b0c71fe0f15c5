//! A figure of the lab: its kind, and the range in which it may lie.

use std::collections::BTreeMap;

use serde::Serialize;

/// The role of a figure in the lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An input of the thread's experiment: a histogram, a delay in the code. Not scored.
    Input,
    /// The thread computed or counted it by hand. Replayed by counting, not scored.
    Arithmetic,
    /// A cost was fitted to it, or to its thread before the rules were written.
    Fitted,
    /// Nothing was fitted to it.
    Predicted,
}

impl Kind {
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Arithmetic => "arithmetic",
            Self::Fitted => "fitted",
            Self::Predicted => "predicted",
        }
    }
}

/// A figure in its own unit: with the costs used, and the smallest and largest of several runs. The lab's runs have
/// sets of costs that the fit leaves as probable; barewire's have all costs of the board at their low and high ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Band {
    /// With the costs used.
    pub used: f64,
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Band {
    /// The band with each end `by` times as far from the costs used, as logarithms. A negative figure, and one of 0, stay.
    #[must_use]
    pub fn widened(self, by: f64) -> Self {
        let Self { used, low, high } = self;
        let end = |end: f64| match end / used {
            ratio if ratio.is_finite() && ratio > 0.0 => used * ratio.powf(by),
            _ => end,
        };
        Self { used, low: end(low), high: end(high) }
    }

    /// The band moved to another figure with the costs used.
    fn at(self, used: f64) -> Self {
        let Self { used: before, low, high } = self;
        Self { used, low: low / before * used, high: high / before * used }
    }

    fn has(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The part of predicted figures that a band shall have, where the figure's thread took no part in the fit.
const COVERED: f64 = 0.8;
/// The most that bands are widened.
const WIDEST: f64 = 10.0;

/// How much wider the bands of `replays` have to be for [`COVERED`] of the `published` figures, each with its value by the
/// fit that leaves its thread out: from 1 in steps of a twentieth, and the part that is covered then.
#[must_use]
pub fn widening(replays: &Replays, published: &[(&str, f64, f64)]) -> (f64, f64) {
    let covered = |by: f64| {
        let has = |&&(id, value, left_out): &&(&str, f64, f64)| {
            replays.get(id).is_some_and(|band| band.widened(by).at(left_out).has(value))
        };
        published.iter().filter(has).count() as f64 / published.len().max(1) as f64
    };
    let steps = (20_u32..).map(|twentieths| f64::from(twentieths) / 20.0);
    let by = steps.into_iter().find(|&by| covered(by) >= COVERED || by >= WIDEST);
    let by = by.unwrap_or(WIDEST);
    (by, covered(by))
}

/// Replayed figures by id.
pub type Replays = BTreeMap<String, Band>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_is_widened_in_ratios() {
        let band = Band { used: 10.0, low: 5.0, high: 20.0 };
        assert_eq!(band.widened(1.0), band);
        assert_eq!(band.widened(2.0), Band { used: 10.0, low: 2.5, high: 40.0 });
        let none = Band { used: 0.0, low: 0.0, high: 1.0 };
        assert_eq!(none.widened(2.0), none);
    }

    #[test]
    fn bands_are_widened_until_four_of_five_figures_are_in_them() {
        let replays: Replays = ["a", "b", "c", "d", "e"]
            .map(|id| (id.to_owned(), Band { used: 10.0, low: 9.0, high: 11.0 }))
            .into();
        // The fit without the thread says 20, so the band is there from 18 to 22.
        let all = |last: f64| [("a", 20.0, 20.0), ("b", 21.0, 20.0), ("c", 18.5, 20.0), ("d", last, 20.0), ("e", 99.0, 20.0)];
        assert_eq!(widening(&replays, &all(22.0)), (1.0, 0.8));
        let (by, covered) = widening(&replays, &all(24.2));
        assert!((by - 2.0).abs() < 1e-9 && covered == 0.8, "{by} {covered}");
        assert_eq!(widening(&replays, &[("a", 99.0, 1.0)]), (WIDEST, 0.0));
    }
}
