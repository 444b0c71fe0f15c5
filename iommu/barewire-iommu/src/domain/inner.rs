//! What a domain is besides its queue: the way of all calls to tables, hardware and IOVAs.
#![allow(unsafe_code, reason = "claims parts of the table, and frees what was invalidated")]

use core::mem::ManuallyDrop;
use core::ops::Range;

use super::mapped::{Held, Mapped};
use super::policy::{Policy, Walks};
use super::statistics::{Counters, Kind};
use crate::address::{Iova, Segment};
use crate::deferred::Keeper;
use crate::format::{Attributes, Geometry, LAST};
use crate::gather::Gather;
use crate::iova::IovaAllocator;
use crate::lock::Lock;
use crate::pool::{Chain, Pool};
use crate::strategy::{Facts, Operations, Strategy};
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::table::{MapError, PageTable, UnmapError};
use crate::tlbi::{Context, FlushError, Invalidate};

pub(super) struct Inner<P: Pool, I, A> {
    /// Dropped unless hardware may still use it.
    pub(super) table: ManuallyDrop<PageTable<P>>,
    pub(super) context: Context,
    pub(super) invalidate: I,
    pub(super) iovas: A,
    pub(super) policy: Lock<Policy>,
    pub(super) counters: Counters,
    /// Leaves that are mapped, about.
    pub(super) live: AtomicUsize,
    /// No other domain has it.
    pub(super) id: usize,
}

/// What was gathered waits for a flush that is made by whichever thread.
impl<P: Pool, I: Invalidate, A: IovaAllocator> Keeper for Inner<P, I, A> {
    type Held = Range<Iova>;
    type Gathered = Gather;
    type Error = FlushError;

    fn join(&self, all: &mut Gather, more: Gather) {
        // SAFETY: every gather of this domain's calls is of this table.
        unsafe { all.append(self.table.pool(), more) };
    }

