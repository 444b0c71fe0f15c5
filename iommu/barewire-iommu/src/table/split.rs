//! Unmaps part of a block: the rest of the block becomes a table.
//!
//! A range may cut a block at each end, perhaps the same block. The tables for the rest are
//! allocated and filled first, since that can fail. Then they replace the blocks, and what lies
//! between the ends is removed as usual. So a walker sees the block or its rest, and with
//! break-before-make a fault in between.
//!
//! A group of pages with the Contiguous hint is cut like a block. It needs no table: its pages stay, without
//! the hint ([`group`]).

use core::ops::Range;

use super::PageTable;
use super::error::UnmapError;
use super::group;
use super::node::{Entry, Fresh, Node};
use super::unmap::Remover;
use crate::address::{Iova, PhysAddr};
use crate::format::Descriptor;
use crate::gather::{Gather, Run};
use crate::pool::{Chain, Pool};
use crate::tlbi::FlushError;

/// A block, or a group of pages, that is cut by an end of the range.
pub(super) struct CutBlock<'t, P: Pool> {
    node: Node<'t, P>,
    index: usize,
    base: u64,
    /// The block, or the group's first page.
    block: Descriptor,
    /// 1, or the pages of a group.
    entries: usize,
}

impl<'t, P: Pool> CutBlock<'t, P> {
    /// The block at or below `node` that has bytes on both sides of `at`, if there is one.
    pub(super) fn at(mut node: Node<'t, P>, at: u64) -> Option<Self> {
        loop {
            let span = 1 << node.shift();
            if let Some((index, base)) = group::cut_at(node, at) {
                return Some(Self {
                    node,
                    index,
                    base,
                    block: node.load(index),
                    entries: group::PAGES,
                });
            }
            if at & (span - 1) == 0 {
                return None;
            }
            let index = node.index(at);
            match node.entry(index) {
                Entry::Empty(_) => return None,
                Entry::Leaf(block) => {
                    return Some(Self { node, index, base: at & !(span - 1), block, entries: 1 });
                }
                Entry::Table(child) => node = child,
            }
        }
    }

    pub(super) fn refused(&self) -> UnmapError {
        let (iova, level) = (Iova(self.base), self.node.level());
        UnmapError::PartOfBlock { iova, level, descriptor: self.block.0 }
    }

    /// Whether the whole block is in `part`.
    pub(super) fn within(&self, part: &Range<u64>) -> bool {
        part.start <= self.base && part.end - self.base >= self.span()
    }

    /// Break: no entry is valid.
    fn clear(&self) {
        self.put(|_| Descriptor::EMPTY.0);
    }

    /// Undoes a break.
    fn restore(&self) {
        self.put(|n| self.block.0 + ((n as u64) << self.node.shift()));
    }

    fn put(&self, entry: impl FnMut(usize) -> u64) {
        self.node.put(self.index, self.entries, entry);
        self.node.clean(self.index..self.index + self.entries);
    }

    fn span(&self) -> u64 {
        (self.entries as u64) << self.node.shift()
    }

    fn is_group(&self) -> bool {
        self.entries != 1
    }

    /// The run to invalidate: the whole block, although part of it stays mapped.
    fn run(&self) -> Run {
        Run {
            start: Iova(self.base),
            end: Iova(self.base + self.span()),
            stride: self.node.shift(),
            tables: false,
            level: Some(self.node.level() as u8),
        }
    }
}

/// How a block is replaced.
pub(super) enum Exchange<'f> {
    /// By a single store, which the hardware supports.
    AtOnce,
    /// Clears the entry, invalidates by this closure, then stores the new entry.
    BreakBeforeMake(&'f mut dyn FnMut(&Run) -> Result<(), FlushError>),
}

/// Removes the mappings in `range`, which lies in `node`. `cuts` are the blocks that begin before
/// it or end after it.
pub(super) fn remove<'t, P: Pool>(
    table: &'t PageTable<P>,
    node: Node<'t, P>,
    range: Range<u64>,
    cuts: [Option<CutBlock<'t, P>>; 2],
    exchange: &mut Exchange<'_>,
    gather: &mut Gather,
) -> Result<u64, UnmapError> {
    let [begin, mut end] = cuts;
    if let (Some(a), Some(b)) = (&begin, &end)
        && a.base == b.base
    {
        end = None;
    }
    let mut spare = Chain::new();
    let result = prepare_and_replace(table, [&begin, &end], &range, exchange, &mut spare);
    Fresh::free(table, spare);
    result?;
    // The rest of the range besides the blocks, and the bytes of it that the blocks had.
    let (mut start, mut stop) = (range.start, range.end);
    if let Some(cut) = &begin {
        start = stop.min(cut.base + cut.span());
        gather.record(cut.run());
    }
    if let Some(cut) = &end {
        stop = cut.base;
    }
    let mut removed = (start - range.start) + (range.end - stop);
    if start < stop {
        let mut remover = Remover::new(gather);
        remover.remove(node, start, stop);
        removed += remover.finish();
    }
    if let Some(cut) = &end {
        gather.record(cut.run());
    }
    Ok(removed)
}

