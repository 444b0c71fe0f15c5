//! A table that walkers may be reading ([`Node`]), and one that they cannot reach yet ([`Fresh`]).
//!
//! This file and [`quick`](super::quick) are the only access of this folder to table memory. A [`Node`] is the root or was found
//! in a valid entry. It stays allocated while its finder holds the claim to that entry's addresses,
//! since no other caller can unhook it. A [`Fresh`] is allocated and belongs to its owner only.
//!
//! # Safety
//! Both are made only in this file, and indices are checked here.
#![allow(unsafe_code, reason = "table memory is reached through the pool's unsafe methods")]

use core::ops::Range;
use core::ptr::NonNull;

use super::PageTable;
use crate::address::PhysAddr;
use crate::format::{Descriptor, Geometry, LAST};
use crate::gather::Gather;
use crate::pool::{Chain, Pool, entry};

/// A published table.
pub(super) struct Node<'t, P: Pool> {
    table: &'t PageTable<P>,
    at: PhysAddr,
    /// The address of `at` in this address space, if the pool is direct.
    place: NonNull<u64>,
    level: u32,
    /// log2 of the bytes an entry covers.
    shift: u32,
    entries: usize,
}

impl<P: Pool> Clone for Node<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Pool> Copy for Node<'_, P> {}

/// The contents of an entry, as a walk sees them.
pub(super) enum Entry<'t, P: Pool> {
    /// Not valid.
    Empty(u64),
    /// A page, a block, or a valid descriptor that this crate does not write.
    Leaf(Descriptor),
    /// The next table.
    Table(Node<'t, P>),
}

/// The number of entries, or pairs of them, that are cleared together if all of them are valid.
const TOGETHER: usize = 8;

/// Two entries that one instruction of a processor may read.
#[repr(C, align(16))]
struct Pair(u64, u64);

impl<'t, P: Pool> Node<'t, P> {
    #[inline]
    pub(super) fn root(table: &'t PageTable<P>) -> Self {
        let level = table.geometry.start_level();
        let (shift, entries) = (table.geometry.root_shift(), table.geometry.root_entries());
        Self { table, at: table.root, place: place(&table.pool, table.root), level, shift, entries }
    }

    /// The table of `level` at `at`, which has 512 entries, of tables with 4 KiB granules.
    ///
    /// # Safety
    /// `at` was found in a valid entry above the caller's claim, or is the root.
    #[inline]
    pub(super) unsafe fn of_4k(table: &'t PageTable<P>, at: PhysAddr, level: u32) -> Self {
        debug_assert_eq!(table.geometry.page_shift(), 12);
        // Constants, if the level is: no instruction computes them.
        let shift = 12 + 9 * (LAST - level);
        Self { table, at, place: place(&table.pool, at), level, shift, entries: 1 << 9 }
    }

    /// The table at `at`, to which an entry of this one leads or led.
    #[inline]
    pub(super) fn child(self, at: PhysAddr) -> Self {
        let bits = self.geometry().index_bits();
        let (shift, entries) = (self.shift - bits, 1 << bits);
        let place = place(self.pool(), at);
        Self { table: self.table, at, place, level: self.level + 1, shift, entries }
    }

    /// Where it is.
    #[inline]
    pub(super) fn at(self) -> PhysAddr {
        self.at
    }

    #[inline]
    pub(super) fn level(self) -> u32 {
        self.level
    }

    /// log2 of the bytes an entry covers.
    #[inline]
    pub(super) fn shift(self) -> u32 {
        self.shift
    }

    /// The index of the entry that covers `iova`.
    #[inline]
    pub(super) fn index(self, iova: u64) -> usize {
        (iova >> self.shift) as usize & (self.entries - 1)
    }

