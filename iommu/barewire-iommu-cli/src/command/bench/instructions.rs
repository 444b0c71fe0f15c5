//! Instruction counts of the floors and of ours, in this program. The reviewed counts are those of a
//! smaller program (`barewire-iommu-bench/tests/instructions.rs`), because the compiler's inlining here
//! depends on the rest of this one.

use barewire_iommu_bench::counted::{COUNTED, CountedOperation};
use serde::Serialize;

use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::output::note;

/// Instructions of one operation; these names are an interface.
#[derive(Debug, Serialize)]
pub(super) struct Instructions {
    pub(super) op: &'static str,
    pub(super) size: &'static str,
    pub(super) layout: &'static str,
    pub(super) per_call: Option<u64>,
    pub(super) per_page: Option<f64>,
}

/// Counts all operations, or none if `wanted` is false. If it cannot count, it prints the reason once.
pub(super) fn count_all(wanted: bool) -> Result<Vec<Instructions>, Failure> {
    let mut works = wanted;
    let mut counts = Vec::new();
    for op in COUNTED {
        interrupt::check()?;
        let per_call = if works {
            count(&op).map(Some).unwrap_or_else(|why| {
                note!("barewire-iommu: bench: instructions not counted: {why}");
                works = false;
                None
            })
        } else {
            None
        };
        let per_page = per_call.map(|count| op.per_page(count));
        let layout = op.layout.name();
        counts.push(Instructions { op: op.op, size: op.size, layout, per_call, per_page });
    }
    Ok(counts)
}

fn count(op: &CountedOperation) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    op.per_call(&program, &["bench", "--count-op", &op.key()])
}
