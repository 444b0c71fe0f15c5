//! Collects the ranges that were unmapped and not yet invalidated.
//!
//! New walks cannot reach the tables in a gather. A walk that is under way may still use them, and
//! a TLB may still hold their entries. The tables return to the pool only when an invalidation that
//! covers them has completed. So the order is:
//!
//! 1. Map and unmap, passing the gather.
//! 2. Invalidate what [`Gather::runs`] lists, and wait for completion.
//! 3. Call [`Gather::release`].
//!
//! An address that was unmapped is not mapped again before step 2: a TLB still has the old page, and another
//! table in the place of one that is cached would need a break.
//!
//! # Safety
//! Tables are freed when the caller promises that no walk can reach them.
#![allow(unsafe_code, reason = "whoever says that an invalidation is complete is believed")]

use crate::address::Iova;
use crate::few::Few;
use crate::pool::{Chain, Pool};

/// A range of IOVAs whose translations were removed together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The first address.
    pub start: Iova,
    /// The address after the last.
    pub end: Iova,
    /// log2 of the size of the smallest leaf removed, in bytes. If tables were unhooked, log2 of the
    /// granule: their leaves were not read, and a walk through them may be cached for any granule.
    pub stride: u32,
    /// Tables were unhooked. A TLB may have cached walks through them.
    pub tables: bool,
    /// The level of the removed leaves, if all have one level and no tables were unhooked.
    pub level: Option<u8>,
}

/// The properties of a run that decide its invalidation, in one word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind(u32);

impl Kind {
    const TABLES: u32 = 1 << 8;
    const LEVEL: u32 = 16;

    /// Leaves of one level.
    #[inline]
    pub(crate) const fn leaves(stride: u32, level: u32) -> Self {
        Self(stride | (level + 1) << Self::LEVEL)
    }

    /// Tables that were unhooked. `stride` is the granule's.
    #[inline]
    pub(crate) const fn tables(stride: u32) -> Self {
        Self(stride | Self::TABLES)
    }

    /// A run of this kind.
    #[inline]
    fn run(self, start: u64, end: u64) -> Run {
        Run {
            start: Iova(start),
            end: Iova(end),
            stride: self.0 & 0xff,
            tables: self.0 & Self::TABLES != 0,
            level: (self.0 >> Self::LEVEL).checked_sub(1).map(|level| level as u8),
        }
    }

    #[inline]
    fn of(run: &Run) -> Self {
        let level = run.level.map_or(0, |level| u32::from(level) + 1);
        let tables = if run.tables { Self::TABLES } else { 0 };
        Self(run.stride | tables | level << Self::LEVEL)
    }
}

/// The number of separate runs kept. If there are more, the whole context is invalidated.
pub(crate) const RUNS: usize = 8;

/// The runs and tables of one page table that wait for an invalidation.
///
/// Dropping one that is not empty leaks its tables, which is safe.
#[derive(Debug)]
#[must_use = "tables in it are leaked unless it is flushed"]
pub struct Gather {
    /// More than there is room for: the whole context must be invalidated.
    runs: Few<Run, RUNS>,
    tables: Option<Tables>,
}

/// Unhooked tables. There may be none.
#[derive(Debug)]
struct Tables {
    chain: Chain,
    count: usize,
}

impl Gather {
    /// Creates an empty gather.
    #[inline]
    pub const fn new() -> Self {
        Self { runs: Few::new(), tables: None }
    }