fn prepare_and_replace<P: Pool>(
    table: &PageTable<P>,
    cuts: [&Option<CutBlock<'_, P>>; 2],
    range: &Range<u64>,
    exchange: &mut Exchange<'_>,
    spare: &mut Chain,
) -> Result<(), UnmapError> {
    let present = || cuts.into_iter().flatten();
    for cut in present().filter(|cut| !cut.is_group()) {
        let count = needed(table, cut.node.level() + 1, cut.base, range);
        if !Fresh::reserve(table, spare, count) {
            return Err(UnmapError::OutOfMemory(Iova(cut.base)));
        }
    }
    if let Exchange::BreakBeforeMake(invalidate) = exchange {
        for cut in present() {
            cut.clear();
        }
        table.pool.barrier();
        let flushed = present().try_for_each(|cut| {
            let iova = Iova(cut.base);
            invalidate(&cut.run()).map_err(|error| UnmapError::Flush { iova, error })
        });
        if flushed.is_err() {
            // Nothing else was ever mapped there, so all entries in the TLB are still right.
            for cut in present() {
                cut.restore();
            }
            table.pool.barrier();
            return flushed;
        }
    }
    let is_at_once = matches!(exchange, Exchange::AtOnce);
    for cut in present() {
        if cut.is_group() {
            group::dissolve(cut.node, cut.index, cut.base, cut.block, range, is_at_once);
            continue;
        }
        let level = cut.node.level() + 1;
        let left = pieces(table, level, cut.base, cut.block, range, spare);
        let published = cut.node.publish(cut.index, cut.block.0, left, true);
        debug_assert!(published.is_ok(), "an owned entry is stored, not exchanged");
    }
    Ok(())
}

/// The entries of a table at `level`, from `base` on, that an end of `range` cuts, each with its
/// first IOVA.
fn cut_again<P: Pool>(
    table: &PageTable<P>,
    level: u32,
    base: u64,
    range: &Range<u64>,
) -> impl Iterator<Item = (usize, u64)> + use<P> {
    let shift = table.geometry.shift(level);
    let size = 1 << (shift + table.geometry.index_bits());
    let cut = move |at: u64| {
        let inside = base < at && at - base < size && at & ((1 << shift) - 1) != 0;
        inside.then(|| (((at - base) >> shift) as usize, at >> shift << shift))
    };
    let first = cut(range.start);
    let second = cut(range.end).filter(|second| first.is_none_or(|first| first.0 != second.0));
    [first, second].into_iter().flatten()
}

/// The number of tables `pieces` needs.
fn needed<P: Pool>(table: &PageTable<P>, level: u32, base: u64, range: &Range<u64>) -> usize {
    let below = |(_, start)| needed(table, level + 1, start, range);
    1 + cut_again(table, level, base, range).map(below).sum::<usize>()
}

/// Builds a table at `level` that maps the same as `block` from `base` on, but without `range`.
fn pieces<P: Pool>(
    table: &PageTable<P>,
    level: u32,
    base: u64,
    block: Descriptor,
    range: &Range<u64>,
    spare: &mut Chain,
) -> Fresh {
    let geometry = &table.geometry;
    let shift = geometry.shift(level);
    let leaf_at = |start: u64| {
        let phys = PhysAddr(block.address().0 + (start & (geometry.span(level - 1) - 1)));
        Descriptor::leaf(phys, level, block.attributes())
    };
    let mut fresh = Fresh::take(table, spare, || 1).expect("as many as needed were reserved");
    fresh.fill(table, |entries| {
        for (start, entry) in (base..).step_by(1 << shift).zip(entries) {
            let kept = start + (1 << shift) <= range.start || start >= range.end;
            *entry = if kept { leaf_at(start).0 } else { 0 };
        }
    });
    for (index, start) in cut_again(table, level, base, range) {
        let child = pieces(table, level + 1, start, leaf_at(start), range, spare);
        fresh.fill(table, |entries| entries[index] = child.into_descriptor::<P>().0);
    }
    fresh.clean(table, 0..1 << geometry.index_bits());
    fresh
}
