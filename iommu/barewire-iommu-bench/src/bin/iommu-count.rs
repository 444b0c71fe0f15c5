//! Makes calls of one operation only, for callgrind or QEMU to count.
//!
//! It is a program of its own because in a larger one the compiler's inlining would depend on
//! unrelated code.

use std::process::ExitCode;

use barewire_iommu_bench::counted::{CALLS, CountedOperation};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let op = arguments.next().and_then(|key| CountedOperation::from_key(&key));
    let calls = arguments.next().map_or(Ok(CALLS), |calls| calls.parse());
    match (op, calls) {
        (Some(op), Ok(calls)) => {
            op.run(calls);
            ExitCode::SUCCESS
        }
        _ => ExitCode::from(2),
    }
}
