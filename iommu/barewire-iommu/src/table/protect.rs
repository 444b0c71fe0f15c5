//! Changes the attributes of what is mapped, in place.
//!
//! # How it works
//! - *Permissions* (AP\[2\] and AP\[1\]; S2AP) may change under a walker: each leaf is stored once. A TLB may
//!   hold the old permissions until the gather is invalidated.
//! - *Memory type and shareability* may not: two walkers would access the same memory in two ways (Arm ARM
//!   DDI 0487, D8.16.1, break-before-make). So, for the whole range:
//!   1. Break: each leaf that differs becomes invalid. Its other bits stay, so nothing is to be remembered.
//!   2. Invalidate: the caller's closure invalidates each run and waits.
//!   3. Make: the leaves are stored with the new attributes.
//!
//! Between 1 and 3 accesses to the leaves that change fault. If step 2 fails, the leaves become valid as
//! they were: nothing else was mapped there, so what a TLB holds is still right. So they do if it panics.

use core::ops::Range;

use super::error::UnmapError;
use super::node::{Entry, Node};
use super::split::CutBlock;
use super::{Part, walk};
use crate::address::Iova;
use crate::format::{Attributes, Descriptor, LAST};
use crate::gather::{Gather, Run};
use crate::pool::Pool;
use crate::tlbi::FlushError;

impl<'t, P: Pool> Part<'t, P> {
    /// Gives all that is mapped in the range these attributes. Returns the number of bytes whose
    /// attributes changed.
    ///
    /// If only permissions differ, devices keep access throughout, by the old permissions until
    /// `gather` has been invalidated. Otherwise `invalidate` is called, which invalidates a run and
    /// waits; accesses to what changes fault meanwhile, so the device should be quiet. Nothing is left
    /// to invalidate then.
    ///
    /// # Errors
    /// See [`UnmapError`]: a hole, a block that the range cuts, attributes of the other stage, or a
    /// failed `invalidate`. Nothing has changed then.
    pub fn protect(
        &mut self,
        iova: Iova,
        size: u64,
        attributes: Attributes,
        gather: &mut Gather,
        mut invalidate: impl FnMut(&Run) -> Result<(), FlushError>,
    ) -> Result<u64, UnmapError> {
        let range = self.check(iova, size)?;
        if attributes.stage() != self.table.geometry.config().stage {
            return Err(UnmapError::Stage);
        }
        let root = Node::root(self.table);
        if let Some((iova, level)) = walk::hole(root, range.start, range.end) {
            return Err(UnmapError::Hole { iova: Iova(iova), level });
        }
        let cut = [range.start, range.end].into_iter().find_map(|at| CutBlock::at(root, at));
        if let Some(cut) = cut {
            return Err(cut.refused());
        }
        let change = Change { new: attributes };
        let mut changed = 0;
        let mut breaks = false;
        each(root, &range, &mut |leaves: Leaves<'t, P>| {
            breaks |= leaves.indices().any(|index| change.breaks(leaves.node.load(index)));
            Ok(())
        })?;
        if !breaks {
            each(root, &range, &mut |leaves: Leaves<'t, P>| {
                let count = leaves.store(|leaf| change.differs(leaf).then(|| change.made(leaf)));
                changed += (count as u64) << leaves.node.shift();
                // Also what has these attributes already: an earlier call's invalidation may have failed.
                gather.record(leaves.run());
                Ok(())
            })?;
            self.table.pool.barrier();
            return Ok(changed);
        }
        // Step 1: break.
        each(root, &range, &mut |leaves: Leaves<'t, P>| {
            let count = leaves.store(|leaf| change.differs(leaf).then(|| leaf.broken()));
            changed += (count as u64) << leaves.node.shift();
            Ok(())
        })?;
        self.table.pool.barrier();
        // Step 3, also if step 2 fails or panics.
        let mut broken = Broken { root, range: &range, made: None };
        // Step 2: invalidate.
        each(root, &range, &mut |leaves: Leaves<'t, P>| {
            let run = leaves.run();
            invalidate(&run).map_err(|error| UnmapError::Flush { iova: run.start, error })
        })?;
        broken.made = Some(change);
        drop(broken);
        Ok(changed)
    }
}

