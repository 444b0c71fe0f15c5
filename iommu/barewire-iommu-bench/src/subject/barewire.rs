//! barewire-iommu, with a TLB that only counts: the processor's work without any hardware.

use barewire_iommu::{
    Config, Context, Costs, Facts, Gather, Invalidate, Iova, Operations, PageTable, Strategy,
};

use super::call::{bench_iommu_map_sg, release};
use super::{Job, Subject};
use crate::counting::{Counting, Counts};
use crate::list::TABLE_SPAN;
use crate::pool::Tables;

const CONTEXT: Context = Context::Asid(1);

/// How an unmap invalidates.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unmapping {
    /// The traditional way: each table is flushed on its own, address by address.
    ByPage,
    /// As in S. P. Ranjan's patch (see [`published`](crate::published)): each table is flushed on
    /// its own, by ASID, and single leaves by address.
    ByAsid,
    /// One flush per call, by ranges (SMMUv3.2).
    ByRange,
    /// One flush per call, by the cheapest method: the library's default.
    Gathered,
}

impl Unmapping {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::ByPage, Self::ByAsid, Self::ByRange, Self::Gathered];

    /// The name in the JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Self::ByPage => "by_page",
            Self::ByAsid => "by_asid",
            Self::ByRange => "by_range",
            Self::Gathered => "gathered",
        }
    }

    /// Whether each table is unhooked and flushed by a call of its own.
    fn is_each_table(self) -> bool {
        matches!(self, Self::ByPage | Self::ByAsid)
    }

    fn strategy(self, costs: Costs) -> Strategy {
        match self {
            Self::ByPage | Self::ByAsid => Strategy::ByPage,
            Self::ByRange => Strategy::ByRange,
            Self::Gathered => Strategy::Adaptive(costs),
        }
    }
}

/// A table with its TLB and strategy.
#[derive(Debug)]
pub struct Barewire {
    table: PageTable<Tables>,
    tlb: Counting,
    unmapping: Unmapping,
    strategy: Strategy,
    facts: Facts,
}

impl Barewire {
    /// Creates an empty table of four levels.
    pub fn new(unmapping: Unmapping) -> Self {
        Self::with_costs(unmapping, Costs::default())
    }

    /// The same with other costs to choose by.
    ///
    /// # Panics
    /// If the pool is empty.
    pub fn with_costs(unmapping: Unmapping, costs: Costs) -> Self {
        let has_ranges = unmapping == Unmapping::ByRange;
        Self {
            table: PageTable::new(Config::default(), Tables).expect("the pool has tables"),
            tlb: Counting::new(has_ranges),
            unmapping,
            strategy: unmapping.strategy(costs),
            facts: Facts { page_shift: 12, has_ranges, live_entries: 0 },
        }
    }

    /// The commands since the last call.
    pub fn counts(&self) -> Counts {
        self.tlb.take()
    }

    /// The operations that invalidate a gather.
    #[inline]
    fn operations(&self, gather: &Gather) -> Operations {
        let runs = gather.runs();
        let walk = || runs.is_some_and(|runs| runs.iter().any(|run| run.tables));
        let by_asid = self.unmapping == Unmapping::ByAsid && walk();
        let strategy = if by_asid { &Strategy::ByContext } else { &self.strategy };
        strategy.operations(runs, &self.facts)
    }

    /// The table, for sharing it between threads.
    pub(crate) fn table(&mut self) -> &mut PageTable<Tables> {
        &mut self.table
    }
}

#[cfg(test)]
impl Barewire {
    pub(super) fn descriptor(&self, iova: u64) -> barewire_iommu::Descriptor {
        self.table.iova_to_phys(Iova(iova)).expect("it is mapped").descriptor
    }
}

#[inline(never)]
fn bench_iommu_unmap(ours: &mut Barewire, iova: Iova, bytes: u64) {
    let mut gather = Gather::new();
    ours.table.whole().unmap(iova, bytes, &mut gather).expect("all of it is mapped");
    let operations = ours.operations(&gather);
    ours.tlb.flush(CONTEXT, operations.as_slice()).expect("counting does not fail");
    release(&ours.table, &mut gather);
}

impl Subject for Barewire {
    fn map(&mut self, job: &Job, slots: usize) {
        for slot in 0..slots {
            bench_iommu_map_sg(&mut self.table, Iova(job.iova(slot)), &job.list);
        }
    }

    fn unmap(&mut self, job: &Job, slots: usize) {
        for slot in 0..slots {
            for (iova, bytes) in job.unmaps(slot) {
                let step = if self.unmapping.is_each_table() { TABLE_SPAN } else { bytes };
                for part in (0..bytes).step_by(step as usize) {
                    bench_iommu_unmap(self, Iova(iova + part), step.min(bytes - part));
                }
            }
        }
    }

    fn translate(&self, _job: &Job, iova: u64) -> Option<u64> {
        self.table.iova_to_phys(Iova(iova)).map(|found| found.phys.0)
    }
}
