//! Pins threads to processors.
//!
//! A scheduler may keep two threads on one processor for a while. Then they take turns of
//! milliseconds and never meet, so the contention to be measured happens in some runs and not in
//! others. So each thread of a bench has its own processor.

use std::thread::{Builder, Scope, ScopedJoinHandle};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors this process may run on; empty if they are not known.
pub(crate) fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect()
}

/// Starts a thread that stays on the `index`th of `processors`, counted round. It ends at once, with a
/// message, if it may not be there.
pub(crate) fn spawn_on<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    processors: &[usize],
    index: usize,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, Result<T, String>>, String> {
    let processor = processors.get(index % processors.len().max(1)).copied();
    let pinned = move || {
        if let Some(processor) = processor {
            let mut set = CpuSet::new();
            set.set(processor);
            sched_setaffinity(None, &set)
                .map_err(|error| format!("processor {processor} was refused: {error}"))?;
        }
        Ok(body())
    };
    let thread = Builder::new().name("bench".into());
    thread.spawn_scoped(scope, pinned).map_err(|error| format!("no thread could be made: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_where_it_was_put() {
        let allowed = allowed();
        assert!(!allowed.is_empty(), "we are running somewhere");
        let last = allowed.len() - 1;
        std::thread::scope(|scope| {
            let there = spawn_on(scope, &allowed, last, super::allowed).expect("starts");
            assert_eq!(there.join().expect("ends"), Ok(vec![allowed[last]]));
            let nowhere = spawn_on(scope, &[CpuSet::MAX_CPU - 1], 0, || ()).expect("starts");
            let refused = nowhere.join().expect("ends").expect_err("there are fewer");
            assert!(refused.contains("1023 was refused"), "{refused}");
        });
    }
}
