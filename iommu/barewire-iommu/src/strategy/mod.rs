//! Chooses how a gather is invalidated: by page, by range, by context, or by the cheapest of these.
//!
//! # The hardware that this crate assumes
//! The architecture lets an invalidation by address drop every cached walk to that address. This crate
//! relies on less, which is also what Linux's drivers rely on. A TLB has
//!
//! - a *leaf* for each page or block, found by any address in it;
//! - a *walk* for each granule: the tables on the way to that granule. A command for one granule need not
//!   find what was cached for its neighbour, although both go through the same table. A walk that was
//!   cached goes on below its table, and what it finds there is cached for the same granule.
//!
//! So:
//!
//! - A run of leaves needs one command per leaf.
//! - A run whose tables were unhooked, empty or not, needs one command per granule of its whole span,
//!   without the hint that only leaves were removed.
//!
//! `barewire-iommu-model` has a TLB of exactly this kind, and judges every call by it.
//!
//! # How it works
//! [`Strategy::choose`] compares the costs and [`Method::operations`] lists the operations. Both
//! are pure functions of their arguments. [`costs`] has the costs.

mod costs;

pub use costs::{Choice, Costs, Prediction};

use crate::few::Few;
use crate::gather::{RUNS, Run};
use crate::tlbi::{Tlbi, range_commands};

/// The largest number of addresses that are invalidated one by one: 256 MiB of 4 KiB granules. A tree of
/// tables may span some 100 million granules, of which a command each would take minutes.
pub const PAGES_MAX: u64 = 1 << 16;

/// How a domain's TLB entries are invalidated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// One command per address; the whole context if there are more than [`PAGES_MAX`].
    ByPage,
    /// The fewest range commands that cover the runs. As `ByPage` if the hardware has no ranges.
    ByRange,
    /// Always the whole context.
    ByContext,
    /// The cheapest of these, including the cost of refetching translations.
    Adaptive(Costs),
}

impl Default for Strategy {
    fn default() -> Self {
        Self::Adaptive(Costs::default())
    }
}

/// The kind of operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Method {
    /// [`Tlbi::Pages`].
    Pages,
    /// [`Tlbi::Range`].
    Ranges,
    /// [`Tlbi::Context`].
    Context,
}

/// The facts a choice depends on, besides the runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// log2 of the granule.
    pub page_shift: u32,
    /// Whether the hardware has range commands.
    pub has_ranges: bool,
    /// The leaves of the context that stay mapped, which a flush of the whole context would evict.
    pub live_entries: u64,
}

/// Up to eight operations for one flush.
#[derive(Clone, Copy, Debug)]
pub struct Operations(Few<Tlbi, RUNS>);

impl Operations {
    /// Everything of the context.
    pub const CONTEXT: Self = Self::one(Tlbi::Context);

    /// Made where it is needed: a constant would be copied with all its unused room.
    #[inline]
    const fn one(operation: Tlbi) -> Self {
        Self(Few::one(operation))
    }

    /// The cheapest operation for one run.
    #[inline(never)]
    fn adapted(costs: &Costs, run: &Run, facts: &Facts) -> Self {
        Self::one(costs.operation(run, facts))
    }

    /// The list, for [`Invalidate::flush`](crate::Invalidate::flush).
    #[inline]
    pub fn as_slice(&self) -> &[Tlbi] {
        self.0.get().unwrap_or_default()
    }
}

impl Strategy {
    /// The operations that cover `runs`. `None` means everything.
    #[inline]
    pub fn operations(&self, runs: Option<&[Run]>, facts: &Facts) -> Operations {
        // A small or contiguous buffer, under the default strategy.
        match (self, runs) {
            (Self::Adaptive(costs), Some([run])) if costs.is_one_page(run, facts) => {
                Operations::one(run.by_addresses(facts.page_shift, 1))
            }
            (Self::Adaptive(costs), Some([run])) => Operations::adapted(costs, run, facts),
            _ => self.operations_any(runs, facts),
        }
    }

