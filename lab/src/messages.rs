//! The figures of a user's own experiment: each message's, with its band, its steps, and barewire beside.
//!
//! *Read first*: [`crate::own`], [`crate::workload::messages`].
//!
//! # Bands
//! From the smallest to the largest of: the sets of costs that the lab's fit leaves as probable, and the costs used with the
//! board's own at their low and at their high ends. A file of costs has no such sets; then all costs are at their low ends, and at
//! their high ends. barewire's figures have the same costs, and their bands are made likewise.

use barewire_sim::profile::CostLevel;
use serde::Serialize;

use crate::band::Band;
use crate::cost::Costs;
use crate::error::LabError;
use crate::kernel::Waiting;
use crate::outcome::{Explanation, StepCost};
use crate::own::{Measure, Message, OwnExperiment};
use crate::regime::Regime;
use crate::replay::Runner;
use crate::workload::messages;

/// A figure of a message.
#[derive(Clone, Debug, Serialize)]
pub struct MessageFigure {
    /// Its name: `rate`, `call`, `cs-low` and so on.
    pub figure: &'static str,
    /// Its unit: `us`, `1/s` or `%`.
    pub unit: &'static str,
    /// The kernel's.
    pub simulated: Band,
    /// Measured elsewhere, by the file.
    pub published: Option<f64>,
    /// (simulated - published) / published.
    pub error: Option<f64>,
    /// Whether the published value is in the band.
    pub within: Option<bool>,
    /// barewire's, with the same transfers and way of waiting; none if barewire has no such figure.
    pub barewire: Option<Band>,
}

/// A message with its figures.
#[derive(Clone, Debug, Serialize)]
pub struct MessageOutcome {
    /// Its name.
    pub name: String,
    /// Bytes of the transfers of a selection, or of a part of the batch.
    pub lengths: Vec<usize>,
    /// Parts of the batch.
    pub batch: usize,
    /// The clock asked.
    pub speed_hz: u64,
    /// How the driver waits: `polling`, `interrupts` or `dma`.
    pub waiting: &'static str,
    /// Whether its code is in the caches.
    pub regime: Regime,
    /// Its figures.
    pub figures: Vec<MessageFigure>,
    /// The steps of a call, the longest first.
    pub steps: Vec<StepCost>,
    /// Their sum, in microseconds.
    pub sum_us: f64,
}

/// An experiment's figures.
#[derive(Clone, Debug, Serialize)]
pub struct OwnOutcome {
    /// The experiment.
    pub name: String,
    /// In words.
    pub title: String,
    /// The board.
    pub board: String,
    /// The kernel: `Linux 6.1`.
    pub kernel: String,
    /// `spidev`, `in-kernel` or `in-kernel-optimized`.
    pub client: &'static str,
    /// The driver of the controller.
    pub driver: &'static str,
    /// Its messages.
    pub messages: Vec<MessageOutcome>,
}

/// The name of a way of waiting.
#[must_use]
pub fn waiting_name(waiting: Waiting) -> &'static str {
    match waiting {
        Waiting::Polling => "polling",
        Waiting::Interrupts => "interrupts",
        Waiting::Dma => "dma",
    }
}

/// The experiment with its board's costs at `level`.
fn at(own: &OwnExperiment, level: CostLevel) -> OwnExperiment {
    OwnExperiment { profile: own.profile.at(level), ..own.clone() }
}

/// The experiments and the costs whose smallest and largest figures make a band.
pub(crate) fn corners(
    own: &OwnExperiment,
    costs: &Costs,
    draws: &[Costs],
) -> Vec<(OwnExperiment, Costs)> {
    let ends = [CostLevel::Low, CostLevel::High];
    if draws.is_empty() {
        return ends.map(|level| (at(own, level), OwnExperiment::costs(costs).at(level))).into();
    }
    let drawn = draws.iter().map(|draw| (own.clone(), draw.clone()));
    drawn.chain(ends.map(|level| (at(own, level), costs.clone()))).collect()
}

/// barewire's figure with its band, where it has one with all costs; the first of `all` are those used.
fn beside(all: &[Option<Vec<(Measure, f64)>>], measure: Measure) -> Option<Band> {
    let value = |figures: &Option<Vec<(Measure, f64)>>| {
        let found = figures.as_ref()?.iter().find(|one| one.0 == measure)?;
        Some(found.1)
    };
    let values = all.iter().map(value).collect::<Option<Vec<f64>>>()?;
    let (&used, others) = values.split_first()?;
    Some(Band::over(used, others.iter().copied()))
}

