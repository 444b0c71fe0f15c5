//! Mapping: one walk per table, tables filled before they are published.

use core::ops::Range;

use super::PageTable;
use super::error::MapError;
use super::node::{Entry, Fresh, Node};
use super::sg::{Limits, Pieces};
use super::unmap::Remover;
use crate::address::{Iova, Segment};
use crate::format::{Attributes, Descriptor, LAST};
use crate::gather::Gather;
use crate::pool::{Chain, Pool};

/// At most so many tables are taken from the pool ahead.
const AHEAD: usize = 64;

/// Segments that are looked at together, all of a page or each on its own, in a list that is known to
/// have others.
const MIXED: usize = 32;

/// One call's state.
///
/// Everything from the call's begin to `iova` is mapped, and nothing after.
pub(super) struct Mapper<'a, 't, P: Pool> {
    table: &'t PageTable<P>,
    part: &'a Range<u64>,
    gather: &'a mut Gather,
    /// Tables taken ahead.
    spare: Chain,
    limits: Limits,
    attributes: u64,
    /// The highest level (lowest number) of leaves.
    top: u32,
    /// Not all segments are of a page.
    mixed: bool,
    start: u64,
    iova: u64,
    pieces: Pieces<'a>,
}

impl<'a, 't, P: Pool> Mapper<'a, 't, P> {
    pub(super) fn new(
        table: &'t PageTable<P>,
        part: &'a Range<u64>,
        iova: Iova,
        segments: &'a [Segment],
        attributes: Attributes,
        gather: &'a mut Gather,
    ) -> Result<Self, MapError> {
        let geometry = &table.geometry;
        let limits = Limits::new(geometry, part.end);
        let start = iova.0;
        if attributes.stage() != geometry.config().stage {
            return Err(MapError::Stage);
        }
        if start & limits.offset_mask != 0 {
            let to = geometry.page_bytes();
            return Err(MapError::Unaligned { iova, value: start, to });
        }
        if start < part.start || start >= part.end {
            let size = segments.iter().fold(0_u64, |sum, s| sum.saturating_add(s.len));
            return Err(MapError::IovaRange { iova, size, end: Iova(part.end) });
        }
        if segments.is_empty() {
            return Err(MapError::Empty(iova));
        }
        // Before any table is made for it.
        limits.check(start, &segments[0])?;
        let pieces = Pieces::new(segments);
        Ok(Self {
            table,
            part,
            gather,
            spare: Chain::new(),
            limits,
            attributes: attributes.bits(),
            top: 0,
            mixed: false,
            start,
            iova: start,
            pieces,
        })
    }

    /// No leaves above `level`.
    pub(super) fn only_from(mut self, level: u32) -> Self {
        self.top = level;
        self
    }

    /// Maps it all, or nothing; tells how many bytes.
    pub(super) fn run(mut self) -> Result<u64, MapError> {
        let mut result = self.fill(descend(self.table, self.iova));
        while result.is_ok() && !self.pieces.is_empty() {
            result = if self.iova == self.limits.iova_end {
                // There is no room for it, so it is an error.
                self.pieces.next(&self.limits, self.iova).map(drop)
            } else {
                self.fill(descend(self.table, self.iova))
            };
        }
        Fresh::free(self.table, self.spare.take());
        if result.is_err() && self.iova > self.start {
            let mut remover = Remover::new(self.gather);
            remover.remove(Node::root(self.table), self.start, self.iova);
            remover.finish();
        }
        self.table.pool.barrier();
        result.map(|()| self.iova - self.start)
    }

    /// Maps what is left as far as it lies in `node`.
    fn fill(&mut self, mut node: Node<'t, P>) -> Result<(), MapError> {
        let geometry = node.geometry();
        let level = node.level();
        if level == LAST {
            return self.pages(&mut node);
        }
        let mut index = node.index(self.iova);
        loop {
            match node.entry(index) {
                Entry::Table(child) => self.fill(child)?,
                Entry::Leaf(found) => return Err(occupied(self.iova, level, found)),
                Entry::Empty(current) => {
                    if let Some((phys, rest)) = self.block(level) {
                        node.store(
                            index,
                            Descriptor(phys | self.attributes | Descriptor::leaf_type(level)),
                        );
                        node.clean(index..index + 1);
                        self.pieces = rest;
                        self.iova += geometry.span(level);
                    } else if !self.install(node, index, current)? {
                        // Somebody else's table stands there now.
                        continue;
                    }
                }
            }
            index += 1;
            if self.pieces.is_empty()
                || index == node.entries()
                || self.iova == self.limits.iova_end
            {
                return Ok(());
            }
        }
    }

