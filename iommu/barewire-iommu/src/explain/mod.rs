//! Explains the tables of this crate or of any other: how hardware walks to an IOVA, level by
//! level.
//!
//! *Read first*: Arm ARM DDI 0487, D8.2.4 (the walk), D8.3 (descriptors).
//!
//! # How it works
//! A closure reads table memory, from a dump, a model or the memory itself. A walk ends whatever
//! bytes it finds: in an address, in the fault that hardware would report, or at an entry that the
//! closure cannot read. [`Walker::explain`] walks to one IOVA, [`Walker::spans`] goes through all
//! of them. [`fields()`] names the bits of a descriptor.
//!
//! # Not supported
//! Shapes that [`Geometry`] does not support, and permission faults: the walk reports what a leaf
//! permits but does not check an access against it.
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
/// AP\[2\] forbids writes; S2AP\[1\] allows them.
const AP_READ_ONLY: u64 = 1 << 7;
/// AP\[1\] allows unprivileged access; S2AP\[0\] allows reads.
const AP_UNPRIVILEGED: u64 = 1 << 6;
/// APTable\[1\] forbids writes in all lower levels; APTable\[0\] forbids unprivileged access there.
const TABLE_READ_ONLY: u64 = 1 << 62;
const TABLE_PRIVILEGED: u64 = 1 << 61;
/// The width of an address in a descriptor, without 52-bit addresses.
const ADDRESS_END: u64 = 1 << 48;

/// The kind of an entry, at its level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Bit 0 is clear: not valid.
    Invalid,
    /// Bit 0 is set, but the level has no such descriptor. Hardware treats it as invalid.
    Reserved,
    /// The walk continues in another table.
    Table,
    /// A leaf above the last level.
    Block,
    /// A leaf at the last level.
    Page,
}

impl Kind {
    /// The kind of `descriptor` in a table of `level`, of a table with this geometry.
    pub fn of(descriptor: Descriptor, level: u32, geometry: &Geometry) -> Self {
        if !descriptor.is_valid() {
            Self::Invalid
        } else if descriptor.is_table(level) {
            Self::Table
        } else if !descriptor.is_leaf(level) || !geometry.leaf_at(level) {
            Self::Reserved
        } else if level == 3 {
            Self::Page
        } else {
            Self::Block
        }
    }

    /// The address in `descriptor`, which is of this kind, as a walker takes it: of the next table, or
    /// of the leaf. `None` if it has none.
    pub fn address(
        self,
        descriptor: Descriptor,
        level: u32,
        geometry: &Geometry,
    ) -> Option<PhysAddr> {
        let span = match self {
            Self::Invalid | Self::Reserved => return None,
            Self::Table => geometry.page_bytes(),
            Self::Block | Self::Page => geometry.span(level),
        };
        // The bits below the span belong to other fields, or are reserved and ignored.
        Some(PhysAddr(descriptor.0 & (ADDRESS_END - 1) & !(span - 1)))
    }
}

/// One level of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The level of the table.
    pub level: u32,
    /// The address of the table.
    pub table: PhysAddr,
    /// The index of the entry in the table.
    pub index: usize,
    /// The address of the entry.
    pub entry: PhysAddr,
    /// The entry.
    pub descriptor: Descriptor,
    /// Its kind.
    pub kind: Kind,
}

/// The translation of an IOVA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapped {
    /// The physical address.
    pub phys: PhysAddr,
    /// The size in bytes of the leaf.
    pub size: u64,
    /// The accesses that are permitted.
    pub permits: Permits,
}

/// The accesses that a leaf and the tables above it permit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Permits {
    /// The leaf permits reads.
    pub readable: bool,
    /// The leaf permits writes, and no table above forbids them.
    pub writable: bool,
    /// Unprivileged accesses are permitted. Always true at stage 2, which does not distinguish
    /// them.
    pub unprivileged: bool,
}

/// Why a walk faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The entry is not valid.
    Translation,
    /// An address is wider than the configured output size.
    AddressSize,
    /// The leaf's access flag is clear. The walker does not set it.
    AccessFlag,
}

/// The outcome of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The IOVA is mapped.
    Mapped(Mapped),
    /// The walk faults at its last step. If the IOVA or the root itself is too large, the level is
    /// 0 and there is no step.
    Fault {
        /// The cause.
        fault: Fault,
        /// The level of the fault.
        level: u32,
    },
    /// The closure cannot read the entry.
    Unreadable {
        /// The level of the entry's table.
        level: u32,
        /// The address of the entry.
        entry: PhysAddr,
    },
}

/// A walk, level by level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Walk {
    steps: [Step; 4],
    len: usize,
    /// The outcome.
    pub outcome: Outcome,
}

impl Walk {
    /// The entries read, starting at the root.
    pub fn steps(&self) -> &[Step] {
        // Four levels at most: `len` counts pushes into `steps`.
        self.steps.get(..self.len).unwrap_or(&self.steps)
    }
}

/// The root's address is not aligned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RootUnaligned {
    /// The root's address.
    pub root: PhysAddr,
    /// The alignment it needs, in bytes.
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
    /// Creates a walker for the table at `root`.
    ///
    /// # Errors
    /// `root` is not aligned to the size of the root table, or not to 64 bytes.
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

    /// Walks to `iova`. `read` returns the 8 bytes at an address as a little-endian number, or
    /// `None` if it cannot read that address.
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
                let kind = Kind::of(descriptor, level, &self.geometry);
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

    /// Lists all that the table maps and all faults in it, in the order of IOVAs. Neighbours that
    /// continue each other are merged. At most `entries_max` entries are read: garbage whose tables
    /// point back to each other could otherwise take years.
    pub fn spans<R: FnMut(PhysAddr) -> Option<u64>>(&self, read: R, entries_max: u64) -> Spans<R> {
        Spans::new(*self, read, entries_max)
    }

    /// The next step of the walk after a descriptor.
    fn next(&self, descriptor: Descriptor, level: u32) -> Next {
        let kind = Kind::of(descriptor, level, &self.geometry);
        let Some(to) = kind.address(descriptor, level, &self.geometry) else {
            return Next::Fault(Fault::Translation);
        };
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

    /// The permissions of `leaf`. `above` is the union of the bits of all tables above it.
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

/// A table's address has at most 48 bits and an index 17, so this does not overflow.
fn entry_address(table: PhysAddr, index: usize) -> PhysAddr {
    PhysAddr(table.0 + 8 * index as u64)
}

#[cfg(all(test, not(any(miri, loom))))]
mod tests;
