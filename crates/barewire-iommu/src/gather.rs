//! What was unhooked and is not yet invalidated.
//!
//! Tables in a gather are unreachable by new walks but may be in the hands of old ones, and their
//! entries in a TLB: they go back to the pool when the invalidation that covers them is complete.
//! So the order is: map and unmap, with the gather; invalidate what [`Gather::runs`] says, and wait;
//! [`Gather::release`].
//!
//! # Safety
//! Tables are freed when the caller says that nobody can reach them.
#![allow(unsafe_code, reason = "whoever says that an invalidation is complete is believed")]

use crate::address::Iova;
use crate::pool::{Chain, Pool};

/// IOVAs whose translations were removed in one go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The first.
    pub start: Iova,
    /// The first after.
    pub end: Iova,
    /// log2 of the smallest leaf removed; of the granule where tables were unhooked unseen.
    pub stride: u32,
    /// Tables were unhooked: walks through them may be cached.
    pub tables: bool,
    /// The level of all removed leaves, if one and no tables were unhooked.
    pub level: Option<u8>,
}

impl Run {
    /// Whether one invalidation says both without saying more of either.
    fn alike(&self, other: &Self) -> bool {
        self.stride == other.stride && self.tables == other.tables && self.level == other.level
    }

    /// Makes this the run of both if they touch and are alike.
    #[inline]
    fn absorb(&mut self, other: &Self) -> bool {
        let absorbs = self.alike(other) && other.start <= self.end && self.start <= other.end;
        if absorbs {
            self.start = self.start.min(other.start);
            self.end = self.end.max(other.end);
        }
        absorbs
    }

    /// As `absorb`, for one that comes after in the same call: where less was not mapped than was
    /// removed before, that counts as removed. It costs at most twice the commands, and saves runs.
    #[inline]
    pub(crate) fn grow(&mut self, next: &Self) -> bool {
        let grows = self.alike(next) && next.start.0 - self.end.0 <= self.end.0 - self.start.0;
        if grows {
            self.end = next.end;
        }
        grows
    }
}

/// How many separate runs are told apart; more make it everything.
pub(crate) const RUNS: usize = 8;

/// Runs and tables that wait for an invalidation. All of one page table.
///
/// Dropping one that is not empty leaks its tables, which is safe.
#[derive(Debug)]
#[must_use = "tables in it are leaked unless it is flushed"]
pub struct Gather {
    runs: [Run; RUNS],
    len: usize,
    /// More than can be told apart: only the whole context will do.
    everything: bool,
    tables: Chain,
}

impl Gather {
    /// Nothing yet.
    #[inline]
    pub const fn new() -> Self {
        const NONE: Run =
            Run { start: Iova(0), end: Iova(0), stride: 0, tables: false, level: None };
        Self { runs: [NONE; RUNS], len: 0, everything: false, tables: Chain::new() }
    }

    /// Whether there is nothing to invalidate and nothing to free.
    pub const fn is_empty(&self) -> bool {
        self.len == 0 && !self.everything && self.tables.is_empty()
    }

    /// The runs, in no order; `None` if there were too many to keep: invalidate all then.
    pub fn runs(&self) -> Option<&[Run]> {
        (!self.everything).then(|| &self.runs[..self.len])
    }

    /// How many tables are unhooked.
    pub const fn tables(&self) -> usize {
        self.tables.count()
    }

    /// Adds a run: to one that it continues and is like, or as one of its own.
    #[inline(never)]
    pub fn record(&mut self, run: Run) {
        if self.everything {
            return;
        }
        // The last first: whoever unmaps piece by piece goes on where he was.
        for known in self.runs[..self.len].iter_mut().rev() {
            if known.absorb(&run) {
                return;
            }
        }
        match self.runs.get_mut(self.len) {
            Some(free) => {
                *free = run;
                self.len += 1;
            }
            None => self.everything = true,
        }
    }

    /// Forgets which runs there are: only an invalidation of the whole context will do.
    pub fn record_everything(&mut self) {
        self.everything = true;
    }

    /// All of it, leaving nothing.
    pub fn take(&mut self) -> Self {
        core::mem::take(self)
    }

    /// Adds what another gather of the same page table has.
    ///
    /// # Safety
    /// The tables of both are of `pool`.
    pub unsafe fn append<P: Pool>(&mut self, pool: &P, mut other: Self) {
        self.everything |= other.everything;
        for run in &other.runs[..other.len] {
            self.record(*run);
        }
        // SAFETY: promised by the caller.
        unsafe { self.tables.append(pool, other.tables.take()) };
    }

    /// The tables alone, which an invalidation of the whole context is to come before.
    pub(crate) fn take_tables(&mut self) -> Chain {
        self.tables.take()
    }

    /// Adds a table that was unhooked.
    ///
    /// # Safety
    /// It is allocated from `pool` as are the others, no entry leads to it, and it is in no chain.
    #[inline]
    pub(crate) unsafe fn unhooked<P: Pool>(&mut self, pool: &P, table: crate::PhysAddr) {
        // SAFETY: promised by the caller.
        unsafe { self.tables.push(pool, table) };
    }

    /// Forgets the runs and gives the tables, of `table_bytes` each, back to `pool`.
    ///
    /// [`PageTable::release`](crate::PageTable::release) knows both.
    ///
    /// # Safety
    /// The tables are of `pool`, and an invalidation that covers all runs has completed since they
    /// were recorded: no walk goes through the tables any more.
    #[inline]
    pub unsafe fn release<P: Pool>(&mut self, pool: &P, table_bytes: usize) {
        self.len = 0;
        self.everything = false;
        if !self.tables.is_empty() {
            // SAFETY: promised by the caller.
            unsafe { pool.free_chain(self.tables.take(), table_bytes) };
        }
    }
}

impl Default for Gather {
    fn default() -> Self {
        Self::new()
    }
}
