//! A table that walkers may be in, and one that they cannot reach yet.
//!
//! The only way from the code of this folder to table memory. A [`Node`] is the root or was found in
//! a valid entry, so it is allocated as long as whoever found it has the claim to that entry's
//! addresses: nobody else unhooks it. A [`Fresh`] is allocated and its owner's alone.
//!
//! # Safety
//! Both are made in this file only, and indices are checked here.
#![allow(unsafe_code, reason = "table memory is reached through the pool's unsafe methods")]

use core::ops::Range;

use super::PageTable;
use crate::address::PhysAddr;
use crate::format::{Descriptor, Geometry, LAST};
use crate::gather::Gather;
use crate::pool::{Chain, Pool};

/// A published table.
pub(super) struct Node<'t, P: Pool> {
    table: &'t PageTable<P>,
    at: PhysAddr,
    level: u32,
}

impl<P: Pool> Clone for Node<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Pool> Copy for Node<'_, P> {}

/// What a walk finds in an entry.
pub(super) enum Entry<'t, P: Pool> {
    /// Nothing valid.
    Empty(u64),
    /// A page, a block, or a valid descriptor that this crate does not write.
    Leaf(Descriptor),
    /// The next table.
    Table(Node<'t, P>),
}

impl<'t, P: Pool> Node<'t, P> {
    #[inline]
    pub(super) fn root(table: &'t PageTable<P>) -> Self {
        Self { table, at: table.root, level: table.geometry.start_level() }
    }

    #[inline]
    pub(super) fn level(self) -> u32 {
        self.level
    }

    #[inline]
    pub(super) fn geometry(self) -> &'t Geometry {
        &self.table.geometry
    }

    #[inline]
    fn pool(self) -> &'t P {
        &self.table.pool
    }

    /// How many entries it has.
    #[inline]
    pub(super) fn entries(self) -> usize {
        self.geometry().entries(self.level)
    }

    #[inline]
    pub(super) fn load(self, index: usize) -> Descriptor {
        assert!(index < self.entries());
        // SAFETY: the node is allocated and the index within it.
        Descriptor(unsafe { self.pool().load(self.at, index) })
    }

    #[inline]
    pub(super) fn entry(self, index: usize) -> Entry<'t, P> {
        let found = self.load(index);
        if found.is_table(self.level) {
            Entry::Table(Node { at: found.address(), level: self.level + 1, ..self })
        } else if found.is_valid() {
            Entry::Leaf(found)
        } else {
            Entry::Empty(found.0)
        }
    }

    /// Writes an entry that nobody else writes meanwhile.
    #[inline]
    pub(super) fn store(self, index: usize, value: Descriptor) {
        assert!(index < self.entries());
        // SAFETY: the node is allocated and the index within it.
        unsafe { self.pool().store(self.at, index, value.0) };
    }

    /// Empties entries; tells how many were valid.
    #[inline]
    pub(super) fn clear(self, entries: Range<usize>) -> usize {
        assert!(entries.start <= entries.end && entries.end <= self.entries());
        let mut valid = 0;
        for index in entries {
            // SAFETY: the node is allocated and the index within it.
            let found = unsafe { self.pool().load(self.at, index) };
            valid += found as usize & 1;
            // SAFETY: as for the load.
            unsafe { self.pool().store(self.at, index, Descriptor::EMPTY.0) };
        }
        valid
    }

    /// The first valid one of some entries.
    #[inline]
    pub(super) fn occupied(self, mut entries: Range<usize>) -> Option<(usize, Descriptor)> {
        assert!(entries.start <= entries.end && entries.end <= self.entries());
        entries.find_map(|index| {
            // SAFETY: the node is allocated and the index within it.
            let found = Descriptor(unsafe { self.pool().load(self.at, index) });
            found.is_valid().then_some((index, found))
        })
    }

    /// Writes entries from `first` on.
    #[inline]
    pub(super) fn put(self, first: usize, count: usize, mut value: impl FnMut(usize) -> u64) {
        assert!(first <= self.entries() && count <= self.entries() - first);
        for n in 0..count {
            // SAFETY: the node is allocated and the index within it.
            unsafe { self.pool().store(self.at, first + n, value(n)) };
        }
    }

    /// See [`Pool::clean`].
    #[inline]
    pub(super) fn clean(self, entries: Range<usize>) {
        self.pool().clean(self.at, entries);
    }

    /// Makes `fresh` the table behind an entry that was `current`, invalid; gives it back if
    /// somebody else was faster. `owned`: nobody else may write the entry.
    #[inline]
    pub(super) fn publish(
        self,
        index: usize,
        current: u64,
        fresh: Fresh,
        owned: bool,
    ) -> Result<Node<'t, P>, Fresh> {
        let new = Descriptor::table(fresh.at);
        if owned {
            self.store(index, new);
        } else {
            assert!(index < self.entries());
            // SAFETY: the node is allocated and the index within it.
            let published = unsafe { self.pool().publish(self.at, index, current, new.0) };
            if published.is_err() {
                return Err(fresh);
            }
        }
        self.clean(index..index + 1);
        Ok(Node { at: fresh.at, level: self.level + 1, ..self })
    }

    /// Empties the entry that leads to `child` and gathers it and all tables below. The caller's
    /// claim covers all its addresses.
    #[inline]
    pub(super) fn unhook(self, index: usize, child: Self, gather: &mut Gather) {
        self.store(index, Descriptor::EMPTY);
        if child.level < LAST {
            child.gather_below(gather);
        }
        // SAFETY: the entry that led to it is empty, and only this claim's owner could have found it.
        unsafe { gather.unhooked(self.pool(), child.at) };
    }

    /// Gathers the tables behind this one's entries, which a walker may still read.
    #[cold]
    fn gather_below(self, gather: &mut Gather) {
        for index in 0..self.entries() {
            if let Entry::Table(child) = self.entry(index) {
                if child.level < LAST {
                    child.gather_below(gather);
                }
                // SAFETY: the table above is unhooked, and so is everything behind it.
                unsafe { gather.unhooked(self.pool(), child.at) };
            }
        }
    }
}

