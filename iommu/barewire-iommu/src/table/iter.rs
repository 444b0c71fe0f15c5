//! Iterates over the mappings.

use super::PageTable;
use super::node::{Entry, Node};
use crate::address::{Iova, PhysAddr};
use crate::format::Attributes;
use crate::pool::Pool;

/// IOVAs mapped to contiguous physical addresses with the same attributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// The first IOVA.
    pub iova: Iova,
    /// The physical address of the first byte.
    pub phys: PhysAddr,
    /// The length in bytes.
    pub len: u64,
    /// The attributes.
    pub attributes: Attributes,
}

/// The mappings in a range, in order. Adjacent leaves whose physical addresses continue are joined,
/// even if their sizes differ. A leaf that extends beyond the range is cut.
#[derive(Debug)]
pub struct Ranges<'t, P: Pool> {
    table: &'t PageTable<P>,
    at: u64,
    end: u64,
    /// A mapping whose end is not known yet.
    open: Option<Mapping>,
}

impl<'t, P: Pool> Ranges<'t, P> {
    pub(super) fn new(table: &'t PageTable<P>, at: u64, end: u64) -> Self {
        Self { table, at, end: end.min(table.geometry.input_end()), open: None }
    }

    /// The next leaf, cut to the range. Empty entries of every level are skipped.
    fn leaf(&mut self) -> Option<Mapping> {
        let geometry = &self.table.geometry;
        'root: while self.at < self.end {
            let mut node = Node::root(self.table);
            loop {
                let level = node.level();
                let span = geometry.span(level);
                let mut index = node.index(self.at);
                // Move along this table while entries are empty, then down, or up at its end.
                loop {
                    let base = self.at & !(span - 1);
                    match node.entry(index) {
                        Entry::Empty(_) => self.at = base + span,
                        Entry::Table(child) => {
                            node = child;
                            break;
                        }
                        Entry::Leaf(found) => {
                            let (iova, next) = (self.at, self.end.min(base + span));
                            self.at = next;
                            let stage = geometry.config().stage;
                            return Some(Mapping {
                                iova: Iova(iova),
                                phys: PhysAddr(found.address().0 + (iova - base)),
                                len: next - iova,
                                attributes: Attributes::from_descriptor(found.0, stage),
                            });
                        }
                    }
                    index += 1;
                    if index == node.entries() || self.at >= self.end {
                        continue 'root;
                    }
                }
            }
        }
        None
    }
}

impl<P: Pool> Iterator for Ranges<'_, P> {
    type Item = Mapping;

    fn next(&mut self) -> Option<Mapping> {
        loop {
            let Some(found) = self.leaf() else { return self.open.take() };
            match &mut self.open {
                None => self.open = Some(found),
                Some(open)
                    if open.iova.0 + open.len == found.iova.0
                        && open.phys.0 + open.len == found.phys.0
                        && open.attributes == found.attributes =>
                {
                    open.len += found.len;
                }
                Some(_) => return self.open.replace(found),
            }
        }
    }
}
