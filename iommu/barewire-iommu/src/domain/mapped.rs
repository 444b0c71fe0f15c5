//! What a caller holds: a mapping, what is left of it, and what is owed for it.

use core::ops::Range;

use crate::address::Iova;
use crate::pool::Chain;
use crate::tlbi::FlushError;

/// A mapping, and the sole claim to its IOVAs: neither copied nor cloned, so never unmapped twice.
///
/// Dropping it leaves it mapped for as long as the domain lives.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "it stays mapped, and devices may go on using the memory, unless it is unmapped"]
pub struct Mapped {
    pub(super) iova: Iova,
    pub(super) size: u64,
    /// Leaves, about.
    pub(super) leaves: usize,
    /// Whose it is.
    pub(super) domain: usize,
}

impl Mapped {
    /// Where it begins for the device.
    pub fn iova(&self) -> Iova {
        self.iova
    }

    /// Its bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Its addresses.
    pub fn range(&self) -> Range<Iova> {
        self.iova..Iova(self.iova.0 + self.size)
    }
}

/// A mapping that is none any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unmapped {
    /// Bytes that were mapped.
    pub bytes: u64,
    /// When the memory may go back to its owner.
    pub ticket: Ticket,
}

/// An invalidation that memory's owners wait for: until
/// [`Domain::completed`](super::Domain::completed) says so, or [`wait`](super::Domain::wait)
/// returns, devices may still reach what was unmapped.
///
/// In a strict domain it is complete from the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ticket {
    /// 0, or an entry's number.
    pub(super) number: u64,
    pub(super) domain: usize,
}

/// Addresses and tables whose invalidation failed. Devices may still reach what was mapped there.
///
/// [`Domain::retry`](super::Domain::retry) tries again. Dropping it loses the addresses and the
/// tables, which is safe, but the memory behind them must never be used for anything else.
#[derive(Debug)]
#[must_use = "its addresses and tables are lost unless the flush is tried again"]
pub struct Held {
    pub(super) range: Range<Iova>,
    pub(super) tables: Chain,
    /// How many.
    pub(super) count: usize,
    pub(super) error: FlushError,
    pub(super) domain: usize,
}

impl Held {
    /// The addresses.
    pub fn range(&self) -> Range<Iova> {
        self.range.clone()
    }

    /// What the flush said.
    pub fn error(&self) -> FlushError {
        self.error
    }
}