    /// Whether there is nothing to invalidate and nothing to free.
    pub const fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.tables() == 0
    }

    /// The runs, unordered. `None` if there were too many: invalidate the whole context.
    #[inline]
    pub fn runs(&self) -> Option<&[Run]> {
        self.runs.get()
    }

    /// The number of unhooked tables.
    #[inline]
    pub const fn tables(&self) -> usize {
        match &self.tables {
            None => 0,
            Some(tables) => tables.count,
        }
    }

    /// Adds a run. It extends a recorded run that it continues and whose properties are equal, or
    /// else becomes a run of its own.
    pub fn record(&mut self, run: Run) {
        self.add(run.start.0, run.end.0, Kind::of(&run));
    }

    /// [`record`](Self::record), with the run's fields as numbers.
    #[inline]
    pub(crate) fn add(&mut self, start: u64, end: u64, kind: Kind) {
        self.add_to(self.has_no_run(), start, end, kind);
    }

    /// Whether `add` would record the first run.
    #[inline(always)]
    pub(crate) const fn has_no_run(&self) -> bool {
        self.runs.is_empty()
    }

    /// [`add`](Self::add), where it is known whether this is the first run.
    #[inline(always)]
    pub(crate) fn add_to(&mut self, is_first: bool, start: u64, end: u64, kind: Kind) {
        debug_assert_eq!(is_first, self.has_no_run());
        if is_first {
            self.runs = Few::one(kind.run(start, end));
        } else {
            self.merge(start, end, kind);
        }
    }

    #[inline(never)]
    fn merge(&mut self, start: u64, end: u64, kind: Kind) {
        let Some(known) = self.runs.get_mut() else { return };
        // Search the newest run first: a caller that unmaps piece by piece extends that one.
        for known in known.iter_mut().rev() {
            if start <= known.end.0 && known.start.0 <= end && kind == Kind::of(known) {
                known.start.0 = known.start.0.min(start);
                known.end.0 = known.end.0.max(end);
                return;
            }
        }
        self.runs.push(kind.run(start, end));
    }

    /// Discards the runs. The whole context must be invalidated instead.
    pub fn record_everything(&mut self) {
        self.runs.overflow();
    }

    /// Moves the contents out and leaves the gather empty.
    pub fn take(&mut self) -> Self {
        core::mem::take(self)
    }

    /// Adds the contents of another gather of the same page table.
    ///
    /// # Safety
    /// The tables of both gathers came from `pool`.
    pub unsafe fn append<P: Pool>(&mut self, pool: &P, mut other: Self) {
        match other.runs() {
            Some(runs) => runs.iter().for_each(|run| self.record(*run)),
            None => self.record_everything(),
        }
        let (more, number) = other.take_tables();
        let (chain, count) = self.unhooked();
        // SAFETY: promised by the caller.
        unsafe { chain.append(pool, more) };
        *count += number;
    }

    /// Takes the tables, and their number, and discards the runs. The caller must invalidate the
    /// whole context before it frees the tables.
    pub(crate) fn take_tables(&mut self) -> (Chain, usize) {
        match self.tables.take() {
            None => (Chain::new(), 0),
            Some(tables) => (tables.chain, tables.count),
        }
    }

    /// The chain of unhooked tables and its length, for adding to.
    #[inline]
    pub(crate) fn unhooked(&mut self) -> (&mut Chain, &mut usize) {
        let Tables { chain, count } =
            self.tables.get_or_insert(Tables { chain: Chain::new(), count: 0 });
        (chain, count)
    }

    /// Discards the runs and returns the tables, of `table_bytes` each, to `pool`.
    ///
    /// [`PageTable::release`](crate::PageTable::release) supplies both arguments.
    ///
    /// # Safety
    /// The tables came from `pool`. Since the runs were recorded an invalidation that covers all of
    /// them has completed, so no walk uses the tables any more.
    #[inline]
    pub unsafe fn release<P: Pool>(&mut self, pool: &P, table_bytes: usize) {
        self.runs.clear();
        // Most gathers have none, so its words are not read before that is known.
        if self.tables.is_some()
            && let Some(tables) = self.tables.take()
            && tables.count != 0
        {
            // SAFETY: promised by the caller.
            unsafe { pool.free_chain(tables.chain, table_bytes) };
        }
    }
}

impl Default for Gather {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Granule;
    use crate::testing::{Counting, with_arena};

