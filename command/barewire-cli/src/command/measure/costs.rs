//! Costs from figures.
//!
//! # How it works
//! A cost is the value at which the simulated procedure takes as long as the measured one. The simulated board charges an
//! access its cost and the instructions around it, a wake-up its cost and a switch, and a message without a FIFO sleeps for
//! several interrupts; so a figure is not its cost. Hence, one cost after the other:
//! 1. Simulate the figure at the costs found so far, and with this cost a tenth higher: how much longer that makes it.
//! 2. Move the cost by what makes up for the measured one's being longer. The ends of its range are moved to the ends of the
//!    measured one.
//!
//! [`PASSES`] passes, since a cost also has a small part in other figures: at the ends of a row of turns, in the polls of a message.

use barewire_lab::measured::{MeasuredCost, Quantiles};
use barewire_sim::profile::{CostFile, FileCost, Profile};

use super::rounds::{Collected, Effort};
use super::simulated::{Part, Simulated};
use crate::shared::failure::Failure;

/// A cost and the figure that shows it. An earlier one is part of a later one's figure.
const COSTS: [(&str, &str, Part); 11] = [
    ("register_read_ps", "register-read", Part::Registers),
    ("register_write_ps", "register-write", Part::Registers),
    ("write_ack_ps", "register-write-barrier", Part::Registers),
    ("gpio_read_ps", "gpio-read", Part::Registers),
    ("gpio_write_ps", "gpio-write", Part::Registers),
    ("timer_read_ps", "timer-read", Part::Registers),
    ("futex_call_ps", "futex-call", Part::Threads),
    ("wake_call_ps", "wake-call", Part::Threads),
    ("context_switch_ps", "hand-over", Part::Threads),
    ("wake_ps", "wake", Part::Threads),
    ("irq_thread_ps", "irq-wake", Part::Interrupt),
];

/// Passes over all costs.
const PASSES: usize = 3;

const PS_PER_NS: f64 = 1e3;

/// The costs that the figures show, and the profile with them.
pub(super) fn of(
    figures: &[(&'static str, Quantiles)],
    simulated: &Simulated,
    base: &Profile,
    provenance: &str,
    missed: &mut Collected,
) -> Result<(Vec<MeasuredCost>, Profile), Failure> {
    let simulated = simulated.predicting();
    let (mut costs, mut profile) = (Vec::<MeasuredCost>::new(), base.clone());
    for pass in 0..PASSES {
        for (name, figure, part) in COSTS {
            let Some((_, ns)) = figures.iter().find(|(id, _)| *id == figure) else { continue };
            let figure_of =
                |of: &Profile| of.sources().into_iter().find(|source| source.field == name);
            let (Some(before), Some(assumed)) = (figure_of(&profile), figure_of(base)) else {
                continue;
            };
            // Step 1: how far the figure moves with the cost.
            let simulate = |profile: &Profile| {
                let ran = simulated.with(profile.clone()).run(&[part], Effort::SIMULATED)?;
                Ok::<_, Failure>(median(&ran, figure))
            };
            let before_ps = before.figure.value as f64;
            let more_ps = (before_ps / 10.0).max(1e3).round();
            let higher = row(name, [before_ps + more_ps; 3]);
            let higher = of_rows(vec![higher], base, provenance).profile(&profile);
            let (Some(there_ns), Some(higher_ns)) =
                (simulate(&profile)?, simulate(&higher.map_err(Failure::Failed)?)?)
            else {
                continue;
            };
            // A figure in steps, as of a timer's ticks, may not move at all.
            let slope = match (higher_ns - there_ns) * PS_PER_NS / more_ps {
                slope if slope > 0.5 => slope,
                _ => 1.0,
            };
            // Step 2: the cost at which it would be the measured one.
            let moved = |ns: f64| (before_ps + (ns - there_ns) * PS_PER_NS / slope).round();
            let value = moved(ns.median);
            costs.retain(|cost| cost.name != name);
            if value < 1.0 {
                if pass + 1 == PASSES {
                    let what = "is shorter than what the simulator charges around it: no cost is made of it";
                    missed.miss(name, format!("{figure} {what}"));
                }
            } else {
                costs.push(MeasuredCost {
                    name,
                    unit: before.unit,
                    value,
                    low: moved(ns.low).max(1.0),
                    high: moved(ns.high),
                    assumed: assumed.figure.value as f64,
                    figure,
                    source: provenance.to_owned(),
                });
            }
            profile = match costs.is_empty() {
                true => base.clone(),
                false => file(&costs, base, provenance).profile(base).map_err(Failure::Failed)?,
            };
        }
    }
    Ok((costs, profile))
}

/// The median of a figure of a run.
pub(super) fn median(collected: &Collected, id: &str) -> Option<f64> {
    let (_, rounds) = collected.figures.iter().find(|(one, _)| *one == id)?;
    Some(Quantiles::of(rounds.clone())?.median)
}

fn row(name: &str, [low, value, high]: [f64; 3]) -> FileCost {
    FileCost { name: name.into(), value, low, high }
}

fn of_rows(cost: Vec<FileCost>, base: &Profile, provenance: &str) -> CostFile {
    CostFile { profile: Some(base.name.into()), provenance: Some(provenance.into()), cost }
}

fn file(costs: &[MeasuredCost], base: &Profile, provenance: &str) -> CostFile {
    let rows = costs.iter().map(|cost| row(cost.name, [cost.low, cost.value, cost.high]));
    of_rows(rows.collect(), base, provenance)
}
