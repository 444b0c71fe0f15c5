//! Two threads on disjoint ranges of one table: how much more than one they do.
//!
//! # How it works
//! A table is split in two parts, each with a thread of its own that maps and unmaps a scattered list
//! as fast as it can, its tables from its own free list. They meet in the root alone. A window of one
//! thread and one of two alternate, so that what disturbs the machine disturbs both.

use core::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use barewire_iommu::{Gather, Iova, Part, Segment};
use serde::Serialize;

use crate::list::{Layout, Size};
use crate::pool::{Lease, Tables};
use crate::stats::{median, rounded};
use crate::subject::{ATTRIBUTES, BASE, Barewire, Unmapping, release};

/// What each call maps.
const SIZE: &str = "2M";

/// The table that is shared.
#[derive(Debug)]
pub struct Shared {
    ours: Barewire,
}

/// One thread's part of it.
#[derive(Debug)]
pub struct Side<'t> {
    part: Part<'t, Tables>,
    iova: Iova,
    list: Vec<Segment>,
}

/// What a thread did in a window.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    /// Lists that were mapped and unmapped.
    pub calls: u64,
    /// How long it took.
    pub seconds: f64,
}

impl Shared {
    /// An empty table. Its root is of this thread's shard, so keep the [`Lease`] it was made under.
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
    /// Maps and unmaps until told to stop, at least once.
    ///
    /// # Panics
    /// If this thread holds a [`Lease`].
    pub fn run(&mut self, stop: &AtomicBool) -> Ran {
        let _lease = Lease::take();
        let bytes = self.list.iter().map(|segment| segment.len).sum();
        let begun = Instant::now();
        let mut calls = 0;
        loop {
            let mut gather = Gather::new();
            let mapped = self.part.map_sg(self.iova, &self.list, ATTRIBUTES, &mut gather);
            mapped.expect("the addresses are free and the pool has tables");
            self.part.unmap(self.iova, bytes, &mut gather).expect("all of it is mapped");
            release(self.part.table(), &mut gather);
            calls += 1;
            if stop.load(Ordering::Relaxed) {
                return Ran { calls, seconds: begun.elapsed().as_secs_f64() };
            }
        }
    }
}

/// What the windows gave.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Scaling {
    /// What each call maps and unmaps.
    pub size: &'static str,
    /// Calls a second of one thread.
    pub one_per_s: f64,
    /// Calls a second of two threads together.
    pub two_per_s: f64,
    /// The median of the pairs of windows' own ratios.
    pub ratio: f64,
}

impl Scaling {
    /// From calls a second: of one thread and of two, pair by pair.
    pub fn new(windows: &[(f64, f64)]) -> Self {
        Self {
            size: SIZE,
            one_per_s: median(windows.iter().map(|pair| pair.0).collect()).round(),
            two_per_s: median(windows.iter().map(|pair| pair.1).collect()).round(),
            ratio: rounded(median(windows.iter().map(|pair| pair.1 / pair.0).collect())),
        }
    }
}
