//! Unmapping: tables are unhooked where the range covers them, leaves emptied elsewhere.

use super::node::{Entry, Node};
use crate::address::Iova;
use crate::format::{Descriptor, LAST};
use crate::gather::{Gather, Run};
use crate::pool::Pool;

/// One call's state.
pub(super) struct Remover<'a> {
    gather: &'a mut Gather,
    /// What was removed last and is not in the gather yet.
    run: Option<Run>,
    /// Bytes.
    removed: u64,
}

impl<'a> Remover<'a> {
    #[inline]
    pub(super) fn new(gather: &'a mut Gather) -> Self {
        Self { gather, run: None, removed: 0 }
    }

    /// Hands over what is to be invalidated; tells how many bytes were removed.
    #[inline]
    pub(super) fn finish(self) -> u64 {
        if let Some(run) = self.run {
            self.gather.record(run);
        }
        self.removed
    }

    fn note(&mut self, run: Run) {
        if let Some(last) = &mut self.run
            && last.grow(&run)
        {
            return;
        }
        if let Some(last) = self.run.replace(run) {
            self.gather.record(last);
        }
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
            self.note(Run {
                start: Iova(base),
                end: Iova(base + bytes),
                stride: node.geometry().page_shift(),
                tables: true,
                level: None,
            });
        }
        count
    }

    /// Removes what is mapped from `start` to `end`, which lie in `node`, not at its very end, and in
    /// no block.
    pub(super) fn remove<P: Pool>(&mut self, node: Node<'_, P>, start: u64, end: u64) {
        let level = node.level();
        let shift = node.shift();
        let first = node.index(start);
        if level == LAST {
            let last = first + ((end - start) >> shift) as usize;
            let valid = node.clear(first..last);
            if valid != 0 {
                node.clean(first..last);
                self.removed += (valid as u64) << shift;
                let (start, end) = (Iova(start), Iova(end));
                let level = Some(LAST as u8);
                self.note(Run { start, end, stride: shift, tables: false, level });
            }
            return;
        }
        let span = 1 << shift;
        let (mut at, mut index) = (start, first);
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
                    let (start, end) = (Iova(at), Iova(next));
                    let level = Some(level as u8);
                    self.note(Run { start, end, stride: shift, tables: false, level });
                }
            }
            at = next;
            index += 1;
        }
    }
}
