//! barewire-iommu's tables alone: no choice of invalidations, no TLB, and tables are released later.

use barewire_iommu::{Config, Gather, Iova, PageTable, Pool};

use super::call::{bench_iommu_map_sg, map, release};
use super::{Job, Subject};
use crate::pool::Tables;

/// A table, and the gathers whose tables are not released yet.
///
/// A call fills a gather of its own, as a caller's call does. A gather that holds tables is put
/// aside, and [`Subject::settle`] releases it, outside the time that is measured.
///
/// `APART` makes each call a function of its own, which can be counted.
#[derive(Debug)]
pub struct TableWork<P: Pool = Tables, const APART: bool = false> {
    table: PageTable<P>,
    aside: Vec<Gather>,
}

impl<P: Pool, const APART: bool> TableWork<P, APART> {
    /// Creates an empty table of four levels.
    ///
    /// # Panics
    /// If the pool is empty.
    pub fn new(pool: P) -> Self {
        let table = PageTable::new(Config::default(), pool).expect("the pool has tables");
        Self { table, aside: Vec::with_capacity(64) }
    }
}

#[inline(never)]
fn bench_iommu_table_unmap<P: Pool>(
    table: &mut PageTable<P>,
    aside: &mut Vec<Gather>,
    iova: Iova,
    bytes: u64,
) {
    unmap(table, aside, iova, bytes);
}

#[inline]
fn unmap<P: Pool>(table: &mut PageTable<P>, aside: &mut Vec<Gather>, iova: Iova, bytes: u64) {
    let mut gather = Gather::new();
    table.whole().unmap(iova, bytes, &mut gather).expect("all of it is mapped");
    // Otherwise the compiler could remove the recording, because its result is not read.
    let gather = core::hint::black_box(&mut gather);
    if gather.tables() > 0 {
        keep(aside, gather);
    }
}

/// Out of line, so that the loop around it keeps its registers.
#[cold]
#[inline(never)]
fn keep(aside: &mut Vec<Gather>, gather: &mut Gather) {
    aside.push(gather.take());
}

impl<P: Pool, const APART: bool> Subject for TableWork<P, APART> {
    fn map(&mut self, job: &Job, slots: usize) {
        for slot in 0..slots {
            let iova = Iova(job.iova(slot));
            if APART {
                bench_iommu_map_sg(&mut self.table, iova, &job.list);
            } else {
                map(&mut self.table, iova, &job.list);
            }
        }
    }

    fn unmap(&mut self, job: &Job, slots: usize) {
        let Self { table, aside } = self;
        for slot in 0..slots {
            for (iova, bytes) in job.unmaps(slot) {
                if APART {
                    bench_iommu_table_unmap(table, aside, Iova(iova), bytes);
                } else {
                    unmap(table, aside, Iova(iova), bytes);
                }
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
