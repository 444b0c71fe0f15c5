//! Two threads on one table: windows of each alone and of both in turn.

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

/// As many times a window of each thread and one of both; none where there are no two processors.
pub(super) fn measure(times: u32) -> Result<Option<Scaling>, Failure> {
    let processors = processors::allowed();
    if processors.len() < 2 {
        note!("barewire-iommu: bench: two threads are not timed: there is one processor");
        return Ok(None);
    }
    let lease = Lease::take();
    let mut shared = SharedTable::new(&lease);
    let mut sides = shared.sides();
    let mut windows = Vec::new();
    for _ in 0..times {
        interrupt::check()?;
        let [low, high] = &mut sides;
        let [first] = window([(0, &mut *low)], &processors).map_err(Failure::Failed)?;
        let [second] = window([(1, &mut *high)], &processors).map_err(Failure::Failed)?;
        let both = window([(0, low), (1, high)], &processors).map_err(Failure::Failed)?;
        windows.push(Windows { alone: [first, second], both });
    }
    Ok(Some(Scaling::new(&windows)))
}

/// A window of all `sides`, each on the processor with its number among those that are allowed.
fn window<const N: usize>(
    sides: [(usize, &mut Side<'_>); N],
    processors: &[usize],
) -> Result<[ThreadWork; N], String> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = &stop;
        let spawned =
            sides.map(|(index, side)| spawn_on(scope, processors, index, move || side.run(stop)));
        thread::sleep(WINDOW);
        stop.store(true, Ordering::Relaxed);
        let mut ran = Vec::with_capacity(N);
        for worker in spawned {
            ran.push(worker?.join().expect("nobody panics")?);
        }
        Ok(ran.try_into().expect("one of each thread"))
    })
}