    #[inline]
    pub(super) fn geometry(self) -> &'t Geometry {
        &self.table.geometry
    }

    #[inline]
    pub(super) fn pool(self) -> &'t P {
        &self.table.pool
    }

    /// The number of entries.
    #[inline]
    pub(super) fn entries(self) -> usize {
        self.entries
    }

    /// # Safety
    /// `index` is below `entries`.
    #[inline]
    unsafe fn get(self, index: usize) -> u64 {
        // SAFETY: promised by the caller.
        unsafe { self.all().get(index) }
    }

    /// # Safety
    /// As for `get`.
    #[inline]
    unsafe fn set(self, index: usize, value: u64) {
        // SAFETY: promised by the caller.
        unsafe { self.all().set(index, value) };
    }

    #[inline]
    pub(super) fn load(self, index: usize) -> Descriptor {
        assert!(index < self.entries);
        // SAFETY: checked.
        Descriptor(unsafe { self.get(index) })
    }

    #[inline]
    pub(super) fn entry(self, index: usize) -> Entry<'t, P> {
        let found = self.load(index);
        if found.is_table(self.level) {
            Entry::Table(self.child(found.address()))
        } else if found.is_valid() {
            Entry::Leaf(found)
        } else {
            Entry::Empty(found.0)
        }
    }

    /// Writes an entry. No other thread writes it meanwhile.
    #[inline]
    pub(super) fn store(self, index: usize, value: Descriptor) {
        assert!(index < self.entries);
        // SAFETY: checked.
        unsafe { self.set(index, value.0) };
    }

    /// All entries.
    #[inline]
    fn all(self) -> Tail<'t, P> {
        Tail { pool: self.pool(), at: self.at, place: self.place, first: 0 }
    }

    /// The entries from `first` on.
    ///
    /// # Safety
    /// `first` is at most `entries`.
    #[inline]
    unsafe fn tail(self, first: usize) -> Tail<'t, P> {
        // SAFETY: promised by the caller.
        unsafe { self.all().after(first) }
    }

    /// Clears leaves, or empty entries, that no other thread writes meanwhile. Returns how many were
    /// valid.
    #[inline]
    pub(super) fn clear(self, entries: Range<usize>) -> usize {
        assert!(entries.start <= entries.end && entries.end <= self.entries);
        let (all, mut empty) = (entries.end - entries.start, 0);
        let mut left = all;
        // SAFETY: checked.
        let mut tail = unsafe { self.tail(entries.start) };
        if left != 0 && !tail.begins_pair() {
            // SAFETY: there is an entry.
            tail = unsafe { tail.clear_some(1, &mut empty) };
            left -= 1;
        }
        for _ in 0..left / (2 * TOGETHER) {
            // SAFETY: as many entries are left.
            tail = unsafe { tail.clear_block::<TOGETHER>(&mut empty) };
        }
        left %= 2 * TOGETHER;
        if left >= TOGETHER {
            // SAFETY: as above.
            tail = unsafe { tail.clear_block::<{ TOGETHER / 2 }>(&mut empty) };
            left -= TOGETHER;
        }
        // SAFETY: as above.
        unsafe { tail.clear_some(left, &mut empty) };
        all - empty
    }

    /// The first valid entry of several. No other thread may write them during the call.
    #[inline]
    pub(super) fn occupied(self, entries: Range<usize>) -> Option<(usize, Descriptor)> {
        assert!(entries.start <= entries.end && entries.end <= self.entries);
        // SAFETY: checked.
        let tail = unsafe { self.tail(entries.start) };
        // SAFETY: checked.
        let any = (0..entries.len()).fold(0, |any, n| any | unsafe { tail.look(n) });
        if Descriptor(any).is_valid() { self.first_occupied(entries) } else { None }
    }

    #[cold]
    fn first_occupied(self, mut entries: Range<usize>) -> Option<(usize, Descriptor)> {
        entries.find_map(|n| {
            let found = self.load(n);
            found.is_valid().then_some((n, found))
        })
    }

    /// Clears leaves from `entries.start` up to the first entry that is none. Returns the index where
    /// it stopped. No other thread writes the leaves meanwhile.
    #[inline]
    pub(super) fn clear_blocks(self, entries: Range<usize>) -> usize {
        assert!(entries.start <= entries.end && entries.end <= self.entries);
        let mut at = entries.start;
        while at < entries.end {
            // SAFETY: within the entries that were checked.
            if !Descriptor(unsafe { self.get(at) }).is_leaf(self.level) {
                break;
            }
            // SAFETY: as above.
            unsafe { self.set(at, Descriptor::EMPTY.0) };
            at += 1;
        }
        at
    }

    /// Writes `count` leaves from `first` on that no other thread writes meanwhile.
    #[inline]
    pub(super) fn put(self, first: usize, count: usize, mut value: impl FnMut(usize) -> u64) {
        assert!(first <= self.entries && count <= self.entries - first);
        // SAFETY: checked.
        let tail = unsafe { self.tail(first) };
        for n in 0..count {
            // SAFETY: checked.
            unsafe { tail.set_leaf(n, value(n)) };
        }
    }

    /// Writes a leaf for each of `items`, from `first` on, that no other thread writes meanwhile.
    #[inline]
    pub(super) fn put_each<T>(self, first: usize, items: &[T], mut value: impl FnMut(&T) -> u64) {
        assert!(first <= self.entries && items.len() <= self.entries - first);
        // SAFETY: checked.
        let tail = unsafe { self.tail(first) };
        for (n, item) in items.iter().enumerate() {
            // SAFETY: checked.
            unsafe { tail.set_leaf(n, value(item)) };
        }
    }

    /// Clears entries that lead to tables, from `entries.start` up to the first that does not, and
    /// gathers those tables. Returns the index where it stopped. The caller's claim covers all
    /// their addresses.
    #[inline]
    pub(super) fn unhook_tables(self, entries: Range<usize>, gather: &mut Gather) -> usize {
        assert!(entries.start <= entries.end && entries.end <= self.entries);
        let mut at = entries.start;
        let (gathered, count) = gather.unhooked();
        let mut chain = gathered.take();
        while at < entries.end {
            // SAFETY: within the entries that were checked.
            let found = Descriptor(unsafe { self.get(at) });
            if !found.is_table(self.level) {
                break;
            }
            // SAFETY: as above.
            unsafe { self.set(at, Descriptor::EMPTY.0) };
            if self.level + 1 < LAST {
                let (below, tables) = self.child(found.address()).below();
                // SAFETY: the table above them is unhooked.
                unsafe { chain.append(self.pool(), below) };
                *count += tables;
            }
            // SAFETY: no entry leads to it, and only the owner of this claim could have found it.
            unsafe { chain.push(self.pool(), found.address()) };
            at += 1;
        }
        *gathered = chain;
        *count += at - entries.start;
        at
    }

    /// See [`Pool::clean`].
    #[inline]
    pub(super) fn clean(self, entries: Range<usize>) {
        self.pool().clean(self.at, entries);
    }

    /// Installs `fresh` in an entry whose value was `current`, which is invalid. Returns `fresh` if
    /// another thread was faster. `owned`: no other thread may write the entry.
    #[inline]
    pub(super) fn publish(
        self,
        index: usize,
        current: u64,
        fresh: Fresh,
        owned: bool,
    ) -> Result<Node<'t, P>, Fresh> {
        let at = fresh.at;
        if owned {
            self.store(index, fresh.into_descriptor::<P>());
            self.clean(index..index + 1);
        } else {
            assert!(index < self.entries);
            let new = Descriptor::table(at);
            // SAFETY: the node is allocated and the index within it.
            let published = unsafe { self.pool().publish(self.at, index, current, new.0) };
            if published.is_err() {
                return Err(fresh);
            }
            self.clean(index..index + 1);
            self.mark(index, new);
        }
        Ok(self.child(at))
    }

    /// The tables below this one as a chain, and their number. A walker may still read them.
    #[cold]
    fn below(self) -> (Chain, usize) {
        let (mut chain, mut count) = (Chain::new(), 0);
        for index in 0..self.entries {
            if let Entry::Table(child) = self.entry(index) {
                if child.level < LAST {
                    let (below, tables) = child.below();
                    // SAFETY: the table above them is about to be chained.
                    unsafe { chain.append(self.pool(), below) };
                    count += tables;
                }
                // SAFETY: the table above is unhooked, and so are all tables below it.
                unsafe { chain.push(self.pool(), child.at) };
                count += 1;
            }
        }
        (chain, count)
    }
}

