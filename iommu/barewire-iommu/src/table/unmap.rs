//! Unmapping: tables are unhooked where the range covers them, leaves emptied elsewhere.

use super::node::{Entry, Node};
use crate::format::{Descriptor, LAST};
use crate::gather::{Gather, Kind};
use crate::pool::Pool;

/// One call's state.
pub(super) struct Remover<'a> {
    gather: &'a mut Gather,
    /// What was removed last and is not in the gather yet: where, unless empty, and what.
    start: u64,
    end: u64,
    kind: Kind,
    /// Bytes.
    removed: u64,
}

impl<'a> Remover<'a> {
    #[inline]
    pub(super) fn new(gather: &'a mut Gather) -> Self {
        Self { gather, start: 0, end: 0, kind: Kind::tables(0), removed: 0 }
    }

    /// Hands over what is to be invalidated; tells how many bytes were removed.
    #[inline]
    pub(super) fn finish(self) -> u64 {
        if self.end != 0 {
            self.gather.add(self.start, self.end, self.kind);
        }
        self.removed
    }

    /// Notes a run that comes after all before. Where less was not mapped than was removed before it,
    /// that counts as removed: it costs at most twice the commands, and saves runs.
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

    /// Unhooks the tables behind the entries of `node` from `index` on that lie between `base`, where
    /// that entry begins, and `end`, up to one that is no table; tells how many.
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

    /// Empties the leaves from `start` to `end` in `node`, a table of the last level.
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

    /// Removes what is mapped from `start` to `end`, which lie in `node`, not at its very end, and in
    /// no block.
    pub(super) fn remove<P: Pool>(&mut self, node: Node<'_, P>, start: u64, end: u64) {
        let level = node.level();
        if level == LAST {
            return self.pages(node, start, end);
        }
        let shift = node.shift();
        let span = 1 << shift;
        let (mut at, mut index) = (start, node.index(start));
        while at < end {
            if at & (span - 1) == 0 {
                let count = self.unhook(node, index, at, end);
                index += count;
                at += (count as u64) << shift;
                if at == end {
                    break;
                }
            }
            let next = end.min((at | (span - 1)) + 1);
            match node.entry(index) {
                Entry::Empty(_) => {}
                Entry::Table(child) => self.remove(child, at, next),
                Entry::Leaf(_) => {
                    debug_assert_eq!(next - at, span, "a block that is cut was looked for before");
                    node.store(index, Descriptor::EMPTY);
                    node.clean(index..index + 1);
                    self.removed += span;
                    self.note(at, next, Kind::leaves(shift, level));
                }
            }
            at = next;
            index += 1;
        }
    }
}