    /// Whether the next bytes may be one leaf at `level`, and which.
    #[inline]
    fn block(&self, level: u32) -> Option<(u64, Pieces<'a>)> {
        let geometry = &self.table.geometry;
        let span = geometry.span(level);
        if level < self.top || !geometry.leaf_at(level) || self.iova & (span - 1) != 0 {
            return None;
        }
        self.pieces.block(span, &self.limits, self.iova)
    }

    /// Puts a table behind an empty entry and maps what lies in it; `false`: somebody else did.
    fn install(&mut self, node: Node<'t, P>, index: usize, current: u64) -> Result<bool, MapError> {
        let geometry = node.geometry();
        let span = geometry.span(node.level());
        let base = self.iova & !(span - 1);
        let owned = self.part.start <= base && self.part.end - base >= span;
        let begin = (self.iova, self.pieces);
        let ahead = || self.pieces.tables(geometry, self.iova).min(AHEAD);
        let Some(mut fresh) = Fresh::take(self.table, &mut self.spare, ahead) else {
            return Err(out_of_memory(self.iova));
        };
        if node.level() + 1 < LAST {
            fresh.fill(self.table, |entries| entries.fill(0));
            fresh.clean(self.table, 0..1 << geometry.index_bits());
            return match node.publish(index, current, fresh, owned) {
                Ok(child) => {
                    let result = self.fill(child);
                    if result.is_err() && owned {
                        let mut remover = Remover::new(self.gather);
                        remover.unhook(node, index, base, base + span);
                        remover.finish();
                        self.iova = begin.0;
                    }
                    result.map(|()| true)
                }
                Err(fresh) => {
                    fresh.give_back(self.table, &mut self.spare);
                    Ok(false)
                }
            };
        }
        let filled = fresh.fill(self.table, |entries| {
            let first = geometry.index(self.iova, LAST);
            entries[..first].fill(0);
            self.pages(&mut Unpublished(entries))?;
            let end = first + ((self.iova - begin.0) >> geometry.page_shift()) as usize;
            entries[end..].fill(0);
            Ok(())
        });
        let late = match filled {
            Ok(()) => {
                fresh.clean(self.table, 0..1 << geometry.index_bits());
                node.publish(index, current, fresh, owned).err()
            }
            Err(_) => Some(fresh),
        };
        if let Some(fresh) = late {
            fresh.give_back(self.table, &mut self.spare);
            (self.iova, self.pieces) = begin;
            return filled.map(|()| false);
        }
        Ok(true)
    }

    /// Fills a last-level table from `iova` on, to its end or the list's.
    #[inline]
    fn pages<S: Sink>(&mut self, sink: &mut S) -> Result<(), MapError> {
        let geometry = &self.table.geometry;
        let shift = geometry.page_shift();
        let entries = sink.entries();
        let mut index = geometry.index(self.iova, LAST);
        let leaf = self.attributes | Descriptor::leaf_type(LAST);
        let bad = self.limits.offset_mask | !(self.limits.phys_end - 1);
        let batch = Batch { leaf, bad, page: geometry.page_bytes() };
        while index < entries && !self.pieces.is_empty() {
            let room = (self.limits.iova_end - self.iova) >> shift;
            let most = (entries - index).min(if self.mixed { MIXED } else { usize::MAX });
            let whole = self.pieces.whole(most.min(room as usize));
            if !whole.is_empty() {
                if sink.batch(index, whole, &batch) {
                    self.pieces.skip(whole.len());
                    self.iova += (whole.len() as u64) << shift;
                    index += whole.len();
                    continue;
                }
                self.mixed = true;
            }
            let (phys, bytes) = self.pieces.next(&self.limits, self.iova)?;
            let count = ((bytes >> shift) as usize).min(entries - index);
            if let Some((at, found)) = sink.occupied(index..index + count) {
                let iova = self.iova + ((at - index) << shift) as u64;
                return Err(occupied(iova, LAST, found));
            }
            sink.run(index, count, phys | leaf, geometry.page_bytes());
            let bytes = (count as u64) << shift;
            self.pieces.advance(bytes);
            self.iova += bytes;
            index += count;
        }
        Ok(())
    }
}

/// The last of the tables that are there on the way to `iova`.
#[inline]
fn descend<P: Pool>(table: &PageTable<P>, iova: u64) -> Node<'_, P> {
    let mut node = Node::root(table);
    while node.level() != LAST {
        match node.entry(node.index(iova)) {
            Entry::Table(child) => node = child,
            Entry::Leaf(_) | Entry::Empty(_) => break,
        }
    }
    node
}

