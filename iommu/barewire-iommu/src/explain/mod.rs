//! Explains tables, one's own or anybody's: what a walker does with an IOVA, level by level.
//!
//! *Read first*: Arm ARM DDI 0487, D8.2.4 (the walk), D8.3 (descriptors).
//!
//! # How it works
//! Table memory is read through a closure, from a dump, a model or the memory itself, so whatever
//! bytes are there, a walk ends: in an address, in the fault that hardware would take, or where
//! nothing is known. [`Walker::explain`] takes one IOVA, [`Walker::spans`] goes through them all.
//! [`fields()`] names a descriptor's bits.
//!
//! # Not supported
//! What [`Geometry`] does not, and faults of permission: what a leaf permits is told, not judged.
//!
//! ```
//! use barewire_iommu::explain::{Outcome, Walker};
//! use barewire_iommu::{Config, Geometry, Iova, PhysAddr};
//!
//! let geometry = Geometry::new(Config { input_bits: 39, ..Config::default() })?;
//! // A root at 0x1000 whose entry 2 is a block of 1 GiB at 0x40000000.
//! let memory = |at: PhysAddr| match at.0 {
//!     0x1010 => Some(0x4000_0000 | 1 << 10 | 0b01),
//!     0x1000..0x2000 => Some(0),
//!     _ => None,
//! };
//! let walk = Walker::new(geometry, PhysAddr(0x1000))?.explain(Iova(0x8000_1234), memory);
//! assert!(matches!(walk.outcome, Outcome::Mapped(to) if to.phys == PhysAddr(0x4000_1234)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod fields;
mod spans;

pub use fields::{Field, fields};
pub use spans::{Span, Spans, What};

use core::fmt;

use crate::address::{Iova, PhysAddr};
use crate::format::{Descriptor, Geometry, Stage};

const ACCESS_FLAG: u64 = 1 << 10;
/// AP\[2\], S2AP\[1\]: writes. The first forbids them, the second allows them.
const AP_READ_ONLY: u64 = 1 << 7;
/// AP\[1\] allows unprivileged access, S2AP\[0\] reads.
const AP_UNPRIVILEGED: u64 = 1 << 6;
/// APTable\[1\] and \[0\]: no writes, no unprivileged access, below.
const TABLE_READ_ONLY: u64 = 1 << 62;
const TABLE_PRIVILEGED: u64 = 1 << 61;
/// Bits of an address a descriptor has room for, without 52-bit addresses.
const ADDRESS_END: u64 = 1 << 48;

/// What an entry is at its level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Bit 0 is clear: nothing.
    Invalid,
    /// Valid, but the level has no such descriptor; a walker takes it for invalid.
    Reserved,
    /// The walk goes on in a table.
    Table,
    /// It ends here, above the last level.
    Block,
    /// It ends here, at the last level.
    Page,
}

/// One level of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The table's level.
    pub level: u32,
    /// Where the table is.
    pub table: PhysAddr,
    /// The entry's number in it.
    pub index: usize,
    /// Where the entry is.
    pub entry: PhysAddr,
    /// What stands there.
    pub descriptor: Descriptor,
    /// What that is.
    pub kind: Kind,
}

/// Where an IOVA ends up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapped {
    /// The address.
    pub phys: PhysAddr,
    /// Bytes of the leaf it is in.
    pub size: u64,
    /// What may be done there.
    pub permits: Permits,
}

/// What a leaf, and the tables above, permit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Permits {
    /// The leaf may be read.
    pub readable: bool,
    /// The leaf may be written, and no table above forbids it.
    pub writable: bool,
    /// Unprivileged transactions may access it; at stage 2 nothing tells them apart.
    pub unprivileged: bool,
}

/// Why a walker stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Nothing is there.
    Translation,
    /// An address has more bits than the table's output addresses.
    AddressSize,
    /// A leaf whose access flag is clear, and the walker does not set it.
    AccessFlag,
}

/// How a walk ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// In an address.
    Mapped(Mapped),
    /// In a fault, which the last step shows; level 0 and no step where the IOVA or the root is
    /// itself too large.
    Fault {
        /// Which.
        fault: Fault,
        /// At what level.
        level: u32,
    },
    /// The reader does not know the entry.
    Unreadable {
        /// The level of the entry's table.
        level: u32,
        /// Where the entry is.
        entry: PhysAddr,
    },
}

/// A walk, level by level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Walk {
    steps: [Step; 4],
    len: usize,
    /// How it ends.
    pub outcome: Outcome,
}

impl Walk {
    /// The entries read, from the root on.
    pub fn steps(&self) -> &[Step] {
        // Four levels at most: `len` counts pushes into `steps`.
        self.steps.get(..self.len).unwrap_or(&self.steps)
    }
}

/// A root where no root can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RootUnaligned {
    /// The root's address.
    pub root: PhysAddr,
    /// What it must be a multiple of, in bytes.
    pub to: u64,
}

impl fmt::Display for RootUnaligned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { root, to } = self;
        write!(f, "a root of this shape is aligned to {to:#x} bytes, and {root} is not")
    }
}

impl core::error::Error for RootUnaligned {}

/// Walks a table as hardware does.
#[derive(Clone, Copy, Debug)]
pub struct Walker {
    geometry: Geometry,
    root: PhysAddr,
}

