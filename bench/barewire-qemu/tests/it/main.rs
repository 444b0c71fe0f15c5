//! The integration tests of this crate: one program, so that the crate and what it needs are linked once.
//!
//! A module a subject: `cargo test -p barewire-qemu --test it flash::` runs one of them.

mod bad_input;
mod bcm2835_driver;
mod conformance;
mod flash;
mod interrupt;
mod pl022;
mod pl022_driver;
mod raspi3b;
mod rig;
mod sifive;
mod sifive_driver;
mod smmu;
mod smmu_domain;
mod smmu_invalidation;
mod smmu_model;
mod smmu_stage2;
mod support;
mod trace;
