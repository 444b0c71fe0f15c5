//! IO page tables at memory speed: map, unmap, and one TLB invalidation where one is enough.
//!
//! *Read first*: Arm ARM (DDI 0487), chapter D8, for the tables; SMMUv3 (IHI 0070) for the queues;
//! `README.md` for what this crate is and is not.
//!
//! # How it works
//! - `address` has the numbers everybody speaks of: [`Iova`], [`PhysAddr`], [`Segment`].
//! - `format` knows what a table looks like: [`Config`] to [`Geometry`], [`Attributes`], descriptors.
//! - `pool` is where tables come from, and the only way to their memory: [`Pool`].
//! - `table` maps and unmaps: [`PageTable`], and [`Part`] for those who share one.
//! - `gather` remembers what was unhooked and not yet invalidated: [`Gather`].
//! - `tlbi` is what a TLB can be told ([`Tlbi`]) and who tells it ([`Invalidate`]).
//! - `strategy` decides which of those a gather becomes: [`Strategy`].
//! - `smmu` has the back ends: [`smmu::v3`] from bring-up to events, [`smmu::v2`]'s operations.
//!
//! Arrows: domain → strategy → gather, tlbi; table → pool, gather → format → address; smmu → tlbi.
#![no_std]

#[cfg(test)]
extern crate std;

mod address;
mod format;
mod gather;
mod pool;
pub mod smmu;
mod strategy;
mod sync;
mod table;
#[cfg(test)]
mod testing;
mod tlbi;

pub use address::{Iova, PhysAddr, Segment};
pub use format::{
    Access, Attributes, Config, ConfigError, Descriptor, Geometry, Granule, MemoryType,
    Shareability, Stage,
};
pub use gather::{Gather, Run};
pub use pool::{Arena, ArenaError, Chain, Link, Pool};
pub use strategy::{Choice, Costs, Facts, Method, Operations, Prediction, Strategy};
pub use table::{MapError, Mapping, PageTable, Part, Ranges, Translation, UnmapError};
pub use tlbi::{Context, FlushError, Invalidate, RangeStep, Tlbi, range_commands, range_steps};
