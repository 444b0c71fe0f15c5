//! The floors as contestants: they know every table beforehand.

use barewire_iommu::{Descriptor, PhysAddr};

use super::{ATTRIBUTES, BASE, Job, Subject};
use crate::floors::{
    Ready, bench_iommu_floor_a, bench_iommu_floor_a_run, bench_iommu_floor_b,
    bench_iommu_floor_b_unzeroed, bench_iommu_floor_drop, bench_iommu_floor_leaf,
};
use crate::list::{Layout, PAGE, TABLE_SPAN};

/// The bits of a leaf without its address.
pub(super) fn leaf_bits(level: u32) -> u64 {
    Descriptor::leaf(PhysAddr(0), level, ATTRIBUTES.bits()).0
}

/// floor_a and floor_leaf: tables that exist already.
#[derive(Debug)]
pub struct FloorReady {
    leaves: Ready,
}

impl FloorReady {
    /// Creates tables for all places of `job`.
    pub fn new(job: &Job) -> Self {
        let bytes = job.size.bytes * job.slots() as u64;
        let tables = if job.is_blocks() { 1 } else { bytes.div_ceil(TABLE_SPAN) };
        Self { leaves: Ready::new(tables as usize) }
    }
}

#[cfg(test)]
impl FloorReady {
    pub(super) fn descriptor(&self, job: &Job, iova: u64) -> Descriptor {
        Descriptor(self.leaves.entry(place(job, iova, 0).0))
    }
}

/// The index of the entry of `iova`, and the number of entries for `bytes`, at the level of the
/// job's leaves.
fn place(job: &Job, iova: u64, bytes: u64) -> (usize, usize) {
    let span = if job.is_blocks() { TABLE_SPAN } else { PAGE };
    (((iova - BASE) / span) as usize, (bytes / span) as usize)
}

impl Subject for FloorReady {
    fn map(&mut self, job: &Job, slots: usize) {
        for slot in 0..slots {
            let (first, count) = place(job, job.iova(slot), job.size.bytes);
            match job.layout {
                Layout::Scattered => {
                    bench_iommu_floor_a(&self.leaves, first, &job.list, leaf_bits(3));
                }
                Layout::Contiguous => {
                    let (step, level) = if job.is_blocks() { (TABLE_SPAN, 2) } else { (PAGE, 3) };
                    let phys = job.list[0].phys;
                    bench_iommu_floor_a_run(
                        &self.leaves,
                        first,
                        phys,
                        step,
                        count,
                        leaf_bits(level),
                    );
                }
            }
        }
    }

    fn unmap(&mut self, job: &Job, slots: usize) {
        for slot in 0..slots {
            for (iova, bytes) in job.unmaps(slot) {
                let (first, count) = place(job, iova, bytes);
                bench_iommu_floor_leaf(&self.leaves, first, count);
            }
        }
    }

    fn translate(&self, job: &Job, iova: u64) -> Option<u64> {
        let span = if job.is_blocks() { TABLE_SPAN } else { PAGE };
        let entry = Descriptor(self.leaves.entry(place(job, iova, 0).0));
        entry.is_valid().then(|| entry.address().0 + iova % span)
    }
}

/// floor_b or floor_b_unzeroed, and floor_drop: tables that are created, hooked into one table
/// above, and removed.
#[derive(Debug)]
pub struct FloorTables {
    above: Ready,
    zeroes: bool,
}

impl FloorTables {
    /// Creates one table of level 2. `zeroes` tells whether tables below it are zeroed before they
    /// are filled.
    pub fn new(zeroes: bool) -> Self {
        Self { above: Ready::new(1), zeroes }
    }

    /// The descriptor at the end of a walk.
    pub(super) fn descriptor(&self, iova: u64) -> Descriptor {
        let hook = Descriptor(self.above.entry(((iova - BASE) / TABLE_SPAN) as usize));
        let index = (iova % TABLE_SPAN / PAGE) as usize;
        crate::floors::entry_of(hook, index).map_or(hook, Descriptor)
    }
}

impl Subject for FloorTables {
    fn map(&mut self, job: &Job, slots: usize) {
        for slot in 0..slots {
            let first = ((job.iova(slot) - BASE) / TABLE_SPAN) as usize;
            let floor =
                if self.zeroes { bench_iommu_floor_b } else { bench_iommu_floor_b_unzeroed };
            let mapped = floor(&self.above, first, &job.list, leaf_bits(3));
            assert!(mapped, "the pool has tables");
        }
    }

    fn unmap(&mut self, job: &Job, slots: usize) {
        for slot in 0..slots {
            let first = ((job.iova(slot) - BASE) / TABLE_SPAN) as usize;
            bench_iommu_floor_drop(&self.above, first, job.size.tables() as usize);
        }
    }

    fn translate(&self, _job: &Job, iova: u64) -> Option<u64> {
        let entry = self.descriptor(iova);
        entry.is_valid().then(|| entry.address().0 + iova % PAGE)
    }
}
