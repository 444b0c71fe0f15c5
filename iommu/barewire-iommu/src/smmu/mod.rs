//! Back ends that invalidate: Arm's SMMUs.
//!
//! [`v3`] drives an SMMUv3 from its identification registers to its event queue; [`v2`] has the TLB
//! operations of an SMMUv2's context banks. Both are [`Invalidate`](crate::Invalidate).
//!
//! # How it works
//! - `registers`: access to a block of registers, memory-mapped or other: [`Registers`].
//! - `patience`: how long to poll for an answer: [`Patience`], [`Polls`].
//! - `memory`: memory from a [`Pool`](crate::Pool) that the SMMU reads or writes too. The only file
//!   here with unsafe code.

mod memory;
mod patience;
mod registers;
pub mod v2;
pub mod v3;

pub use patience::{Patience, Polls};
pub use registers::Registers;
