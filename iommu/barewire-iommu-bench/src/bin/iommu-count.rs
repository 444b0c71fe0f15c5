//! Makes calls of one operation and nothing else: what callgrind is given for the counts under review.
//!
//! A program of its own: in a large one, what the compiler inlines changes with whatever else is there.

use std::process::ExitCode;

use barewire_iommu_bench::counted::{CALLS, Counted};

fn main() -> ExitCode {
    let key = std::env::args().nth(1).unwrap_or_default();
    match Counted::from_key(&key) {
        Some(op) => {
            op.run(CALLS);
            ExitCode::SUCCESS
        }
        None => ExitCode::from(2),
    }
}
