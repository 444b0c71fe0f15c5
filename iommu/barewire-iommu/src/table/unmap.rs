//! Unmapping: unhooks tables that the range covers, and clears leaves elsewhere.
//!
//! A table is unhooked only if the range covers its whole span, never because it became empty:
//! another caller may be about to write into it. So a table that small unmaps emptied stays. A later
//! map whose part covers its span replaces it by a block
//! ([`Part::map_sg_replacing`](super::Part::map_sg_replacing)), and
//! [`Domain::reclaim`](crate::Domain::reclaim) frees it.

use super::node::{Entry, Node};
use crate::format::LAST;
use crate::gather::{Gather, Kind};
use crate::pool::Pool;

/// The state of one call.
pub(super) struct Remover<'a> {
    gather: &'a mut Gather,
    /// The last run, which is not in the gather yet. Its start and end are equal if there is none.
    start: u64,
    end: u64,
    kind: Kind,
    /// The number of bytes removed.
    removed: u64,
}

impl<'a> Remover<'a> {
    #[inline]
    pub(super) fn new(gather: &'a mut Gather) -> Self {
        Self { gather, start: 0, end: 0, kind: Kind::tables(0), removed: 0 }
    }

    /// Puts the last run into the gather. Returns the number of bytes removed.
    #[inline]
    pub(super) fn finish(self) -> u64 {
        if self.end != 0 {
            self.gather.add(self.start, self.end, self.kind);
        }
        self.removed
    }

    /// Records a run that comes after all earlier ones. A gap no longer than the run before it is
    /// merged into that run. This at most doubles the commands, and saves runs.
    #[inline]
    fn note(&mut self, start: u64, end: u64, kind: Kind) {
        let goes_on = kind == self.kind && start - self.end <= self.end - self.start;
        if !goes_on {
            if self.end != 0 {
                self.gather.add(self.start, self.end, self.kind);
            }
            self.start = start;
            self.kind = kind;
        }
        self.end = end;
    }

    /// Unhooks the tables behind entries of `node`, from `index` up to the first entry that is no
    /// table. The entries lie between `base`, where entry `index` begins, and `end`. Returns their
    /// number.
    #[inline]
    pub(super) fn unhook<P: Pool>(
        &mut self,
        node: Node<'_, P>,
        index: usize,
        base: u64,
        end: u64,
    ) -> usize {
        let shift = node.shift();
        let most = ((end - base) >> shift) as usize;
        let count = node.unhook_tables(index..index + most, self.gather) - index;
        if count != 0 {
            node.clean(index..index + count);
            let bytes = (count as u64) << shift;
            self.removed += bytes;
            self.note(base, base + bytes, Kind::tables(node.geometry().page_shift()));
        }
        count
    }

    /// Clears the leaves from `start` to `end` in `node`, a last-level table.
    #[inline(always)]
    pub(super) fn pages<P: Pool>(&mut self, node: Node<'_, P>, start: u64, end: u64) {
        let shift = node.shift();
        let first = node.index(start);
        let last = first + ((end - start) >> shift) as usize;
        let valid = node.clear(first..last);
        if valid != 0 {
            node.clean(first..last);
            self.removed += (valid as u64) << shift;
            self.note(start, end, Kind::leaves(shift, LAST));
        }
    }

    /// Removes the mappings from `start` to `end`. They lie in `node`, but not at its very end, and
    /// not inside a block.
    pub(super) fn remove<P: Pool>(&mut self, node: Node<'_, P>, start: u64, end: u64) {
        let level = node.level();
        if level == LAST {
            return self.pages(node, start, end);
        }
        let shift = node.shift();
        let span = 1 << shift;
        let (mut at, mut index) = (start, node.index(start));
        while at < end {
            let whole = at & (span - 1) == 0 && end - at >= span;
            let next = end.min((at | (span - 1)) + 1);
            let mut count = 1;
            match node.entry(index) {
                Entry::Empty(_) => {}
                Entry::Table(_) if whole => count = self.unhook(node, index, at, end),
                Entry::Table(child) => self.remove(child, at, next),
                Entry::Leaf(_) => {
                    debug_assert!(whole, "a block that is cut was looked for before");
                    count = self.blocks(node, index, at, end);
                }
            }
            // Only the first and the last entry may be covered in part.
            at = if count == 1 { next } else { at + ((count as u64) << shift) };
            index += count;
        }
    }

    /// Clears the blocks behind entries of `node`, from `index` up to the first entry that is none.
    /// The entries lie between `base`, where entry `index` begins, and `end`. Returns their number.
    fn blocks<P: Pool>(&mut self, node: Node<'_, P>, index: usize, base: u64, end: u64) -> usize {
        let shift = node.shift();
        let most = ((end - base) >> shift) as usize;
        let count = node.clear_blocks(index..index + most) - index;
        node.clean(index..index + count);
        let bytes = (count as u64) << shift;
        self.removed += bytes;
        self.note(base, base + bytes, Kind::leaves(shift, node.level()));
        count
    }
}
