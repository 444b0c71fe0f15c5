//! The layout of a VMSAv8-64 translation table, without its memory.
//!
//! *Read first*: Arm ARM DDI 0487, D8.2 (levels, concatenation) and D8.3 (descriptors).
//!
//! [`config`] is what a caller asks for, [`geometry`] the shape that follows from it.
//! [`descriptor`] and [`attributes`] define the bits.
//!
//! # Not supported
//! 52-bit addresses (LPA, LPA2), the upper half of the address space (TTBR1), the Contiguous bit
//! other than in groups of 16 pages of 4 KiB, hardware update of access and dirty state, hierarchical
//! attributes in table descriptors.

mod attributes;
mod config;
mod descriptor;
mod geometry;
#[cfg(test)]
mod tests;

pub use attributes::{Access, Attributes, MemoryType, Shareability};
pub use config::{Config, ConfigError, Granule, Stage};
pub use descriptor::Descriptor;
pub(crate) use descriptor::Marked;
pub use geometry::Geometry;
pub(crate) use geometry::LAST;
