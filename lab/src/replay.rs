//! An experiment's figure replayed: run, measured, taken apart.
//!
//! *Read first*: [`crate::experiment`], [`crate::machine`].
//!
//! # How it works
//! A [`Runner`] has the costs and what is switched off. Figures of one run of a workload share it. Each figure is the
//! mean of intervals of the run's record, or a share of them in which processors were busy; its steps add up to it.

use std::collections::BTreeSet;
use std::rc::Rc;

use barewire_sim::chip::Ps;
use barewire_sim::engine;

use crate::cost::Costs;
use crate::error::LabError;
use crate::experiment::{Experiment, Question, Workload};
use crate::kernel::Path;
use crate::machine::{Parts, Piece, Record, add_parts};
use crate::memo::Memo;
use crate::outcome::{Explanation, StepCost, Stretch, UnpublishedResult};
use crate::own::{Measure, Message, OwnExperiment};
use crate::walk;
use crate::workload::{Intervals, beside, dd, echo, machine, messages, nor, spidev};

/// A figure, replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayedFigure {
    /// In its unit.
    pub value: f64,
    /// The sum of its steps.
    pub sum_us: f64,
    /// How the value follows from the sum.
    pub relation: String,
    /// The steps, the longest first.
    pub steps: Vec<StepCost>,
    /// One occurrence.
    pub timeline: Vec<Stretch>,
}

impl ReplayedFigure {
    /// The figure taken apart, as far as the run says.
    pub(crate) fn explained(self, id: String, unit: &str, without: &[String]) -> Explanation {
        Explanation {
            id,
            unit: unit.into(),
            published: None,
            replayed: self.value,
            without: without.to_vec(),
            steps: self.steps,
            sum_us: self.sum_us,
            relation: self.relation,
            timeline: self.timeline,
            moves: Vec::new(),
            unexplained: None,
        }
    }
}

/// The processor's time that a thread's switches take, which no step has.
const SWITCHES: &str = "interrupts and switches";

enum Run {
    Echo(echo::EchoRun),
    Dd(dd::Read),
    Spidev(spidev::SamplingRun),
    Nor(nor::Read),
    Messages(Box<messages::MessagesRun>),
}

/// Costs, ablations and the runs done so far.
pub struct Runner {
    costs: Rc<Costs>,
    off: Rc<BTreeSet<String>>,
    runs: Memo<Run>,
}

fn us(ps: Ps) -> f64 {
    ps as f64 / 1e6
}

/// The steps of several intervals, averaged to those of one.
fn mean_steps(parts: &Parts, count: usize) -> (Vec<StepCost>, f64) {
    let n = count.max(1) as f64;
    let mut steps: Vec<StepCost> = parts
        .iter()
        .map(|(step, part)| StepCost {
            step: (*step).into(),
            us: us(part.ps) / n,
            times: part.times as f64 / n,
            instructions: part.spent.instructions / n,
            reads: part.spent.reads as f64 / n,
            writes: part.spent.writes as f64 / n,
            wakes: part.spent.wakes as f64 / n,
            removable: part.removable,
        })
        .collect();
    steps.sort_by(|a, b| b.us.total_cmp(&a.us));
    let sum = steps.iter().map(|step| step.us).sum();
    (steps, sum)
}

/// The pieces of an interval that begins at `from`, as a timeline.
fn timeline(pieces: Vec<Piece>, from: Ps) -> Vec<Stretch> {
    let stretch = |(lane, step, begins, ends): Piece| Stretch {
        lane: lane.to_string(),
        step: step.into(),
        from_us: us(begins - from),
        to_us: us(ends - from),
    };
    pieces.into_iter().map(stretch).collect()
}

/// The mean of `intervals`, and `value` of it.
fn mean(
    record: &Record,
    intervals: &Intervals,
    relation: &str,
    value: impl Fn(f64) -> f64,
) -> ReplayedFigure {
    let (mut parts, mut one) = (Parts::new(), Vec::new());
    for (place, &(from, to)) in intervals.all.iter().enumerate() {
        let (of_this, pieces) = record.attribute(from, to);
        add_parts(&mut parts, &of_this, 1);
        if place == intervals.all.len() / 2 {
            one = timeline(pieces, from);
        }
    }
    let (steps, sum_us) = mean_steps(&parts, intervals.all.len());
    ReplayedFigure { value: value(sum_us), sum_us, relation: relation.into(), steps, timeline: one }
}

