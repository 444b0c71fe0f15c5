//! Makes calls of one operation only, for callgrind to count.
//!
//! It is a program of its own because in a larger one the compiler's inlining would depend on
//! unrelated code.

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