    const fn run(start: u64, end: u64, stride: u32, level: Option<u8>) -> Run {
        Run { start: Iova(start), end: Iova(end), stride, tables: level.is_none(), level }
    }

    fn gathered(runs: &[Run]) -> Gather {
        let mut gather = Gather::new();
        runs.iter().for_each(|run| gather.record(*run));
        gather
    }

    #[test]
    fn what_touches_and_is_alike_is_one_run() {
        let pages = |start, end| run(start, end, 12, Some(3));
        for runs in [
            [pages(0x1000, 0x2000), pages(0x2000, 0x5000)],
            [pages(0x2000, 0x5000), pages(0x1000, 0x2000)],
            [pages(0x1000, 0x4000), pages(0x2000, 0x5000)],
            [pages(0x1000, 0x5000), pages(0x2000, 0x3000)],
        ] {
            assert_eq!(gathered(&runs).runs(), Some(&[pages(0x1000, 0x5000)][..]));
        }
    }

    #[test]
    fn what_differs_in_anything_is_not() {
        let first = run(0, 0x20_0000, 12, Some(3));
        for second in [
            run(0x20_1000, 0x20_2000, 12, Some(3)),
            run(0x20_0000, 0x40_0000, 21, Some(2)),
            run(0x20_0000, 0x40_0000, 12, None),
            Run { level: None, ..run(0x20_0000, 0x40_0000, 12, Some(3)) },
        ] {
            assert_eq!(gathered(&[first, second]).runs(), Some(&[first, second][..]));
        }
    }

    #[test]
    fn more_runs_than_can_be_told_apart_are_everything() {
        let runs =
            [0, 1, 2, 3, 4, 5, 6, 7, 8].map(|n| run(n << 20, (n << 20) + 0x1000, 12, Some(3)));
        let mut gather = gathered(&runs[..8]);
        assert_eq!(gather.runs(), Some(&runs[..8]));
        // A run that continues the last one is merged into it.
        gather.record(run(0x1000, 0x2000, 12, Some(3)));
        assert_eq!(gather.runs().map(<[Run]>::len), Some(8));
        gather.record(runs[8]);
        assert_eq!((gather.runs(), gather.is_empty()), (None, false));
        gather.record(runs[0]);
        assert_eq!(gather.runs(), None);
        assert_eq!(gather.take().runs(), None);
        assert!(gather.is_empty());
    }

    #[test]
    #[allow(unsafe_code, reason = "tables that no walker has seen")]
    fn two_gathers_become_one() {
        with_arena(Granule::Size4K, 8, |arena| {
            let pool = Counting::new(arena);
            let with = |tables: usize, run| {
                let mut gather = gathered(&[run]);
                for _ in 0..tables {
                    let table = pool.alloc(4096).expect("room");
                    let (chain, count) = gather.unhooked();
                    // SAFETY: allocated just now.
                    unsafe { chain.push(&pool, table) };
                    *count += 1;
                }
                gather
            };
            let (first, second) = (run(0, 0x20_0000, 12, None), run(1 << 30, 2 << 30, 12, None));
            for (a, b) in [(0, 0), (0, 2), (3, 0), (3, 2)] {
                let mut gather = with(a, first);
                // SAFETY: both are of this pool.
                unsafe { gather.append(&pool, with(b, second)) };
                assert_eq!((gather.tables(), gather.runs()), (a + b, Some(&[first, second][..])));
                assert_eq!(pool.out.get(), (a + b) as isize);
                // SAFETY: no walker has seen them.
                unsafe { gather.release(&pool, 4096) };
                assert!(gather.is_empty());
                assert_eq!(pool.out.get(), 0);
            }
            let mut everything = Gather::new();
            everything.record_everything();
            let mut gather = with(0, first);
            // SAFETY: both are of this pool.
            unsafe { gather.append(&pool, everything) };
            assert_eq!(gather.runs(), None);
        });
    }
}