/// The steps in which `lanes` kept processors busy, with their switches.
fn busy(record: &Record, lanes: &[&str], (from, to): (Ps, Ps), threads: &engine::Costs) -> Parts {
    let mut parts = record.busy(lanes, from, to);
    parts.entry(SWITCHES).or_default().ps +=
        record.switches(lanes, from, to) * threads.context_switch_ps;
    parts
}

impl Runner {
    /// A runner with `costs`.
    #[must_use]
    pub fn new(costs: &Costs) -> Self {
        Self::without(costs, BTreeSet::new())
    }

    /// The same with the steps in `off` switched off.
    #[must_use]
    pub fn without(costs: &Costs, off: BTreeSet<String>) -> Self {
        Self { costs: Rc::new(costs.fresh()), off: Rc::new(off), runs: Memo::default() }
    }

    /// A figure with the steps in `off` switched off; `whole` is the figure with all of them.
    ///
    /// # Errors
    /// If a step is not in the figure, or cannot be switched off.
    pub fn ablated(
        costs: &Costs,
        whole: ReplayedFigure,
        off: &[String],
        take: impl FnOnce(&Self) -> Result<ReplayedFigure, LabError>,
    ) -> Result<ReplayedFigure, LabError> {
        let removable = whole.steps.iter().filter(|step| step.removable);
        let known: Vec<String> = removable.map(|step| step.step.clone()).collect();
        if let Some(name) = off.iter().find(|name| !known.contains(name)) {
            return Err(LabError::Unknown { what: "step", name: name.clone(), known });
        }
        if off.is_empty() {
            Ok(whole)
        } else {
            take(&Self::without(costs, off.iter().cloned().collect()))
        }
    }

    /// The costs that its runs asked for.
    #[must_use]
    pub fn used(&self) -> BTreeSet<String> {
        self.costs.used()
    }

    /// Replays a figure.
    ///
    /// # Errors
    /// If the experiment names a path, board or metric that is not there, or leaves out what its workload needs.
    pub fn take(
        &self,
        experiment: &Experiment,
        asked: &Question,
    ) -> Result<ReplayedFigure, LabError> {
        match experiment.workload {
            Workload::Echo => self.echo(experiment, asked),
            Workload::Dd => self.dd(experiment, asked),
            Workload::Unmap => self.unmap(asked),
            Workload::Spidev => self.spidev(experiment, asked),
            Workload::Nor => self.nor(experiment, asked),
            Workload::Messages => {
                let own = experiment.own.as_ref().expect("this workload has messages");
                let message = own.message(&asked.message).expect("questions are of its messages");
                let measure = Measure::named(&asked.metric).expect("questions are of its measures");
                self.message(own, message, measure)
            }
            Workload::Camera | Workload::Beside | Workload::Stated => {
                Err(LabError::Refused(format!("{} has no figure to replay", experiment.name)))
            }
        }
    }

    /// The result of an experiment without figures on `path`: its numbers, its words, and the part they do not
    /// explain.
    ///
    /// # Errors
    /// If there is no such path or board, or the experiment has figures.
    pub fn tell(&self, experiment: &Experiment, path: &str) -> Result<UnpublishedResult, LabError> {
        let number = |(name, value): (&str, f64)| (name.to_owned(), value);
        let (values, text, unexplained) = match experiment.workload {
            Workload::Camera => {
                let flush = walk::Flush::of_path(path)?;
                let camera = walk::camera(&walk::Costs::of(&self.costs), flush);
                let values = [("unmap_ms_per_s", camera.unmap_ms_per_s())].map(number).into();
                (values, camera.to_string(), Some(walk::UNEXPLAINED.to_owned()))
            }
            Workload::Beside => {
                let new = || machine(&experiment.board, &self.costs, &self.off);
                let told = beside::run(new, Path::find(path)?, experiment.speed_hz)?;
                (told.values().map(number).into(), told.to_string(), None)
            }
            _ => return Err(LabError::Refused(format!("{} has figures", experiment.name))),
        };
        Ok(UnpublishedResult {
            experiment: experiment.name.clone(),
            thread: experiment.thread.clone(),
            citation: experiment.citation.clone(),
            path: path.to_owned(),
            values,
            text,
            unexplained,
        })
    }

