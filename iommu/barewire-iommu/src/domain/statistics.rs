//! Optional counters.

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::tlbi::{Invalidate, Tlbi};

/// What a domain did while counting was on. Each number is exact, but they were not all read at the
/// same instant. On 32-bit processors they wrap at 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Successful mapping calls.
    pub maps: u64,
    /// Granules mapped.
    pub pages_mapped: u64,
    /// Successful unmapping calls.
    pub unmaps: u64,
    /// Granules unmapped.
    pub pages_unmapped: u64,
    /// Unmapped ranges that went into the flush queue.
    pub deferred: u64,
    /// Flushes, each with a wait.
    pub flushes: u64,
    /// Flushes that failed.
    pub flushes_failed: u64,
    /// Commands for one address.
    pub page_commands: u64,
    /// Range commands.
    pub range_commands: u64,
    /// Commands for the whole context.
    pub context_commands: u64,
    /// Tables returned to the pool after a flush.
    pub tables_freed: u64,
}

/// One counter for each; relaxed, since nothing depends on their order.
#[derive(Debug, Default)]
pub(super) struct Counters {
    on: AtomicBool,
    counts: [AtomicUsize; KINDS],
}

const KINDS: usize = 11;

/// Names a counter.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Maps,
    PagesMapped,
    Unmaps,
    PagesUnmapped,
    Deferred,
    Flushes,
    FlushesFailed,
    PageCommands,
    RangeCommands,
    ContextCommands,
    TablesFreed,
}

impl Counters {
    pub(super) fn set_on(&self, on: bool) {
        self.on.store(on, Relaxed);
    }

    fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    #[inline]
    pub(super) fn add(&self, kind: Kind, count: u64) {
        if self.is_on() {
            self.count(kind, count);
        }
    }

    /// Adds one call, and its pages.
    #[inline]
    pub(super) fn two(&self, calls: Kind, pages: Kind, count: u64) {
        if self.is_on() {
            self.count(calls, 1);
            self.count(pages, count);
        }
    }

    #[cold]
    fn count(&self, kind: Kind, count: u64) {
        self.counts[kind as usize].fetch_add(count as usize, Relaxed);
    }

    /// Counts a flush of `operations`.
    #[inline]
    pub(super) fn flush(&self, invalidate: &impl Invalidate, operations: &[Tlbi], ok: bool) {
        if self.is_on() {
            self.count_flush(invalidate, operations, ok);
        }
    }

    #[cold]
    fn count_flush(&self, invalidate: &impl Invalidate, operations: &[Tlbi], ok: bool) {
        self.add(Kind::Flushes, 1);
        self.add(Kind::FlushesFailed, u64::from(!ok));
        for operation in operations {
            let kind = match operation {
                Tlbi::Pages { .. } => Kind::PageCommands,
                Tlbi::Range { .. } => Kind::RangeCommands,
                Tlbi::Context => Kind::ContextCommands,
            };
            self.add(kind, invalidate.commands(core::slice::from_ref(operation)));
        }
    }

    pub(super) fn read(&self) -> Statistics {
        let of = |kind: Kind| self.counts[kind as usize].load(Relaxed) as u64;
        Statistics {
            maps: of(Kind::Maps),
            pages_mapped: of(Kind::PagesMapped),
            unmaps: of(Kind::Unmaps),
            pages_unmapped: of(Kind::PagesUnmapped),
            deferred: of(Kind::Deferred),
            flushes: of(Kind::Flushes),
            flushes_failed: of(Kind::FlushesFailed),
            page_commands: of(Kind::PageCommands),
            range_commands: of(Kind::RangeCommands),
            context_commands: of(Kind::ContextCommands),
            tables_freed: of(Kind::TablesFreed),
        }
    }
}
