//! Instructions of the steps of a guest's kernel: from the trace of a boot to a reviewed table.
//!
//! How it works: `guests/steps.c` writes down what ran between marks of `guests/spisteps.c`; [`walk`] follows each task's
//! calls in it; [`measures`] says which functions a step is, and counts them in each operation; the middle of the
//! operations is the count. `guests/steps.txt` has the reviewed ones, and `lab/costs.toml` takes its counted costs from
//! there.

mod measures;
mod snapshot;
mod symbols;
#[cfg(test)]
mod tests;
mod trace;
mod tree;
mod walk;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

pub(super) use measures::Counted;
pub(super) use snapshot::{Steps, Table, table};
use symbols::Symbols;
use tree::Interval;
use walk::Walk;

/// The files of a boot.
#[derive(Debug)]
pub(super) struct Traced {
    /// What `guests/steps.c` wrote.
    pub(super) trace: PathBuf,
    /// The guest's `/proc/kallsyms`.
    pub(super) symbols: PathBuf,
    /// Where a typical operation of each kind goes, as a tree of calls.
    pub(super) trees: PathBuf,
}

/// The share of runs whose place may have to be guessed: a thread that slept when the trace began.
const LOST_MAX: f64 = 0.002;

/// Counts the steps of a trace.
///
/// # Errors
/// A file cannot be read or written, is no trace, or too much of it cannot be followed.
pub(super) fn count(traced: &Traced) -> Result<Vec<Counted>, String> {
    let walk = walked(&traced.trace, &traced.symbols)?;
    let path = &traced.trees;
    std::fs::write(path, trees(&walk))
        .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    if walk.runs == 0 || walk.lost as f64 > LOST_MAX * walk.runs as f64 {
        return Err(format!(
            "{} of {} runs of instructions have no known caller",
            walk.lost, walk.runs
        ));
    }
    Ok(measures::count(&walk))
}

/// Follows a trace to its end.
fn walked(trace: &Path, symbols: &Path) -> Result<Walk, String> {
    let cannot = |path: &Path, e| format!("cannot read {}: {e}", path.display());
    let text = std::fs::read_to_string(symbols).map_err(|e| cannot(symbols, e))?;
    let symbols = Symbols::parse(&text)?;
    let vectors = text
        .lines()
        .find(|line| line.ends_with(" T vectors"))
        .and_then(|line| u64::from_str_radix(line.split(' ').next()?, 16).ok());
    let mut walk = Walk::new(symbols, vectors);
    let file = File::open(trace).map_err(|e| cannot(trace, e))?;
    for line in BufReader::with_capacity(1 << 20, file).lines() {
        walk.take(trace::parse(&line.map_err(|e| cannot(trace, e))?)?);
    }
    Ok(walk)
}

/// For people: a typical operation of each label, as a tree of calls.
fn trees(walk: &Walk) -> String {
    let mut by_label: BTreeMap<&str, Vec<&Interval>> = BTreeMap::new();
    for interval in &walk.intervals {
        if !interval.label.is_empty() && interval.label != "-" {
            by_label.entry(&interval.label).or_default().push(interval);
        }
    }
    let mut text = String::new();
    for (_, mut all) in by_label {
        let total = |one: &&Interval| one.counts.values().map(|(own, _)| own).sum::<u64>();
        all.sort_by_key(total);
        text += &all[all.len() / 2].describe(&walk.tree, &walk.symbols);
        text += "\n";
    }
    text + &format!("{} of {} runs lost\n", walk.lost, walk.runs)
}