/// Leaves that were broken, until they are dropped: then they are made anew, or become what they were.
struct Broken<'a, 't, P: Pool> {
    root: Node<'t, P>,
    range: &'a Range<u64>,
    made: Option<Change>,
}

impl<P: Pool> Drop for Broken<'_, '_, P> {
    fn drop(&mut self) {
        let mended = |leaf: Descriptor| match self.made {
            Some(change) => change.made(leaf.mended()),
            None => leaf.mended(),
        };
        let all = each(self.root, self.range, &mut |leaves: Leaves<'_, P>| {
            leaves.store(|leaf| (!leaf.is_valid()).then(|| mended(leaf)));
            Ok(())
        });
        debug_assert!(all.is_ok(), "no visit refuses");
        self.root.pool().barrier();
    }
}

/// What becomes of a leaf.
#[derive(Clone, Copy)]
struct Change {
    new: Attributes,
}

impl Change {
    fn made(self, leaf: Descriptor) -> Descriptor {
        Descriptor(leaf.0 & !Descriptor::ATTRIBUTES | self.new.bits())
    }

    fn differs(self, leaf: Descriptor) -> bool {
        self.made(leaf) != leaf
    }

    /// Whether it may not be made by one store.
    fn breaks(self, leaf: Descriptor) -> bool {
        let changes = self.made(leaf).0 ^ leaf.0;
        // The entries of a group must agree.
        changes & !Attributes::PERMISSIONS != 0 || changes != 0 && leaf.is_contiguous()
    }
}

/// Leaves of one table that follow one another, valid or broken.
struct Leaves<'t, P: Pool> {
    node: Node<'t, P>,
    first: usize,
    count: usize,
    /// The first IOVA.
    base: u64,
}

impl<P: Pool> Leaves<'_, P> {
    fn indices(&self) -> Range<usize> {
        self.first..self.first + self.count
    }

    fn end(&self) -> u64 {
        self.base + ((self.count as u64) << self.node.shift())
    }

    fn run(&self) -> Run {
        let is_split_in_place = self.node.geometry().config().bbml2;
        Run {
            start: Iova(self.base),
            end: Iova(self.end()),
            stride: self.node.shift(),
            tables: false,
            // With BBM level 2 a TLB may still hold the block that an earlier call split, at its own level.
            level: (!is_split_in_place).then_some(self.node.level() as u8),
        }
    }

    /// Stores what `new` says, and cleans. Returns the number of entries stored.
    fn store(&self, mut new: impl FnMut(Descriptor) -> Option<Descriptor>) -> usize {
        let mut count = 0;
        for index in self.indices() {
            if let Some(new) = new(self.node.load(index)) {
                self.node.store(index, new);
                count += 1;
            }
        }
        if count != 0 {
            self.node.clean(self.indices());
        }
        count
    }
}

/// Calls `visit` for the leaves in `range`, which has no holes and cuts none.
fn each<'t, P: Pool>(
    node: Node<'t, P>,
    range: &Range<u64>,
    visit: &mut dyn FnMut(Leaves<'t, P>) -> Result<(), UnmapError>,
) -> Result<(), UnmapError> {
    let shift = node.shift();
    let last = node.index(range.end - 1);
    let (mut index, mut at) = (node.index(range.start), range.start);
    while index <= last {
        let next = (at >> shift << shift) + (1 << shift);
        if let Entry::Table(child) = node.entry(index) {
            each(child, &(at..next.min(range.end)), visit)?;
            (index, at) = (index + 1, next);
            continue;
        }
        let is_leaf =
            |n: &usize| node.level() == LAST || !matches!(node.entry(*n), Entry::Table(_));
        let count = (index..=last).take_while(is_leaf).count();
        visit(Leaves { node, first: index, count, base: at })?;
        (index, at) = (index + count, at + ((count as u64) << shift));
    }
    Ok(())
}
