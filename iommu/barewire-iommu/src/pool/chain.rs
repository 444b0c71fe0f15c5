//! Tables linked to each other, waiting to be used or freed.
#![allow(unsafe_code, reason = "links lie in table memory")]

use super::Pool;
use crate::address::PhysAddr;

/// Tables of one pool, one after the other by [`Pool::link`].
///
/// Dropping one that is not empty leaks its tables. It is two words, so that it travels in registers.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "its tables are leaked unless it is given back to its pool"]
pub struct Chain {
    first: u64,
    last: u64,
}

/// No table is there.
const NOWHERE: u64 = u64::MAX;

impl Chain {
    /// No tables.
    #[inline]
    pub const fn new() -> Self {
        Self { first: NOWHERE, last: NOWHERE }
    }

    /// The tables from `first` to `last`.
    ///
    /// # Safety
    /// All are allocated and in no other chain, and from each but the last [`Pool::next`] leads to
    /// the following one.
    #[inline]
    pub const unsafe fn of(first: PhysAddr, last: PhysAddr) -> Self {
        Self { first: first.0, last: last.0 }
    }

    /// The first and the last table.
    #[inline]
    pub const fn ends(&self) -> Option<(PhysAddr, PhysAddr)> {
        if self.is_empty() { None } else { Some((PhysAddr(self.first), PhysAddr(self.last))) }
    }

    /// Whether there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.first == NOWHERE
    }

    /// All of it, leaving nothing.
    #[inline]
    pub fn take(&mut self) -> Self {
        let all = Self { first: self.first, last: self.last };
        *self = Self::new();
        all
    }

    /// Puts a table before the first.
    ///
    /// # Safety
    /// It and the others are allocated from `pool`; it is in no chain, and unhooked or unpublished.
    #[inline]
    pub unsafe fn push<P: Pool + ?Sized>(&mut self, pool: &P, table: PhysAddr) {
        if self.is_empty() {
            self.last = table.0;
        } else {
            // SAFETY: the table is allocated and no longer, or not yet, in use.
            unsafe { pool.link(table, PhysAddr(self.first)) };
        }
        self.first = table.0;
    }

    /// Takes the first table out.
    ///
    /// # Safety
    /// The tables are allocated from `pool`.
    #[inline]
    pub unsafe fn pop<P: Pool + ?Sized>(&mut self, pool: &P) -> Option<PhysAddr> {
        let (first, last) = self.ends()?;
        if first == last {
            *self = Self::new();
        } else {
            // SAFETY: a table that another follows was linked to it.
            self.first = unsafe { pool.next(first) }.0;
        }
        Some(first)
    }

    /// Puts all of `other` before the first.
    ///
    /// # Safety
    /// The tables of both are allocated from `pool`.
    pub unsafe fn append<P: Pool + ?Sized>(&mut self, pool: &P, other: Self) {
        let Some((_, other_last)) = other.ends() else { return };
        if self.is_empty() {
            self.last = other_last.0;
        } else {
            // SAFETY: the table is allocated and no longer in use.
            unsafe { pool.link(other_last, PhysAddr(self.first)) };
        }
        self.first = other.first;
    }
}

impl Default for Chain {
    fn default() -> Self {
        Self::new()
    }
}
