//! Looks up addresses like a walker.

use super::PageTable;
use super::node::{Entry, Node};
use crate::address::{Iova, PhysAddr};
use crate::format::{Attributes, Descriptor};
use crate::pool::Pool;

/// The translation of an IOVA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Translation {
    /// The physical address of the byte.
    pub phys: PhysAddr,
    /// The level of the leaf: 3 for a page.
    pub level: u32,
    /// log2 of the leaf's size in bytes.
    pub shift: u32,
    /// The attributes of the leaf.
    pub attributes: Attributes,
    /// The descriptor of the leaf.
    pub descriptor: Descriptor,
}

/// The end of a walk to `iova`: the entry's level, its first IOVA and its descriptor.
pub(super) fn walk<P: Pool>(table: &PageTable<P>, iova: u64) -> (u32, u64, Descriptor) {
    let geometry = &table.geometry;
    let mut node = Node::root(table);
    loop {
        let level = node.level();
        let found = match node.entry(node.index(iova)) {
            Entry::Table(child) => {
                node = child;
                continue;
            }
            Entry::Leaf(found) => found,
            Entry::Empty(found) => Descriptor(found),
        };
        return (level, iova & !(geometry.span(level) - 1), found);
    }
}

pub(super) fn translate<P: Pool>(table: &PageTable<P>, iova: Iova) -> Option<Translation> {
    let geometry = &table.geometry;
    if iova.0 >= geometry.input_end() {
        return None;
    }
    let (level, base, descriptor) = walk(table, iova.0);
    descriptor.is_leaf(level).then(|| Translation {
        phys: PhysAddr(descriptor.address().0 + (iova.0 - base)),
        level,
        shift: geometry.shift(level),
        attributes: Attributes::from_descriptor(descriptor.0, geometry.config().stage),
        descriptor,
    })
}

/// The first hole from `start` to `end`, which lie in `node`, and the level of the empty entry.
pub(super) fn hole<P: Pool>(node: Node<'_, P>, start: u64, end: u64) -> Option<(u64, u32)> {
    let geometry = node.geometry();
    let level = node.level();
    let span = geometry.span(level);
    let (mut at, mut index) = (start, node.index(start));
    while at < end {
        let next = end.min((at | (span - 1)) + 1);
        match node.entry(index) {
            Entry::Empty(_) => return Some((at, level)),
            Entry::Leaf(_) => {}
            Entry::Table(child) => {
                let found = hole(child, at, next);
                if found.is_some() {
                    return found;
                }
            }
        }
        at = next;
        index += 1;
    }
    None
}
