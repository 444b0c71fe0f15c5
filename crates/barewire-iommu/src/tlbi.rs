//! What a TLB can be told, and who tells it.

use core::fmt;

use crate::address::Iova;

/// Whose entries: the tag a TLB keeps with each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Context {
    /// A stage 1 table's.
    Asid(u16),
    /// A stage 2 table's.
    Vmid(u16),
}

/// An invalidation, as the architecture has them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tlbi {
    /// Everything of the context (TLBI ASID, TLBI S12_VMALL).
    Context,
    /// One command for each of `count` addresses, `1 << stride` bytes apart (TLBI VA, TLBI IPA).
    Pages {
        /// The first.
        iova: Iova,
        /// log2 of the distance in bytes.
        stride: u32,
        /// How many.
        count: u64,
        /// Only leaves were removed: cached walks stay.
        leaf: bool,
        /// The level all removed leaves stood at, if one (TTL); only with `leaf`.
        level: Option<u8>,
    },
    /// As few commands as cover `pages` granules (SMMUv3.2's range invalidation).
    Range {
        /// The first address.
        iova: Iova,
        /// log2 of the granule.
        page_shift: u32,
        /// Granules.
        pages: u64,
        /// Only leaves were removed.
        leaf: bool,
        /// As for `Pages`.
        level: Option<u8>,
    },
}

/// An invalidation that did not complete: nothing it covers may be freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FlushError {
    /// The hardware has not said in time that it is done.
    Timeout,
    /// The hardware refused a command (SMMU_CMDQ_CONS.ERR).
    Command(u8),
}

impl fmt::Display for FlushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("the TLB invalidation has not completed in time"),
            Self::Command(code) => write!(f, "the SMMU refused a command: error {code:#x}"),
        }
    }
}

impl core::error::Error for FlushError {}

/// Hardware, or a model of it, that invalidates.
pub trait Invalidate {
    /// Issues `operations` and waits until all have completed: after it, no access by the device
    /// goes through anything they cover.
    ///
    /// Stores to tables before the call are seen by every walk after it.
    ///
    /// # Errors
    /// If completion is not known; the caller may try again and must free nothing before.
    fn flush(&self, context: Context, operations: &[Tlbi]) -> Result<(), FlushError>;

    /// Whether it takes [`Tlbi::Range`].
    fn has_ranges(&self) -> bool {
        false
    }

    /// Individual commands that `operations` are for it, without the one that waits.
    fn commands(&self, operations: &[Tlbi]) -> u64 {
        let of = |operation: &Tlbi| match *operation {
            Tlbi::Context => 1,
            Tlbi::Pages { count, .. } => count,
            Tlbi::Range { .. } => 1,
        };
        operations.iter().map(of).sum()
    }
}
