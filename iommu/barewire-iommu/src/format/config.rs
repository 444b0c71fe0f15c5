//! The configuration of a table.

use core::fmt;

use crate::address::PhysAddr;

/// The size of the smallest page and of a table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Granule {
    /// 4 KiB; blocks of 2 MiB and 1 GiB.
    #[default]
    Size4K,
    /// 16 KiB; blocks of 32 MiB.
    Size16K,
    /// 64 KiB; blocks of 512 MiB.
    Size64K,
}

/// The translation stage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Stage {
    /// Stage 1: a device's own addresses, tagged with an ASID.
    #[default]
    One,
    /// Stage 2: the addresses of a virtual machine (IPA), tagged with a VMID. The root may consist
    /// of up to 16 adjacent tables.
    Two,
}

/// The shape of a table; `Geometry::new` checks it. It has no switch for FEAT_S2FWB: see
/// [`Attributes`](super::Attributes).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The smallest page.
    pub granule: Granule,
    /// The translation stage.
    pub stage: Stage,
    /// The width of an IOVA, 32 to 48 bits (Linux's `ias`).
    pub input_bits: u8,
    /// The width of a physical address: 32, 36, 40, 42, 44 or 48 bits (Linux's `oas`).
    pub output_bits: u8,
    /// Whether hardware lets a live block be replaced by a table, and back, without
    /// break-before-make (FEAT_BBM level 2; `SMMU_IDR3.BBML`). If so, part of a live block can be
    /// unmapped.
    pub bbml2: bool,
}

impl Default for Config {
    /// 4 KiB pages, stage 1, 48 bits in and out.
    fn default() -> Self {
        Self {
            granule: Granule::Size4K,
            stage: Stage::One,
            input_bits: 48,
            output_bits: 48,
            bbml2: false,
        }
    }
}

/// Why a configuration is not possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// Input addresses have 32 to 48 bits.
    InputBits(u8),
    /// Output addresses have 32, 36, 40, 42, 44 or 48 bits.
    OutputBits(u8),
    /// The pool cannot supply the root, which needs this many bytes.
    NoRoot(usize),
    /// The pool's memory, or the root, ends above what the output addresses reach.
    Pool {
        /// The first address above.
        end: PhysAddr,
        /// The width of output addresses.
        output_bits: u8,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::InputBits(bits) => {
                write!(f, "{bits} bits of input address: 32 to 48 are possible")
            }
            Self::OutputBits(bits) => {
                write!(f, "{bits} bits of output address: 32, 36, 40, 42, 44 and 48 are possible")
            }
            Self::NoRoot(bytes) => write!(f, "the pool has no {bytes} bytes for the root table"),
            Self::Pool { end, output_bits } => write!(
                f,
                "the pool's tables end at {:#x}, above {output_bits} bits of output address: use memory below, \
                 or more bits",
                end.0
            ),
        }
    }
}

impl core::error::Error for ConfigError {}

impl Granule {
    /// The width of the offset in a page: 12, 14 or 16 bits.
    pub const fn shift(self) -> u32 {
        match self {
            Self::Size4K => 12,
            Self::Size16K => 14,
            Self::Size64K => 16,
        }
    }

    /// The size of a page in bytes.
    pub const fn bytes(self) -> u64 {
        1 << self.shift()
    }
}
