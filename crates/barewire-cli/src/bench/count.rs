//! Exact instruction counts, by running this program again under callgrind.
//!
//! Callgrind collects inside the operation's own function alone, over [`CALLS`] calls, so start-up
//! and the loop around the calls do not count.

use std::process::{Command, Stdio};

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
        if !self.works {
            return None;
        }
        match collect(op.symbol(), &["bench", "--count-op", op.name()]) {
            Ok(total) => {
                let operations = u64::from(CALLS * op.per_call());
                Some((total + operations / 2) / operations)
            }
            Err(why) => {
                eprintln!("barewire: bench: instructions not counted: {why}");
                self.works = false;
                None
            }
        }
    }
}

/// Instructions in all functions whose names hold `symbol` while this program runs with `arguments`.
pub(crate) fn collect(symbol: &str, arguments: &[&str]) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect=*{symbol}*"))
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("valgrind does not run ({error}); install it to count"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("valgrind failed: {}", report.lines().last().unwrap_or_default()));
    }
    match collected(&report) {
        Some(0) => {
            Err("callgrind did not find the operation's symbol: is the program stripped?".into())
        }
        Some(total) => Ok(total),
        None => Err("callgrind printed no count".into()),
    }
}

/// The number after `Collected :` in callgrind's report.
fn collected(report: &str) -> Option<u64> {
    let (_, count) = report.lines().find_map(|line| line.split_once("Collected :"))?;
    count.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_callgrind_s_report() {
        let report = "==7== Events    : Ir\n==7== Collected : 116000\n==7==\n";
        assert_eq!(collected(report), Some(116_000));
        assert_eq!(collected("==7== Events    : Ir\n"), None);
    }

    #[test]
    fn a_counter_that_is_not_wanted_counts_nothing() {
        assert_eq!(Counter::new(false).count(Op::Bare), None);
    }
}
