//! Two threads on one table: windows of one and of two in turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use barewire_iommu_bench::pool::Lease;
use barewire_iommu_bench::scaling::{Pair, Scaling, SharedTable, Side, ThreadWork};

use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::output::note;
use crate::shared::processors::{self, spawn_on};

/// Much longer than it takes to start a thread.
const WINDOW: Duration = Duration::from_millis(40);

/// `windows` pairs of windows; none where there are no two processors.
pub(super) fn measure(windows: u32) -> Result<Option<Scaling>, Failure> {
    let processors = processors::allowed();
    if processors.len() < 2 {
        note!("barewire-iommu: bench: two threads are not timed: there is one processor");
        return Ok(None);
    }
    let lease = Lease::take();
    let mut shared = SharedTable::new(&lease);
    let mut sides = shared.sides();
    let mut pairs = Vec::new();
    for _ in 0..windows {
        interrupt::check()?;
        let one = window(&mut sides[..1], &processors).map_err(Failure::Failed)?;
        let two = window(&mut sides, &processors).map_err(Failure::Failed)?;
        pairs.push(Pair { one, two });
    }
    Ok(Some(Scaling::new(&pairs)))
}

/// A window of all `sides`, each on a processor of its own.
fn window(sides: &mut [Side<'_>], processors: &[usize]) -> Result<Vec<ThreadWork>, String> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = &stop;
        let spawned: Vec<_> = sides
            .iter_mut()
            .enumerate()
            .map(|(index, side)| spawn_on(scope, processors, index, move || side.run(stop)))
            .collect();
        thread::sleep(WINDOW);
        stop.store(true, Ordering::Relaxed);
        spawned.into_iter().map(|worker| worker?.join().expect("nobody panics")).collect()
    })
}
