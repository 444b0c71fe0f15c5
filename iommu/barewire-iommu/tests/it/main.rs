//! The integration tests of this crate: one program, so that the crate and what it needs are linked once.
//!
//! A module a subject: `cargo test -p barewire-iommu --test it smmu_v3::` runs one of them.
//!
//! Those for the model checker are programs of their own, built with `--cfg loom`.

mod smmu_commands;
mod smmu_entries;
mod smmu_errata;
mod smmu_errors;
mod smmu_fake;
mod smmu_handlers;
mod smmu_rig;
mod smmu_v2;
mod smmu_v2_errata;
mod smmu_v2_sync;
mod smmu_v3;
