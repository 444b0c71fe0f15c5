//! Tables in which nothing is mapped.

use super::node::{Entry, Node};
use super::{PageTable, Part};
use crate::address::Iova;
use crate::format::LAST;
use crate::gather::{Gather, Kind};
use crate::pool::Pool;

impl<P: Pool> Node<'_, P> {
    /// Whether no entry of this table or of the tables below it is a leaf. The caller's claim covers
    /// the table's whole span.
    pub(super) fn is_vacant(self) -> bool {
        if self.level() == LAST {
            return self.occupied(0..self.entries()).is_none();
        }
        (0..self.entries()).all(|index| match self.entry(index) {
            Entry::Empty(_) => true,
            Entry::Leaf(_) => false,
            Entry::Table(child) => child.is_vacant(),
        })
    }
}

impl<P: Pool> PageTable<P> {
    /// The first address, from that of `iova`'s entry on, of a root entry that leads to a table.
    pub(crate) fn next_table(&self, iova: Iova) -> Option<Iova> {
        let root = Node::root(self);
        let table = |index: &usize| matches!(root.entry(*index), Entry::Table(_));
        let found = (root.index(iova.0)..root.entries()).find(table)?;
        Some(Iova((found as u64) << root.shift()))
    }
}

impl<P: Pool> Part<'_, P> {
    /// Unhooks every table in which nothing is mapped, if its whole span is in this part. Returns their
    /// number.
    ///
    /// Unmapping leaves such tables where it did not cover their whole span. So a part that maps small
    /// pieces all over runs out of tables ([`MapError::OutOfMemory`](super::MapError::OutOfMemory)) although
    /// few are in use. Then reclaim, invalidate what `gather` has, [`release`](Self::release), and map again.
    /// Map nothing before the invalidation: walks through the old tables may be cached.
    /// A [`Domain`](crate::Domain) does this by itself.
    ///
    /// It reads every table in the part.
    pub fn reclaim(&mut self, gather: &mut Gather) -> usize {
        let before = gather.tables();
        self.reclaim_below(Node::root(self.table), 0, gather);
        self.table.pool.barrier();
        gather.tables() - before
    }

    /// [`reclaim`](Self::reclaim) for the tables below `node`, which translates from `base` on.
    fn reclaim_below(&self, node: Node<'_, P>, base: u64, gather: &mut Gather) {
        if node.level() == LAST {
            return;
        }
        let shift = node.shift();
        let end = base + ((node.entries() as u64) << shift);
        let (first, last) = (self.range.start.max(base), self.range.end.min(end) - 1);
        for index in node.index(first)..=node.index(last) {
            let Entry::Table(child) = node.entry(index) else { continue };
            let start = base + ((index as u64) << shift);
            let end = start + (1 << shift);
            if self.range.start <= start && end <= self.range.end && child.is_vacant() {
                node.unhook_tables(index..index + 1, gather);
                node.clean(index..index + 1);
                gather.add(start, end, Kind::tables(node.geometry().page_shift()));
            } else {
                self.reclaim_below(child, start, gather);
            }
        }
    }

    /// Unhooks the table whose span is exactly this part, with all tables below it, if there is one
    /// and nothing is mapped in it. Returns where to look next: no span of this size between the
    /// part and that address has a table of its own. (The tables above may have changed by then.)
    pub(crate) fn vacate(&mut self, gather: &mut Gather) -> Iova {
        let span = self.range.end - self.range.start;
        let mut node = Node::root(self.table);
        let index = loop {
            let index = node.index(self.range.start);
            if 1 << node.shift() == span {
                break index;
            }
            match node.entry(index) {
                Entry::Table(child) => node = child,
                Entry::Empty(_) | Entry::Leaf(_) => return self.after(node, index),
            }
        };
        if let Entry::Table(child) = node.entry(index)
            && child.is_vacant()
        {
            node.unhook_tables(index..index + 1, gather);
            node.clean(index..index + 1);
            self.table.pool.barrier();
            // The leaves were invalidated when they were unmapped, but a walk may be cached for any
            // granule ([`strategy`](crate::strategy)).
            let kind = Kind::tables(node.geometry().page_shift());
            gather.add(self.range.start, self.range.end, kind);
        }
        self.after(node, index)
    }

    /// The first address of the next entry of `node` that leads to a table, or its end. The table
    /// stays while this part is claimed, since the part lies in it.
    fn after(&self, node: Node<'_, P>, index: usize) -> Iova {
        let table = |index: &usize| matches!(node.entry(*index), Entry::Table(_));
        let next = (index + 1..node.entries()).find(table).unwrap_or(node.entries());
        let base = self.range.start >> node.shift() << node.shift();
        Iova(base + (((next - index) as u64) << node.shift()))
    }
}
