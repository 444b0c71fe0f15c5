//! The operations whose instructions are counted, under callgrind or on an emulated Arm processor.

use std::path::Path;

use crate::callgrind::collect;
use crate::cleaned::CleaningPool;
use crate::list::{Layout, Size};
use crate::pool::{Lease, Tables};
use crate::subject::{
    Barewire, FloorReady, FloorTables, Job, Subject, TableWork, Unmapping, WholeDomain,
};
use crate::traced::{InstructionCount, last_call};

/// The number of calls. All cost the same but the first, which may have to create tables.
pub const CALLS: u32 = 100;

/// The number of calls where the last one alone is counted.
const CALLS_TRACED: u32 = 3;

/// A counted operation.
#[derive(Clone, Copy, Debug)]
pub struct CountedOperation {
    /// Its name in tables and JSON.
    pub op: &'static str,
    /// The size that is mapped or unmapped.
    pub size: &'static str,
    /// The layout of the pages.
    pub layout: Layout,
    /// Whether the walker snoops the caches. If not, changed lines are cleaned.
    pub coherent: bool,
    /// The function that is counted, including its callees.
    symbol: &'static str,
    who: Who,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Who {
    Ready,
    Tables,
    Unzeroed,
    Ours,
    Work,
    Domain,
}

const SCATTERED: Layout = Layout::Scattered;
const CONTIGUOUS: Layout = Layout::Contiguous;

const fn counted(op: &'static str, size: &'static str, layout: Layout) -> CountedOperation {
    let (symbol, who) = match op.as_bytes() {
        b"floor_a" => ("bench_iommu_floor_a", Who::Ready),
        b"floor_leaf" => ("bench_iommu_floor_leaf", Who::Ready),
        b"floor_b" => ("bench_iommu_floor_b", Who::Tables),
        b"floor_b_unzeroed" => ("bench_iommu_floor_b_unzeroed", Who::Unzeroed),
        b"floor_drop" => ("bench_iommu_floor_drop", Who::Tables),
        b"map_sg" => ("bench_iommu_map_sg", Who::Ours),
        b"unmap" => ("bench_iommu_unmap", Who::Ours),
        b"map_table" => ("bench_iommu_map_sg", Who::Work),
        b"unmap_table" => ("bench_iommu_table_unmap", Who::Work),
        b"domain_map" => ("bench_iommu_domain_map", Who::Domain),
        b"domain_unmap" => ("bench_iommu_domain_unmap", Who::Domain),
        _ => panic!("no operation has this name"),
    };
    CountedOperation { op, size, layout, coherent: true, symbol, who }
}

/// All operations counted under callgrind: the floors, and barewire-iommu at the sizes it makes
/// promises about.
pub const COUNTED: [CountedOperation; 27] = [
    counted("floor_a", "1M", SCATTERED),
    counted("floor_b", "2M", SCATTERED),
    counted("floor_b", "32M", SCATTERED),
    counted("floor_b_unzeroed", "2M", SCATTERED),
    counted("floor_b_unzeroed", "32M", SCATTERED),
    counted("floor_drop", "32M", SCATTERED),
    counted("floor_leaf", "1M", SCATTERED),
    counted("map_sg", "4K", SCATTERED),
    counted("map_sg", "64K", SCATTERED),
    counted("map_sg", "1M", SCATTERED),
    counted("map_sg", "2M", SCATTERED),
    counted("map_sg", "32M", SCATTERED),
    counted("map_sg", "32M", CONTIGUOUS),
    counted("unmap", "4K", SCATTERED),
    counted("unmap", "64K", SCATTERED),
    counted("unmap", "1M", SCATTERED),
    counted("unmap", "2M", SCATTERED),
    counted("unmap", "32M", SCATTERED),
    counted("unmap", "32M", CONTIGUOUS),
    counted("unmap_table", "4K", SCATTERED),
    counted("unmap_table", "64K", SCATTERED),
    counted("unmap_table", "2M", SCATTERED),
    counted("unmap_table", "32M", CONTIGUOUS),
    counted("domain_map", "4K", SCATTERED),
    counted("domain_map", "64K", SCATTERED),
    counted("domain_unmap", "4K", SCATTERED),
    counted("domain_unmap", "64K", SCATTERED),
];

/// The operations counted on Arm with a walker that snoops, which are the floors beside ours, and
/// then the table work with one that does not.
pub fn counted_on_arm() -> Vec<CountedOperation> {
    let mut all = Vec::new();
    for (size, layout) in [("64K", SCATTERED), ("1M", SCATTERED)] {
        all.extend(["floor_a", "floor_leaf"].map(|op| counted(op, size, layout)));
    }
    all.extend(["2M", "32M"].map(|size| counted("floor_b_unzeroed", size, SCATTERED)));
    const OURS: [(&str, Layout); 6] = [
        ("4K", SCATTERED),
        ("64K", SCATTERED),
        ("64K", CONTIGUOUS),
        ("2M", SCATTERED),
        ("32M", SCATTERED),
        ("32M", CONTIGUOUS),
    ];
    let tables = ["map_table", "unmap_table"];
    let ours = |op| OURS.map(|(size, layout)| counted(op, size, layout));
    all.extend(tables.into_iter().chain(["unmap"]).flat_map(ours));
    for op in ["domain_map", "domain_unmap"] {
        all.extend(["4K", "64K"].map(|size| counted(op, size, SCATTERED)));
    }
    let not_coherent = |op| ours(op).map(|one| CountedOperation { coherent: false, ..one });
    all.extend(tables.into_iter().flat_map(not_coherent));
    all
}

impl CountedOperation {
    /// A unique key.
    pub fn key(&self) -> String {
        let walker = if self.coherent { "" } else { "-cleaned" };
        format!("{}-{}-{}{walker}", self.op, self.size, self.layout.name())
    }

    /// The operation with that key.
    pub fn from_key(key: &str) -> Option<Self> {
        COUNTED.into_iter().chain(counted_on_arm()).find(|one| one.key() == key)
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

    /// Counts what the last of a few calls executes on Arm. `program` is `iommu-count`, built for
    /// aarch64 and static.
    ///
    /// # Errors
    /// As [`last_call`].
    pub fn executed(&self, program: &Path) -> Result<InstructionCount, String> {
        last_call(program, self.symbol, &[&self.key(), &CALLS_TRACED.to_string()])
    }

    /// The instructions per page, from those per call.
    pub fn per_page(&self, per_call: u64) -> f64 {
        (per_call * 100 / self.pages()) as f64 / 100.0
    }

    /// The number of 4 KiB pages.
    pub fn pages(&self) -> u64 {
        self.job().size.pages()
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
            Who::Work if self.coherent => Box::new(TableWork::<_, true>::new(Tables)),
            Who::Work => Box::new(TableWork::<_, true>::new(CleaningPool)),
            Who::Domain => Box::new(WholeDomain::<true>::new()),
        };
        for _ in 0..calls {
            subject.map(&job, 1);
            subject.unmap(&job, 1);
            subject.settle();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_one_operation() {
        for one in COUNTED.into_iter().chain(counted_on_arm()) {
            let found = CountedOperation::from_key(&one.key()).expect("its own key");
            assert_eq!((found.symbol, found.coherent), (one.symbol, one.coherent), "{one:?}");
        }
        assert!(CountedOperation::from_key("map_sg").is_none());
    }
}