    fn invalidate(&self, gathered: &Gather) -> Result<(), FlushError> {
        let policy = self.policy.with(|policy| *policy);
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
    fn geometry(&self) -> &Geometry {
        self.table.geometry()
    }

    /// Maps `segments`, `size` bytes, at `range`, which the allocator gave for it.
    pub(super) fn map(
        &self,
        range: &Range<Iova>,
        segments: &[Segment],
        attributes: Attributes,
        gather: &mut Gather,
    ) -> Result<Mapped, MapError> {
        let (iova, size) = (range.start, range.end.0 - range.start.0);
        let end = self.geometry().input_end();
        if range.end.0 > end {
            return Err(MapError::IovaRange { iova, size, end: Iova(end) });
        }
        // SAFETY: the allocator gave the range to this call alone; a `Mapped`, through which alone it
        // is looked up and unmapped, is only made below.
        let mut part = unsafe { self.table.part(range.clone()) };
        part.map_sg(iova, segments, attributes, gather)?;
        let leaves = leaves(self.geometry(), iova, segments, size);
        self.live.fetch_add(leaves, Relaxed);
        self.counters.add(Kind::Maps, 1);
        self.counters.add(Kind::PagesMapped, size >> self.geometry().page_shift());
        Ok(Mapped { iova, size, leaves, domain: self.id })
    }

    /// Unmaps all of `mapped`; flushes each table by itself where the policy says so.
    ///
    /// # Errors
    /// The table's: nothing is unmapped then. That of a flush is nobody's yet: what it was for stays
    /// in the gather.
    pub(super) fn unmap(
        &self,
        mapped: &mut Mapped,
        policy: &Policy,
        gather: &mut Gather,
    ) -> Result<u64, UnmapError> {
        let range = mapped.range();
        // SAFETY: the allocator gave the range to the call that made this `Mapped`, it is not
        // released yet, and whoever has the `Mapped` by `&mut` is alone.
        let mut part = unsafe { self.table.part(range.clone()) };
        // Before anything is flushed: what this call removes is not lost by over-invalidation.
        self.live.fetch_sub(mapped.leaves, Relaxed);
        let removed = match policy.walks {
            Walks::Gathered => part.unmap(mapped.iova, mapped.size, gather),
            Walks::EachTable => {
                let mut at = range.start.0;
                let mut removed = Ok(0);
                let mut failed = false;
                while let Ok(before) = removed
                    && at < range.end.0
                {
                    let size = piece(self.geometry(), at, range.end.0);
                    removed = part.unmap(Iova(at), size, gather).map(|bytes| before + bytes);
                    if gather.tables() > 0 && !failed {
                        failed = self.flush(&policy.strategy, gather).is_err();
                        if !failed {
                            self.release_tables(gather);
                        }
                    }
                    at += size;
                }
                removed
            }
        };
        match &removed {
            Ok(bytes) => {
                self.counters.add(Kind::Unmaps, 1);
                self.counters.add(Kind::PagesUnmapped, bytes >> self.geometry().page_shift());
            }
            Err(_) => {
                // A part's ends, and so this mapping's, are never within a block.
                debug_assert!(gather.is_empty(), "refused half way");
                self.live.fetch_add(mapped.leaves, Relaxed);
            }
        }
        removed
    }

    /// Invalidates what was gathered.
    pub(super) fn flush(&self, strategy: &Strategy, gather: &Gather) -> Result<(), FlushError> {
        let facts = Facts {
            page_shift: self.geometry().page_shift(),
            has_ranges: self.invalidate.has_ranges(),
            live_entries: self.live.load(Relaxed) as u64,
        };
        self.issue(&strategy.operations(gather.runs(), &facts))
    }

    fn issue(&self, operations: &Operations) -> Result<(), FlushError> {
        let operations = operations.as_slice();
        if operations.is_empty() {
            return Ok(());
        }
        let flushed = self.invalidate.flush(self.context, operations);
        self.counters.flush(&self.invalidate, operations, flushed.is_ok());
        flushed
    }

    /// Invalidates at once, and lets go of tables and addresses.
    ///
    /// # Errors
    /// Both, if the flush failed.
    pub(super) fn retire(
        &self,
        range: Range<Iova>,
        mut gather: Gather,
        strategy: &Strategy,
    ) -> Result<(), Held> {
        match self.flush(strategy, &gather) {
            Ok(()) => {
                self.release_tables(&mut gather);
                self.release_iovas(range);
                Ok(())
            }
            Err(error) => {
                let (tables, count) = gather.take_tables();
                Err(Held { range, tables, count, error, domain: self.id })
            }
        }
    }

    /// Invalidates everything of the context, and lets go of what is held.
    ///
    /// # Errors
    /// What was held.
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

    /// Frees the table, if its context can be invalidated before; else leaves it to hardware. Once
    /// only, and last.
    pub(super) fn drop_table(&mut self, flushed: bool) {
        if flushed && self.issue(&Operations::CONTEXT).is_ok() {
            // SAFETY: called once, by the domain's destructor, after which nobody has the table.
            unsafe { ManuallyDrop::drop(&mut self.table) };
        }
    }

    fn free_chain(&self, tables: Chain, count: usize) {
        self.counters.add(Kind::TablesFreed, count as u64);
        let bytes = self.geometry().page_bytes() as usize;
        // SAFETY: they were unhooked by this domain, and all of its context has been invalidated.
        unsafe { self.table.pool().free_chain(tables, bytes) };
    }

    /// After a flush for `gather`.
    fn release_tables(&self, gather: &mut Gather) {
        self.counters.add(Kind::TablesFreed, gather.tables() as u64);
        // SAFETY: it was gathered by this domain, and every caller has just seen a flush of all of
        // it succeed.
        unsafe { self.table.release(gather) };
    }

    /// After a flush for what was mapped there, or where nothing ever was.
    pub(super) fn release_iovas(&self, range: Range<Iova>) {
        // SAFETY: handed out to this domain, whose `Mapped` of it is gone; nothing is mapped there,
        // and every caller has seen to it that no TLB has something.
        unsafe { self.iovas.release(range) };
    }
}

/// A piece as drivers unmap that go leaf size by leaf size: the largest that begins at `at`, or the
/// pages up to the next. No piece cuts a block that was mapped between `at` and `end`.
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

/// How many leaves `segments` become, about: exact for one segment, pages for several.
fn leaves(geometry: &Geometry, iova: Iova, segments: &[Segment], size: u64) -> usize {
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