/// A table that no entry leads to.
#[must_use = "it is leaked unless it is published or given back"]
pub(super) struct Fresh {
    at: PhysAddr,
}

impl Fresh {
    /// One table out of `spare`, which is filled up with about `count` if it is empty.
    #[inline]
    pub(super) fn take<P: Pool>(
        table: &PageTable<P>,
        spare: &mut Chain,
        count: impl FnOnce() -> usize,
    ) -> Option<Self> {
        if spare.is_empty() {
            let bytes = table.geometry.page_bytes() as usize;
            *spare = table.pool.alloc_chain(bytes, count());
        }
        // SAFETY: spare tables come from this pool only.
        unsafe { spare.pop(&table.pool) }.map(|at| Self { at })
    }

    /// Makes `spare` at least `count` tables; `false` if there are not so many.
    pub(super) fn reserve<P: Pool>(table: &PageTable<P>, spare: &mut Chain, count: usize) -> bool {
        let bytes = table.geometry.page_bytes() as usize;
        while spare.count() < count {
            let more = table.pool.alloc_chain(bytes, count - spare.count());
            if more.is_empty() {
                return false;
            }
            // SAFETY: all are from this pool.
            unsafe { spare.append(&table.pool, more) };
        }
        true
    }

    pub(super) fn give_back<P: Pool>(self, table: &PageTable<P>, spare: &mut Chain) {
        // SAFETY: it was never published, and whoever filled it is done.
        unsafe { spare.push(&table.pool, self.at) };
    }

    /// Gives spare tables back to the pool.
    #[inline]
    pub(super) fn free<P: Pool>(table: &PageTable<P>, spare: Chain) {
        if !spare.is_empty() {
            // SAFETY: none of them was published, or they were unhooked when no walker was left.
            unsafe { table.pool.free_chain(spare, table.geometry.page_bytes() as usize) };
        }
    }

    /// Lets `fill` write it.
    #[inline]
    pub(super) fn fill<P: Pool, R>(
        &mut self,
        table: &PageTable<P>,
        fill: impl FnOnce(&mut [u64]) -> R,
    ) -> R {
        let bytes = table.geometry.page_bytes() as usize;
        // SAFETY: allocated with this size, not published, and borrowed exclusively.
        unsafe { table.pool.unpublished(self.at, bytes, fill) }
    }

    /// The descriptor that leads to it, for another table that is not published yet.
    pub(super) fn into_descriptor(self) -> Descriptor {
        Descriptor::table(self.at)
    }

    pub(super) fn clean<P: Pool>(&self, table: &PageTable<P>, entries: Range<usize>) {
        table.pool.clean(self.at, entries);
    }
}

/// The root of a new table, empty.
pub(super) fn new_root<P: Pool>(pool: &P, geometry: &Geometry) -> Option<PhysAddr> {
    let root = pool.alloc(geometry.root_bytes())?;
    // SAFETY: allocated just now.
    unsafe { pool.unpublished(root, geometry.root_bytes(), |entries| entries.fill(0)) };
    pool.clean(root, 0..geometry.root_bytes() / 8);
    pool.barrier();
    Some(root)
}

/// Frees a table and everything below.
pub(super) fn free_all<P: Pool>(table: &mut PageTable<P>) {
    let mut below = Gather::new();
    if table.geometry.start_level() < LAST {
        Node::root(table).gather_below(&mut below);
    }
    let bytes = table.geometry.page_bytes() as usize;
    // SAFETY: the table is being dropped, and whoever told hardware of it has taken it back.
    unsafe { below.release(&table.pool, bytes) };
    // SAFETY: as above; it was allocated with this size.
    unsafe { table.pool.free(table.root, table.geometry.root_bytes()) };
}