impl Walker {
    /// For the table at `root`.
    ///
    /// # Errors
    /// If `root` is not aligned to its size, and to 64 bytes.
    pub fn new(geometry: Geometry, root: PhysAddr) -> Result<Self, RootUnaligned> {
        let to = (geometry.root_bytes() as u64).max(64);
        if root.0.is_multiple_of(to) {
            Ok(Self { geometry, root })
        } else {
            Err(RootUnaligned { root, to })
        }
    }

    /// The table's shape.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Walks to `iova`. `read` gives the 8 bytes at an address as a little-endian number, or none
    /// if it knows nothing of that address.
    pub fn explain(&self, iova: Iova, mut read: impl FnMut(PhysAddr) -> Option<u64>) -> Walk {
        const NONE: Step = Step {
            level: 0,
            table: PhysAddr(0),
            index: 0,
            entry: PhysAddr(0),
            descriptor: Descriptor::EMPTY,
            kind: Kind::Invalid,
        };
        let mut steps = [NONE; 4];
        let mut len = 0;
        let outcome = 'walk: {
            if iova.0 >= self.geometry.input_end() {
                break 'walk Outcome::Fault { fault: Fault::Translation, level: 0 };
            }
            if self.too_large(self.root) {
                break 'walk Outcome::Fault { fault: Fault::AddressSize, level: 0 };
            }
            let mut table = self.root;
            let mut above = 0;
            for level in self.geometry.start_level()..=3 {
                let index = self.geometry.index(iova.0, level);
                let entry = entry_address(table, index);
                let Some(descriptor) = read(entry).map(Descriptor) else {
                    break 'walk Outcome::Unreadable { level, entry };
                };
                let kind = self.kind(descriptor, level);
                if let Some(step) = steps.get_mut(len) {
                    *step = Step { level, table, index, entry, descriptor, kind };
                    len += 1;
                }
                match self.next(descriptor, level) {
                    Next::Fault(fault) => break 'walk Outcome::Fault { fault, level },
                    Next::Leaf(to) => {
                        let size = self.geometry.span(level);
                        let phys = PhysAddr(to.0 | iova.0 & (size - 1));
                        let permits = self.permits(descriptor, above);
                        break 'walk Outcome::Mapped(Mapped { phys, size, permits });
                    }
                    Next::Table(next) => {
                        above |= descriptor.0;
                        table = next;
                    }
                }
            }
            // Not reached: level 3 has no tables.
            Outcome::Fault { fault: Fault::Translation, level: 3 }
        };
        Walk { steps, len, outcome }
    }

    /// All that the table maps and all that is wrong with it, in the order of IOVAs, neighbours
    /// that go on in each other merged. Reads `entries_max` entries at most: garbage whose tables
    /// are each other's many times over would take years.
    pub fn spans<R: FnMut(PhysAddr) -> Option<u64>>(&self, read: R, entries_max: u64) -> Spans<R> {
        Spans::new(*self, read, entries_max)
    }

    fn kind(&self, descriptor: Descriptor, level: u32) -> Kind {
        if !descriptor.is_valid() {
            Kind::Invalid
        } else if descriptor.is_table(level) {
            Kind::Table
        } else if !descriptor.is_leaf(level) || !self.geometry.leaf_at(level) {
            Kind::Reserved
        } else if level == 3 {
            Kind::Page
        } else {
            Kind::Block
        }
    }

    /// Where the walk goes from a descriptor.
    fn next(&self, descriptor: Descriptor, level: u32) -> Next {
        let kind = self.kind(descriptor, level);
        let span = match kind {
            Kind::Invalid | Kind::Reserved => return Next::Fault(Fault::Translation),
            Kind::Table => self.geometry.page_bytes(),
            Kind::Block | Kind::Page => self.geometry.span(level),
        };
        // Bits below the span are other fields', or reserved and ignored.
        let to = PhysAddr(descriptor.0 & (ADDRESS_END - 1) & !(span - 1));
        if self.too_large(to) {
            Next::Fault(Fault::AddressSize)
        } else if kind == Kind::Table {
            Next::Table(to)
        } else if descriptor.0 & ACCESS_FLAG == 0 {
            Next::Fault(Fault::AccessFlag)
        } else {
            Next::Leaf(to)
        }
    }

    /// `above` has the bits of all tables passed.
    fn permits(&self, leaf: Descriptor, above: u64) -> Permits {
        let has = |bit| leaf.0 & bit != 0;
        match self.geometry.config().stage {
            Stage::One => Permits {
                readable: true,
                writable: !has(AP_READ_ONLY) && above & TABLE_READ_ONLY == 0,
                unprivileged: has(AP_UNPRIVILEGED) && above & TABLE_PRIVILEGED == 0,
            },
            Stage::Two => Permits {
                readable: has(AP_UNPRIVILEGED),
                writable: has(AP_READ_ONLY),
                unprivileged: true,
            },
        }
    }

    fn too_large(&self, address: PhysAddr) -> bool {
        address.0 >= self.geometry.output_end()
    }
}

enum Next {
    Fault(Fault),
    Table(PhysAddr),
    Leaf(PhysAddr),
}

/// A table's address has 48 bits at most and an index 17: no overflow.
fn entry_address(table: PhysAddr, index: usize) -> PhysAddr {
    PhysAddr(table.0 + 8 * index as u64)
}

#[cfg(test)]
mod tests;
