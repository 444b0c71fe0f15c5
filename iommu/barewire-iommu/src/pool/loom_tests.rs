//! The free list and two-word entries under a model checker:
//! `RUSTFLAGS="--cfg loom" cargo test -p barewire-iommu --release --lib loom`.
#![allow(unsafe_code, reason = "tables are freed by whoever has them")]

use core::ptr::NonNull;
use std::vec::Vec;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use super::words::{self, Half};
use super::*;

impl Half for AtomicU32 {
    fn load(&self) -> u32 {
        self.load(Ordering::Acquire)
    }

    fn store(&self, value: u32) {
        self.store(value, Ordering::Release);
    }

    fn compare_exchange(&self, current: u32, new: u32) -> Result<u32, u32> {
        self.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
    }

    fn wait() {
        thread::yield_now();
    }
}

/// Two threads that publish the same entry, and a walker.
fn race(values: [u64; 2]) {
    loom::model(move || {
        let entry = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
        let publishers = values.map(|value| {
            let entry = entry.clone();
            thread::spawn(move || words::publish(&entry.0, &entry.1, 0, value))
        });
        let (low, high) = (entry.0.load(Ordering::Acquire), entry.1.load(Ordering::Acquire));
        if low & 1 == 1 {
            assert!(values.contains(&(u64::from(high) << 32 | u64::from(low))), "torn");
        }
        let results = publishers.map(|publisher| publisher.join().expect("no panic"));
        let stands = words::load(&entry.0, &entry.1);
        let winner = values.iter().position(|value| *value == stands).expect("one of them");
        assert_eq!(results[winner], Ok(()));
        assert_eq!(results[1 - winner], Err(stands));
    });
}

#[test]
fn one_publisher_wins_below_4_gib() {
    race([0x1003, 0x2003]);
}

#[test]
fn one_publisher_wins_above() {
    race([0x1_0000_1003, 0x2_0000_2003]);
    race([0x1003, 0x2_0000_2003]);
}

/// An arena with a cell for each table, which the table's owner touches.
struct WatchedPool {
    arena: Arena<'static>,
    touched: Vec<UnsafeCell<()>>,
}

// SAFETY: loom checks the accesses.
unsafe impl Sync for WatchedPool {}
// SAFETY: as for Sync.
unsafe impl Send for WatchedPool {}

const BYTES: usize = 64;

impl WatchedPool {
    /// Creates an arena with `free` of its tables already on the free list.
    fn new(tables: usize, free: usize) -> Arc<Self> {
        let links: Vec<Link> = (0..tables).map(|_| Link::new()).collect();
        // SAFETY: no test asks for the address of a table.
        let arena = unsafe { Arena::new(NonNull::dangling(), PhysAddr(0), BYTES, links.leak()) };
        let arena = arena.expect("aligned");
        let all = arena.alloc_chain(BYTES, free);
        // SAFETY: allocated just now.
        unsafe { arena.free_chain(all, BYTES) };
        Arc::new(Self { arena, touched: (0..tables).map(|_| UnsafeCell::new(())).collect() })
    }

    /// Allocates a table and touches it as its only owner.
    fn take(&self) -> Option<PhysAddr> {
        let table = self.arena.alloc(BYTES)?;
        self.touched[table.0 as usize / BYTES].with_mut(|_| ());
        Some(table)
    }

    fn give(&self, table: PhysAddr) {
        self.touched[table.0 as usize / BYTES].with_mut(|_| ());
        // SAFETY: it was allocated, and is freed once.
        unsafe { self.arena.free(table, BYTES) };
    }

    /// Checks that each table is there exactly once.
    fn check(&self) {
        let mut all: Vec<PhysAddr> = core::iter::from_fn(|| self.take()).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), self.touched.len());
    }
}

fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn no_table_is_handed_out_twice() {
    bounded(|| {
        let pool = WatchedPool::new(3, 3);
        let other = pool.clone();
        // Takes two and frees the first: the list has its old head but a different second table.
        let thread = thread::spawn(move || {
            let tables = (other.take(), other.take());
            if let Some(first) = tables.0 {
                other.give(first);
            }
            tables.1
        });
        let mine = pool.take();
        let theirs = thread.join().expect("no panic");
        assert!(mine.is_some() && theirs.is_some() && mine != theirs);
        mine.into_iter().chain(theirs).for_each(|table| pool.give(table));
        pool.check();
    });
}

#[test]
fn chains_are_whole() {
    bounded(|| {
        let pool = WatchedPool::new(4, 2);
        let other = pool.clone();
        let thread = thread::spawn(move || {
            let mut chain = other.arena.alloc_chain(BYTES, 2);
            let mut count = 0;
            let mut again = Chain::new();
            // SAFETY: tables of this pool, in no other chain.
            while let Some(table) = unsafe { chain.pop(&other.arena) } {
                other.touched[table.0 as usize / BYTES].with_mut(|_| ());
                // SAFETY: as above.
                unsafe { again.push(&other.arena, table) };
                count += 1;
            }
            // SAFETY: allocated, and freed once.
            unsafe { other.arena.free_chain(again, BYTES) };
            count
        });
        let (first, second) = (pool.take(), pool.take());
        first.into_iter().chain(second).for_each(|table| pool.give(table));
        assert!((1..=2).contains(&thread.join().expect("no panic")));
        pool.check();
    });
}

/// While one thread assembles a run, no table is lost to the others and none is handed out twice.
#[test]
fn a_run_is_assembled_beside_others() {
    bounded(|| {
        let pool = WatchedPool::new(3, 3);
        let other = pool.clone();
        let thread = thread::spawn(move || {
            let Some(run) = other.arena.alloc(2 * BYTES) else { return };
            let first = run.0 as usize / BYTES;
            assert_eq!(first % 2, 0, "aligned");
            other.touched[first].with_mut(|_| ());
            other.touched[first + 1].with_mut(|_| ());
            // SAFETY: allocated, and freed once.
            unsafe { other.arena.free(run, 2 * BYTES) };
        });
        // Three are free, and a run has two.
        let mine = pool.take().expect("one is left");
        pool.give(mine);
        thread.join().expect("no panic");
        pool.check();
    });
}

/// Two threads that assemble runs: there is room for both.
#[test]
fn two_runs_are_assembled_at_once() {
    bounded(|| {
        let pool = WatchedPool::new(4, 4);
        let other = pool.clone();
        let thread = thread::spawn(move || other.arena.alloc(2 * BYTES));
        let mine = pool.arena.alloc(2 * BYTES).expect("room");
        let theirs = thread.join().expect("no panic").expect("room");
        assert_ne!(mine, theirs);
        for run in [mine, theirs] {
            // SAFETY: allocated, and freed once.
            unsafe { pool.arena.free(run, 2 * BYTES) };
        }
        pool.check();
    });
}
