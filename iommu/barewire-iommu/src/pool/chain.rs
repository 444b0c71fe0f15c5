//! A linked list of tables that wait to be used or freed.
//!
//! The link is in entry 0 and is even, which makes it an invalid descriptor: a walker that is late
//! sees a fault. An arena takes a whole chain back by one exchange.
#![allow(unsafe_code, reason = "links lie in table memory")]

use super::Pool;
use crate::address::PhysAddr;

/// Tables of one pool, linked by [`Pool::link`].
///
/// Dropping a chain that is not empty leaks its tables. A chain is two words, so it is passed in
/// registers.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "its tables are leaked unless it is given back to its pool"]
pub struct Chain {
    first: u64,
    last: u64,
}

/// The address that means no table.
const NOWHERE: u64 = u64::MAX;

impl Chain {
    /// Creates an empty chain.
    #[inline]
    pub const fn new() -> Self {
        Self { first: NOWHERE, last: NOWHERE }
    }

    /// Makes a chain of the tables from `first` to `last`.
    ///
    /// # Safety
    /// All tables are allocated and in no other chain. [`Pool::next`] of each but the last returns
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

    /// Whether the chain has no tables.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.first == NOWHERE
    }

    /// Moves the tables out and leaves the chain empty.
    #[inline]
    pub fn take(&mut self) -> Self {
        let all = Self { first: self.first, last: self.last };
        *self = Self::new();
        all
    }

    /// Adds a table at the front.
    ///
    /// # Safety
    /// It and the others are allocated from `pool`. It is in no chain, and unhooked or not yet
    /// published.
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

    /// Removes the first table.
    ///
    /// # Safety
    /// The tables are allocated from `pool`.
    #[inline]
    pub unsafe fn pop<P: Pool + ?Sized>(&mut self, pool: &P) -> Option<PhysAddr> {
        let (first, last) = self.ends()?;
        if first == last {
            *self = Self::new();
        } else {
            // SAFETY: a table that is not the last was linked to the next one.
            self.first = unsafe { pool.next(first) }.0;
        }
        Some(first)
    }

    /// Adds all of `other` at the front.
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
