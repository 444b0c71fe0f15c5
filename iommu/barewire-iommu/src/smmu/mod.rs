//! What invalidates: Arm's SMMUs.
//!
//! [`v3`] drives an SMMUv3 from its identification registers to its event queue; [`v2`] has the TLB
//! operations of an SMMUv2's context banks. Both are [`Invalidate`](crate::Invalidate).
//!
//! # How it works
//! - `registers`: how a driver reaches a block of registers, whatever stands behind it: [`Registers`].
//! - `patience`: how long it looks for an answer: [`Patience`], [`Polls`].
//! - `memory`: a piece of a [`Pool`](crate::Pool) that the SMMU reads or writes too; the only file
//!   with unsafe code.

mod memory;
mod patience;
mod registers;
pub mod v2;
pub mod v3;

pub use patience::{Patience, Polls};
pub use registers::Registers;
