//! Which invalidations a gather becomes: by page, by range, by context, or whichever is cheapest.
//!
//! # How it works
//! A TLB tags each entry with its own address, and what it keeps of a walk (a table's address) with
//! any address under that table, as it likes. So runs of leaves need one command for each leaf, and
//! runs whose tables were unhooked one for each granule of the whole span, none of them a hint that
//! only leaves went: nobody looked what was mapped there, and a command for one address is not
//! bound to find a walk that was cached for its neighbour.
//!
//! [`Strategy::choose`] weighs, [`Method::operations`] writes down; both look at nothing but their
//! arguments. [`costs`] has what is weighed.

mod costs;

pub use costs::{Choice, Costs, Prediction};

use crate::gather::{RUNS, Run};
use crate::tlbi::{Tlbi, range_commands};

/// How a domain's TLB entries are invalidated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// A command for each address.
    ByPage,
    /// As few range commands as cover it; by page where the hardware has no ranges.
    ByRange,
    /// All of the context at once, whatever was unmapped.
    ByContext,
    /// Whichever of them costs least, what has to be fetched anew included.
    Adaptive(Costs),
}

impl Default for Strategy {
    fn default() -> Self {
        Self::Adaptive(Costs::default())
    }
}

/// What operations are made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Method {
    /// [`Tlbi::Pages`].
    Pages,
    /// [`Tlbi::Range`].
    Ranges,
    /// [`Tlbi::Context`].
    Context,
}

/// What a choice is made by, besides the runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// log2 of the granule.
    pub page_shift: u32,
    /// Whether the hardware takes ranges.
    pub has_ranges: bool,
    /// Leaves of the context that stay mapped: what it would lose by a flush of the whole context.
    pub live_entries: u64,
}

/// Up to eight operations: one flush.
#[derive(Clone, Copy, Debug)]
pub struct Operations {
    list: [Tlbi; RUNS],
    len: usize,
}

impl Operations {
    const NONE: Self = Self { list: [Tlbi::Context; RUNS], len: 0 };

    /// Everything of the context.
    pub const CONTEXT: Self = Self { list: [Tlbi::Context; RUNS], len: 1 };

    /// For [`Invalidate::flush`](crate::Invalidate::flush).
    pub fn as_slice(&self) -> &[Tlbi] {
        &self.list[..self.len]
    }
}

impl Strategy {
    /// The operations that cover `runs`; `None` is everything.
    pub fn operations(&self, runs: Option<&[Run]>, facts: &Facts) -> Operations {
        match runs {
            None => Operations::CONTEXT,
            Some(runs) => self.choose(runs, facts).operations(runs, facts.page_shift),
        }
    }

    /// The method for `runs`.
    pub fn choose(&self, runs: &[Run], facts: &Facts) -> Method {
        match self {
            Self::ByPage => Method::Pages,
            Self::ByRange if facts.has_ranges => Method::Ranges,
            Self::ByRange => Method::Pages,
            Self::ByContext => Method::Context,
            Self::Adaptive(costs) => costs.choice(runs, facts).method,
        }
    }
}

impl Method {
    /// The operations that cover `runs` by this method; everything, if there are more than eight.
    pub fn operations(self, runs: &[Run], page_shift: u32) -> Operations {
        if runs.is_empty() {
            return Operations::NONE;
        }
        if self == Self::Context || runs.len() > RUNS {
            return Operations::CONTEXT;
        }
        let mut operations = Operations { len: runs.len(), ..Operations::NONE };
        for (operation, run) in operations.list.iter_mut().zip(runs) {
            *operation = match self {
                Self::Ranges => run.by_range(page_shift),
                _ => run.by_page(page_shift),
            };
        }
        operations
    }
}

impl Run {
    /// Bytes.
    fn len(&self) -> u64 {
        self.end.0.saturating_sub(self.start.0)
    }

    /// A hint may be given of leaves alone: walks have their own levels.
    fn hint(&self) -> Option<u8> {
        if self.tables { None } else { self.level }
    }

    /// Tables' contents were not looked at: there may be a leaf at each granule.
    fn step(&self, page_shift: u32) -> u32 {
        if self.tables { page_shift } else { self.stride.max(page_shift) }
    }

    /// Addresses to be named one by one.
    pub(crate) fn addresses(&self, page_shift: u32) -> u64 {
        let step = self.step(page_shift);
        // The last leaf counts though a hole may have cut it short. By shifts: no compiler knows that a
        // division is by a power of two here, and this stands on the way of every unmap.
        let rest = self.len() & ((1 << step) - 1);
        (self.len() >> step) + u64::from(rest != 0)
    }

    /// Range commands to be given.
    fn ranges(&self, page_shift: u32) -> u64 {
        range_commands(self.len() >> page_shift)
    }

    fn by_page(&self, page_shift: u32) -> Tlbi {
        Tlbi::Pages {
            iova: self.start,
            stride: self.step(page_shift),
            count: self.addresses(page_shift),
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
