//! The integration tests of this crate: one program, so that the crate and what it needs are linked once.
//!
//! A module a subject: `cargo test -p barewire-iommu-qemu --test it smmu_domain::` runs one of them.

mod rig;
mod smmu;
mod smmu_domain;
mod smmu_invalidation;
mod smmu_model;
mod smmu_stage2;