/// Maps one page if all tables for it are there and nothing is wrong; `false`: it has done nothing,
/// and [`Mapper`] will do it or say why not.
#[inline]
pub(super) fn page<P: Pool>(
    table: &PageTable<P>,
    part: &Range<u64>,
    iova: u64,
    phys: u64,
    attributes: Attributes,
) -> bool {
    let geometry = &table.geometry;
    let offset = (iova | phys) & (geometry.page_bytes() - 1);
    let right = offset == 0
        && part.contains(&iova)
        && phys < geometry.output_end()
        && attributes.stage() == geometry.config().stage;
    if !right {
        return false;
    }
    let node = descend(table, iova);
    let index = node.index(iova);
    if node.level() != LAST || node.load(index).is_valid() {
        return false;
    }
    node.store(index, Descriptor(phys | attributes.bits() | Descriptor::leaf_type(LAST)));
    node.clean(index..index + 1);
    table.pool.barrier();
    true
}

#[cold]
fn occupied(iova: u64, level: u32, found: Descriptor) -> MapError {
    MapError::Occupied { iova: Iova(iova), level, descriptor: found.0 }
}

#[cold]
fn out_of_memory(iova: u64) -> MapError {
    MapError::OutOfMemory(Iova(iova))
}

/// What segments of one page each must be like, and what becomes of them.
struct Batch {
    /// Attributes and type.
    leaf: u64,
    /// Bits that must be 0 in a physical address.
    bad: u64,
    /// Every segment's length.
    page: u64,
}

/// What some segments have in common, gathered without a branch.
#[derive(Default)]
struct Seen {
    /// All addresses' bits.
    phys: u64,
    /// All bits in which a length is not a page's.
    len: u64,
}

impl Seen {
    #[inline]
    fn see(&mut self, segment: &Segment, batch: &Batch) {
        self.phys |= segment.phys.0;
        self.len |= segment.len ^ batch.page;
    }

    /// Whether each was a page with a possible address.
    #[inline]
    fn right(&self, batch: &Batch) -> bool {
        (self.phys & batch.bad) | self.len == 0
    }
}

/// A last-level table being filled.
trait Sink {
    fn entries(&self) -> usize;

    /// The first valid entry.
    fn occupied(&self, entries: Range<usize>) -> Option<(usize, Descriptor)>;

    /// Writes `count` leaves from `first` on, each `step` higher than the one before.
    fn run(&mut self, first: usize, count: usize, leaf: u64, step: u64);

    /// Writes a leaf for each segment if all are of one page and nothing is in the way; else
    /// perhaps some, where none had been.
    fn batch(&mut self, first: usize, segments: &[Segment], batch: &Batch) -> bool;
}

/// A table that no walker can reach: plain stores.
struct Unpublished<'e>(&'e mut [u64]);

impl Sink for Unpublished<'_> {
    #[inline]
    fn entries(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn occupied(&self, _: Range<usize>) -> Option<(usize, Descriptor)> {
        None
    }

    #[inline]
    fn run(&mut self, first: usize, count: usize, leaf: u64, step: u64) {
        for (n, entry) in (0..).zip(&mut self.0[first..first + count]) {
            *entry = leaf + n * step;
        }
    }

    #[inline]
    fn batch(&mut self, first: usize, segments: &[Segment], batch: &Batch) -> bool {
        let entries = &mut self.0[first..first + segments.len()];
        let mut seen = Seen::default();
        for (entry, segment) in entries.iter_mut().zip(segments) {
            *entry = segment.phys.0 | batch.leaf;
            seen.see(segment, batch);
        }
        seen.right(batch)
    }
}

impl<P: Pool> Sink for Node<'_, P> {
    #[inline]
    fn entries(&self) -> usize {
        Node::entries(*self)
    }

    #[inline]
    fn occupied(&self, entries: Range<usize>) -> Option<(usize, Descriptor)> {
        Node::occupied(*self, entries)
    }

    #[inline]
    fn run(&mut self, first: usize, count: usize, leaf: u64, step: u64) {
        self.put(first, count, |n| leaf + n as u64 * step);
        self.clean(first..first + count);
    }

    #[inline]
    fn batch(&mut self, first: usize, segments: &[Segment], batch: &Batch) -> bool {
        let mut seen = Seen::default();
        segments.iter().for_each(|segment| seen.see(segment, batch));
        let entries = first..first + segments.len();
        if !seen.right(batch) || Node::occupied(*self, entries.clone()).is_some() {
            return false;
        }
        self.put(first, segments.len(), |n| segments[n].phys.0 | batch.leaf);
        self.clean(entries);
        true
    }
}
