//! A TLB that counts its commands.

use core::cell::Cell;

use barewire_iommu::{Context, FlushError, Invalidate, Tlbi};
use serde::Serialize;

/// The number of commands by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// By address, leaves only: one for each page that was removed on its own.
    pub leaves: u64,
    /// By address, where tables were unhooked: one for each page that might have been mapped.
    pub walks: u64,
    /// By ASID or VMID.
    pub contexts: u64,
    /// By range.
    pub ranges: u64,
    /// The number of waits for completion.
    pub flushes: u64,
}

impl Counts {
    /// All commands but the syncs.
    pub fn invalidations(self) -> u64 {
        self.leaves + self.walks + self.contexts + self.ranges
    }
}

/// The TLB.
#[derive(Debug, Default)]
pub struct Counting {
    leaves: Cell<u64>,
    walks: Cell<u64>,
    contexts: Cell<u64>,
    ranges: Cell<u64>,
    flushes: Cell<u64>,
    has_ranges: bool,
}

impl Counting {
    /// Creates the TLB, with range invalidation or without.
    pub fn new(has_ranges: bool) -> Self {
        Self { has_ranges, ..Self::default() }
    }

    /// The commands since the last call.
    pub fn take(&self) -> Counts {
        Counts {
            leaves: self.leaves.take(),
            walks: self.walks.take(),
            contexts: self.contexts.take(),
            ranges: self.ranges.take(),
            flushes: self.flushes.take(),
        }
    }
}

impl Invalidate for Counting {
    #[inline]
    fn flush(&self, _: Context, operations: &[Tlbi]) -> Result<(), FlushError> {
        for operation in operations {
            let (counter, count) = match *operation {
                Tlbi::Context => (&self.contexts, 1),
                Tlbi::Pages { count, leaf: true, .. } => (&self.leaves, count),
                Tlbi::Pages { count, leaf: false, .. } => (&self.walks, count),
                Tlbi::Range { .. } => (&self.ranges, 1),
            };
            counter.set(counter.get() + count);
        }
        self.flushes.set(self.flushes.get() + 1);
        Ok(())
    }

    fn has_ranges(&self) -> bool {
        self.has_ranges
    }
}
