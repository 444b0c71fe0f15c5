//! How a domain invalidates, changeable while mappings live.

use crate::deferred::Bounds;
use crate::strategy::Strategy;

/// How a domain invalidates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    /// Which operations.
    pub strategy: Strategy,
    /// How many flushes an unmap makes of the tables it unhooks.
    pub walks: Walks,
    /// When: `None` is before `unmap` returns.
    pub deferred: Option<Deferred>,
}

/// What becomes of the tables that one unmap unhooks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Walks {
    /// All are unhooked, one flush is made, all are freed.
    #[default]
    Gathered,
    /// Each is flushed and freed before the next is unhooked, as drivers do that free a table where
    /// they unhook it: for comparison, and for pools that need tables back soon.
    EachTable,
}

/// Invalidation that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deferred {
    /// For how much.
    pub bounds: Bounds,
    /// Which operations then. By context unless something is known that speaks against it: much was
    /// unmapped meanwhile, so over-invalidation loses little.
    pub strategy: Strategy,
}

impl Default for Deferred {
    /// As much as the queue has room for, by context.
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
