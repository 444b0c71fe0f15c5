//! Empty tables where blocks would be written: they are replaced.
//!
//! Unmapping leaves a table that it emptied little by little, because another caller may be about to
//! write into it. A map that claims the table's whole span is the only caller there. If it would
//! write a block at the table's entry, and the table and all tables below it are empty:
//!
//! 1. Unhook: the entry is cleared, and a barrier follows.
//! 2. Invalidate: the caller's closure invalidates the walks through the table and waits. No leaf
//!    entry needs this: nothing is mapped there, and earlier mappings were invalidated before their
//!    addresses were used again.
//! 3. Reuse: the tables are spare ones now, and a block is written in the empty entry.
//!
//! If step 2 fails, the same table is hooked in again, and this call writes pages into it.

use core::ops::Range;

use super::Mapper;
use crate::address::Iova;
use crate::format::{Descriptor, LAST};
use crate::gather::Run;
use crate::pool::Pool;
use crate::table::node::{Entry, Node};
use crate::tlbi::FlushError;

/// The largest number of tables unhooked for one invalidation.
const TOGETHER: usize = 16;

/// Whether and how a map replaces empty tables.
pub(in crate::table) trait Replace {
    /// Whether it may.
    fn may(&self) -> bool;

    /// Invalidates the walks through tables that were unhooked. Returns whether that succeeded.
    fn invalidate(&mut self, run: &Run) -> bool;
}

/// Existing tables are used.
pub(in crate::table) struct Never;

impl Replace for Never {
    #[inline]
    fn may(&self) -> bool {
        false
    }

    fn invalidate(&mut self, _: &Run) -> bool {
        false
    }
}

/// Invalidates a run's walks, and waits.
type Invalidating<'f> = &'f mut dyn FnMut(&Run) -> Result<(), FlushError>;

/// Empty tables are replaced, by this closure, until it fails.
pub(in crate::table) struct WithInvalidation<'f>(pub(in crate::table) Option<Invalidating<'f>>);

impl Replace for WithInvalidation<'_> {
    #[inline]
    fn may(&self) -> bool {
        self.0.is_some()
    }

    fn invalidate(&mut self, run: &Run) -> bool {
        let done = self.0.as_mut().is_some_and(|invalidate| invalidate(run).is_ok());
        if !done {
            // The hardware would probably refuse again.
            self.0 = None;
        }
        done
    }
}

impl<'t, P: Pool, R: Replace> Mapper<'_, 't, P, R> {
    /// Whether a block at `iova` is aligned and no larger than the rest of the part. `shift` is its
    /// size.
    #[inline]
    fn is_aligned(&self, shift: u32) -> bool {
        let (phys, _) = self.pieces.peek();
        (self.iova | phys) & ((1 << shift) - 1) == 0 && (self.part.end - self.iova) >> shift != 0
    }

    /// Whether the next bytes fit a block in `node`.
    fn fits(&self, node: Node<'t, P>) -> bool {
        let (level, shift) = (node.level(), node.shift());
        level >= self.top
            && node.geometry().leaf_at(level)
            && self.is_aligned(shift)
            && (self.pieces.peek().1 >> shift != 0
                || self.pieces.merged(1 << shift, self.limits, self.iova).is_some())
    }

    /// Whether it is worth looking for an empty table: the smallest block is aligned.
    #[inline]
    pub(super) fn may_replace(&self) -> bool {
        self.replace.may() && self.is_aligned(self.table.geometry.shift(LAST - 1))
    }

    /// The first table on the way to `iova` in which a block fits, or the lowest that exists.
    #[inline(never)]
    pub(super) fn way_to_block(&self) -> Node<'t, P> {
        let mut node = Node::root(self.table);
        while node.level() != LAST && !self.fits(node) {
            match node.enter(node.index(self.iova)) {
                Entry::Table(child) => node = child,
                Entry::Leaf(_) | Entry::Empty(_) => break,
            }
        }
        node
    }

    /// Empties the entry `index` of `node`, which leads to a table, if a block can be written there
    /// instead. Returns whether it did.
    #[inline(never)]
    pub(super) fn make_room(&mut self, node: Node<'t, P>, index: usize) -> bool {
        if !self.fits(node) {
            return false;
        }
        let shift = node.shift();
        let bytes = (self.pieces.peek().1).min(self.part.end - self.iova);
        let most = ((bytes >> shift) as usize).clamp(1, TOGETHER);
        let entries = index..node.entries().min(index + most);
        let mut old = [Descriptor::EMPTY; TOGETHER];
        let vacant = |index: &usize| match node.entry(*index) {
            Entry::Table(child) => child.is_vacant(),
            Entry::Leaf(_) | Entry::Empty(_) => false,
        };
        let count = entries.take_while(vacant).count();
        let entries = index..index + count;
        if count == 0 || !self.unhooked(node, entries.clone(), &mut old) {
            return false;
        }
        for table in &old[..count] {
            node.child(table.address()).into_spare(&mut self.spare);
        }
        true
    }

    /// Steps 1 and 2 for tables that are empty. Returns whether they succeeded; otherwise all is as
    /// it was.
    fn unhooked(
        &mut self,
        node: Node<'t, P>,
        entries: Range<usize>,
        old: &mut [Descriptor; TOGETHER],
    ) -> bool {
        // Step 1: unhook.
        for (index, old) in entries.clone().zip(&mut *old) {
            *old = node.load(index);
            node.store(index, Descriptor::EMPTY);
        }
        node.clean(entries.clone());
        node.pool().barrier();
        // Step 2: invalidate.
        let bytes = (entries.len() as u64) << node.shift();
        let end = Iova(self.iova + bytes);
        // A walk may be cached for any granule.
        let stride = node.geometry().page_shift();
        let run = Run { start: Iova(self.iova), end, stride, tables: true, level: None };
        if self.replace.invalidate(&run) {
            return true;
        }
        for (index, old) in entries.clone().zip(old) {
            node.store(index, *old);
        }
        node.clean(entries);
        false
    }
}
