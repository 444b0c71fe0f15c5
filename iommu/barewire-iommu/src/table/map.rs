//! Mapping: one walk per table, and tables are filled before they are published.
//!
//! Mapping takes a gather as unmapping does: a call that fails half way removes the entries it
//! wrote, and a walker may have cached them.

mod groups;
mod replace;

use core::ops::Range;

use super::PageTable;
use super::error::MapError;
use super::fill::{self, Batch};
use super::group;
use super::mark::descend;
use super::node::{AHEAD, Entry, Fresh, Node};
use super::sg::{Limits, Pieces};
use super::unmap::Remover;
use crate::address::{Iova, Segment};
use crate::format::{Attributes, Descriptor, LAST};
use crate::gather::Gather;
use crate::pool::{Chain, Pool};
pub(super) use replace::{Never, Replace, WithInvalidation};

/// Batch size once a segment that is not one page was seen. A mixed batch is handled segment by
/// segment.
const MIXED: usize = 32;

/// The state of one call.
///
/// All IOVAs from the start of the range to `iova` are mapped; none after it is.
pub(super) struct Mapper<'a, 't, P: Pool, R: Replace> {
    table: &'t PageTable<P>,
    part: &'a Range<u64>,
    gather: &'a mut Gather,
    /// Tables allocated ahead.
    spare: Chain,
    limits: Limits,
    attributes: u64,
    /// Whether and how empty tables are replaced by blocks.
    replace: R,
    /// The highest level (lowest number) at which leaves are allowed.
    top: u32,
    /// A segment that is not one page was seen.
    mixed: bool,
    start: u64,
    iova: u64,
    pieces: Pieces<'a>,
}

impl<'a, 't, P: Pool, R: Replace> Mapper<'a, 't, P, R> {
    #[inline]
    pub(super) fn new(
        table: &'t PageTable<P>,
        part: &'a Range<u64>,
        iova: Iova,
        segments: &'a [Segment],
        attributes: Attributes,
        gather: &'a mut Gather,
        replace: R,
    ) -> Result<Self, MapError> {
        let limits = Limits::new(&table.geometry, part.end);
        check(table, part, iova, segments, attributes, limits)?;
        Ok(Self {
            table,
            part,
            gather,
            spare: Chain::new(),
            limits,
            attributes: attributes.bits(),
            replace,
            top: 0,
            mixed: false,
            start: iova.0,
            iova: iova.0,
            pieces: Pieces::new(segments),
        })
    }

    /// The state after the first `done` segments, of a page each, were mapped.
    #[inline]
    pub(super) fn after(mut self, done: usize) -> Self {
        self.iova += (done as u64) << self.table.geometry.page_shift();
        self.pieces.skip(done);
        self
    }

    /// Allows no leaves above `level`.
    pub(super) fn only_from(mut self, level: u32) -> Self {
        self.top = level;
        self
    }