    fn metric_error(asked: &Question, known: &[&str]) -> LabError {
        let known = known.iter().map(|&name| name.to_owned()).collect();
        LabError::Unknown { what: "metric", name: asked.metric.clone(), known }
    }

    fn echo(&self, experiment: &Experiment, asked: &Question) -> Result<ReplayedFigure, LabError> {
        let Experiment { board, speed_hz, frames, gap_us, processors, .. } = experiment;
        let path = Path::find(&asked.path)?;
        let key = format!("echo {board} {} {speed_hz} {frames} {gap_us}", path.name);
        let run = self.runs.run(key, || {
            let machine = machine(board, &self.costs, &self.off)?;
            Ok(Run::Echo(echo::run(&machine, path, *speed_hz, *frames, gap_us * 1_000_000)))
        })?;
        let Run::Echo(echoed) = &*run else { unreachable!("the key names the workload") };
        let metric = match asked.metric.as_str() {
            "gap" => echo::Metric::Gap,
            "int-low" => echo::Metric::IntLow,
            "cs-to-clock" => echo::Metric::CsToClock,
            "cs-high" => echo::Metric::CsHigh,
            "irq-thread" | "idle" => return Ok(Self::share(echoed, asked, *processors)),
            _ => {
                let known = ["gap", "int-low", "cs-to-clock", "cs-high", "irq-thread", "idle"];
                return Err(Self::metric_error(asked, &known));
            }
        };
        let intervals = echoed.intervals.iter().find(|(name, _)| *name == metric);
        let (_, intervals) = intervals.expect("every run measures all of them");
        Ok(mean(&echoed.record, intervals, "sum", |sum| sum))
    }

    /// A share of the processors' time.
    fn share(echoed: &echo::EchoRun, asked: &Question, processors: u32) -> ReplayedFigure {
        let (from, to) = echoed.elapsed;
        let thread_alone = asked.metric == "irq-thread";
        let lanes = echoed.record.lanes();
        let lanes = lanes.iter().filter(|lane| !thread_alone || &***lane == "irq thread");
        let lanes: Vec<&str> = lanes.map(|lane| &**lane).collect();
        let mut parts = busy(&echoed.record, &lanes, echoed.elapsed, &echoed.threads);
        if !thread_alone {
            parts.entry(SWITCHES).or_default().ps += echoed.services * echoed.threads.irq_thread_ps;
        }
        let echoes = echoed.echoed.saturating_sub(1).max(1);
        let (steps, sum_us) = mean_steps(&parts, echoes);
        let all_us = us(to - from) / echoes as f64 * f64::from(processors);
        let percent = move |sum: f64| 100.0 * sum / all_us;
        let (value, idle) =
            if thread_alone { (percent(sum_us), "") } else { (100.0 - percent(sum_us), "100 - ") };
        let relation = format!(
            "{idle}100 x sum / {all_us:.1} us, which {processors} processors have between two echoes"
        );
        ReplayedFigure { value, sum_us, relation, steps, timeline: Vec::new() }
    }

