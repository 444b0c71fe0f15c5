//! The operations whose instructions are counted under callgrind.

use std::path::Path;

use crate::callgrind::collect;
use crate::list::{Layout, Size};
use crate::pool::Lease;
use crate::subject::{Barewire, FloorReady, FloorTables, Job, Subject, Unmapping};

/// The number of calls. All cost the same but the first, which may have to create tables.
pub const CALLS: u32 = 100;

/// A counted operation.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Its name in tables and JSON.
    pub op: &'static str,
    /// The size that is mapped or unmapped.
    pub size: &'static str,
    /// The layout of the pages.
    pub layout: Layout,
    /// The function that is counted, including its callees.
    pub symbol: &'static str,
    who: Who,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Who {
    Ready,
    Tables,
    Unzeroed,
    Ours,
}

const fn floor(op: &'static str, size: &'static str, symbol: &'static str, who: Who) -> Counted {
    Counted { op, size, layout: Layout::Scattered, symbol, who }
}

const fn ours(op: &'static str, size: &'static str, layout: Layout) -> Counted {
    let symbol = match op.as_bytes() {
        b"map_sg" => "bench_iommu_map_sg",
        _ => "bench_iommu_unmap",
    };
    Counted { op, size, layout, symbol, who: Who::Ours }
}

/// All counted operations: the floors, and barewire-iommu at the sizes it makes promises about.
pub const COUNTED: [Counted; 18] = [
    floor("floor_a", "1M", "bench_iommu_floor_a", Who::Ready),
    floor("floor_b", "2M", "bench_iommu_floor_b", Who::Tables),
    floor("floor_b", "32M", "bench_iommu_floor_b", Who::Tables),
    floor("floor_b_unzeroed", "2M", "bench_iommu_floor_b_unzeroed", Who::Unzeroed),
    floor("floor_b_unzeroed", "32M", "bench_iommu_floor_b_unzeroed", Who::Unzeroed),
    floor("floor_drop", "32M", "bench_iommu_floor_drop", Who::Tables),
    floor("floor_leaf", "1M", "bench_iommu_floor_leaf", Who::Ready),
    ours("map_sg", "4K", Layout::Scattered),
    ours("map_sg", "64K", Layout::Scattered),
    ours("map_sg", "1M", Layout::Scattered),
    ours("map_sg", "2M", Layout::Scattered),
    ours("map_sg", "32M", Layout::Scattered),
    ours("map_sg", "32M", Layout::Contiguous),
    ours("unmap", "4K", Layout::Scattered),
    ours("unmap", "1M", Layout::Scattered),
    ours("unmap", "2M", Layout::Scattered),
    ours("unmap", "32M", Layout::Scattered),
    ours("unmap", "32M", Layout::Contiguous),
];

impl Counted {
    /// A unique key.
    pub fn key(&self) -> String {
        format!("{}-{}-{}", self.op, self.size, self.layout.name())
    }

    /// The operation with that key.
    pub fn from_key(key: &str) -> Option<Self> {
        COUNTED.into_iter().find(|one| one.key() == key)
    }

    /// Counts the instructions of one call. `program` makes [`CALLS`] calls when run with
    /// `arguments`.
    ///
    /// # Errors
    /// As [`collect`].
    pub fn per_call(&self, program: &Path, arguments: &[&str]) -> Result<u64, String> {
        let total = collect(program, self.symbol, arguments)?;
        Ok((total + u64::from(CALLS) / 2) / u64::from(CALLS))
    }

    /// The instructions per page, from those per call.
    pub fn per_page(&self, per_call: u64) -> f64 {
        (per_call * 100 / self.job().size.pages()) as f64 / 100.0
    }

    fn job(&self) -> Job {
        let size = Size::from_name(self.size).expect("one of the sizes");
        Job::new(size, self.layout, false)
    }

    /// Makes `calls` calls, and undoes each.
    ///
    /// # Panics
    /// If this thread holds a [`Lease`].
    pub fn run(&self, calls: u32) {
        let _lease = Lease::take();
        let job = self.job();
        let mut subject: Box<dyn Subject> = match self.who {
            Who::Ready => Box::new(FloorReady::new(&job)),
            Who::Tables => Box::new(FloorTables::new(true)),
            Who::Unzeroed => Box::new(FloorTables::new(false)),
            Who::Ours => Box::new(Barewire::new(Unmapping::Gathered)),
        };
        for _ in 0..calls {
            subject.map(&job, 1);
            subject.unmap(&job, 1);
        }
    }
}