    /// Maps everything or nothing. Returns the number of bytes.
    #[inline]
    pub(super) fn run(mut self) -> Result<u64, MapError> {
        let mut result = self.fill(self.way());
        while result.is_ok() && !self.pieces.is_empty() {
            result = if self.iova == self.limits.iova_end {
                // There is no room left for this piece, so `next` returns an error.
                self.pieces.next(self.limits, self.iova).map(drop)
            } else {
                self.fill(self.way())
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

    /// The table to continue in.
    #[inline]
    fn way(&self) -> Node<'t, P> {
        if self.may_replace() { self.way_to_block() } else { descend(self.table, self.iova) }
    }

    /// Maps the remaining bytes that lie in `node`.
    fn fill(&mut self, node: Node<'t, P>) -> Result<(), MapError> {
        if node.level() == LAST {
            return self.live(node);
        }
        let mut index = node.index(self.iova);
        loop {
            index += match node.enter(index) {
                // The entry is empty then, and is looked at again.
                Entry::Table(_) if self.may_replace() && self.make_room(node, index) => 0,
                Entry::Table(child) => {
                    self.fill(child)?;
                    1
                }
                Entry::Leaf(found) => return Err(occupied(self.iova, node.level(), found)),
                Entry::Empty(current) => match self.blocks(node, index)? {
                    0 => usize::from(self.install(node, index, current)?),
                    count => count,
                },
            };
            if self.pieces.is_empty()
                || index == node.entries()
                || self.iova == self.limits.iova_end
            {
                return Ok(());
            }
        }
    }

    /// Writes block leaves into `node`, beginning at an empty entry, until the bytes or the empty
    /// entries end. Returns the number of leaves.
    #[inline]
    fn blocks(&mut self, node: Node<'t, P>, index: usize) -> Result<usize, MapError> {
        let span = 1 << node.shift();
        let possible = node.level() >= self.top && node.geometry().leaf_at(node.level());
        let (phys, len) = self.pieces.peek();
        if !possible || (self.iova | phys) & (span - 1) != 0 {
            return Ok(0);
        }
        let (count, rest) = if len >= span {
            let (_, len) = self.pieces.next(self.limits, self.iova)?;
            let most = ((len >> node.shift()) as usize).min(node.entries() - index);
            let end = node.occupied(index..index + most).map_or(index + most, |(at, _)| at);
            let mut rest = self.pieces;
            rest.advance(((end - index) as u64) << node.shift());
            (end - index, rest)
        } else {
            match self.pieces.merged(span, self.limits, self.iova) {
                Some(rest) => (1, rest),
                None => return Ok(0),
            }
        };
        let leaf = phys | self.attributes | Descriptor::leaf_type(node.level());
        node.put(index, count, |n| leaf + ((n as u64) << node.shift()));
        node.clean(index..index + count);
        self.pieces = rest;
        self.iova += (count as u64) << node.shift();
        Ok(count)
    }

    /// Installs a table in an empty entry and maps what lies in it. Returns `false` if another
    /// thread installed one first.
    #[inline]
    fn install(&mut self, node: Node<'t, P>, index: usize, current: u64) -> Result<bool, MapError> {
        let ahead = || self.pieces.tables(&self.table.geometry, self.iova).min(AHEAD);
        let Some(fresh) = Fresh::take(self.table, &mut self.spare, ahead) else {
            return Err(out_of_memory(self.iova));
        };
        let base = self.iova & !((1 << node.shift()) - 1);
        let place = Place {
            node,
            index,
            current,
            base,
            owned: self.part.start <= base && self.part.end - base >= 1 << node.shift(),
        };
        if node.level() + 1 == LAST {
            self.install_pages(place, fresh)
        } else {
            self.install_tables(place, fresh)
        }
    }

    /// [`install`](Self::install) for a table that leads to tables: it is published empty.
    #[cold]
    fn install_tables(&mut self, place: Place<'t, P>, mut fresh: Fresh) -> Result<bool, MapError> {
        fresh.fill(self.table, |entries| entries.fill(0));
        fresh.clean(self.table, 0..1 << self.table.geometry.index_bits());
        let begin = self.iova;
        match place.publish(fresh) {
            Ok(child) => {
                let result = self.fill(child);
                if result.is_err() && place.owned {
                    let mut remover = Remover::new(self.gather);
                    let end = place.base + (1 << place.node.shift());
                    remover.unhook(place.node, place.index, place.base, end);
                    remover.finish();
                    self.iova = begin;
                }
                result.map(|()| true)
            }
            Err(fresh) => {
                fresh.give_back(self.table, &mut self.spare);
                Ok(false)
            }
        }
    }

    /// [`install`](Self::install) for a table of pages: it is filled, then published.
    fn install_pages(&mut self, place: Place<'t, P>, mut fresh: Fresh) -> Result<bool, MapError> {
        let geometry = &self.table.geometry;
        // The usual case: at least a table's worth of pages is left, and all are valid.
        let entries = 1 << geometry.index_bits();
        let whole = self.pieces.whole(entries);
        let is_whole = place.owned && self.iova == place.base && whole.len() == entries;
        if is_whole && !self.mixed && !geometry.is_contiguous() {
            let batch = self.batch();
            if fresh.fill(self.table, |entries| fill::fill(entries, whole, &batch)) {
                fresh.clean(self.table, 0..entries);
                place.store(fresh);
                self.pieces.skip(entries);
                self.iova += 1 << place.node.shift();
                return Ok(true);
            }
            self.mixed = true;
        }
        self.install_some_pages(place, fresh)
    }

    /// [`install_pages`](Self::install_pages) for the general case.
    #[inline(never)]
    fn install_some_pages(
        &mut self,
        place: Place<'t, P>,
        mut fresh: Fresh,
    ) -> Result<bool, MapError> {
        let geometry = &self.table.geometry;
        let begin = (self.iova, self.pieces);
        let filled = fresh.fill(self.table, |entries| {
            let first = geometry.index(self.iova, LAST);
            empty(&mut entries[..first]);
            self.pages(&mut UnpublishedTable(entries))?;
            let end = first + ((self.iova - begin.0) >> geometry.page_shift()) as usize;
            empty(&mut entries[end..]);
            Ok(())
        });
        let late = match filled {
            Ok(()) => {
                fresh.clean(self.table, 0..1 << geometry.index_bits());
                place.publish(fresh).err()
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

    /// Writes leaves into a table that walkers may be reading.
    #[inline(never)]
    fn live(&mut self, mut node: Node<'t, P>) -> Result<(), MapError> {
        self.pages(&mut node)
    }

    /// Fills a last-level table from `iova` to its end, or to the end of the list.
    #[inline]
    fn pages<S: Sink>(&mut self, sink: &mut S) -> Result<(), MapError> {
        let geometry = &self.table.geometry;
        let shift = geometry.page_shift();
        let entries = sink.entries();
        let mut index = geometry.index(self.iova, LAST);
        let batch = self.batch();
        while index < entries && !self.pieces.is_empty() {
            let room = (self.limits.iova_end - self.iova) >> shift;
            let mut most = (entries - index).min(if self.mixed { MIXED } else { usize::MAX });
            if geometry.is_contiguous() {
                if index.is_multiple_of(group::PAGES) && self.group(sink, index)? {
                    index += group::PAGES;
                    continue;
                }
                most = group::room(index);
            }
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
            index += self.piece(sink, index, batch.leaf)?;
        }
        Ok(())
    }

    #[inline]
    fn batch(&self) -> Batch {
        self.limits.batch(self.attributes)
    }

    /// Writes leaves from `index` on for the rest of a segment. Returns their number.
    #[inline(never)]
    fn piece<S: Sink>(&mut self, sink: &mut S, index: usize, leaf: u64) -> Result<usize, MapError> {
        let shift = self.table.geometry.page_shift();
        let (phys, bytes) = self.pieces.next(self.limits, self.iova)?;
        let is_contiguous = self.table.geometry.is_contiguous();
        let room = if is_contiguous { group::room(index) } else { sink.entries() - index };
        let count = ((bytes >> shift) as usize).min(room);
        if let Some((at, found)) = sink.occupied(index..index + count) {
            let iova = self.iova + ((at - index) << shift) as u64;
            return Err(occupied(iova, LAST, found));
        }
        sink.run(index, count, phys | leaf, 1 << shift);
        let bytes = (count as u64) << shift;
        self.pieces.advance(bytes);
        self.iova += bytes;
        Ok(count)
    }
}

/// The entry that a table will be installed in.
struct Place<'t, P: Pool> {
    node: Node<'t, P>,
    index: usize,
    /// The value of the entry, unless another thread changes it first.
    current: u64,
    /// The first IOVA of the entry.
    base: u64,
    /// No other thread can change the entry.
    owned: bool,
}

impl<'t, P: Pool> Place<'t, P> {
    #[inline]
    fn publish(&self, fresh: Fresh) -> Result<Node<'t, P>, Fresh> {
        self.node.publish(self.index, self.current, fresh, self.owned)
    }

    /// `publish` for an entry that no other thread can change.
    #[inline]
    fn store(&self, fresh: Fresh) {
        self.node.store(self.index, fresh.into_descriptor::<P>());
        self.node.clean(self.index..self.index + 1);
    }
}

/// The checks that need no table.
#[inline]
fn check<P: Pool>(
    table: &PageTable<P>,
    part: &Range<u64>,
    iova: Iova,
    segments: &[Segment],
    attributes: Attributes,
    limits: Limits,
) -> Result<(), MapError> {
    let geometry = &table.geometry;
    if attributes.stage() != geometry.config().stage {
        return Err(MapError::Stage);
    }
    if iova.0 & limits.offset_mask != 0 {
        return Err(MapError::Unaligned { iova, value: iova.0, to: geometry.page_bytes() });
    }
    if !part.contains(&iova.0) {
        let size = segments.iter().fold(0_u64, |sum, segment| sum.saturating_add(segment.len));
        return Err(MapError::IovaRange { iova, size, end: Iova(part.end) });
    }
    let first = segments.first().ok_or(MapError::Empty(iova))?;
    limits.check(iova.0, first)
}

/// Maps one page if its tables exist and all is valid. Returns `false` if it did nothing: then
/// [`Mapper`] does it, or reports the error.
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

/// Clears entries; inlined, since there may be none.
#[inline]
fn empty(entries: &mut [u64]) {
    if !entries.is_empty() {
        entries.fill(0);
    }
}

#[cold]
fn occupied(iova: u64, level: u32, found: Descriptor) -> MapError {
    MapError::Occupied { iova: Iova(iova), level, descriptor: found.0 }
}

#[cold]
fn out_of_memory(iova: u64) -> MapError {
    MapError::OutOfMemory(Iova(iova))
}

/// A last-level table that is being filled.
trait Sink {
    fn entries(&self) -> usize;

    /// The first valid entry.
    fn occupied(&self, entries: Range<usize>) -> Option<(usize, Descriptor)>;

    /// Writes `count` leaves from `first` on. Each address is `step` larger than the one before.
    fn run(&mut self, first: usize, count: usize, leaf: u64, step: u64);

    /// Writes a leaf for each segment if every segment is one page and the entries are empty.
    /// Otherwise returns `false`; some of the empty entries may have been written.
    fn batch(&mut self, first: usize, segments: &[Segment], batch: &Batch) -> bool;
}

/// A table that no walker can reach, written by plain stores.
struct UnpublishedTable<'e>(&'e mut [u64]);

impl Sink for UnpublishedTable<'_> {
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
        fill::fill(&mut self.0[first..first + segments.len()], segments, batch)
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
        let entries = first..first + segments.len();
        if !fill::right(segments, batch) || Node::occupied(*self, entries.clone()).is_some() {
            return false;
        }
        self.put_each(first, segments, |segment| segment.phys.0 | batch.leaf);
        self.clean(entries);
        true
    }
}
