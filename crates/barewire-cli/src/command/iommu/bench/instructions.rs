//! Exact instruction counts of the floors and of ours: what gates in tests.

use barewire_iommu_bench::counted::{COUNTED, Counted};
use serde::Serialize;

use crate::bench::count::collect;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::note;

/// Calls callgrind sees. All cost the same but the first, which may meet tables that are not there.
pub(super) const CALLS: u32 = 100;

/// Instructions of one operation; these names are an interface.
#[derive(Debug, Serialize)]
pub(super) struct Instructions {
    pub(super) op: &'static str,
    pub(super) size: &'static str,
    pub(super) layout: &'static str,
    pub(super) per_call: Option<u64>,
    pub(super) per_page: Option<f64>,
}

/// Counts all, or with `wanted` false none. Why it cannot is said once.
pub(super) fn count_all(wanted: bool) -> Result<Vec<Instructions>, Failure> {
    let mut works = wanted;
    let mut counts = Vec::new();
    for op in COUNTED {
        interrupt::check()?;
        let per_call = if works {
            count(&op).unwrap_or_else(|why| {
                note!("barewire: iommu bench: instructions not counted: {why}");
                works = false;
                None
            })
        } else {
            None
        };
        let per_page = per_call.map(|count| (count * 100 / op.pages()) as f64 / 100.0);
        let layout = op.layout.name();
        counts.push(Instructions { op: op.op, size: op.size, layout, per_call, per_page });
    }
    Ok(counts)
}

fn count(op: &Counted) -> Result<Option<u64>, String> {
    let total = collect(op.symbol, &["iommu", "bench", "--count-op", &op.key()])?;
    Ok(Some((total + u64::from(CALLS) / 2) / u64::from(CALLS)))
}
