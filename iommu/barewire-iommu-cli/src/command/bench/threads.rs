//! Two threads on one table: windows of each alone, of both, and of both with a table each in turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use barewire_iommu_bench::pool::Lease;
use barewire_iommu_bench::scaling::{Scaling, SharedTable, Side, ThreadWork, Windows};

use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::output::note;
use crate::shared::processors::{self, spawn_on};

/// Much longer than it takes to start a thread.
const WINDOW: Duration = Duration::from_millis(20);

/// As many times a window of each thread, one of both, and one of both with a table each; none where there are
/// no two processors.
pub(super) fn measure(times: u32) -> Result<Option<Scaling>, Failure> {
    let processors = processors::allowed();
    if processors.len() < 2 {
        note!("barewire-iommu: bench: two threads are not timed: there is one processor");
        return Ok(None);
    }
    let lease = Lease::take();
    let (mut shared, mut other) = (SharedTable::new(&lease), SharedTable::new(&lease));
    let ([mut low, mut high], [_, mut apart]) = (shared.sides(), other.sides());
    let mut windows = Vec::new();
    for _ in 0..times {
        interrupt::check()?;
        let [first] = window([(0, &mut low)], &processors)?;
        let [second] = window([(1, &mut high)], &processors)?;
        let both = window([(0, &mut low), (1, &mut high)], &processors)?;
        let apart = window([(0, &mut low), (1, &mut apart)], &processors)?;
        windows.push(Windows { alone: [first, second], both, apart });
    }
    Ok(Some(Scaling::new(&windows)))
}

/// A window of all `sides`, each on the processor with its number among those that are allowed.
fn window<const N: usize>(
    sides: [(usize, &mut Side<'_>); N],
    processors: &[usize],
) -> Result<[ThreadWork; N], Failure> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = &stop;
        let spawned =
            sides.map(|(index, side)| spawn_on(scope, processors, index, move || side.run(stop)));
        thread::sleep(WINDOW);
        stop.store(true, Ordering::Relaxed);
        let mut ran = Vec::with_capacity(N);
        for worker in spawned {
            let worker = worker.map_err(Failure::Failed)?;
            ran.push(worker.join().expect("nobody panics").map_err(Failure::Failed)?);
        }
        Ok(ran.try_into().expect("one of each thread"))
    })
}
