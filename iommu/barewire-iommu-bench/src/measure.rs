//! Measures times. Every contestant runs in every round, so that a disturbance affects all of them.
//!
//! # How it works
//! The contestants of a job run one after the other. Each maps the list at several places, then
//! unmaps it there; both are timed separately and repeated a few times. The first repetition warms
//! caches and predictors and is not counted. The time of a call is the time of its batch, without
//! the cost of reading the clock, divided by the number of calls. Medians and minima are over
//! rounds. A ratio is the median of each round's own ratio to the floor, which ran within the same
//! millisecond.

use core::ops::ControlFlow;
use std::time::Instant;

use crate::list::{Layout, SIZES, Size};
use crate::pool::Lease;
use crate::row::{Op, Row};
use crate::stats::{median, minimum, rounded};
#[cfg(target_pointer_width = "64")]
use crate::subject::{Aarch64Paging, Multiarch};
use crate::subject::{Barewire, FloorReady, FloorTables, Implementation, Job, Subject, Unmapping};

/// The batches of a round, besides the first one, which warms up.
const BATCHES: usize = 3;

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of rounds; more give steadier results.
    pub rounds: u32,
}

/// A contestant of a job, and its times by round.
struct Contestant {
    subject: Box<dyn Subject>,
    implementation: Named,
    map_ns: Vec<f64>,
    unmap_ns: Vec<f64>,
    invalidations: Option<u64>,
}

/// Names the row. A floor for map and unmap is two floors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Floor {
        map: Implementation,
        unmap: Implementation,
    },
    #[cfg_attr(
        not(target_pointer_width = "64"),
        expect(dead_code, reason = "the other crates do not compile for 32 bits")
    )]
    Other(Implementation),
    Ours(Unmapping),
}

/// A job and its contestants.
struct Contest {
    job: Job,
    contestants: Vec<Contestant>,
}

impl Contest {
    fn new(size: Size, layout: Layout, by_leaf: bool) -> Self {
        let job = Job::new(size, layout, by_leaf);
        let mut contestants = Vec::new();
        let mut join = |subject: Box<dyn Subject>, implementation, invalidations| {
            let (map_ns, unmap_ns) = (Vec::new(), Vec::new());
            contestants.push(Contestant {
                subject,
                implementation,
                map_ns,
                unmap_ns,
                invalidations,
            });
        };
        let leaves = Named::Floor { map: Implementation::FloorA, unmap: Implementation::FloorLeaf };
        let tables = Named::Floor { map: Implementation::FloorB, unmap: Implementation::FloorDrop };
        join(Box::new(FloorReady::new(&job)), leaves, None);
        if job.is_whole_tables() {
            join(Box::new(FloorTables::new()), tables, None);
        }
        let unmappings = if by_leaf { &[Unmapping::Gathered][..] } else { &Unmapping::ALL };
        for &unmapping in unmappings {
            let mut ours = Barewire::new(unmapping);
            let invalidations = invalidations(&mut ours, &job);
            join(Box::new(ours), Named::Ours(unmapping), Some(invalidations));
        }
        #[cfg(target_pointer_width = "64")]
        if !by_leaf {
            join(Box::new(Aarch64Paging::new()), Named::Other(Implementation::Aarch64Paging), None);
            join(
                Box::new(Multiarch::new()),
                Named::Other(Implementation::PageTableMultiarch),
                None,
            );
        }
        Self { job, contestants }
    }

    fn round(&mut self, clock_ns: f64) {
        for contestant in &mut self.contestants {
            let (map_ns, unmap_ns) = time(&mut *contestant.subject, &self.job, clock_ns);
            contestant.map_ns.push(map_ns);
            contestant.unmap_ns.push(unmap_ns);
        }
    }

