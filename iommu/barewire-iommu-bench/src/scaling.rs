//! Two threads on separate ranges of one table: how much more they do than one thread.
//!
//! # How it works
//! A table is split in two parts. Each part has a thread that maps and unmaps a scattered list as
//! fast as it can, with tables from its own free list. The threads share only the root. Windows of
//! each thread alone and of both alternate, so that a disturbance affects all. On a busy machine
//! two threads do not get two processors. So the work per second of running time is reported too,
//! if the system provides that time.

use core::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use barewire_iommu::{Gather, Iova, Part, Segment};
use serde::Serialize;

use crate::list::{Layout, Size};
use crate::pool::{Lease, Tables};
use crate::stats::{median, rounded};
use crate::subject::{ATTRIBUTES, BASE, Barewire, Unmapping, release_of};

/// The size each call maps.
const SIZE: &str = "2M";

/// The shared table.
#[derive(Debug)]
pub struct SharedTable {
    ours: Barewire,
}

/// One thread's part of the table.
#[derive(Debug)]
pub struct Side<'t> {
    part: Part<'t, Tables>,
    iova: Iova,
    list: Vec<Segment>,
}

/// The work of one thread in a window.
#[derive(Clone, Copy, Debug)]
pub struct ThreadWork {
    /// The number of lists mapped and unmapped.
    pub calls: u64,
    /// The duration.
    pub seconds: f64,
    /// The time the thread had a processor, if Linux provides it.
    pub running_seconds: Option<f64>,
}

impl ThreadWork {
    /// Calls per second.
    pub fn per_s(&self) -> f64 {
        self.calls as f64 / self.seconds
    }

    /// Calls per second with a processor.
    pub fn per_running_s(&self) -> Option<f64> {
        Some(self.calls as f64 / self.running_seconds?)
    }
}

/// The time this thread has had a processor.
fn running_seconds() -> Option<f64> {
    // The kernel updates the sum when it schedules, so yield.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let ns: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(ns as f64 / 1e9)
}

impl SharedTable {
    /// Creates an empty table. Its root is from this thread's shard, so keep the [`Lease`].
    pub fn new(_lease: &Lease) -> Self {
        Self { ours: Barewire::new(Unmapping::Gathered) }
    }

    /// Both halves.
    pub fn sides(&mut self) -> [Side<'_>; 2] {
        let list = Layout::Scattered.list(Size::from_name(SIZE).expect("one of the sizes"));
        let (low, high) = self.ours.table().whole().split_at(Iova(BASE));
        let side = |part, iova| Side { part, iova: Iova(iova), list: list.clone() };
        [side(low, 0), side(high, BASE)]
    }
}

impl Side<'_> {
    /// Maps and unmaps until `stop` is set, at least once.
    ///
    /// # Panics
    /// If this thread holds a [`Lease`].
    pub fn run(&mut self, stop: &AtomicBool) -> ThreadWork {
        let _lease = Lease::take();
        let bytes = self.list.iter().map(|segment| segment.len).sum();
        let (begun, ran) = (Instant::now(), running_seconds());
        let mut calls = 0;
        loop {
            let mut gather = Gather::new();
            let mapped = self.part.map_sg(self.iova, &self.list, ATTRIBUTES, &mut gather);
            mapped.expect("the addresses are free and the pool has tables");
            self.part.unmap(self.iova, bytes, &mut gather).expect("all of it is mapped");
            release_of(&self.part, &mut gather);
            calls += 1;
            if stop.load(Ordering::Relaxed) {
                let seconds = begun.elapsed().as_secs_f64();
                let running_seconds = running_seconds().zip(ran).map(|(now, then)| now - then);
                return ThreadWork { calls, seconds, running_seconds };
            }
        }
    }
}

/// The result of all windows.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Scaling {
    /// The size each call maps and unmaps.
    pub size: &'static str,
    /// Calls per second of one thread: the mean of both.
    pub one_per_s: f64,
    /// Calls per second of two threads together.
    pub two_per_s: f64,
    /// The median of what both do, as a multiple of what one of them does alone.
    pub ratio: f64,
    /// The same for calls per second with a processor, if Linux provides that time.
    pub ratio_while_running: Option<f64>,
    /// `ratio` of two threads that share no table.
    pub ratio_apart: f64,
    /// `ratio_while_running` of two threads that share no table.
    pub ratio_apart_while_running: Option<f64>,
}

/// Windows of the same threads on the same processors, since one processor may have less time than the other,
/// for somebody else.
#[derive(Clone, Debug)]
pub struct Windows {
    /// The threads, each alone.
    pub alone: [ThreadWork; 2],
    /// Both at once, on one table.
    pub both: [ThreadWork; 2],
    /// Both at once, each on a table of its own: what the machine has for two threads. Where two processors are
    /// threads of one core, as a virtual machine's may be for seconds, that is little more than for one.
    pub apart: [ThreadWork; 2],
}

impl Scaling {
    /// Computes the result from windows.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(windows: &[Windows]) -> Self {
        type Ran = [ThreadWork; 2];
        let sum = |ran: &Ran| ran[0].per_s() + ran[1].per_s();
        let running = |ran: &Ran| Some(ran[0].per_running_s()? + ran[1].per_running_s()?);
        let of = |value: &dyn Fn(&Windows) -> f64| median(windows.iter().map(value).collect());
        let ratio =
            |two: fn(&Windows) -> &Ran| rounded(of(&|all| 2.0 * sum(two(all)) / sum(&all.alone)));
        let while_running = |two: fn(&Windows) -> &Ran| {
            let each =
                windows.iter().map(|all| Some(2.0 * running(two(all))? / running(&all.alone)?));
            each.collect::<Option<_>>().map(median).map(rounded)
        };
        Self {
            size: SIZE,
            one_per_s: of(&|all| sum(&all.alone) / 2.0).round(),
            two_per_s: of(&|all| sum(&all.both)).round(),
            ratio: ratio(|all| &all.both),
            ratio_while_running: while_running(|all| &all.both),
            ratio_apart: ratio(|all| &all.apart),
            ratio_apart_while_running: while_running(|all| &all.apart),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_that_share_a_processor_are_told_from_two_that_hinder_each_other() {
        let ran = |calls, running| ThreadWork { calls, seconds: 1.0, running_seconds: running };
        let all = |running| Windows {
            alone: [ran(120, Some(1.0)), ran(80, Some(1.0))],
            both: [ran(50, running), ran(50, running)],
            apart: [ran(80, running), ran(80, running)],
        };
        let shared = Scaling::new(&[all(Some(0.5))]);
        assert_eq!((shared.ratio, shared.ratio_while_running), (1.0, Some(2.0)));
        assert_eq!((shared.ratio_apart, shared.ratio_apart_while_running), (1.6, Some(3.2)));
        let hindered = Scaling::new(&[all(Some(1.0))]);
        assert_eq!((hindered.ratio, hindered.ratio_while_running), (1.0, Some(1.0)));
        assert_eq!(Scaling::new(&[all(None)]).ratio_while_running, None);
    }

    #[test]
    fn both_sides_work_at_once() {
        let lease = Lease::take();
        let mut shared = SharedTable::new(&lease);
        let [mut low, mut high] = shared.sides();
        let stop = AtomicBool::new(true);
        let ran = std::thread::scope(|scope| {
            let other = scope.spawn(|| high.run(&stop));
            [
                scope.spawn(|| low.run(&stop)).join().expect("it does not panic"),
                other.join().expect("it does not panic"),
            ]
        });
        assert!(ran.iter().all(|ran| ran.calls == 1));
    }
}
