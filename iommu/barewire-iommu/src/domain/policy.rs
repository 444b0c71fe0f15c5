//! The policy of a domain: how it invalidates. It can change while mappings exist.

use crate::deferred::Bounds;
use crate::strategy::Strategy;

/// How a domain invalidates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    /// Which operations invalidate.
    pub strategy: Strategy,
    /// How many flushes one unmap makes for the tables it unhooks.
    pub walks: Walks,
    /// When to invalidate. `None`: before `unmap` returns.
    pub deferred: Option<Deferred>,
}

/// How one unmap treats the tables it unhooks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Walks {
    /// Unhooks all tables, flushes once, then frees all of them.
    #[default]
    Gathered,
    /// Flushes and frees each table before the next is unhooked, like drivers that free a table
    /// where they unhook it. For comparison, and for pools that need tables back soon.
    EachTable,
}

/// Invalidation by the flush queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deferred {
    /// How much may wait.
    pub bounds: Bounds,
    /// Which operations invalidate the queue. By context, unless something speaks against it: much
    /// was unmapped meanwhile, so over-invalidation loses little.
    pub strategy: Strategy,
}

impl Default for Deferred {
    /// The queue's full capacity, invalidated by context.
    fn default() -> Self {
        Self { bounds: Bounds::default(), strategy: Strategy::ByContext }
    }
}

impl From<Strategy> for Policy {
    /// Strict, and gathered.
    fn from(strategy: Strategy) -> Self {
        Self { strategy, ..Self::default() }
    }
}
