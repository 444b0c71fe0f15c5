//! `barewire iommu`: says where its former verbs `bench`, `walk` and `replay` are.

use std::ffi::OsString;

use crate::shared::failure::Failure;

/// Any.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _any: Vec<OsString>,
}

/// Tells it.
pub(crate) fn run() -> Result<(), Failure> {
    Err(Failure::Usage(
        "the page tables' verbs are the command barewire-iommu: in a checkout of barewire, \
         `cd iommu && cargo build --release` makes target/release/barewire-iommu"
            .into(),
    ))
}
