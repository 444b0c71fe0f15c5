//! A figure of the lab: its kind, and the range in which it may lie.

use std::collections::BTreeMap;

use serde::Serialize;

/// The role of a figure in the lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An input of the thread's experiment, for example a histogram or a delay in the code. Not
    /// scored.
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

/// A figure in its own unit: with the costs used, and the smallest and largest of several runs with sets of costs that
/// the fit leaves as probable, the same for kernels and barewire.
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
    /// A band of one run.
    #[must_use]
    pub fn of(used: f64) -> Self {
        Self { used, low: used, high: used }
    }

    /// The band of the run with the costs used, and of others.
    #[must_use]
    pub fn over(used: f64, others: impl IntoIterator<Item = f64>) -> Self {
        others.into_iter().fold(Self::of(used), Self::with)
    }

    /// The band with another run in it.
    #[must_use]
    pub fn with(self, value: f64) -> Self {
        Self { low: self.low.min(value), high: self.high.max(value), ..self }
    }

    /// The band with both ends `by` times further out; a share of a processor ends at 100 %.
    #[must_use]
    pub fn widened(self, by: f64, unit: &str) -> Self {
        let most = if unit == "%" { 100.0_f64.max(self.used) } else { f64::INFINITY };
        Self { low: self.low / by, high: (self.high * by).min(most), ..self }
    }

    /// The band moved to another figure with the costs used.
    fn at(self, used: f64) -> Self {
        let Self { used: before, low, high } = self;
        Self { used, low: low / before * used, high: high / before * used }
    }
}

/// The middle of values, or of the middle two; not a number of none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n => f64::midpoint(values[(n - 1) / 2], values[n / 2]),
    }
}

/// The part of predicted figures that a band shall have, where the figure's thread took no part in the fit.
const COVERED: f64 = 0.8;
/// The most that bands are widened, in hundredths.
const WIDEST: u32 = 300;

/// A predicted figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeftOut<'f> {
    pub(crate) id: &'f str,
    pub(crate) unit: &'f str,
    pub(crate) published: f64,
    /// By the fit that leaves its thread out.
    pub(crate) simulated: f64,
}

/// How far the ends of the bands of `replays` have to be moved out for four of five figures to be in the band around what
/// the fit that leaves their thread out makes of them: a factor from 1 in steps of a hundredth. And the part that is in it.
pub(crate) fn widening(replays: &Replays, figures: &[LeftOut<'_>]) -> (f64, f64) {
    let covered = |by: f64| {
        let has = |one: &&LeftOut<'_>| {
            let band = replays.get(one.id).map(|band| band.at(one.simulated).widened(by, one.unit));
            band.is_some_and(|band| (band.low..=band.high).contains(&one.published))
        };
        figures.iter().filter(has).count() as f64 / figures.len().max(1) as f64
    };
    let by = (100..WIDEST).map(|by| f64::from(by) / 100.0).find(|&by| covered(by) >= COVERED);
    let by = by.unwrap_or(f64::from(WIDEST) / 100.0);
    (by, covered(by))
}

/// Replayed figures by id.
pub type Replays = BTreeMap<String, Band>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_is_widened_at_both_ends_and_a_share_is_at_most_all() {
        let band = Band { used: 10.0, low: 5.0, high: 20.0 };
        assert_eq!(band.widened(1.0, "us"), band);
        assert_eq!(band.widened(2.0, "us"), Band { used: 10.0, low: 2.5, high: 40.0 });
        let share = Band { used: 90.0, low: 80.0, high: 95.0 };
        assert_eq!(share.widened(1.25, "%"), Band { used: 90.0, low: 64.0, high: 100.0 });
    }

    #[test]
    fn bands_are_widened_until_four_of_five_figures_are_in_them() {
        let ids = ["a", "b", "c", "d", "e"];
        let band = Band { used: 10.0, low: 9.0, high: 11.0 };
        let replays: Replays = ids.map(|id| (id.to_owned(), band)).into();
        // The fit without the thread says 20, so the band is there from 18 to 22.
        let all = |last: f64| {
            let published = [20.0, 21.0, 18.5, last, 99.0];
            let one = |(id, published)| LeftOut { id, unit: "us", published, simulated: 20.0 };
            ids.into_iter().zip(published).map(one).collect::<Vec<_>>()
        };
        assert_eq!(widening(&replays, &all(22.0)), (1.0, 0.8));
        assert_eq!(widening(&replays, &all(24.0)), (1.1, 0.8));
        assert_eq!(widening(&replays, &all(23.99)).0, 1.1);
        assert_eq!(
            widening(&replays, &[LeftOut { id: "a", unit: "us", published: 99.0, simulated: 1.0 }]),
            (3.0, 0.0)
        );
    }
}
