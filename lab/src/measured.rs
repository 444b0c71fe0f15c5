//! What `barewire measure` found on a board, as data: its JSON, and the content of its page.
//!
//! *Read first*: `docs/json.md`, which has the fields by name. They are an interface.

use serde::Serialize;

use crate::band::Band;

/// Where the times are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A board, as far as anything shows.
    Measured,
    /// barewire's own simulator: virtual time.
    Simulated,
    /// An emulator of boards: its time is the emulator's and not a board's.
    Emulated,
}

/// What the processors did beside the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    /// Nothing that the command started.
    Idle,
    /// Busy threads of the command's own.
    Load,
}

impl Condition {
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Load => "load",
        }
    }
}

/// The distribution of a figure's rounds, in nanoseconds an operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// The number of rounds.
    pub rounds: usize,
    /// The least.
    pub min: f64,
    /// The 5th percentile.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The 95th percentile.
    pub high: f64,
    /// The most.
    pub max: f64,
}

impl Quantiles {
    /// Of rounds; none of no rounds.
    #[must_use]
    pub fn of(mut rounds: Vec<f64>) -> Option<Self> {
        rounds.sort_by(f64::total_cmp);
        let last = rounds.len().checked_sub(1)?;
        let at = |share: f64| hundredths(rounds[(last as f64 * share).round() as usize]);
        Some(Self {
            rounds: rounds.len(),
            min: at(0.0),
            low: at(0.05),
            median: at(0.5),
            high: at(0.95),
            max: at(1.0),
        })
    }
}

/// Rounded to hundredths: no clock resolves more.
fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// A figure, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredFigure {
    /// Its name.
    pub id: String,
    /// What was timed.
    pub what: String,
    /// Beside what.
    pub condition: Condition,
    /// What came out.
    #[serde(flatten)]
    pub ns: Quantiles,
    /// The same procedure on the simulated board: at the costs used, and at all lowest and all highest.
    pub predicted: Option<Band>,
    /// The same once more at the costs measured here; only when idle.
    pub with_costs: Option<f64>,
}

/// A cost of the profile, as measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredCost {
    /// A field of the simulator's profile.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The cost at which the simulated procedure takes the median.
    pub value: f64,
    /// At which it takes the 5th percentile.
    pub low: f64,
    /// The 95th.
    pub high: f64,
    /// What the profile had.
    pub assumed: f64,
    /// The figure that it is from.
    pub figure: &'static str,
    /// Where it is from, in words.
    pub source: String,
}

/// Something about the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// Its subject.
    pub about: String,
    /// The fact.
    pub text: String,
}

/// A part that was not measured, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The part: a figure's id, or `selftest`, `spidev`, `load`, `bench`.
    pub part: String,
    /// Why.
    pub why: String,
}

/// The loopback suite's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Selftest {
    /// Messages that ran.
    pub iterations: usize,
    /// Of which failed.
    pub failed: usize,
    /// The longest transfer, in bytes.
    pub max_len: usize,
    /// Whether a wire looped back, or the controller itself.
    pub wired: bool,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// `barewire-measured-1`.
    pub format: &'static str,
    /// The version of barewire that measured.
    pub barewire: &'static str,
    /// When it began: seconds since 1970, UTC.
    pub began_unix_s: u64,
    /// How long it took, in seconds.
    pub took_s: f64,
    /// The bus as it was named.
    pub bus: String,
    /// Where the times are from.
    pub origin: Origin,
    /// The same in words, with the board's name: costs keep it.
    pub provenance: String,
    /// What shows the origin, if it is no board's.
    pub evidence: Vec<String>,
    /// Whether no signal ended it.
    pub complete: bool,
    /// What is missing, and why.
    pub missing: Vec<Missing>,
    /// Whether it was short.
    pub quick: bool,
    /// Who answered: `flash`, `loopback`, or `nobody`, and no chip was selected.
    pub answers: &'static str,
    /// SPI's clock, in Hz, as the controller makes it.
    pub effective_speed_hz: Option<u32>,
    /// The simulator's profile beside which everything stands; a file of costs is of that profile.
    pub profile: &'static str,
    /// The number of busy threads under load; 0 if there was no load.
    pub load_threads: usize,
    /// The machine.
    pub facts: Vec<Fact>,
    /// The figures.
    pub figures: Vec<MeasuredFigure>,
    /// The loopback suite, if it ran.
    pub selftest: Option<Selftest>,
    /// The costs, from the figures when idle.
    pub costs: Vec<MeasuredCost>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_rounds_and_none_of_none() {
        assert_eq!(Quantiles::of(Vec::new()), None);
        let all = Quantiles::of((0..=100).rev().map(f64::from).collect()).expect("some");
        assert_eq!(
            [all.min, all.low, all.median, all.high, all.max],
            [0.0, 5.0, 50.0, 95.0, 100.0]
        );
        let one = Quantiles::of(vec![1.005_1]).expect("one");
        assert_eq!((one.rounds, one.min, one.max), (1, 1.01, 1.01));
    }
}
