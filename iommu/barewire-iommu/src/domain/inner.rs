//! The parts of a domain below its flush queue: table, hardware, IOVAs and the calls to them.
#![allow(unsafe_code, reason = "claims parts of the table, and frees what was invalidated")]

use core::mem::ManuallyDrop;
use core::ops::Range;

use super::mapped::{Held, Mapped};
use super::shared::SharedPolicy;
use super::statistics::{Counters, Kind};
use super::sweeps::Sweeps;
use crate::address::{Iova, Segment};
use crate::deferred::Keeper;
use crate::format::{Attributes, Geometry, LAST};
use crate::gather::{Gather, Run};
use crate::iova::IovaAllocator;
use crate::pool::{Chain, Pool};
use crate::strategy::{Facts, Operations, Strategy};
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::table::{MapError, PageTable, Part, UnmapError};
use crate::tlbi::{Context, FlushError, Invalidate};

pub(super) struct Inner<P: Pool, I, A> {
    /// Dropped only if the hardware can no longer use it.
    pub(super) table: ManuallyDrop<PageTable<P>>,
    pub(super) context: Context,
    pub(super) invalidate: I,
    pub(super) iovas: A,
    pub(super) policy: SharedPolicy,
    pub(super) counters: Counters,
    /// The number of mapped leaves, approximately.
    pub(super) live: AtomicUsize,
    /// The sweeps for empty tables.
    pub(super) sweeps: Sweeps,
    /// Unique to this domain.
    pub(super) id: usize,
}

/// Any thread may run the flush that the gather waits for.
impl<P: Pool, I: Invalidate, A: IovaAllocator> Keeper for Inner<P, I, A> {
    type Held = Range<Iova>;
    type Gathered = Gather;
    type Error = FlushError;

    fn join(&self, all: &mut Gather, more: Gather) {
        // SAFETY: every gather made by this domain's calls belongs to this table.
        unsafe { all.append(self.table.pool(), more) };
    }

    fn invalidate(&self, gathered: &Gather) -> Result<(), FlushError> {
        let policy = self.policy.read();
        let strategy = policy.deferred.map_or(policy.strategy, |deferred| deferred.strategy);
        self.flush(&strategy, gathered)
    }

    fn free(&self, mut gathered: Gather) {
        self.release_tables(&mut gathered);
    }

    fn release(&self, range: Range<Iova>) {
        self.release_iovas(range);
    }
}

impl<P: Pool, I: Invalidate, A: IovaAllocator> Inner<P, I, A> {
    pub(super) fn geometry(&self) -> &Geometry {
        self.table.geometry()
    }

    /// Maps `segments` at `range`, which has their size and which the allocator gave to this call. It is
    /// looked up and unmapped only through a [`Mapped`] that the caller makes. Returns the number of
    /// leaves.
    #[inline(always)]
    pub(super) fn map(
        &self,
        range: &Range<Iova>,
        segments: &[Segment],
        attributes: Attributes,
        gather: &mut Gather,
    ) -> Result<usize, MapError> {
        let (iova, size) = (range.start, range.end.0 - range.start.0);
        let end = self.geometry().input_end();
        if range.end.0 > end {
            return Err(MapError::IovaRange { iova, size, end: Iova(end) });
        }
        // SAFETY: the allocator gave the range to this call only. The range is looked up and
        // unmapped only through its `Mapped`, which is made afterwards.
        let mut part = unsafe { self.table.part_unchecked(range.clone()) };
        part.map_sg_replacing(iova, segments, attributes, gather, |run| self.flush_run(run))?;
        let leaves = leaves(self.geometry(), iova, segments, size);
        self.live.fetch_add(leaves, Relaxed);
        self.counters.two(Kind::Maps, Kind::PagesMapped, size >> self.geometry().page_shift());
        Ok(leaves)
    }

    pub(super) fn set_contiguous(&mut self) {
        self.table.set_contiguous();
    }

    /// Invalidates a run at once.
    #[cold]
    fn flush_run(&self, run: &Run) -> Result<(), FlushError> {
        let mut gather = Gather::new();
        gather.record(*run);
        let strategy = self.policy.strategy();
        self.flush(&strategy, &gather)
    }

