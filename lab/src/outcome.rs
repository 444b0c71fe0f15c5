//! The lab's results as data, which the command prints and the report draws.
//!
//! *Read first*: nothing but this page.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::band::{Band, Kind};
use crate::regime::Regime;

/// One figure: published, replayed, and barewire's.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its id.
    pub id: String,
    /// Its thread.
    pub thread: String,
    /// Its role in the lab.
    pub kind: Kind,
    /// The metric.
    pub metric: String,
    /// The kernel or the set-up.
    pub variant: String,
    /// The unit of the three figures below.
    pub unit: String,
    /// The value that the thread prints.
    pub published: f64,
    /// The value with the costs used; none for an input.
    pub replayed: Option<f64>,
    /// The smallest of its runs.
    pub low: Option<f64>,
    /// The largest of its runs.
    pub high: Option<f64>,
    /// (replayed - published) / published.
    pub error: Option<f64>,
    /// barewire with the same workload and the same way of waiting, simulated by the same costs as `replayed`; its ends
    /// are from the same sets of costs. `None` if barewire takes no part.
    pub barewire: Option<Band>,
    /// What barewire's code did a moment before.
    pub regime: Option<Regime>,
    /// The experiment that replays it.
    pub experiment: Option<String>,
    /// Why the lab does not explain it, with a suspected mechanism or "none suspected".
    pub unexplained: Option<String>,
}

/// All figures, and the score.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// A row for each figure, in the order of `figures.csv`.
    pub figures: Vec<Row>,
    /// Results of experiments for which the thread prints no figure.
    pub told: Vec<UnpublishedResult>,
    /// How well the differences between them are predicted.
    pub score: crate::score::Score,
    /// The results of refits that check the fit.
    pub checks: crate::cost::Checks,
}

impl Outcome {
    /// The figures of other boards, each as predicted from costs fitted to the RFC's board alone, and the difference
    /// as a part of the published value.
    pub fn across_boards(&self) -> impl Iterator<Item = (&Row, f64, f64)> {
        self.figures.iter().filter_map(|row| {
            let value = *self.checks.across_boards.get(&row.id)?;
            Some((row, value, (value - row.published) / row.published))
        })
    }
}

/// An experiment's result on one path, which has no published figure beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnpublishedResult {
    /// The experiment.
    pub experiment: String,
    /// Its thread.
    pub thread: String,
    /// The thread's own words about it.
    pub citation: String,
    /// The path.
    pub path: String,
    /// Its numbers, whose names have their units.
    pub values: BTreeMap<String, f64>,
    /// In words.
    pub text: String,
    /// The part of the thread's words that the lab does not explain, with a suspected mechanism.
    pub unexplained: Option<String>,
}

/// The cost of one step of a path within a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepCost {
    /// Its name.
    pub step: String,
    /// Its time in the figure, in microseconds. These add up to [`Explanation::sum_us`].
    pub us: f64,
    /// How often it ran.
    pub times: f64,
    /// Instructions.
    pub instructions: f64,
    /// Register reads.
    pub reads: f64,
    /// Register writes.
    pub writes: f64,
    /// Threads woken.
    pub wakes: f64,
    /// Whether it can be switched off, and so what [`explain`](crate::Lab::explain) takes as `without`.
    pub removable: bool,
}

impl StepCost {
    /// The same for one of `count`.
    pub(crate) fn divided(self, count: f64) -> Self {
        Self {
            us: self.us / count,
            times: self.times / count,
            instructions: self.instructions / count,
            reads: self.reads / count,
            writes: self.writes / count,
            wakes: self.wakes / count,
            ..self
        }
    }
}

/// A stretch of time in one lane of a timeline, in microseconds from the figure's beginning.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stretch {
    /// The simulated thread, or the wire.
    pub lane: String,
    /// The step.
    pub step: String,
    /// From.
    pub from_us: f64,
    /// To.
    pub to_us: f64,
}

/// How far one cost moves a figure, all others as used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Move {
    /// The cost's name.
    pub cost: String,
    /// The figure with the cost at the low end of its range.
    pub at_low: f64,
    /// The figure with the cost at the high end.
    pub at_high: f64,
    /// barewire's figure beside it, at both ends; `None` if barewire takes no part.
    pub barewire: Option<(f64, f64)>,
}

/// A figure taken apart.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The figure's id.
    pub id: String,
    /// Its unit.
    pub unit: String,
    /// As published; none of a user's message without it.
    pub published: Option<f64>,
    /// As replayed.
    pub replayed: f64,
    /// The steps that were switched off.
    pub without: Vec<String>,
    /// Step by step, the longest first.
    pub steps: Vec<StepCost>,
    /// The sum of the steps.
    pub sum_us: f64,
    /// How the figure follows from the sum, as a formula in words: `sum`, `1e6 / sum` and the like.
    pub relation: String,
    /// One occurrence on a timeline.
    pub timeline: Vec<Stretch>,
    /// The costs that move the figure or barewire's, the one that moves it most first; empty with a step switched off, and for
    /// a user's message.
    pub moves: Vec<Move>,
    /// Why the lab does not explain it, if it does not.
    pub unexplained: Option<String>,
}

/// The request of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepRequest {
    /// A path by name: `spidev-4.4`.
    pub path: String,
    /// A simulated board by name: `rpi3`.
    pub board: String,
    /// The parameter that varies: `delay`, `clock`, `batch`, `length`, `polling-limit`, `irq-latency`.
    pub parameter: String,
    /// Its values, in the parameter's unit: ns, Hz, transfers, bytes, ns, ns.
    pub values: Vec<f64>,
}

/// A place where one column begins to be better than another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BreakEven {
    /// In words.
    pub what: String,
    /// The parameter there, in its unit.
    pub at: f64,
}

/// A table of a figure over a parameter.
#[derive(Clone, Debug, Serialize)]
pub struct Sweep {
    /// The request.
    pub request: SweepRequest,
    /// The parameter's unit.
    pub unit: String,
    /// The unit of the columns' figures.
    pub value_unit: String,
    /// What all code did a moment before, the kernel's and barewire's. Interrupts and wake-ups cost more after idle.
    pub regime: Regime,
    /// The columns' names.
    pub columns: Vec<String>,
    /// For each value, a figure for each column.
    pub rows: Vec<(f64, Vec<f64>)>,
    /// The values at which columns cross.
    pub break_even: Vec<BreakEven>,
}