impl<P: Pool> Node<'_, P> {
    /// Adds this table and the tables below it to `spare`. No entry leads to it any more, an
    /// invalidation of the walks through all of them has completed, and the caller's claim covers
    /// its span.
    pub(super) fn into_spare(self, spare: &mut Chain) {
        if self.level < LAST {
            let (below, _) = self.below();
            // SAFETY: all are of this pool, and nothing reaches them.
            unsafe { spare.append(self.pool(), below) };
        }
        // SAFETY: as above; it is in no chain.
        unsafe { spare.push(self.pool(), self.at) };
    }
}

/// The entries of a published table, from one on.
struct Tail<'t, P: Pool> {
    pool: &'t P,
    at: PhysAddr,
    /// The address of the entries, if the pool is direct.
    place: NonNull<u64>,
    first: usize,
}

impl<P: Pool> Tail<'_, P> {
    /// # Safety
    /// There are more than `n` entries.
    #[inline]
    unsafe fn get(&self, n: usize) -> u64 {
        if P::DIRECT {
            // SAFETY: the table is allocated, its tail at this place, and the entry within it.
            unsafe { entry::load(self.place, n) }
        } else {
            // SAFETY: the table is allocated and the entry within it.
            unsafe { self.pool.load(self.at, self.first + n) }
        }
    }

    /// Like `get`, but may be reordered and combined with other accesses.
    ///
    /// # Safety
    /// As for `get`, and no other thread writes the entry meanwhile, though walkers may read it.
    #[inline]
    unsafe fn look(&self, n: usize) -> u64 {
        if P::DIRECT {
            // SAFETY: as for `get`.
            let place = unsafe { self.place.add(n) };
            // SAFETY: as for `get`, and no thread writes it.
            unsafe { place.read() }
        } else {
            // SAFETY: as for `get`.
            unsafe { self.get(n) }
        }
    }

    /// Writes a leaf, or clears one.
    ///
    /// # Safety
    /// As for `get`.
    #[inline]
    unsafe fn set_leaf(&self, n: usize, value: u64) {
        if P::DIRECT {
            // SAFETY: the table is allocated, its tail at this place, and the entry within it.
            unsafe { entry::store_leaf(self.place, n, value) };
        } else {
            // SAFETY: the table is allocated and the entry within it.
            unsafe { self.pool.store(self.at, self.first + n, value) };
        }
    }

    /// # Safety
    /// As for `get`.
    #[inline]
    unsafe fn set(&self, n: usize, value: u64) {
        if P::DIRECT {
            // SAFETY: the table is allocated, its tail at this place, and the entry within it.
            unsafe { entry::store(self.place, n, value) };
        } else {
            // SAFETY: the table is allocated and the entry within it.
            unsafe { self.pool.store(self.at, self.first + n, value) };
        }
    }

    /// Whether a [`Pair`] may begin here. A table's address in this address space need not be aligned
    /// like its physical address.
    #[inline]
    fn begins_pair(&self) -> bool {
        !P::DIRECT || self.place.cast::<Pair>().is_aligned()
    }

    /// What `look` returns for entries `2 * n` and `2 * n + 1`.
    ///
    /// # Safety
    /// As for `look`, for both, and [`begins_pair`](Self::begins_pair).
    #[inline]
    unsafe fn look_at_pair(&self, n: usize) -> (u64, u64) {
        if P::DIRECT {
            // SAFETY: both entries are within the table.
            let place = unsafe { self.place.cast::<Pair>().add(n) };
            // SAFETY: as for `look`, and aligned because the tail is.
            let Pair(first, second) = unsafe { place.read() };
            (first, second)
        } else {
            // SAFETY: promised by the caller.
            let first = unsafe { self.get(2 * n) };
            // SAFETY: as above.
            (first, unsafe { self.get(2 * n + 1) })
        }
    }

    /// Clears `PAIRS` pairs of entries, adds the number of those that were not valid to `empty`, and returns
    /// the tail after them.
    ///
    /// # Safety
    /// As for `look_at_pair`, for each of them.
    #[inline]
    unsafe fn clear_block<const PAIRS: usize>(self, empty: &mut usize) -> Self {
        debug_assert!(self.begins_pair(), "an aligned pair");
        let all = (0..PAIRS).fold((u64::MAX, u64::MAX), |all, n| {
            // SAFETY: promised by the caller.
            let pair = unsafe { self.look_at_pair(n) };
            (all.0 & pair.0, all.1 & pair.1)
        });
        if !Descriptor(all.0 & all.1).is_valid() {
            // SAFETY: promised by the caller.
            *empty += unsafe { self.count_empty(2 * PAIRS) };
        }
        for n in 0..2 * PAIRS {
            // SAFETY: promised by the caller.
            unsafe { self.set_leaf(n, Descriptor::EMPTY.0) };
        }
        // SAFETY: promised by the caller.
        unsafe { self.after(2 * PAIRS) }
    }

    /// Clears `count` entries, adds the number of those that were not valid to `empty`, and returns the tail
    /// after them.
    ///
    /// # Safety
    /// As for `look`, for each of them.
    #[inline]
    unsafe fn clear_some(self, count: usize, empty: &mut usize) -> Self {
        for n in 0..count {
            // SAFETY: promised by the caller.
            *empty += usize::from(!Descriptor(unsafe { self.look(n) }).is_valid());
            // SAFETY: as above.
            unsafe { self.set_leaf(n, Descriptor::EMPTY.0) };
        }
        // SAFETY: promised by the caller.
        unsafe { self.after(count) }
    }

    /// The number of entries among the first `n` that are not valid.
    ///
    /// # Safety
    /// As for `look`, for each of them.
    #[cold]
    #[inline(never)]
    unsafe fn count_empty(&self, n: usize) -> usize {
        // SAFETY: promised by the caller.
        (0..n).filter(|n| !Descriptor(unsafe { self.look(*n) }).is_valid()).count()
    }

    /// # Safety
    /// There are at least `n` entries.
    #[inline]
    unsafe fn after(self, n: usize) -> Self {
        // SAFETY: the caller promises that this is within the table or at its end, if the pool is
        // direct.
        let place = if P::DIRECT { unsafe { self.place.add(n) } } else { self.place };
        Self { place, first: self.first + n, ..self }
    }
}

