//! The integration tests of this crate: one program, so that the crate and what it needs are linked once.
//!
//! A module a subject: `cargo test -p barewire-iommu-model --test it random::` runs one of them.

mod allocation;
mod bench;
mod contiguous;
mod domain;
mod exhaustive;
mod judge_can_fail;
mod parts;
mod random;
mod two_cpus;
