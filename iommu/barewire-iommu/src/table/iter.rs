//! What is mapped, stretch by stretch.

use super::PageTable;
use super::node::{Entry, Node};
use crate::address::{Iova, PhysAddr};
use crate::format::Attributes;
use crate::pool::Pool;

/// IOVAs that lead to as many contiguous bytes with the same attributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// The first.
    pub iova: Iova,
    /// Where it leads.
    pub phys: PhysAddr,
    /// How many bytes.
    pub len: u64,
    /// What they allow.
    pub attributes: Attributes,
}

/// The mappings of a range, in order, as long as they can be: leaves that continue each other are
/// one mapping, whatever their sizes, and those that reach out of the range are cut there.
#[derive(Debug)]
pub struct Ranges<'t, P: Pool> {
    table: &'t PageTable<P>,
    at: u64,
    end: u64,
    /// Found already, but where it ends is not known yet.
    open: Option<Mapping>,
}

impl<'t, P: Pool> Ranges<'t, P> {
    pub(super) fn new(table: &'t PageTable<P>, at: u64, end: u64) -> Self {
        Self { table, at, end: end.min(table.geometry.input_end()), open: None }
    }

    /// The next leaf, cut to the range. Empty entries are passed over whole, of tables or of blocks.
    fn leaf(&mut self) -> Option<Mapping> {
        let geometry = &self.table.geometry;
        'root: while self.at < self.end {
            let mut node = Node::root(self.table);
            loop {
                let level = node.level();
                let span = geometry.span(level);
                let mut index = node.index(self.at);
                // Along this table as long as there is nothing, then down, or up again at its end.
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
                                attributes: Attributes::from_descriptor(found.attributes(), stage),
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