/// The pointer to a table if the pool is direct; dangling otherwise.
#[inline]
fn place<P: Pool>(pool: &P, table: PhysAddr) -> NonNull<u64> {
    if P::DIRECT { pool.pointer(table) } else { NonNull::dangling() }
}

/// The largest number of tables that a call allocates ahead.
pub(super) const AHEAD: usize = 64;

/// A table that no entry leads to.
#[must_use = "it is leaked unless it is published or given back"]
pub(super) struct Fresh {
    at: PhysAddr,
}

impl Fresh {
    /// Takes a table from `spare`. If `spare` is empty, it is first refilled with about `count`
    /// tables.
    #[inline]
    pub(super) fn take<P: Pool>(
        table: &PageTable<P>,
        spare: &mut Chain,
        count: impl FnOnce() -> usize,
    ) -> Option<Self> {
        if spare.is_empty() {
            let (bytes, count) = (table.geometry.page_bytes() as usize, count());
            if count == 1 {
                return table.pool.alloc(bytes).map(|at| Self { at });
            }
            *spare = table.pool.alloc_chain(bytes, count);
        }
        // SAFETY: spare tables come from this pool only.
        unsafe { spare.pop(&table.pool) }.map(|at| Self { at })
    }

    /// Adds `count` tables to `spare`. Returns `false` if the pool has fewer.
    pub(super) fn reserve<P: Pool>(table: &PageTable<P>, spare: &mut Chain, count: usize) -> bool {
        let bytes = table.geometry.page_bytes() as usize;
        (0..count).all(|_| {
            let one = table.pool.alloc_chain(bytes, 1);
            let some = !one.is_empty();
            // SAFETY: all are from this pool.
            unsafe { spare.append(&table.pool, one) };
            some
        })
    }

