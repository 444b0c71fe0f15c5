//! barewire-iommu's tables alone: no choice of invalidations, no TLB, and tables are released later.

use barewire_iommu::{Config, Gather, Iova, PageTable, Segment};

use super::{ATTRIBUTES, Job, Subject, release};
use crate::pool::Tables;

/// A table, and the gathers whose tables are not released yet.
///
/// A call fills a gather of its own, as a caller's call does. A gather that holds tables is put
/// aside, and [`Subject::settle`] releases it, outside the time that is measured.
#[derive(Debug)]
pub struct TableWork {
    table: PageTable<Tables>,
    aside: Vec<Gather>,
}

impl TableWork {
    /// Creates an empty table of four levels.
    ///
    /// # Panics
    /// If the pool is empty.
    #[expect(clippy::new_without_default, reason = "it takes memory that a default should not")]
    pub fn new() -> Self {
        let table = PageTable::new(Config::default(), Tables).expect("the pool has tables");
        Self { table, aside: Vec::with_capacity(64) }
    }
}

/// [`map`] as a function of its own, for callgrind.
#[inline(never)]
pub(crate) fn bench_iommu_map_sg(table: &mut PageTable<Tables>, iova: Iova, list: &[Segment]) {
    map(table, iova, list);
}

#[inline]
fn map(table: &mut PageTable<Tables>, iova: Iova, list: &[Segment]) {
    let mut gather = Gather::new();
    let mapped = table.whole().map_sg(iova, list, ATTRIBUTES, &mut gather);
    mapped.expect("the addresses are free and the pool has tables");
}

#[inline]
fn unmap(work: &mut TableWork, iova: Iova, bytes: u64) {
    let mut gather = Gather::new();
    work.table.whole().unmap(iova, bytes, &mut gather).expect("all of it is mapped");
    // Else the compiler might see that nobody reads what is recorded, and leave that out.
    let gather = core::hint::black_box(&mut gather);
    if gather.tables() > 0 {
        keep(work, gather);
    }
}

/// Out of line, so that the loop around it keeps its registers.
#[cold]
#[inline(never)]
fn keep(work: &mut TableWork, gather: &mut Gather) {
    work.aside.push(gather.take());
}

impl Subject for TableWork {
    fn map(&mut self, job: &Job, slots: usize) {
        for slot in 0..slots {
            map(&mut self.table, Iova(job.iova(slot)), &job.list);
        }
    }

    fn unmap(&mut self, job: &Job, slots: usize) {
        for slot in 0..slots {
            for (iova, bytes) in job.unmaps(slot) {
                unmap(self, Iova(iova), bytes);
            }
        }
    }

    fn settle(&mut self) {
        for mut gather in self.aside.drain(..) {
            release(&self.table, &mut gather);
        }
    }

    fn translate(&self, _job: &Job, iova: u64) -> Option<u64> {
        self.table.iova_to_phys(Iova(iova)).map(|found| found.phys.0)
    }
}