    fn dd(&self, experiment: &Experiment, asked: &Question) -> Result<ReplayedFigure, LabError> {
        let Experiment { board, speed_hz, .. } = experiment;
        let path = Path::find(&asked.path)?;
        let run = self.runs.run(format!("dd {board} {} {speed_hz}", path.name), || {
            let machine = machine(board, &self.costs, &self.off)?;
            Ok(Run::Dd(dd::run(&machine, path, *speed_hz, 3)))
        })?;
        let Run::Dd(read) = &*run else { unreachable!("the key names the workload") };
        match asked.metric.as_str() {
            "time" => {
                let reads = asked.scale.unwrap_or(1.0);
                Ok(mean(&read.record, &read.reads, &format!("sum x {reads} / 1e6"), move |sum| {
                    sum * reads / 1e6
                }))
            }
            "busy" => {
                let lanes: Vec<_> =
                    read.record.lanes().into_iter().filter(|lane| &**lane != "SDMA").collect();
                let lanes: Vec<&str> = lanes.iter().map(|lane| &**lane).collect();
                let parts = busy(&read.record, &lanes, read.elapsed, &read.threads);
                let (steps, sum_us) = mean_steps(&parts, read.reads.all.len());
                let all_us = read.reads.mean_us();
                let value = 100.0 * (sum_us / all_us).min(1.0);
                let relation = format!("100 x sum / {all_us:.1} us of a read, at most 100");
                Ok(ReplayedFigure { value, sum_us, relation, steps, timeline: Vec::new() })
            }
            _ => Err(Self::metric_error(asked, &["time", "busy"])),
        }
    }

    fn spidev(
        &self,
        experiment: &Experiment,
        asked: &Question,
    ) -> Result<ReplayedFigure, LabError> {
        let Experiment { board, speed_hz, .. } = experiment;
        let path = Path::find(&asked.path)?;
        let metric = match asked.metric.as_str() {
            "rate" => spidev::Metric::Rate,
            "cs-setup" => spidev::Metric::CsSetup,
            "cs-hold" => spidev::Metric::CsHold,
            "ioctl-gap" => spidev::Metric::IoctlGap,
            "cs-toggle" => spidev::Metric::CsToggle,
            "clocks" => spidev::Metric::Clocks,
            "transfer" => spidev::Metric::Transfer,
            _ => {
                let known =
                    ["rate", "cs-setup", "cs-hold", "ioctl-gap", "cs-toggle", "clocks", "transfer"];
                return Err(Self::metric_error(asked, &known));
            }
        };
        let batch = asked.batch.unwrap_or(1);
        // Parts of a transfer show in a few ioctls; a rate has the timer's ticks in it.
        let steady = spidev::Options::new(*speed_hz, batch);
        let few = spidev::Options { ioctls: steady.ioctls.min(40), ..steady };
        let options = if metric == spidev::Metric::Rate { steady } else { few };
        let run = self.runs.run(format!("spidev {board} {} {options:?}", path.name), || {
            let machine = machine(board, &self.costs, &self.off)?;
            Ok(Run::Spidev(spidev::run(&machine, path, &options)))
        })?;
        let Run::Spidev(sampled) = &*run else { unreachable!("the key names the workload") };
        let intervals = sampled.intervals(metric);
        if metric == spidev::Metric::Rate {
            let samples = sampled.samples as f64;
            let whole = mean(&sampled.record, intervals, "1e6 / sum", |sum| samples * 1e6 / sum);
            // Of one sample.
            let steps = whole.steps.into_iter().map(|step| step.divided(samples)).collect();
            return Ok(ReplayedFigure { sum_us: whole.sum_us / samples, steps, ..whole });
        }
        Ok(mean(&sampled.record, intervals, "sum", |sum| sum))
    }

    fn nor(&self, experiment: &Experiment, asked: &Question) -> Result<ReplayedFigure, LabError> {
        let Experiment { board, speed_hz, .. } = experiment;
        let path = Path::find(&asked.path)?;
        let missing = |what: &str| LabError::Experiment(format!("{}: {what} is missing", asked.id));
        let (block, blocks) = (
            asked.block.ok_or_else(|| missing("block"))?,
            asked.blocks.ok_or_else(|| missing("blocks"))?,
        );
        let run = self.runs.run(
            format!("nor {board} {} {speed_hz} {block} {blocks}", path.name),
            || {
                let machine = machine(board, &self.costs, &self.off)?;
                Ok(Run::Nor(nor::run(&machine, path, *speed_hz, block, blocks)))
            },
        )?;
        let Run::Nor(read) = &*run else { unreachable!("the key names the workload") };
        let (steps, sum_us) = mean_steps(&read.parts(), 1);
        let (from, to) = read.window;
        let timeline = timeline(read.record.attribute(from, to).1, from);
        let (value, relation) =
            if blocks > 1 { (sum_us / 1e3, "sum / 1e3") } else { (sum_us, "sum") };
        Ok(ReplayedFigure { value, sum_us, relation: relation.into(), steps, timeline })
    }

