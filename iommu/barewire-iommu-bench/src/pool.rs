//! The table memory of all contestants: free lists inside the tables themselves.
//!
//! # How it works
//! A thread takes a [`Lease`] and then has a shard of the memory with a free list to itself. To
//! allocate or free a table takes a few instructions, as in a kernel with a list per processor. The
//! first word of a free table is the address of the next. Physical addresses are addresses of this
//! process.
//!
//! # Safety
//! Only the thread whose lease names a shard accesses it. The number of the shard is in that
//! thread's local storage. A lease stays in its thread and is never given out twice.
#![allow(unsafe_code, reason = "table memory in statics, and free lists through it")]

use core::cell::{Cell, UnsafeCell};
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};

use barewire_iommu::{Chain, PhysAddr, Pool};

/// The size of a table in bytes.
pub const TABLE: usize = 4096;

/// The number of tables in a shard.
const TABLES: usize = if cfg!(miri) { 64 } else { 4096 };

/// The number of threads that may allocate at a time. Tests run side by side.
const SHARDS: usize = 16;

/// The memory of one table.
#[repr(C, align(4096))]
struct Table(UnsafeCell<[u64; TABLE / 8]>);

struct Arena([[Table; TABLES]; SHARDS]);

// SAFETY: plain memory. The pool's contract with its callers says who accesses which table.
unsafe impl Sync for Arena {}

static ARENA: Arena =
    Arena([const { [const { Table(UnsafeCell::new([0; TABLE / 8])) }; TABLES] }; SHARDS]);

/// The tables of one thread.
#[repr(align(128))]
struct Shard {
    taken: AtomicBool,
    /// The address of the first free table that was used before; 0 if there is none.
    free: Cell<u64>,
    /// The number of tables that were given out at least once.
    used: Cell<usize>,
}

// SAFETY: only the leasing thread accesses the cells. `taken` hands them over with acquire and
// release.
unsafe impl Sync for Shard {}

static SHARDS_STATE: [Shard; SHARDS] =
    [const { Shard { taken: AtomicBool::new(false), free: Cell::new(0), used: Cell::new(0) } };
        SHARDS];

