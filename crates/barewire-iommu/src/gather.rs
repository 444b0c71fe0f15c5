//! What was unhooked and is not yet invalidated.
//!
//! Tables in a gather are unreachable by new walks but may be in the hands of old ones, and their
//! entries in a TLB: they go back to the pool when the invalidation that covers them is complete.

use crate::address::Iova;
use crate::pool::Chain;

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
    /// The level of all removed leaves, if one.
    pub level: Option<u8>,
}

/// How many separate runs are told apart; more make it everything.
pub(crate) const RUNS: usize = 8;

/// Runs and tables that wait for an invalidation.
///
/// Dropping one that is not empty leaks its tables, which is safe.
#[derive(Debug)]
#[must_use = "tables in it are leaked unless it is flushed"]
pub struct Gather {
    pub(crate) runs: [Run; RUNS],
    pub(crate) len: usize,
    /// More than can be told apart: only the whole context will do.
    pub(crate) everything: bool,
    pub(crate) tables: Chain,
}

impl Gather {
    /// Nothing yet.
    pub const fn new() -> Self {
        const NONE: Run =
            Run { start: Iova(0), end: Iova(0), stride: 0, tables: false, level: None };
        Self {
            runs: [NONE; RUNS],
            len: 0,
            everything: false,
            tables: Chain { ends: None, count: 0 },
        }
    }

    /// Whether there is nothing to invalidate and nothing to free.
    pub fn is_empty(&self) -> bool {
        self.len == 0 && !self.everything && self.tables.count == 0
    }

    /// The runs, unless there were too many to keep.
    pub fn runs(&self) -> Option<&[Run]> {
        (!self.everything).then(|| &self.runs[..self.len])
    }

    /// Unhooked tables.
    pub fn tables(&self) -> usize {
        self.tables.count
    }
}

impl Default for Gather {
    fn default() -> Self {
        Self::new()
    }
}
