//! From what a user has to what he gains: where the time of a message goes, and what each measure saves of it.
//!
//! *Read first*: [`crate::own`], [`crate::messages`]; docs/lab.md, *What to do about a slow board*.
//!
//! # How it works
//! 1. The time of a message is that of its call, or of a part of its batch: [`MessageGain::today_us`].
//! 2. Each [`Measure`] changes the experiment, or says why it does nothing there. The changed one is replayed with the same costs.
//! 3. Alone: the measure beside today. Together: the measure beside those before it that were taken; one that saves little then
//!    is not taken, nor one whose saving has no known lower end.
//! 4. The band of a saving is over the same sets of costs on both sides: what both sides share moves it little.
//!
//! What no replay has is counted: the module leaves out the instructions and register accesses of guests/kernel.txt, once a
//! message; Linux 6.12's steps are those of guests/steps.txt. A native select takes the two edges off.
//!
//! # Not supported
//! The time between a sleep's end and the call; a change of the processor's clock; savings of the module that grow with the
//! message's length, or with its transfers.

mod counted;
mod group;
mod measure;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::band::Band;
use crate::cost::Costs;
use crate::error::LabError;
use crate::messages::{corners, waiting_name};
use crate::own::{Driver, Measure as Figure, Message, OwnExperiment};
use crate::regime::Regime;
use crate::replay::Runner;
use crate::workload::messages;
use counted::ModuleCount;
pub use group::GroupTime;
use group::{CHIP_SELECT, OF_MODULE, grouped, less};
pub use measure::{BATCH, Measure};
use measure::{Taken, reason};

/// Savings below this part of today's time are little.
pub const LITTLE: f64 = 0.05;

/// What a measure does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It saves time.
    Saves,
    /// It saves at most so much; how much of it is not known.
    AtMost,
    /// It saves or costs less than [`LITTLE`].
    Little,
    /// It costs time.
    Costs,
    /// Not for this board, kernel or message.
    NotHere,
}

/// A measure's worth for a message.
#[derive(Clone, Debug, Serialize)]
pub struct MeasureGain {
    /// Its name.
    pub measure: &'static str,
    /// In words.
    pub what: &'static str,
    /// Alone.
    pub verdict: Verdict,
    /// What it saves alone, in microseconds of a part of the message; negative if it costs.
    pub saves_us: Option<Band>,
    /// The same as a part of today's time, in percent, with the costs used.
    pub saves_percent: Option<f64>,
    /// Why it does nothing alone.
    pub why: Option<String>,
    /// Where counts are from.
    pub source: Option<String>,
    /// The time with it and those before that were taken; none if it is not taken.
    pub together_us: Option<Band>,
    /// Why it is not taken with those before it.
    pub not_taken: Option<String>,
    /// The groups of that time.
    pub groups: Vec<GroupTime>,
}

/// A message's time, and what may be saved of it.
#[derive(Clone, Debug, Serialize)]
pub struct MessageGain {
    /// Its name.
    pub name: String,
    /// Bytes of the transfers of a selection, or of a part of the batch.
    pub lengths: Vec<usize>,
    /// Parts of the batch.
    pub batch: usize,
    /// The clock asked.
    pub speed_hz: u64,
    /// How the driver waits today.
    pub waiting: &'static str,
    /// Whether its code is in the caches today.
    pub regime: Regime,
    /// Today's time of a part, in microseconds.
    pub today_us: Band,
    /// As the file has it published, by its `call` or `rate`.
    pub published_us: Option<f64>,
    /// Where that goes.
    pub groups: Vec<GroupTime>,
    /// What may be done.
    pub measures: Vec<MeasureGain>,
}

/// An experiment's messages.
#[derive(Clone, Debug, Serialize)]
pub struct GainOutcome {
    /// The experiment.
    pub name: String,
    /// In words.
    pub title: String,
    /// The board.
    pub board: String,
    /// The kernel.
    pub kernel: String,
    /// `spidev`, `in-kernel` or `in-kernel-optimized`.
    pub client: &'static str,
    /// The driver of the controller.
    pub driver: &'static str,
    /// Less than this part of today's time is little, in percent.
    pub little_percent: f64,
    /// Its messages.
    pub messages: Vec<MessageGain>,
}

