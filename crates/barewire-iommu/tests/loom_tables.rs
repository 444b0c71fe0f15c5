//! Concurrent work on one table under a model checker: parts that share upper tables, and a walker.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p barewire-iommu --release --test loom_tables`
//!
//! How a table's memory is modelled: what `unpublished` filled is a cell, so that whoever reads an
//! entry without having seen the table's publication is a data race; entries that the tests work on
//! are loom's atomics from then on, and no other may be written.
#![cfg(loom)]
#![allow(
    unsafe_code,
    reason = "a pool hands out memory, and parts are claimed for several threads"
)]

use std::collections::HashMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use barewire_iommu::{
    Access, Attributes, Config, Gather, Granule, Iova, PageTable, PhysAddr, Pool, Stage,
};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

const TABLES: usize = 8;
/// Entries of any table that are written once it is published.
const WORKED_ON: [usize; 3] = [0, 1, 2];

/// A table's memory.
struct Table {
    /// As it was published.
    filled: UnsafeCell<Vec<u64>>,
    /// Entries that are worked on since.
    live: Mutex<HashMap<usize, Arc<AtomicU64>>>,
}

struct Memory {
    tables: Vec<Table>,
    free: Mutex<Vec<usize>>,
    /// Who takes a table has seen what was done with it before it was freed, as in any allocator.
    handed_over: AtomicU64,
}

// SAFETY: what is in the cells is checked by loom at every access.
unsafe impl Sync for Memory {}
// SAFETY: as above.
unsafe impl Send for Memory {}

impl Memory {
    fn new() -> Self {
        let table = || Table { filled: UnsafeCell::new(Vec::new()), live: Mutex::default() };
        Self {
            tables: (0..TABLES).map(|_| table()).collect(),
            free: Mutex::new((0..TABLES).rev().collect()),
            handed_over: AtomicU64::new(0),
        }
    }

    fn table(&self, at: PhysAddr) -> &Table {
        &self.tables[(at.0 >> 16) as usize - 1]
    }

    fn in_use(&self) -> usize {
        TABLES - self.free.lock().unwrap().len()
    }

    /// The entry as it was published, and the atomic that it has become.
    fn entry(&self, at: PhysAddr, index: usize) -> (u64, Option<Arc<AtomicU64>>) {
        let table = self.table(at);
        // SAFETY: read only, and loom tells who writes at the same time.
        let filled = table.filled.with(|filled| unsafe { &*filled }[index]);
        (filled, table.live.lock().unwrap().get(&index).cloned())
    }

    fn live(&self, at: PhysAddr, index: usize) -> Arc<AtomicU64> {
        self.entry(at, index).1.expect("one of the entries the tests work on")
    }
}

// SAFETY: a table is handed out once until it is freed, and reached by these methods alone.
unsafe impl Pool for &'static Memory {
    fn alloc(&self, _bytes: usize) -> Option<PhysAddr> {
        self.handed_over.fetch_add(1, Ordering::AcqRel);
        let index = self.free.lock().unwrap().pop()?;
        Some(PhysAddr((index as u64 + 1) << 16))
    }

    unsafe fn free(&self, table: PhysAddr, _bytes: usize) {
        self.handed_over.fetch_add(1, Ordering::AcqRel);
        let mut free = self.free.lock().unwrap();
        let index = (table.0 >> 16) as usize - 1;
        assert!(!free.contains(&index), "freed twice");
        free.push(index);
    }

    fn pointer(&self, _table: PhysAddr) -> NonNull<u64> {
        unreachable!("tables are reached by index")
    }

    fn clean(&self, _table: PhysAddr, _entries: Range<usize>) {}

    fn barrier(&self) {}

    unsafe fn load(&self, table: PhysAddr, index: usize) -> u64 {
        let (filled, live) = self.entry(table, index);
        live.map_or(filled, |live| live.load(Ordering::Acquire))
    }

    unsafe fn store(&self, table: PhysAddr, index: usize, value: u64) {
        self.live(table, index).store(value, Ordering::Release);
    }

    unsafe fn publish(
        &self,
        table: PhysAddr,
        index: usize,
        current: u64,
        new: u64,
    ) -> Result<(), u64> {
        let entry = self.live(table, index);
        entry.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).map(drop)
    }

    // A link is written before a table is published, or after it was unhooked.
    unsafe fn link(&self, table: PhysAddr, next: PhysAddr) {
        self.table(table).live.lock().unwrap().insert(0, Arc::new(AtomicU64::new(next.0)));
    }

    unsafe fn next(&self, table: PhysAddr) -> PhysAddr {
        PhysAddr(self.table(table).live.lock().unwrap()[&0].load(Ordering::Relaxed))
    }

    unsafe fn unpublished<R>(
        &self,
        at: PhysAddr,
        bytes: usize,
        fill: impl FnOnce(&mut [u64]) -> R,
    ) -> R {
        let table = self.table(at);
        let filled = table.filled.with_mut(|filled| {
            // SAFETY: loom tells who looks at the same time.
            let filled = unsafe { &mut *filled };
            // Whatever was there before: an entry that nobody fills is not empty.
            filled.resize(bytes / 8, 0xbad1);
            fill(filled)
        });
        let live = WORKED_ON.map(|index| {
            // SAFETY: as above.
            let value = table.filled.with(|filled| unsafe { &*filled }[index]);
            (index, Arc::new(AtomicU64::new(value)))
        });
        *table.live.lock().unwrap() = HashMap::from(live);
        filled
    }
}

