//! Which change of a traffic shortens a task's bound most: each is made, and analysed again.

use super::analysis::{self, Bound};
use super::cost::{self, TaskError};
use super::{Path, Traffic};
use crate::chip::Ps;
use crate::profile::CostLevel;
use crate::{BoardSpec, chip::PS_PER_NS};

/// A change, and the bound that it leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What to change.
    pub what: String,
    /// The bound after it.
    pub bound_ps: Ps,
}

/// All changes that are tried.
fn all(traffic: &Traffic) -> Vec<(String, Traffic)> {
    let mut all = Vec::new();
    let mut add = |what: String, change: &dyn Fn(&mut Traffic)| {
        let mut changed = traffic.clone();
        change(&mut changed);
        if changed != *traffic {
            all.push((what, changed));
        }
    };
    let with = if traffic.inheritance { "without" } else { "with" };
    add(format!("a bus {with} priority inheritance"), &|it| it.inheritance = !it.inheritance);
    for (index, task) in traffic.tasks.iter().enumerate() {
        let name = &task.name;
        add(format!("messages of {name} half as long, twice as many"), &|it| {
            let halve = |message: &Vec<usize>| {
                let longest = message.iter().copied().max().unwrap_or(0);
                let half =
                    |&length: &usize| if length == longest { length.div_ceil(2) } else { length };
                let message: Vec<_> = message.iter().map(half).collect();
                [message.clone(), message]
            };
            let messages = &mut it.tasks[index].messages;
            *messages = messages.iter().flat_map(halve).collect();
        });
        add(format!("{name} without a lock"), &|it| {
            if it.tasks[index].path == Path::Lock {
                it.tasks[index].path = Path::Sync;
            }
        });
        add(format!("{name} above all other priorities"), &|it| {
            let others = it.tasks.iter().enumerate().filter(|&(other, _)| other != index);
            let highest = others.map(|(_, task)| task.priority).max().unwrap_or(0);
            let priority = &mut it.tasks[index].priority;
            *priority = (*priority).max(highest.saturating_add(1));
        });
    }
    all
}

/// For each task the change that shortens its bound most; `None` if none does. A change that the board refuses is
/// left out.
#[must_use]
pub fn best(traffic: &Traffic, spec: &'static BoardSpec, bounds: &[Bound]) -> Vec<Option<Change>> {
    let mut best: Vec<Option<Change>> = vec![None; bounds.len()];
    for (what, changed) in all(traffic) {
        let board = changed.board(spec, CostLevel::High);
        let costs: Result<_, TaskError> = cost::of(&changed, &board);
        let Ok(costs) = costs else { continue };
        let after = analysis::of(&changed, &board, &costs).bounds;
        for ((after, before), best) in after.iter().zip(bounds).zip(&mut best) {
            let Bound::Within(terms) = after else { continue };
            let bound_ps = terms.sum_ps();
            let before_ps = match before {
                Bound::Within(terms) => terms.sum_ps(),
                Bound::None(_) => Ps::MAX,
            };
            let limit = best.as_ref().map_or(before_ps, |best| best.bound_ps);
            // A nanosecond less is no change.
            if bound_ps + PS_PER_NS < limit {
                *best = Some(Change { what: what.clone(), bound_ps });
            }
        }
    }
    best
}
