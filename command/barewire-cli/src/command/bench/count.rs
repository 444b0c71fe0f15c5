//! Exact instruction counts, by running this program again under callgrind.
//!
//! Callgrind collects inside the operation's own function alone, over [`CALLS`] calls, so start-up
//! and the loop around the calls do not count.

use std::path::Path;

use super::callgrind::{collect, collect_each};
use super::ops::Op;

/// Calls callgrind sees. All cost the same but where a branch of the first differs.
pub(super) const CALLS: u32 = 1_000;

/// Counts, as long as callgrind can.
pub(super) struct Counter {
    works: bool,
}

impl Counter {
    /// A counter, or with `wanted` false one that never counts.
    pub(super) fn new(wanted: bool) -> Self {
        Self { works: wanted }
    }

    /// Instructions of one operation; `None` if they cannot be counted, said once on stderr.
    pub(super) fn count(&mut self, op: Op) -> Option<u64> {
        let operations = u64::from(CALLS * op.per_call());
        let total =
            self.run(op.name(), |program, arguments| collect(program, op.symbol(), arguments));
        total.map(|total| (total + operations / 2) / operations)
    }

    /// Instructions of each call of a function whose name has `symbol`, in a run with `--count-op
    /// name`; none if they cannot be counted.
    pub(super) fn count_each(&mut self, name: &str, symbol: &str, calls: usize) -> Vec<u64> {
        let counts =
            self.run(name, |program, arguments| collect_each(program, symbol, arguments, calls));
        counts.unwrap_or_default()
    }

    fn run<T>(
        &mut self,
        name: &str,
        collect: impl FnOnce(&Path, &[&str]) -> Result<T, String>,
    ) -> Option<T> {
        if !self.works {
            return None;
        }
        let program = std::env::current_exe().map_err(|error| error.to_string());
        match program.and_then(|program| collect(&program, &["bench", "--count-op", name])) {
            Ok(counted) => Some(counted),
            Err(why) => {
                eprintln!("barewire: bench: instructions not counted: {why}");
                self.works = false;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_is_not_wanted_counts_nothing() {
        assert_eq!(Counter::new(false).count(Op::Bare), None);
    }
}