/// The time of a part of a message, in microseconds, and its groups.
type Time = (f64, Vec<GroupTime>);

/// An experiment with one set of costs.
struct Case<'c> {
    own: &'c OwnExperiment,
    costs: &'c Costs,
}

impl Case<'_> {
    /// The time with the measures `taken`; none if barewire's driver refuses the message.
    fn time(&self, message: &Message, taken: &Taken) -> Result<Option<Time>, LabError> {
        let (own, message) = (taken.experiment(self.own), taken.message(message));
        if taken.is_user() {
            return Ok(self.user(&own, &message));
        }
        let upgraded = taken.is_upgraded(self.own);
        let costs = match upgraded {
            true => counted::upgraded(self.costs),
            false => self.costs.fresh(),
        };
        let call = Runner::new(&costs).message(&own, &message, Figure::Call)?;
        let parts = message.batch as f64;
        let groups = grouped(&call.steps, parts);
        let groups = if taken.is_module() {
            let count = ModuleCount::of(&own, upgraded).expect("the measure is for this board");
            let (instructions, accesses) = count.saved(own.client, taken.has(Measure::ModuleApi));
            let profile = costs.profile(&own.profile);
            let ps = instructions * costs.instruction_ps(&profile, own.regime(&message))
                + accesses * profile.register_write_ps.value as f64;
            less(groups, &OF_MODULE, ps / 1e6 / parts)
        } else if taken.has(Measure::NativeSelect) && own.driver != Driver::Mcspi {
            groups.into_iter().filter(|group| group.group != CHIP_SELECT).collect()
        } else {
            groups
        };
        Ok(Some((groups.iter().map(|group| group.us).sum(), groups)))
    }

    /// barewire's, in a process.
    fn user(&self, own: &OwnExperiment, message: &Message) -> Option<Time> {
        let figures = messages::barewire(own, message, self.costs)?;
        let of = |figure| figures.iter().find(|one| one.0 == figure).map(|one| one.1);
        let parts = message.batch as f64;
        let us = of(Figure::Call)? / parts;
        let wire_us = of(Figure::Clocks)? * message.selections() as f64 / parts;
        let software = GroupTime { group: "barewire", us: us - wire_us };
        Some((us, vec![software, GroupTime { group: "wire", us: wire_us }]))
    }
}

/// The cases of an experiment: with the costs used, and at the ends of bands.
struct Cases<'c> {
    all: Vec<Case<'c>>,
    message: &'c Message,
}

impl Cases<'_> {
    fn used(&self, taken: &Taken) -> Result<Option<Time>, LabError> {
        self.all[0].time(self.message, taken)
    }

    /// The times of all cases.
    fn times(&self, taken: &Taken) -> Result<Option<Vec<f64>>, LabError> {
        let times = self.all.iter().map(|case| case.time(self.message, taken));
        times.map(|time| Ok(time?.map(|time| time.0))).collect()
    }
}

fn band(values: &[f64]) -> Band {
    Band::over(values[0], values[1..].iter().copied())
}

/// The verdict on a part of today's time that is saved.
fn verdict(part: f64) -> Verdict {
    match part {
        LITTLE.. => Verdict::Saves,
        part if part > -LITTLE => Verdict::Little,
        _ => Verdict::Costs,
    }
}

const REFUSED: &str = "barewire's driver refuses the message on this select";

