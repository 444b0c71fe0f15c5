//! Compares our counts with the [`published`](crate::published) table of a kernel: four costs are
//! fitted to it, and predict what one flush per call would change.
//!
//! # How it works
//! Our own unmap runs at each size as the kernel did before the patch (each table flushed on its
//! own, by address) and after it (by ASID). A TLB counts the commands. The cost of an unmap is
//! modelled as
//!
//! ```text
//! call + pages × page + addresses × address + asids × asid
//! ```
//!
//! where *pages* is the number of leaves removed one by one, *addresses* the number of commands by
//! address and *asids* the number by ASID. The four costs are fitted to the sixteen published
//! unmaps by least squares of the relative error. So a microsecond in a small unmap weighs as much
//! as a hundred in a large one. The prediction beside it is the same unmap with one flush per call,
//! whose method is chosen by these costs.

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
    /// Per call.
    pub call_us: f64,
    /// Per 4 KiB page that is removed on its own.
    pub page_us: f64,
    /// Per invalidation by address.
    pub address_us: f64,
    /// Per invalidation by ASID.
    pub asid_us: f64,
}

/// One unmap: the published time, the time by the fitted costs, and our counts.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Cell {
    /// The published time; `None` for a prediction.
    pub published_us: Option<f64>,
    /// The time by our counts and the fitted costs.
    pub fitted_us: f64,
    /// The number of our commands.
    pub invalidations: u64,
}

impl Cell {
    /// The relative error of the fit: 0.1 is ten percent.
    pub fn error(&self) -> Option<f64> {
        Some((self.fitted_us / self.published_us? - 1.0).abs())
    }
}

/// A line of the table.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ThreadRow {
    /// The size that is unmapped.
    pub size: &'static str,
    /// The published iommu_map_sg, before and after, for comparison. No cost is fitted to this one.
    pub map_sg_published_us: [f64; 2],
    /// Each table flushed on its own, by address.
    pub before: Cell,
    /// Each table flushed on its own, by ASID.
    pub after: Cell,
    /// One flush per call.
    pub gathered: Cell,
}

/// The table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ThreadTable {
    /// The source of the published columns.
    pub source: &'static str,
    /// The fitted costs.
    pub costs: FittedCosts,
    /// One line per size.
    pub lines: Vec<ThreadRow>,
}

const SOURCE: &str = "published: S. P. Ranjan, linux-arm-kernel, 2021-06-23, PATCHv3 iommu/arm-smmu: \
Optimize ->tlb_flush_walk(), SM8150; fitted: our counts times four costs fitted to it; gathered: a \
prediction by the same costs";

/// The numbers that the costs are multiplied with.
fn factors(counts: Counts) -> [f64; 4] {
    let addresses = counts.leaves + counts.walks;
    [1.0, counts.leaves as f64, addresses as f64, counts.contexts as f64]
}

impl FittedCosts {
    fn of(&self, counts: Counts) -> f64 {
        let costs = [self.call_us, self.page_us, self.address_us, self.asid_us];
        factors(counts).iter().zip(costs).map(|(factor, cost)| factor * cost).sum()
    }

    /// The costs for a strategy that chooses; the source says nothing about the cost of misses.
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

/// The commands of unmapping `size`.
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
            // The same pages are removed one by one as before; only the flush differs.
            let gathered = Counts { flushes: 0, ..counts(line.size, choosing) };
            let leaves = before.leaves;
            let commands = gathered.leaves + gathered.walks;
            let fitted_us = costs.call_us
                + leaves as f64 * costs.page_us
                + commands as f64 * costs.address_us
                + gathered.contexts as f64 * costs.asid_us;
            ThreadRow {
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