std::thread_local! {
    static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// A thread's right to use [`Tables`].
#[derive(Debug)]
pub struct Lease {
    shard: usize,
    stays: PhantomData<*const ()>,
}

impl Lease {
    /// Takes a shard for this thread.
    ///
    /// # Panics
    /// If the thread has a lease already, or too many threads have one.
    pub fn take() -> Self {
        assert_eq!(MINE.get(), usize::MAX, "one lease a thread");
        let free = |shard: &Shard| {
            shard.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let shard = SHARDS_STATE.iter().position(free).expect("fewer threads than shards");
        MINE.set(shard);
        Self { shard, stays: PhantomData }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        MINE.set(usize::MAX);
        SHARDS_STATE[self.shard].taken.store(false, Ordering::Release);
    }
}

/// The pool. A thread that allocates or frees must hold a [`Lease`].
#[derive(Clone, Copy, Debug)]
pub struct Tables;

impl Tables {
    /// The next free table after `table`.
    #[inline]
    fn next_free(self, table: PhysAddr) -> u64 {
        // SAFETY: a free table is its shard's, and its first word a link.
        unsafe { self.pointer(table).read() }
    }

    /// Puts a chain on the free list. Both are linked by addresses in the first words.
    #[inline]
    fn put(self, first: PhysAddr, last: PhysAddr) {
        let shard = &SHARDS_STATE[MINE.get()];
        // SAFETY: the caller no longer uses the tables.
        unsafe { self.pointer(last).write(shard.free.get()) };
        shard.free.set(first.0);
    }
}

// SAFETY: a table is in one free list or belongs to one caller. All tables are 4 KiB large and
// aligned, initialised as statics are, below 2^47 as user space is, and never deallocated.
unsafe impl Pool for Tables {
    const DIRECT: bool = true;
    const COHERENT: bool = true;

    #[inline]
    fn alloc(&self, bytes: usize) -> Option<PhysAddr> {
        if bytes != TABLE {
            return None;
        }
        let index = MINE.get();
        let shard = &SHARDS_STATE[index];
        let free = PhysAddr(shard.free.get());
        if free.0 != 0 {
            shard.free.set(self.next_free(free));
            return Some(free);
        }
        let used = shard.used.get();
        let table = ARENA.0[index].get(used)?;
        shard.used.set(used + 1);
        Some(PhysAddr(table.0.get().addr() as u64))
    }

    #[inline]
    unsafe fn free(&self, table: PhysAddr, bytes: usize) {
        debug_assert_eq!(bytes, TABLE);
        self.put(table, table);
    }

    #[inline]
    fn alloc_chain(&self, bytes: usize, count: usize) -> Chain {
        let first = match self.alloc(bytes) {
            Some(first) => first,
            None => return Chain::new(),
        };
        let shard = &SHARDS_STATE[MINE.get()];
        let (mut last, mut taken) = (first, 1);
        while taken < count && shard.free.get() != 0 {
            // It is already linked to its predecessor, as free tables are.
            last = PhysAddr(shard.free.get());
            shard.free.set(self.next_free(last));
            taken += 1;
        }
        // SAFETY: all were free, and each still links to the next.
        unsafe { Chain::of(first, last) }
    }

    #[inline]
    unsafe fn free_chain(&self, mut chain: Chain, bytes: usize) {
        debug_assert_eq!(bytes, TABLE);
        if let Some((first, last)) = chain.take().ends() {
            self.put(first, last);
        }
    }

    #[inline]
    fn pointer(&self, table: PhysAddr) -> NonNull<u64> {
        NonNull::new(at(table)).expect("no table lies at 0")
    }

    // As the other crates' `phys_to_virt` here, it costs nothing.
    #[inline]
    unsafe fn place(&self, table: PhysAddr) -> NonNull<u64> {
        // SAFETY: the caller promises that this is a table, and a static does not lie at 0.
        unsafe { NonNull::new_unchecked(at(table)) }
    }
}

/// A table's memory: physical addresses are this process's.
#[inline]
fn at(table: PhysAddr) -> *mut u64 {
    (&raw const ARENA).cast_mut().cast::<u64>().with_addr(table.0 as usize)
}

/// Frees a table; for tests that take tables without using them.
#[cfg(test)]
pub(crate) fn give_back(table: PhysAddr) {
    // SAFETY: tests free what they took and did not use.
    unsafe { Tables.free(table, TABLE) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_reused_last_first_and_run_out() {
        let _lease = Lease::take();
        assert_eq!(Tables.alloc(64), None);
        let all: Vec<PhysAddr> = core::iter::from_fn(|| Tables.alloc(TABLE)).collect();
        // The number differs from the shard's if earlier tests kept tables, or freed tables of
        // other shards here: a table goes to the list of the thread that frees it.
        let distinct: std::collections::BTreeSet<u64> = all.iter().map(|table| table.0).collect();
        assert!(all.len() >= 3 && distinct.len() == all.len(), "none twice");
        assert!(all.iter().all(|table| table.0 % TABLE as u64 == 0));
        let last = all[all.len() - 1];
        for &table in &all {
            // SAFETY: it came from the pool and is not used again.
            unsafe { Tables.free(table, TABLE) };
        }
        assert_eq!(Tables.alloc(TABLE), Some(last));
        // SAFETY: as above.
        unsafe { Tables.free(last, TABLE) };
        let chain = Tables.alloc_chain(TABLE, 3);
        assert_eq!(chain.ends(), Some((last, all[all.len() - 3])));
        // SAFETY: as above.
        unsafe { Tables.free_chain(chain, TABLE) };
        let again: Vec<PhysAddr> = core::iter::from_fn(|| Tables.alloc(TABLE)).collect();
        assert!(again.iter().eq(all.iter().rev()), "all of them, in the list's order");
        for table in again {
            // SAFETY: as above.
            unsafe { Tables.free(table, TABLE) };
        }
    }

    #[test]
    fn a_shard_is_one_thread_s() {
        let _lease = Lease::take();
        let mine = Tables.alloc(TABLE).expect("room");
        let other = std::thread::spawn(|| {
            let _lease = Lease::take();
            let table = Tables.alloc(TABLE).expect("room");
            // SAFETY: it came from the pool and is not used again.
            unsafe { Tables.free(table, TABLE) };
            table
        });
        assert_ne!(other.join().expect("it does not panic"), mine);
        // SAFETY: it came from the pool and is not used again.
        unsafe { Tables.free(mine, TABLE) };
    }

    #[test]
    #[should_panic(expected = "one lease a thread")]
    fn a_second_lease_is_refused() {
        let (_one, _two) = (Lease::take(), Lease::take());
    }
}
