//! The handles a caller holds: a mapping, its ticket after unmapping, and a failed invalidation.

use core::ops::Range;

use crate::address::Iova;
use crate::pool::Chain;
use crate::tlbi::FlushError;

/// A mapping, and the only claim to its IOVAs. It is neither `Copy` nor `Clone`, so it cannot be
/// unmapped twice.
///
/// Dropping it leaves the range mapped for as long as the domain lives.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "it stays mapped, and devices may go on using the memory, unless it is unmapped"]
pub struct Mapped {
    pub(super) iova: Iova,
    pub(super) size: u64,
    /// The number of leaves, approximately.
    pub(super) leaves: usize,
    /// The id of its domain.
    pub(super) domain: usize,
}

impl Mapped {
    /// The first IOVA.
    pub fn iova(&self) -> Iova {
        self.iova
    }

    /// The size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The range of IOVAs.
    pub fn range(&self) -> Range<Iova> {
        self.iova..Iova(self.iova.0 + self.size)
    }
}

/// The result of unmapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unmapped {
    /// The number of bytes that were mapped.
    pub bytes: u64,
    /// Tells when the memory may be reused.
    pub ticket: Ticket,
}

/// An invalidation that the owner of unmapped memory waits for. Devices may still access the memory
/// until [`Domain::completed`](super::Domain::completed) returns true for it or
/// [`wait`](super::Domain::wait) returns.
///
/// In a strict domain the ticket is complete from the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ticket {
    /// 0, or the number of a queue entry.
    pub(super) number: u64,
    pub(super) domain: usize,
}

/// Addresses and tables whose invalidation failed. Devices may still access the memory that was
/// mapped there.
///
/// [`Domain::retry`](super::Domain::retry) tries again. Dropping this leaks the addresses and the
/// tables, which is safe. But the memory that was mapped must then never be used for anything else.
#[derive(Debug)]
#[must_use = "its addresses and tables are lost unless the flush is tried again"]
pub struct Held {
    pub(super) range: Range<Iova>,
    pub(super) tables: Chain,
    /// The number of tables.
    pub(super) count: usize,
    pub(super) error: FlushError,
    pub(super) domain: usize,
}

impl Held {
    /// The range of IOVAs.
    pub fn range(&self) -> Range<Iova> {
        self.range.clone()
    }

    /// The error of the flush.
    pub fn error(&self) -> FlushError {
        self.error
    }
}