    fn rows(&self) -> impl Iterator<Item = Row> {
        let whole = self.job.is_whole_tables();
        let floors =
            self.contestants.iter().rfind(|one| matches!(one.implementation, Named::Floor { .. }));
        let floor = floors.expect("every job has a floor");
        let Named::Floor { map, unmap } = floor.implementation else { unreachable!("found above") };
        let unmap_op = if self.job.by_leaf { Op::UnmapLeaf } else { Op::Unmap };
        let row = move |one: &Contestant, implementation, op, strategy| {
            let (ns, floor_ns, floor) = match op {
                Op::MapSg => (&one.map_ns, &floor.map_ns, map),
                Op::Unmap | Op::UnmapLeaf => (&one.unmap_ns, &floor.unmap_ns, unmap),
            };
            let ratios = ns.iter().zip(floor_ns).map(|(ns, floor)| ns / floor).collect();
            Row {
                implementation,
                op,
                size: self.job.size.name,
                bytes: self.job.size.bytes,
                layout: self.job.layout,
                strategy,
                ns_median: rounded(median(ns.clone())),
                ns_min: rounded(minimum(ns)),
                floor,
                ratio_to_floor: rounded(median(ratios)),
                invalidations: if op == Op::MapSg { None } else { one.invalidations },
            }
        };
        self.contestants.iter().flat_map(move |one| {
            let mut rows = Vec::new();
            match one.implementation {
                Named::Floor { map, unmap } => {
                    if !self.job.by_leaf {
                        rows.push(row(one, map, Op::MapSg, None));
                    }
                    // The floor for single leaves is no floor where whole tables are removed.
                    if !whole || unmap == Implementation::FloorDrop {
                        rows.push(row(one, unmap, unmap_op, None));
                    }
                }
                Named::Other(implementation) => {
                    rows.push(row(one, implementation, Op::MapSg, None));
                    rows.push(row(one, implementation, unmap_op, None));
                }
                Named::Ours(unmapping) => {
                    // Mapping does not depend on the way of unmapping.
                    if !self.job.by_leaf && unmapping == Unmapping::Gathered {
                        rows.push(row(one, Implementation::Barewire, Op::MapSg, None));
                    }
                    let strategy = Some(unmapping.name());
                    rows.push(row(one, Implementation::Barewire, unmap_op, strategy));
                }
            }
            rows
        })
    }
}

/// The commands of one unmap: of one call, or of all pieces of one list.
fn invalidations(ours: &mut Barewire, job: &Job) -> u64 {
    ours.map(job, 1);
    ours.counts();
    ours.unmap(job, 1);
    ours.counts().invalidations()
}

/// The nanoseconds of one map and of one unmap (of all pieces, if there are several).
fn time(subject: &mut dyn Subject, job: &Job, clock_ns: f64) -> (f64, f64) {
    let slow = subject.is_slow() && job.size.pages() >= 512;
    let (slots, batches) = if slow { (1, 1) } else { (job.slots(), BATCHES) };
    let (mut map_ns, mut unmap_ns) = (0.0, 0.0);
    for batch in 0..=batches {
        let begun = Instant::now();
        subject.map(job, slots);
        let mapped = Instant::now();
        subject.unmap(job, slots);
        let unmapped = Instant::now();
        if batch > 0 {
            map_ns += mapped.duration_since(begun).as_nanos() as f64 - clock_ns;
            unmap_ns += unmapped.duration_since(mapped).as_nanos() as f64 - clock_ns;
        }
    }
    let calls = (slots * batches) as f64;
    // A time below the clock's cost counts as nearly zero, so that no ratio divides by 0.
    ((map_ns / calls).max(0.01), (unmap_ns / calls).max(0.01))
}

/// The cost of reading the clock, which every batch includes once.
fn clock_ns() -> f64 {
    const READS: u32 = 1_000;
    let passes = (0..20).map(|_| {
        let begun = Instant::now();
        for _ in 0..READS {
            core::hint::black_box(Instant::now());
        }
        begun.elapsed().as_nanos() as f64 / f64::from(READS)
    });
    minimum(&passes.collect::<Vec<_>>())
}

/// Measures everything. `progress` is called with the number of finished rounds and may stop the
/// measurement.
///
/// Call it from a thread that stays on its processor.
///
/// # Errors
/// The value with which `progress` stopped it.
///
/// # Panics
/// If this thread holds a [`Lease`].
pub fn measure<B>(
    options: Options,
    mut progress: impl FnMut(u32) -> ControlFlow<B>,
) -> ControlFlow<B, Vec<Row>> {
    let _lease = Lease::take();
    let clock_ns = clock_ns();
    let mut contests: Vec<Contest> =
        [(Layout::Scattered, false), (Layout::Contiguous, false), (Layout::Scattered, true)]
            .into_iter()
            .flat_map(|(layout, by_leaf)| SIZES.map(|size| Contest::new(size, layout, by_leaf)))
            .collect();
    for round in 0..options.rounds {
        for contest in &mut contests {
            contest.round(clock_ns);
        }
        progress(round + 1)?;
    }
    ControlFlow::Continue(contests.iter().flat_map(Contest::rows).collect())
}
