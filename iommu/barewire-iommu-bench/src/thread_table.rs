//! The thread's table from our counts: four costs fitted to what was published, and what one flush a
//! call would make of it.
//!
//! # How it works
//! Our own unmap runs at each size as the kernel did before (each table flushed by itself, by
//! address) and after (by ASID), and a TLB that counts tells what it was told. An unmap then costs
//!
//! ```text
//! call + pages × page + addresses × address + asids × asid
//! ```
//!
//! where pages are leaves removed one by one, addresses the commands by address, asids those by ASID. The
//! four costs are fitted to the sixteen published unmaps by least squares of the relative error, so a
//! microsecond weighs as much in a small one as a hundred in a large one. What is printed beside it as a
//! prediction is the same unmap with one flush a call, whose method is chosen by these costs.

use barewire_iommu::Costs;
use serde::Serialize;

use crate::counting::Counts;
use crate::fit::least_squares;
use crate::list::{Layout, Size};
use crate::pool::Lease;
use crate::published::PUBLISHED;
use crate::subject::{Barewire, Job, Subject, Unmapping};

/// The fitted costs, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct FittedCosts {
    /// Of a call.
    pub call_us: f64,
    /// Of a page of 4 KiB that is removed by itself.
    pub page_us: f64,
    /// Of an invalidation by address.
    pub address_us: f64,
    /// Of an invalidation by ASID.
    pub asid_us: f64,
}

/// One unmap: what it took there, what the costs make of our counts, and the counts.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Cell {
    /// As published; none of a prediction.
    pub published_us: Option<f64>,
    /// By counts and fitted costs.
    pub fitted_us: f64,
    /// Our commands.
    pub invalidations: u64,
}

impl Cell {
    /// How far the fit is from what was published, 0.1 being ten percent.
    pub fn error(&self) -> Option<f64> {
        Some((self.fitted_us / self.published_us? - 1.0).abs())
    }
}

/// A line of the table.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Line {
    /// How much is unmapped.
    pub size: &'static str,
    /// iommu_map_sg as published, before and after, for comparison: nothing is fitted to it.
    pub map_sg_published_us: [f64; 2],
    /// Each table flushed by itself, by address.
    pub before: Cell,
    /// Each table flushed by itself, by ASID.
    pub after: Cell,
    /// One flush a call.
    pub gathered: Cell,
}

/// The table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ThreadTable {
    /// What the columns are.
    pub source: &'static str,
    /// What they were fitted to.
    pub costs: FittedCosts,
    /// A line for each size.
    pub lines: Vec<Line>,
}

const SOURCE: &str = "published: S. P. Ranjan, linux-arm-kernel, 2021-06-23, PATCHv3 iommu/arm-smmu: \
Optimize ->tlb_flush_walk(), SM8150; fitted: our counts times four costs fitted to it; gathered: a \
prediction by the same costs";

/// What the costs multiply.
fn factors(counts: Counts) -> [f64; 4] {
    let addresses = counts.leaves + counts.walks;
    [1.0, counts.leaves as f64, addresses as f64, counts.contexts as f64]
}

impl FittedCosts {
    fn of(&self, counts: Counts) -> f64 {
        let costs = [self.call_us, self.page_us, self.address_us, self.asid_us];
        factors(counts).iter().zip(costs).map(|(factor, cost)| factor * cost).sum()
    }

    /// For a strategy that chooses; nobody says what misses cost there.
    fn for_choice(&self) -> Costs {
        let ps = |us: f64| (us * 1e6) as u32;
        Costs {
            address_ps: ps(self.address_us),
            range_ps: ps(self.address_us),
            context_ps: ps(self.asid_us),
            wait_ps: 0,
            miss_ps: 0,
            tlb_entries: 0,
        }
    }
}

/// What the TLB is told when `size` is unmapped.
fn counts(size: Size, mut ours: Barewire) -> Counts {
    let job = Job::new(size, Layout::Scattered, false);
    ours.map(&job, 1);
    ours.counts();
    ours.unmap(&job, 1);
    ours.counts()
}

impl ThreadTable {
    /// Counts, fits and predicts.
    ///
    /// # Panics
    /// If this thread holds a [`Lease`].
    pub fn new() -> Self {
        let _lease = Lease::take();
        let counted = PUBLISHED.map(|line| {
            let of = |unmapping| counts(line.size, Barewire::new(unmapping));
            (line, of(Unmapping::ByPage), of(Unmapping::ByAsid))
        });
        let cells = counted.iter().flat_map(|(line, before, after)| {
            [(factors(*before), line.unmap_before_us), (factors(*after), line.unmap_after_us)]
        });
        let [call_us, page_us, address_us, asid_us] = least_squares(&cells.collect::<Vec<_>>());
        let costs = FittedCosts { call_us, page_us, address_us, asid_us };
        let cell = |counts: Counts, published_us| Cell {
            published_us,
            fitted_us: costs.of(counts),
            invalidations: counts.invalidations(),
        };
        let lines = counted.iter().map(|&(line, before, after)| {
            let choosing = Barewire::with_costs(Unmapping::Gathered, costs.for_choice());
            // By leaf or whole, what is removed by itself is the same: the flush alone is another.
            let gathered = Counts { flushes: 0, ..counts(line.size, choosing) };
            let leaves = before.leaves;
            let commands = gathered.leaves + gathered.walks;
            let fitted_us = costs.call_us
                + leaves as f64 * costs.page_us
                + commands as f64 * costs.address_us
                + gathered.contexts as f64 * costs.asid_us;
            Line {
                size: line.size.name,
                map_sg_published_us: [line.map_sg_before_us, line.map_sg_after_us],
                before: cell(before, Some(line.unmap_before_us)),
                after: cell(after, Some(line.unmap_after_us)),
                gathered: Cell {
                    published_us: None,
                    fitted_us,
                    invalidations: gathered.invalidations(),
                },
            }
        });
        Self { source: SOURCE, costs, lines: lines.collect() }
    }

    /// The largest error of a fitted cell.
    pub fn worst_error(&self) -> f64 {
        let cells = self.lines.iter().flat_map(|line| [line.before, line.after]);
        cells.filter_map(|cell| cell.error()).fold(0.0, f64::max)
    }
}

impl Default for ThreadTable {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg_attr(miri, ignore = "maps hundreds of MiB")]
    #[test]
    fn every_published_unmap_is_fitted_within_a_fifth() {
        let table = ThreadTable::new();
        for (line, published) in table.lines.iter().zip(PUBLISHED) {
            for (cell, us) in
                [(line.before, published.unmap_before_us), (line.after, published.unmap_after_us)]
            {
                assert_eq!(cell.published_us, Some(us));
                assert!(cell.error().is_some_and(|error| error <= 0.2), "{}: {cell:?}", line.size);
            }
        }
        assert!(table.worst_error() > 0.0, "sixteen figures are not four");
    }

    #[cfg_attr(miri, ignore = "maps hundreds of MiB")]
    #[test]
    fn one_flush_is_predicted_and_never_dearer_than_sixteen() {
        let table = ThreadTable::new();
        for line in &table.lines {
            assert_eq!(line.gathered.published_us, None);
            let least = line.before.fitted_us.min(line.after.fitted_us);
            assert!(line.gathered.fitted_us <= least + 1e-9, "{line:?}");
        }
        let last = table.lines[7];
        let counts = [last.before, last.after, last.gathered].map(|cell| cell.invalidations);
        assert_eq!(counts, [8192, 16, 1]);
        let costs = table.costs;
        assert!((last.gathered.fitted_us - costs.call_us - costs.asid_us).abs() < 1e-9);
    }
}
