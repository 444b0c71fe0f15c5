//! Tables linked to each other, waiting to be used or freed.
#![allow(unsafe_code, reason = "links lie in table memory")]

use super::Pool;
use crate::address::PhysAddr;

/// Tables of one pool, one after the other by [`Pool::link`].
///
/// Dropping one that is not empty leaks its tables.
#[derive(PartialEq, Eq, Debug, Default)]
#[must_use = "its tables are leaked unless it is given back to its pool"]
pub struct Chain {
    /// The first and the last table.
    ends: Option<(PhysAddr, PhysAddr)>,
    count: usize,
}

impl Chain {
    /// No tables.
    pub const fn new() -> Self {
        Self { ends: None, count: 0 }
    }

    /// `count` tables from `first` to `last`.
    ///
    /// # Safety
    /// All are allocated and in no other chain, and from each but the last [`Pool::next`] leads to
    /// the following one.
    pub unsafe fn of(first: PhysAddr, last: PhysAddr, count: usize) -> Self {
        Self { ends: Some((first, last)), count }
    }

    /// The first and the last table.
    pub const fn ends(&self) -> Option<(PhysAddr, PhysAddr)> {
        self.ends
    }

    /// How many tables.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    /// All of it, leaving nothing.
    pub fn take(&mut self) -> Self {
        core::mem::take(self)
    }

    /// Puts a table before the first.
    ///
    /// # Safety
    /// It and the others are allocated from `pool`; it is in no chain, and unhooked or unpublished.
    #[inline]
    pub unsafe fn push<P: Pool + ?Sized>(&mut self, pool: &P, table: PhysAddr) {
        let last = match self.ends {
            None => table,
            Some((first, last)) => {
                // SAFETY: the table is allocated and no longer, or not yet, in use.
                unsafe { pool.link(table, first) };
                last
            }
        };
        self.ends = Some((table, last));
        self.count += 1;
    }

    /// Takes the first table out.
    ///
    /// # Safety
    /// The tables are allocated from `pool`.
    #[inline]
    pub unsafe fn pop<P: Pool + ?Sized>(&mut self, pool: &P) -> Option<PhysAddr> {
        let (first, last) = self.ends?;
        self.count -= 1;
        self.ends = if self.count == 0 {
            None
        } else {
            // SAFETY: a table that another follows was linked to it.
            Some((unsafe { pool.next(first) }, last))
        };
        Some(first)
    }

    /// Puts all of `other` before the first.
    ///
    /// # Safety
    /// The tables of both are allocated from `pool`.
    pub unsafe fn append<P: Pool + ?Sized>(&mut self, pool: &P, other: Self) {
        let Some((other_first, other_last)) = other.ends else { return };
        let last = match self.ends {
            None => other_last,
            Some((first, last)) => {
                // SAFETY: the table is allocated and no longer in use.
                unsafe { pool.link(other_last, first) };
                last
            }
        };
        self.ends = Some((other_first, last));
        self.count += other.count;
    }
}