    /// Unmaps all of `mapped`, by `unmap` of its part of the table.
    ///
    /// # Errors
    /// The error of the table; nothing is unmapped then.
    #[inline]
    pub(super) fn unmap(
        &self,
        mapped: &mut Mapped,
        gather: &mut Gather,
        unmap: impl FnOnce(Part<'_, P>, &mut Gather) -> Result<u64, UnmapError>,
    ) -> Result<u64, UnmapError> {
        // SAFETY: the allocator gave the range to the call that made this `Mapped`, and it is not
        // released yet. The `&mut` on the `Mapped` excludes other callers.
        let part = unsafe { self.table.part_unchecked(mapped.range()) };
        // Before any flush: over-invalidation does not lose the leaves this call removes.
        self.live.fetch_sub(mapped.leaves, Relaxed);
        let removed = unmap(part, gather);
        match &removed {
            Ok(bytes) => {
                let pages = bytes >> self.geometry().page_shift();
                self.counters.two(Kind::Unmaps, Kind::PagesUnmapped, pages);
            }
            Err(_) => {
                // The ends of a part, and so of this mapping, are never inside a block.
                debug_assert!(gather.is_empty(), "refused half way");
                self.live.fetch_add(mapped.leaves, Relaxed);
            }
        }
        removed
    }

    /// Changes the attributes of all of `mapped`, and invalidates.
    pub(super) fn protect(
        &self,
        mapped: &mut Mapped,
        attributes: Attributes,
    ) -> Result<(), UnmapError> {
        // SAFETY: as in `unmap`.
        let mut part = unsafe { self.table.part(mapped.range()) };
        let (iova, size) = (mapped.iova, mapped.size);
        let mut gather = Gather::new();
        part.protect(iova, size, attributes, &mut gather, |run| self.flush_run(run))?;
        let flushed = self.flush(&self.policy.strategy(), &gather);
        flushed.map_err(|error| UnmapError::Flush { iova, error })
    }

    /// Unmaps all of `part` table by table, and flushes after each. An error of a flush is not returned
    /// here: the range it was for stays in the gather and is flushed again.
    pub(super) fn unmap_each_table(
        &self,
        mut part: Part<'_, P>,
        strategy: &Strategy,
        gather: &mut Gather,
    ) -> Result<u64, UnmapError> {
        let range = part.range();
        let mut at = range.start.0;
        let mut removed = Ok(0);
        let mut failed = false;
        while let Ok(before) = removed
            && at < range.end.0
        {
            let size = piece(self.geometry(), at, range.end.0);
            removed = part.unmap(Iova(at), size, gather).map(|bytes| before + bytes);
            if gather.tables() > 0 && !failed {
                failed = self.flush(strategy, gather).is_err();
                if !failed {
                    self.release_tables(gather);
                }
            }
            at += size;
        }
        removed
    }

    /// Invalidates the contents of the gather.
    #[inline]
    pub(super) fn flush(&self, strategy: &Strategy, gather: &Gather) -> Result<(), FlushError> {
        let facts = Facts {
            page_shift: self.geometry().page_shift(),
            has_ranges: self.invalidate.has_ranges(),
            live_entries: self.live.load(Relaxed) as u64,
        };
        self.issue(&strategy.operations(gather.runs(), &facts))
    }

    #[inline]
    fn issue(&self, operations: &Operations) -> Result<(), FlushError> {
        let operations = operations.as_slice();
        if operations.is_empty() {
            return Ok(());
        }
        let flushed = self.invalidate.flush(self.context, operations);
        self.counters.flush(&self.invalidate, operations, flushed.is_ok());
        flushed
    }

    /// Invalidates at once, then releases tables and addresses.
    ///
    /// # Errors
    /// Table and addresses, as [`Held`], if the flush failed.
    #[inline(always)]
    pub(super) fn retire(
        &self,
        range: Range<Iova>,
        gather: &mut Gather,
        strategy: &Strategy,
    ) -> Result<(), Held> {
        self.settle(&range, gather, strategy)?;
        self.release_iovas(range);
        Ok(())
    }

    /// Invalidates at once, then releases tables. The addresses stay the caller's.
    ///
    /// # Errors
    /// Table and addresses, as [`Held`], if the flush failed.
    #[inline(always)]
    pub(super) fn settle(
        &self,
        range: &Range<Iova>,
        gather: &mut Gather,
        strategy: &Strategy,
    ) -> Result<(), Held> {
        match self.flush(strategy, gather) {
            Ok(()) => {
                self.release_tables(gather);
                Ok(())
            }
            Err(error) => Err(self.hold(range.clone(), gather, error)),
        }
    }

    #[cold]
    fn hold(&self, range: Range<Iova>, gather: &mut Gather, error: FlushError) -> Held {
        let (tables, count) = gather.take_tables();
        Held { range, tables, count, error, domain: self.id }
    }

    /// Invalidates the whole context, then releases what is held.
    ///
    /// # Errors
    /// Returns `held` if the flush failed.
    pub(super) fn retry(&self, held: Held) -> Result<(), Held> {
        match self.issue(&Operations::CONTEXT) {
            Ok(()) => {
                self.free_chain(held.tables, held.count);
                self.release_iovas(held.range);
                Ok(())
            }
            Err(error) => Err(Held { error, ..held }),
        }
    }

    /// Frees the table if its context could be invalidated. Otherwise the table is leaked, because
    /// the hardware may still use it. Called once, as the last call.
    pub(super) fn drop_table(&mut self, flushed: bool) {
        if flushed && self.issue(&Operations::CONTEXT).is_ok() {
            // SAFETY: called once, by the domain's destructor. Nothing uses the table afterwards.
            unsafe { ManuallyDrop::drop(&mut self.table) };
        }
    }

    fn free_chain(&self, tables: Chain, count: usize) {
        self.counters.add(Kind::TablesFreed, count as u64);
        let bytes = self.geometry().page_bytes() as usize;
        // SAFETY: they were unhooked by this domain, and all of its context has been invalidated.
        unsafe { self.table.pool().free_chain(tables, bytes) };
    }

    /// Frees the gathered tables. The caller has flushed `gather`.
    #[inline]
    fn release_tables(&self, gather: &mut Gather) {
        self.counters.add(Kind::TablesFreed, gather.tables() as u64);
        // SAFETY: this domain made the gather, and every caller has just seen a flush of all of it
        // succeed.
        unsafe { self.table.release(gather) };
    }

    /// Releases addresses: after the flush of their mappings, or at once if they were never mapped.
    pub(super) fn release_iovas(&self, range: Range<Iova>) {
        // SAFETY: the range was handed out to this domain, and its `Mapped` is gone. Nothing is
        // mapped there, and every caller has made sure that no TLB holds an entry for it.
        unsafe { self.iovas.release(range) };
    }
}

/// The next piece for a driver that unmaps leaf size by leaf size: the largest block that begins at
/// `at`, or the pages up to the next block. No piece cuts a block that was mapped between `at` and
/// `end`.
fn piece(geometry: &Geometry, at: u64, end: u64) -> u64 {
    let mut level = geometry.start_level();
    while level < LAST {
        let span = geometry.span(level);
        if geometry.leaf_at(level) && at.is_multiple_of(span) && end - at >= span {
            return span;
        }
        level += 1;
    }
    let next = (at | (geometry.span(LAST - 1) - 1)) + 1;
    next.min(end) - at
}

/// The approximate number of leaves for `segments`: exact for one segment, pages for several.
#[inline]
fn leaves(geometry: &Geometry, iova: Iova, segments: &[Segment], size: u64) -> usize {
    // A range smaller than the smallest block has only pages.
    if size < geometry.span(LAST - 1) {
        return (size >> geometry.page_shift()) as usize;
    }
    leaves_of_blocks(geometry, iova, segments, size)
}

#[inline(never)]
fn leaves_of_blocks(geometry: &Geometry, iova: Iova, segments: &[Segment], size: u64) -> usize {
    let mut shift = geometry.page_shift();
    if let [segment] = segments {
        for level in geometry.start_level()..LAST {
            let span = geometry.span(level);
            if geometry.leaf_at(level)
                && size >= span
                && (iova.0 | segment.phys.0).is_multiple_of(span)
            {
                shift = geometry.shift(level);
                break;
            }
        }
    }
    let rest = size & ((1 << shift) - 1);
    ((size >> shift) + (rest >> geometry.page_shift())) as usize
}