fn message(
    own: &OwnExperiment,
    of: &Message,
    cases: &Cases<'_>,
    tick: &mut dyn FnMut(),
) -> Result<MessageGain, LabError> {
    let nothing = Taken::default();
    let today = cases.times(&nothing)?.expect("a kernel takes every message");
    let (today_used, groups) = cases.used(&nothing)?.expect("the same");
    let (mut taken, mut best) = (Taken::default(), today_used);
    let mut measures = Vec::new();
    for measure in Measure::ALL {
        let mut gain = MeasureGain {
            measure: measure.name(),
            what: measure.what(),
            verdict: Verdict::NotHere,
            saves_us: None,
            saves_percent: None,
            why: reason(measure, own, of, &nothing),
            source: None,
            together_us: None,
            not_taken: match measure {
                Measure::StayAwake => Some("only its most is known".into()),
                _ => reason(measure, own, of, &taken),
            },
            groups: Vec::new(),
        };
        if gain.why.is_none() {
            match cases.times(&nothing.with(measure))? {
                None => gain.why = Some(REFUSED.into()),
                Some(times) => {
                    let saved: Vec<f64> =
                        today.iter().zip(&times).map(|(now, then)| now - then).collect();
                    let part = saved[0] / today[0];
                    gain.verdict = match verdict(part) {
                        Verdict::Saves if measure == Measure::StayAwake => Verdict::AtMost,
                        other => other,
                    };
                    gain.saves_percent = Some(100.0 * part);
                    let saves = band(&saved);
                    // The lab does not know how much of the code then stays in the caches.
                    let low = if measure == Measure::StayAwake { 0.0 } else { saves.low };
                    gain.saves_us = Some(Band { low, ..saves });
                }
            }
        }
        if gain.not_taken.is_none() {
            let with = taken.with(measure);
            match cases.used(&with)? {
                None => gain.not_taken = Some(REFUSED.into()),
                Some((us, _)) if verdict((best - us) / today_used) != Verdict::Saves => {
                    let little = if us < best { "little more, " } else { "" };
                    gain.not_taken = Some(format!("{little}{us:.2} us with those above"));
                }
                Some((us, groups)) => {
                    gain.together_us = cases.times(&with)?.map(|times| band(&times));
                    gain.groups = groups;
                    (taken, best) = (with, us);
                }
            }
        }
        if matches!(measure, Measure::Module | Measure::ModuleApi)
            && (gain.saves_us.is_some() || gain.together_us.is_some())
        {
            let upgraded = taken.with(measure).is_upgraded(own);
            gain.source = ModuleCount::of(own, upgraded).map(|count| count.source());
        }
        measures.push(gain);
        tick();
    }
    let published = |figure| of.published.iter().find(|one| one.0 == figure).map(|one| one.1);
    let by_call = published(Figure::Call).map(|us| us / of.batch as f64);
    Ok(MessageGain {
        name: of.name.clone(),
        lengths: of.lengths.clone(),
        batch: of.batch,
        speed_hz: of.speed_hz,
        waiting: waiting_name(own.path(of).waiting),
        regime: own.regime(of),
        today_us: band(&today),
        published_us: by_call.or(published(Figure::Rate).map(|rate| 1e6 / rate)),
        groups,
        measures,
    })
}

/// Where the time of each message goes, and what each measure saves; `progress` is told how many of how many measures are
/// done.
///
/// # Errors
/// If the wire loses a byte.
pub fn gain(
    own: &OwnExperiment,
    costs: &Costs,
    draws: &[Costs],
    progress: &mut dyn FnMut(usize, usize),
) -> Result<GainOutcome, LabError> {
    let (mut done, all) = (0, own.messages.len() * Measure::ALL.len());
    let mut tick = || {
        done += 1;
        progress(done, all);
    };
    let costs = &OwnExperiment::costs(costs);
    let corners = corners(own, costs, draws);
    let mut messages = Vec::new();
    for of in &own.messages {
        let ends = corners.iter().map(|(own, costs)| Case { own, costs });
        let all = [Case { own, costs }].into_iter().chain(ends).collect();
        messages.push(message(own, of, &Cases { all, message: of }, &mut tick)?);
    }
    Ok(GainOutcome {
        name: own.name.clone(),
        title: own.title.clone(),
        board: own.spec.name.into(),
        kernel: own.path(&own.messages[0]).title,
        client: own.client.name(),
        driver: own.driver.name(),
        little_percent: 100.0 * LITTLE,
        messages,
    })
}