    #[inline(never)]
    fn operations_any(&self, runs: Option<&[Run]>, facts: &Facts) -> Operations {
        match runs {
            None => Operations::one(Tlbi::Context),
            Some(runs) => self.choose(runs, facts).operations(runs, facts.page_shift),
        }
    }

    /// Chooses the method for `runs`.
    #[inline]
    pub fn choose(&self, runs: &[Run], facts: &Facts) -> Method {
        match self {
            Self::ByRange if facts.has_ranges => Method::Ranges,
            Self::ByPage | Self::ByRange => by_page(runs, facts),
            Self::ByContext => Method::Context,
            Self::Adaptive(costs) => costs.cheapest(runs, facts),
        }
    }
}

/// By page, unless that would keep the command queue busy for very long.
fn by_page(runs: &[Run], facts: &Facts) -> Method {
    let addresses: u64 = runs.iter().map(|run| run.addresses(facts.page_shift)).sum();
    if addresses > PAGES_MAX { Method::Context } else { Method::Pages }
}

impl Method {
    /// The operations of this method that cover `runs`; the whole context if there are more than
    /// eight.
    #[inline]
    pub fn operations(self, runs: &[Run], page_shift: u32) -> Operations {
        match (self, runs) {
            (_, []) => Operations(Few::new()),
            (_, [run]) => Operations::one(self.operation(run, page_shift)),
            (Self::Context, _) => Operations::one(Tlbi::Context),
            _ => self.several(runs, page_shift),
        }
    }

    #[inline(never)]
    fn several(self, runs: &[Run], page_shift: u32) -> Operations {
        if runs.len() > RUNS {
            return Operations::one(Tlbi::Context);
        }
        let mut list = Few::new();
        runs.iter().for_each(|run| list.push(self.operation(run, page_shift)));
        Operations(list)
    }

    /// The operation that covers one run.
    #[inline]
    fn operation(self, run: &Run, page_shift: u32) -> Tlbi {
        match self {
            Self::Pages => run.by_page(page_shift),
            Self::Ranges => run.by_range(page_shift),
            Self::Context => Tlbi::Context,
        }
    }
}

impl Run {
    /// The length in bytes.
    fn len(&self) -> u64 {
        self.end.0.saturating_sub(self.start.0)
    }

    /// The level hint. Only a run of leaves may have a hint, because walk entries are at other
    /// levels.
    fn hint(&self) -> Option<u8> {
        match self.level {
            Some(level) if !self.tables => Some(level),
            _ => None,
        }
    }

    /// log2 of the distance between addresses.
    fn step(&self, page_shift: u32) -> u32 {
        self.stride.max(page_shift)
    }

    /// The number of addresses to invalidate one by one.
    pub(crate) fn addresses(&self, page_shift: u32) -> u64 {
        let step = self.step(page_shift);
        // The last leaf counts even if a hole may have cut it short. Computed by shifts, since the
        // compiler does not know that the divisor is a power of two, and every unmap comes through
        // here.
        let rest = self.len() & ((1 << step) - 1);
        (self.len() >> step) + u64::from(rest != 0)
    }

    /// The number of range commands.
    fn ranges(&self, page_shift: u32) -> u64 {
        range_commands(self.len() >> page_shift)
    }

    fn by_page(&self, page_shift: u32) -> Tlbi {
        self.by_addresses(page_shift, self.addresses(page_shift))
    }

    /// [`by_page`](Self::by_page) of a run that has `count` addresses.
    #[inline]
    fn by_addresses(&self, page_shift: u32, count: u64) -> Tlbi {
        Tlbi::Pages {
            iova: self.start,
            stride: self.step(page_shift),
            count,
            leaf: !self.tables,
            level: self.hint(),
        }
    }

    fn by_range(&self, page_shift: u32) -> Tlbi {
        Tlbi::Range {
            iova: self.start,
            page_shift,
            pages: self.len() >> page_shift,
            leaf: !self.tables,
            level: self.hint(),
        }
    }
}

#[cfg(test)]
mod tests;