type Shared = Arc<PageTable<&'static Memory>>;

const PAGE: u64 = 1 << 14;
/// What a last-level table of 16 KiB pages covers.
const SPAN: u64 = PAGE << 11;

fn attributes() -> Attributes {
    Attributes::new(Stage::One, Access::ReadWrite)
}

fn phys(iova: u64) -> u64 {
    (1 << 30) + iova
}

fn map(table: &Shared, claim: Range<u64>, iova: u64, bytes: u64) {
    let mut gather = Gather::new();
    // SAFETY: the tests give each thread a range of its own.
    let mut part = unsafe { table.part(Iova(claim.start)..Iova(claim.end)) };
    let mapped = part.map(Iova(iova), PhysAddr(phys(iova)), bytes, attributes(), &mut gather);
    mapped.unwrap();
    assert!(gather.is_empty());
}

fn unmap(table: &Shared, claim: Range<u64>, iova: u64, bytes: u64) -> Gather {
    let mut gather = Gather::new();
    // SAFETY: as above.
    let mut part = unsafe { table.part(Iova(claim.start)..Iova(claim.end)) };
    part.unmap(Iova(iova), bytes, &mut gather).unwrap();
    gather
}

/// Old, new or a fault: nothing else may be seen, whenever one looks.
fn walk(table: &Shared, iova: u64) -> bool {
    let found = table.iova_to_phys(Iova(iova));
    if let Some(found) = found {
        assert_eq!(found.phys.0, phys(iova));
    }
    found.is_some()
}

fn model(granule: Granule, tables: usize, test: impl Fn(&Shared) + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 10_000;
    builder.check(move || {
        let memory: &'static Memory = Box::leak(Box::new(Memory::new()));
        let config = Config { granule, input_bits: 32, ..Config::default() };
        let table = Arc::new(PageTable::new(config, memory).unwrap());
        test(&table);
        assert_eq!(memory.in_use(), tables, "the loser gave its table back");
        drop(Arc::into_inner(table).expect("every thread is done"));
        assert_eq!(memory.in_use(), 0);
        // SAFETY: leaked above, and nobody has it any more.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(memory).cast_mut()) });
    });
}

/// Two parts of one last-level table: one of the threads installs it, a third walks.
#[test]
fn neighbours_install_the_same_table_and_a_walker_looks() {
    model(Granule::Size16K, 2, |table| {
        let (other, walker) = (Arc::clone(table), Arc::clone(table));
        let other = thread::spawn(move || map(&other, PAGE..2 * PAGE, PAGE, PAGE));
        let walker = thread::spawn(move || {
            let before = walk(&walker, PAGE);
            assert!(walk(&walker, PAGE) || !before, "what was mapped stays");
        });
        map(table, 0..PAGE, 0, PAGE);
        other.join().unwrap();
        walker.join().unwrap();
        assert!(walk(table, 0) && walk(table, PAGE) && !walk(table, 2 * PAGE));
    });
}

/// Three levels: the race is run twice.
#[test]
fn neighbours_install_two_levels() {
    model(Granule::Size4K, 3, |table| {
        let other = Arc::clone(table);
        let other = thread::spawn(move || map(&other, 4096..8192, 4096, 4096));
        map(table, 0..4096, 0, 4096);
        other.join().unwrap();
        assert!(walk(table, 0) && walk(table, 4096) && !walk(table, 8192));
    });
}

/// One empties its leaf while the other maps: the table stays, though it was empty in between.
#[test]
fn emptying_a_table_does_not_take_it_from_a_neighbour() {
    model(Granule::Size16K, 2, |table| {
        let other = Arc::clone(table);
        let other = thread::spawn(move || {
            map(&other, PAGE..2 * PAGE, PAGE, PAGE);
            let gather = unmap(&other, PAGE..2 * PAGE, PAGE, PAGE);
            assert_eq!((gather.tables(), gather.is_empty()), (0, false));
        });
        map(table, 0..PAGE, 0, PAGE);
        other.join().unwrap();
        assert!(walk(table, 0) && !walk(table, PAGE));
    });
}

/// One unhooks its table whole while a neighbour works beside it and a walker is in it: freed only
/// when the walker has gone, which is what an invalidation waits for.
#[test]
fn a_table_is_unhooked_beside_a_neighbour_and_under_a_walker() {
    model(Granule::Size16K, 2, |table| {
        map(table, 0..SPAN, 0, 2 * PAGE);
        let (other, walker) = (Arc::clone(table), Arc::clone(table));
        let other = thread::spawn(move || map(&other, SPAN..2 * SPAN, SPAN, PAGE));
        let walker = thread::spawn(move || {
            let before = walk(&walker, PAGE);
            assert!(before || !walk(&walker, PAGE), "what is unmapped stays so");
        });
        let mut gather = unmap(table, 0..SPAN, 0, SPAN);
        assert_eq!(gather.tables(), 1);
        walker.join().unwrap();
        other.join().unwrap();
        // SAFETY: no walker is left.
        unsafe { table.release(&mut gather) };
        assert!(!walk(table, 0) && walk(table, SPAN));
    });
}