    pub(super) fn give_back<P: Pool>(self, table: &PageTable<P>, spare: &mut Chain) {
        // SAFETY: it was never published, and its filling has ended.
        unsafe { spare.push(&table.pool, self.at) };
    }

    /// Returns spare tables to the pool.
    #[inline]
    pub(super) fn free<P: Pool>(table: &PageTable<P>, spare: Chain) {
        if !spare.is_empty() {
            // SAFETY: none of them was published, or they were unhooked while no walker was left.
            unsafe { table.pool.free_chain(spare, table.geometry.page_bytes() as usize) };
        }
    }

    /// Calls `fill` with its words.
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

    /// The descriptor that leads to it, for an entry that no other thread reaches before this call
    /// ends: it is marked as clean although it is not yet (see [`mark`](super::mark)).
    #[inline]
    pub(super) fn into_descriptor<P: Pool>(self) -> Descriptor {
        let table = Descriptor::table(self.at);
        if P::COHERENT { table } else { table.marked() }
    }

    /// Makes its contents visible to walkers, before it is published.
    pub(super) fn clean<P: Pool>(&self, table: &PageTable<P>, entries: Range<usize>) {
        if !P::COHERENT {
            table.pool.clean(self.at, entries);
            table.pool.barrier();
        }
    }
}

/// Allocates an empty root.
pub(super) fn new_root<P: Pool>(pool: &P, geometry: &Geometry) -> Option<PhysAddr> {
    let root = pool.alloc(geometry.root_bytes())?;
    // SAFETY: allocated just now.
    unsafe { pool.unpublished(root, geometry.root_bytes(), |entries| entries.fill(0)) };
    pool.clean(root, 0..geometry.root_bytes() / 8);
    pool.barrier();
    Some(root)
}

/// Frees a table and all tables below it.
pub(super) fn free_all<P: Pool>(table: &mut PageTable<P>) {
    let root = Node::root(table);
    let below = if root.level < LAST { root.below().0 } else { Chain::new() };
    // SAFETY: the table is being dropped, and the owner has detached the hardware.
    unsafe { table.pool.free_chain(below, table.geometry.page_bytes() as usize) };
    // SAFETY: as above; it was allocated with this size.
    unsafe { table.pool.free(table.root, table.geometry.root_bytes()) };
}
