//! Decides which mapping cleans an entry that leads to a table, for walkers that do not snoop the
//! caches.
//!
//! Two processors map below the same entry. One installs a table there by compare-and-exchange.
//! Before it has cleaned the entry the other descends through it, writes and cleans its leaf, and
//! returns. The walker still reads the old entry, so what the second call mapped is not visible.
//!
//! # How it works
//! Bit 55 of a table descriptor, which hardware ignores, says that the entry is clean. (Linux's
//! `ARM_LPAE_PTE_SW_SYNC` is the same bit for the same reason: R. Murphy, "iommu/io-pgtable-arm:
//! Support lockless operation", commit 2c3d273eabe8 of June 2017.)
//!
//! - The installer exchanges the entry in without the mark, cleans it, completes the clean by a
//!   barrier, and only then stores the mark ([`Node::mark`]).
//! - A mapping that descends through an entry without the mark cleans the entry itself
//!   ([`Node::enter`]). The barrier at the end of its call completes the clean. It does not store the
//!   mark: so one thread only, the installer, ever stores to the entry.
//! - In an entry whose whole span a part covers, the mark is stored at once. No other call descends
//!   through the entry before this one ends, and this one ends in a barrier. (Unless the pool
//!   panics: then what the call had stored may not be visible.)
//! - Unmapping needs none of this. The call that mapped the leaf, or one before it, made the entries
//!   above it visible. If they are not visible, a walker does not reach the leaf either.
//! - Pools that are [`COHERENT`](Pool::COHERENT) have no marks, and pay nothing.
//!
//! Without 64-bit atomics an entry changes in two stores, the first of which makes it invalid
//! (`pool/words.rs`). So there an entry is not marked after it was published, and each mapping cleans
//! the entries that it descends through and that it did not install itself.

use super::PageTable;
use super::node::{Entry, Node};
use crate::format::{Descriptor, LAST};
use crate::pool::Pool;

/// Whether one store replaces a valid entry.
const MARKS: bool = cfg!(target_has_atomic = "64");

impl<'t, P: Pool> Node<'t, P> {
    /// [`entry`](Self::entry) for a call that will map below it: if the way to a table may be
    /// invisible to walkers, cleans it. The call ends in a barrier.
    #[inline]
    pub(super) fn enter(self, index: usize) -> Entry<'t, P> {
        let entry = self.entry(index);
        if !P::COHERENT && matches!(entry, Entry::Table(_)) && !self.load(index).is_marked() {
            self.clean(index..index + 1);
        }
        entry
    }

    /// Marks the entry that this call published as `table` and cleaned. Other threads may descend
    /// through it meanwhile, but none stores to it.
    #[inline]
    pub(super) fn mark(self, index: usize, table: Descriptor) {
        if !P::COHERENT && MARKS {
            self.pool().barrier();
            self.store(index, table.marked());
        }
    }
}

/// The lowest table that exists on the way to `iova`, for a call that will map there.
#[inline]
pub(super) fn descend<P: Pool>(table: &PageTable<P>, iova: u64) -> Node<'_, P> {
    let mut node = Node::root(table);
    while node.level() != LAST {
        match node.enter(node.index(iova)) {
            Entry::Table(child) => node = child,
            Entry::Leaf(_) | Entry::Empty(_) => break,
        }
    }
    node
}
