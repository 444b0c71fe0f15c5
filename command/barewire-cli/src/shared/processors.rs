//! Threads that stay where they are put.
//!
//! If the scheduler keeps two threads on one processor, they take turns of milliseconds and never
//! contend. Then a run does not measure contention, and runs differ at random. So each thread of a
//! bench has its processor.

use std::thread::Scope;

use barewire_linux::worker::{Stop, Worker, WorkerOptions, spawn_scoped};

/// The processors this process may run on; empty if they are not known.
pub(crate) fn allowed() -> Vec<usize> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.and_then(parse).unwrap_or_default()
}

/// `0-3,8` as the kernel writes it.
fn parse(list: &str) -> Option<Vec<usize>> {
    let mut processors = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        processors.extend(first..=last);
    }
    Some(processors)
}

/// Starts a thread that stays on the `index`th of `processors`, counted round.
pub(crate) fn spawn_on<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    processors: &[usize],
    index: usize,
    body: impl FnOnce(&Stop) -> T + Send + 'scope,
) -> Result<Worker<'scope, T>, String> {
    let affinity = processors.get(index % processors.len().max(1)).map(|&one| vec![one]);
    let options = WorkerOptions { name: "bench".into(), affinity, ..WorkerOptions::default() };
    spawn_scoped(scope, &options, body).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_list_is_read() {
        assert_eq!(parse("\t0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse("\t3\n"), Some(vec![3]));
        assert_eq!(parse("?"), None);
        assert!(!allowed().is_empty(), "we are running somewhere");
    }
}
