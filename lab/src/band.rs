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

/// Replayed figures by id.
pub type Replays = BTreeMap<String, Band>;