/// The shortest time that counts as a rest of the clock, in microseconds: 1 ns is the rounding of its period.
const SHORTEST_REST_US: f64 = 1e-3;

/// A message's figures.
///
/// # Errors
/// If the wire loses a byte.
fn message(
    own: &OwnExperiment,
    of: &Message,
    costs: &Costs,
    draws: &[Costs],
) -> Result<MessageOutcome, LabError> {
    let runner = Runner::new(costs);
    let call = runner.message(own, of, Measure::Call)?;
    let corners = corners(own, costs, draws);
    let runners: Vec<(&OwnExperiment, Runner)> =
        corners.iter().map(|(own, costs)| (own, Runner::new(costs))).collect();
    let mut ours = vec![messages::barewire(own, of, costs)];
    ours.extend(corners.iter().map(|(own, costs)| messages::barewire(own, of, costs)));
    let mut figures = Vec::new();
    for measure in Measure::ALL {
        let Ok(taken) = runner.message(own, of, measure) else { continue };
        let used = taken.value;
        if measure == Measure::Rests && used < SHORTEST_REST_US {
            continue;
        }
        let mut band = Band::of(used);
        for (own, runner) in &runners {
            band = band.with(runner.message(own, of, measure)?.value);
        }
        let published = of.published.iter().find(|one| one.0 == measure).map(|one| one.1);
        figures.push(MessageFigure {
            figure: measure.name(),
            unit: measure.unit(),
            simulated: band,
            published,
            error: published.map(|value| (used - value) / value),
            within: published.map(|value| (band.low..=band.high).contains(&value)),
            barewire: beside(&ours, measure),
        });
    }
    Ok(MessageOutcome {
        name: of.name.clone(),
        lengths: of.lengths.clone(),
        batch: of.batch,
        speed_hz: of.speed_hz,
        waiting: waiting_name(own.path(of).waiting),
        regime: own.regime(of),
        figures,
        steps: call.steps,
        sum_us: call.sum_us,
    })
}

/// All figures of `own` with `costs`, in bands over `draws`.
///
/// # Errors
/// If a message has a published figure that the lab has not, or the wire loses a byte.
pub fn outcome(
    own: &OwnExperiment,
    costs: &Costs,
    draws: &[Costs],
) -> Result<OwnOutcome, LabError> {
    let mut messages = Vec::new();
    for of in &own.messages {
        let told = message(own, of, costs, draws)?;
        for (measure, _) in &of.published {
            if !told.figures.iter().any(|one| one.figure == measure.name()) {
                let text = format!(
                    "{}: published has {}, which this message has not: leave it out",
                    of.name,
                    measure.name()
                );
                return Err(LabError::Refused(text));
            }
        }
        messages.push(told);
    }
    Ok(OwnOutcome {
        name: own.name.clone(),
        title: own.title.clone(),
        board: own.spec.name.into(),
        kernel: own.path(&own.messages[0]).title,
        client: own.client.name(),
        driver: own.driver.name(),
        messages,
    })
}

/// A message's figure taken apart, with the steps in `without` switched off.
///
/// # Errors
/// If there is no such message, figure or step.
pub fn explain(
    own: &OwnExperiment,
    costs: &Costs,
    (name, measure): (&str, Option<&str>),
    without: &[String],
) -> Result<Explanation, LabError> {
    let found = own.message(name).ok_or_else(|| LabError::Unknown {
        what: "message",
        name: name.into(),
        known: own.messages.iter().map(|message| message.name.clone()).collect(),
    })?;
    let measure = measure.map_or(Ok(Measure::Call), |name| {
        Measure::named(name).ok_or_else(|| LabError::Unknown {
            what: "figure",
            name: name.into(),
            known: Measure::ALL.map(|one| one.name().into()).into(),
        })
    })?;
    let whole = Runner::new(costs).message(own, found, measure)?;
    let taken =
        Runner::ablated(costs, whole, without, |runner| runner.message(own, found, measure))?;
    let published = found.published.iter().find(|one| one.0 == measure).map(|one| one.1);
    let explanation = taken.explained(own.id(found, measure), measure.unit(), without);
    Ok(Explanation { published, ..explanation })
}
