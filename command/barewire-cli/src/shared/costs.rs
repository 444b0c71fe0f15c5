//! `--costs`: which end of its profile's ranges a simulated board charges, and the values of a figure
//! at both ends.
//!
//! *Read first*: [`barewire_sim::profile`], whose ranges these are.
//!
//! # How it works
//! A simulated time rests on assumed costs. A command whose headlines are simulated times therefore runs
//! three times on three boards: at the costs used, and with all costs at their low and at their high
//! ends. It prints the first run's figures, each with what the other two make of it. With `--costs`
//! it runs once, at the costs asked.

use std::collections::BTreeMap;
use std::panic;
use std::thread::{self, ScopedJoinHandle};

use barewire_sim::profile::CostLevel;
use serde::Serialize;

use crate::shared::failure::Failure;

/// Which costs a simulated board charges; the names are an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Costs {
    /// Each cost at the lowest value that its sources allow
    Low,
    /// The values that all tables use
    #[default]
    Used,
    /// Each cost at the highest value that its sources allow
    High,
}

impl Costs {
    /// The simulator's value for this level.
    pub(crate) fn level(self) -> CostLevel {
        match self {
            Self::Low => CostLevel::Low,
            Self::Used => CostLevel::Used,
            Self::High => CostLevel::High,
        }
    }

    /// The one of that level.
    pub(crate) fn of(level: CostLevel) -> Self {
        match level {
            CostLevel::Low => Self::Low,
            CostLevel::Used => Self::Used,
            CostLevel::High => Self::High,
        }
    }

    /// The suffix after a profile's name, if the costs are not the ones used.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Low => " at its lowest costs",
            Self::Used => "",
            Self::High => " at its highest costs",
        }
    }

    /// Which costs these are, in two words.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Low => "costs lowest",
            Self::Used => "costs used",
            Self::High => "costs highest",
        }
    }

    /// The failure of a run at these costs.
    fn explain(self, failure: Failure) -> Failure {
        match failure {
            Failure::Failed(what) => {
                Failure::Failed(format!("with --costs {}: {what}", self.name()))
            }
            other => other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Used => "used",
            Self::High => "high",
        }
    }
}

/// Runs `other` with low and with high costs, each in a thread of its own, and `used` in this one.
/// The first error wins: first that of `used`, then those of `other`.
pub(crate) fn low_and_high<R: Send>(
    other: impl Fn(Costs) -> Result<R, Failure> + Sync,
    used: impl FnOnce() -> Result<R, Failure>,
) -> Result<(R, LowHigh<R>), Failure> {
    thread::scope(|scope| {
        let other = &other;
        let run = |costs: Costs| {
            scope.spawn(move || other(costs).map_err(|failure| costs.explain(failure)))
        };
        let (low, high) = (run(Costs::Low), run(Costs::High));
        let used = used();
        let joined = |thread: ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
        };
        let (low, high) = (joined(low), joined(high));
        Ok((used?, LowHigh { low: low?, high: high? }))
    })
}

/// The results of the runs at the ends of all ranges.
#[derive(Clone, Debug)]
pub(crate) struct LowHigh<R> {
    pub(crate) low: R,
    pub(crate) high: R,
}

/// A figure's name, and the figure in a result; `None` where there is none.
pub(crate) type Headline<R> = (&'static str, fn(&R) -> Option<f64>);

/// A figure at the used, the low and the high costs. Scripts rely on the names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Range {
    value: f64,
    /// The figure at low costs. For a rate, this is the larger value.
    low: f64,
    high: f64,
}

/// The headlines of a result with their ranges, by name; none if only one run was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Ranges(BTreeMap<&'static str, Range>);

impl Ranges {
    /// The ranges of the headlines in `used`.
    pub(crate) fn of<R>(used: &R, low: &R, high: &R, headlines: &[Headline<R>]) -> Self {
        let range = |&(name, get): &Headline<R>| {
            let [value, low, high] = [get(used)?, get(low)?, get(high)?];
            Some((name, Range { value, low, high }))
        };
        Self(headlines.iter().filter_map(range).collect())
    }

    /// Whether no costs were given.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// "0.41 (0.35–1.16)": `value`, and in parentheses the smallest and the largest of the three runs
    /// of that headline, where as shown they are not the value.
    pub(crate) fn text(&self, name: &str, value: f64, show: impl Fn(f64) -> String) -> String {
        let shown = show(value);
        match self.ends(name, show) {
            Some(ends) => format!("{shown} ({ends})"),
            None => shown,
        }
    }

    /// A figure at the low, the used and the high costs.
    pub(crate) fn values(&self, name: &str) -> Option<[f64; 3]> {
        let Range { value, low, high } = *self.0.get(name)?;
        Some([low, value, high])
    }

    /// "0.35–1.16", the range alone; `None` where as shown there is none.
    pub(crate) fn ends(&self, name: &str, show: impl Fn(f64) -> String) -> Option<String> {
        let Range { value, low, high } = *self.0.get(name)?;
        let least = show(value.min(low).min(high));
        let most = show(value.max(low).max(high));
        (least != most).then(|| format!("{least}–{most}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_of_all_three_runs_and_shown_where_it_shows() {
        let headlines: [Headline<f64>; 2] = [("us", |&us| Some(us)), ("none", |_| None)];
        let ranges = Ranges::of(&0.41, &0.35, &1.16, &headlines);
        let two = |us: f64| format!("{us:.2}");
        assert_eq!(ranges.text("us", 0.41, two), "0.41 (0.35–1.16)");
        assert_eq!(ranges.text("us", 0.41, |us| format!("{us:.0}")), "0 (0–1)");
        assert_eq!(ranges.text("none", 0.41, two), "0.41");
        assert_eq!((ranges.values("us"), ranges.values("none")), (Some([0.35, 0.41, 1.16]), None));
        // A rate falls with the costs, and figures in steps may not follow them at all.
        let ranges = Ranges::of(&5.0, &6.0, &4.0, &headlines);
        assert_eq!(ranges.text("us", 5.0, two), "5.00 (4.00–6.00)");
        let ranges = Ranges::of(&5.0, &6.0, &7.0, &headlines);
        assert_eq!(ranges.text("us", 5.0, two), "5.00 (5.00–7.00)");
        let ranges = Ranges::of(&5.0, &5.001, &5.0, &headlines);
        assert_eq!(ranges.text("us", 5.0, two), "5.00");
        let json = serde_json::to_value(&ranges).expect("JSON");
        assert_eq!(json, serde_json::json!({"us": {"value": 5.0, "low": 5.001, "high": 5.0}}));
    }

    #[test]
    fn three_runs_are_made_and_a_failure_says_at_which_costs() {
        let run = |costs: Costs| Ok::<_, Failure>(costs);
        let (used, LowHigh { low, high }) =
            low_and_high(run, || Ok(Costs::Used)).expect("all three");
        assert_eq!([low, used, high], [Costs::Low, Costs::Used, Costs::High]);
        let failing = |costs: Costs| match costs {
            Costs::High => Err(Failure::Failed("too late".into())),
            _ => Ok(costs),
        };
        let failure = low_and_high(failing, || Ok(Costs::Used)).expect_err("fails");
        assert_eq!(failure, Failure::Failed("with --costs high: too late".into()));
    }
}
