//! What `barewire bound` prints.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use barewire_sim::bound::analysis::{Analysis, Bound};
use barewire_sim::bound::change::Change;
use barewire_sim::bound::{Path, Traffic};
use barewire_sim::{Board, BoardSpec};
use serde::Serialize;

use super::{Args, WorstTime};
use crate::shared::text::figure;

/// The result. Scripts rely on its field names.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    bus: String,
    simulated: bool,
    profile: &'static str,
    costs: &'static str,
    inheritance: bool,
    wake_up_ns: u64,
    schedules: u64,
    tasks: Vec<TaskReport>,
}

#[derive(Debug, Serialize)]
struct TaskReport {
    name: String,
    chip_select: u8,
    priority: u8,
    period_us: u64,
    path: &'static str,
    /// From call to return on an idle bus, the dearest of its calls.
    call_ns: u64,
    /// Of that, the time that SCK runs.
    wire_ns: u64,
    register_accesses: u64,
    /// No call takes longer; `None` if there is no bound.
    bound_ns: Option<u64>,
    /// Why there is no bound.
    unbounded: Option<String>,
    terms_ns: BTreeMap<&'static str, u64>,
    largest: Option<&'static str>,
    change: Option<ChangeReport>,
    worst_seen_ns: Option<u64>,
    worst_seed: Option<u64>,
}

#[derive(Debug, Serialize)]
struct ChangeReport {
    what: String,
    bound_ns: u64,
}

/// In nanoseconds, rounded up, so that a bound stays a bound.
fn ns(ps: u64) -> u64 {
    ps.div_ceil(1_000)
}

impl Report {
    #[expect(clippy::too_many_arguments, reason = "each is a part of the result")]
    pub(super) fn new(
        args: &Args,
        spec: &BoardSpec,
        traffic: &Traffic,
        board: &Board,
        analysis: &Analysis,
        changes: &[Option<Change>],
        seen: &[WorstTime],
        schedules: u64,
    ) -> Self {
        let tasks = traffic.tasks.iter().zip(&analysis.calls).zip(&analysis.bounds);
        let tasks = tasks.zip(changes).zip(seen).map(|((((task, call), bound), change), seen)| {
            let within = if let Bound::Within(terms) = bound { Some(terms) } else { None };
            let named = within.map(|terms| terms.named().map(|(name, ps)| (name, ns(ps))));
            let was_seen = schedules > 0;
            TaskReport {
                name: task.name.clone(),
                chip_select: task.chip_select,
                priority: task.priority,
                period_us: task.period_us,
                path: match task.path {
                    Path::Sync => "sync",
                    Path::Prepared => "prepared",
                    Path::Lock => "lock",
                },
                call_ns: ns(call.call_ps),
                wire_ns: ns(call.wire_ps),
                register_accesses: call.register_accesses,
                bound_ns: within.map(|terms| ns(terms.sum_ps())),
                unbounded: if let Bound::None(why) = bound { Some(why.clone()) } else { None },
                terms_ns: named.into_iter().flatten().collect(),
                largest: within.map(|terms| terms.largest().0),
                change: change.as_ref().map(|change| ChangeReport {
                    what: change.what.clone(),
                    bound_ns: ns(change.bound_ps),
                }),
                worst_seen_ns: was_seen.then(|| ns(seen.ps)),
                worst_seed: was_seen.then_some(seen.seed),
            }
        });
        let costs = board.engine().costs();
        Self {
            bus: args.bus.clone(),
            simulated: true,
            profile: spec.profile.name,
            costs: "high",
            inheritance: traffic.inheritance,
            wake_up_ns: ns(costs.wake_ps + costs.context_switch_ps),
            schedules,
            tasks: tasks.collect(),
        }
    }

    /// Which bound the adversary exceeded, if it did: then the analysis, or the bus, is wrong.
    pub(super) fn exceeded(&self) -> Option<String> {
        let exceeds =
            |task: &&TaskReport| task.bound_ns.is_some_and(|it| task.worst_seen_ns > Some(it));
        let task = self.tasks.iter().find(exceeds)?;
        Some(format!(
            "task {}: {} ns seen (seed {}), above its bound of {} ns",
            task.name,
            task.worst_seen_ns.unwrap_or_default(),
            task.worst_seed.unwrap_or_default(),
            task.bound_ns.unwrap_or_default()
        ))
    }
}

fn time(ns: u64) -> String {
    figure::time(ns as f64)
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let lends =
            if self.inheritance { "priority inheritance" } else { "no priority inheritance" };
        writeln!(
            f,
            "From call to return at most, simulated on {}, high costs; {lends}; a wake-up takes {}",
            self.profile,
            time(self.wake_up_ns)
        )?;
        for task in &self.tasks {
            writeln!(f)?;
            let TaskReport { name, chip_select, priority, path, period_us, .. } = task;
            writeln!(
                f,
                "{name}: chip select {chip_select}, {path}, priority {priority}, every {period_us} us"
            )?;
            match (task.bound_ns, &task.unbounded) {
                (Some(bound), _) => writeln!(f, "  at most      {}", time(bound))?,
                (None, why) => {
                    writeln!(f, "  no bound     {}", why.as_deref().unwrap_or_default())?;
                }
            }
            for (term, &ns) in task.terms_ns.iter().filter(|&(_, &ns)| ns > 0) {
                let largest = if task.largest == Some(term) { "  the largest" } else { "" };
                writeln!(f, "    {term:<10} {}{largest}", time(ns))?;
            }
            writeln!(
                f,
                "  alone        {}, {} of it on the wire, {} register accesses",
                time(task.call_ns),
                time(task.wire_ns),
                task.register_accesses
            )?;
            if let Some(ChangeReport { what, bound_ns }) = &task.change {
                writeln!(f, "  would help   {what}: {}", time(*bound_ns))?;
            }
            if let (Some(seen), Some(bound)) = (task.worst_seen_ns, task.bound_ns) {
                let share = figure::percent(seen as f64 / bound as f64);
                writeln!(
                    f,
                    "  worst seen   {}, {share} of it, in {} schedules",
                    time(seen),
                    figure::grouped(self.schedules)
                )?;
            }
        }
        Ok(())
    }
}
