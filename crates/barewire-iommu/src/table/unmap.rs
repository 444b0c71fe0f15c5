//! Unmapping: tables are unhooked where the range covers them, leaves emptied elsewhere.

use super::node::{Entry, Node};
use crate::address::Iova;
use crate::format::{Geometry, LAST};
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

    #[inline]
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

    /// Notes what one entry of a table at `level` above the last had.
    #[inline]
    fn note_entry(&mut self, geometry: &Geometry, level: u32, base: u64, table: bool) {
        let shift = geometry.shift(level);
        self.removed += 1 << shift;
        self.note(Run {
            start: Iova(base),
            end: Iova(base + (1 << shift)),
            stride: if table { geometry.page_shift() } else { shift },
            tables: table,
            level: if table { None } else { Some(level as u8) },
        });
    }

    /// Unhooks the table behind an entry that begins at `base`.
    #[inline]
    pub(super) fn unhook<P: Pool>(
        &mut self,
        node: Node<'_, P>,
        index: usize,
        child: Node<'_, P>,
        base: u64,
    ) {
        node.unhook(index, child, self.gather);
        node.clean(index..index + 1);
        self.note_entry(node.geometry(), node.level(), base, true);
    }

    /// Removes what is mapped from `start` to `end`, which lie in `node`, not at its very end, and in
    /// no block.
    pub(super) fn remove<P: Pool>(&mut self, node: Node<'_, P>, start: u64, end: u64) {
        let geometry = node.geometry();
        let level = node.level();
        let shift = geometry.shift(level);
        let first = geometry.index(start, level);
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
            let next = end.min((at | (span - 1)) + 1);
            match node.entry(index) {
                Entry::Empty(_) => {}
                Entry::Table(child) if next - at == span => self.unhook(node, index, child, at),
                Entry::Table(child) => self.remove(child, at, next),
                Entry::Leaf(_) => {
                    debug_assert_eq!(next - at, span, "a block that is cut was looked for before");
                    node.store(index, crate::format::Descriptor::EMPTY);
                    node.clean(index..index + 1);
                    self.note_entry(geometry, level, at, false);
                }
            }
            at = next;
            index += 1;
        }
    }
}