    /// A figure of a message of a user's experiment.
    ///
    /// # Errors
    /// If the message has no such figure, or the wire lost a byte.
    pub fn message(
        &self,
        own: &OwnExperiment,
        message: &Message,
        measure: Measure,
    ) -> Result<ReplayedFigure, LabError> {
        let run = self.runs.run(format!("messages {} {message:?}", own.name), || {
            let costs = Rc::new(OwnExperiment::costs(&self.costs));
            let machine = messages::machine(own, &costs, &self.off);
            let run = messages::run(&machine, own, message);
            self.costs.mark(&costs.used());
            if !run.is_right {
                let why = run.broken.as_deref().unwrap_or("no rule of the wire was broken");
                let text = format!("{}: bytes were lost on the wire: {why}", message.name);
                return Err(LabError::Refused(text));
            }
            Ok(Run::Messages(Box::new(run)))
        })?;
        let Run::Messages(sent) = &*run else { unreachable!("the key names the workload") };
        if measure == Measure::Processor {
            let (steps, sum_us) = mean_steps(&sent.busy, sent.messages);
            let all_us = us(sent.window_ps()) / sent.messages as f64;
            let relation = format!("100 x sum / {all_us:.1} us from one message to the next");
            let value = 100.0 * sum_us / all_us;
            return Ok(ReplayedFigure { value, sum_us, relation, steps, timeline: Vec::new() });
        }
        let measured = sent.measured(own, message, measure).ok_or_else(|| {
            LabError::Refused(format!("{} has no {}", message.name, measure.name()))
        })?;
        let relation = measured.relation();
        let whole = mean(&sent.record, &measured.intervals, &relation, |sum| measured.value(sum));
        if measure != Measure::Rate {
            return Ok(whole);
        }
        // Of one part of a batch.
        let parts = (sent.messages * message.batch) as f64;
        let steps = whole.steps.into_iter().map(|step| step.divided(parts)).collect();
        let relation = "1e6 / sum".into();
        Ok(ReplayedFigure { sum_us: whole.sum_us / parts, steps, relation, ..whole })
    }

    fn unmap(&self, asked: &Question) -> Result<ReplayedFigure, LabError> {
        let flush = walk::Flush::of_path(&asked.path)?;
        let bytes = asked
            .bytes
            .ok_or_else(|| LabError::Experiment(format!("{}: bytes are missing", asked.id)))?;
        let costs = walk::Costs::of(&self.costs);
        let counted = match asked.call.as_deref() {
            Some("map_sg") => walk::map(bytes, &costs),
            Some("unmap") => walk::unmap(bytes, flush, &costs),
            Some("invalidations") => {
                let value = walk::invalidations(bytes, flush, &costs) as f64;
                let relation = "counted".into();
                return Ok(ReplayedFigure {
                    value,
                    sum_us: 0.0,
                    relation,
                    steps: Vec::new(),
                    timeline: Vec::new(),
                });
            }
            _ => {
                return Err(LabError::Experiment(format!(
                    "{}: call is map_sg, unmap or invalidations",
                    asked.id
                )));
            }
        };
        let mut at = 0.0;
        let mut timeline = Vec::new();
        let mut steps = Vec::new();
        for walk::StepCount { step, times, ps } in counted {
            let taken = if self.off.contains(step) { 0.0 } else { ps / 1e6 };
            timeline.push(Stretch {
                lane: "processor".into(),
                step: step.into(),
                from_us: at,
                to_us: at + taken,
            });
            at += taken;
            steps.push(StepCost {
                step: step.into(),
                us: taken,
                times: times as f64,
                instructions: 0.0,
                reads: 0.0,
                writes: 0.0,
                wakes: 0.0,
                removable: true,
            });
        }
        steps.sort_by(|a: &StepCost, b| b.us.total_cmp(&a.us));
        Ok(ReplayedFigure { value: at, sum_us: at, relation: "sum".into(), steps, timeline })
    }
}
