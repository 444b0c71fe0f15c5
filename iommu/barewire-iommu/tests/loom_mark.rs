//! A walker that does not snoop the caches, under a model checker: two threads map below the same
//! upper tables, and each finds what it mapped in memory when its call returns.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p barewire-iommu --release --test loom_mark`
//!
//! Every entry is two of loom's words: one for the caches, which all processors share, and one for
//! memory, which the walker reads. A clean reads the first, and the next barrier of the same thread
//! writes what was read to the second. Nothing else ever reaches memory, which is the worst that
//! caches may do.
#![cfg(loom)]
#![allow(unsafe_code, reason = "a pool hands out memory, and parts are claimed for threads")]

mod stacks;

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Mutex;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread::{self, ThreadId};

use barewire_iommu::{
    Access, Attributes, Config, Descriptor, Gather, Iova, PageTable, PhysAddr, Pool, Stage,
};

const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;

/// Entries of each table that may be anything but empty.
const WATCHED: usize = 2;
/// A valid descriptor that no code here writes.
const RUBBISH: u64 = 0xbad_0000_0003;

struct Entry {
    cached: AtomicU64,
    memory: AtomicU64,
}

/// A clean that no barrier has completed: the thread, the table, the entry, and what was cached.
type Cleaning = (ThreadId, PhysAddr, usize, u64);

/// Tables at the addresses 1 to n pages.
struct Ram {
    tables: Vec<[Entry; WATCHED]>,
    /// A mutex of `std`, not of loom: threads are not switched inside it, so it adds no
    /// interleavings.
    free: Mutex<Vec<u64>>,
    cleanings: Mutex<Vec<Cleaning>>,
}

impl Ram {
    fn new(tables: u64) -> Self {
        let rubbish = || AtomicU64::new(RUBBISH);
        let entry = || Entry { cached: rubbish(), memory: rubbish() };
        Self {
            tables: (0..tables).map(|_| [(); WATCHED].map(|()| entry())).collect(),
            free: Mutex::new((1..=tables).rev().map(|n| n * PAGE).collect()),
            cleanings: Mutex::default(),
        }
    }

    fn entry(&self, table: PhysAddr, index: usize) -> Option<&Entry> {
        self.tables[(table.0 / PAGE) as usize - 1].get(index)
    }
}

// SAFETY: a table is with one owner or free.
unsafe impl Pool for Ram {
    fn alloc(&self, _bytes: usize) -> Option<PhysAddr> {
        self.free.lock().expect("no panic").pop().map(PhysAddr)
    }

    unsafe fn free(&self, table: PhysAddr, _bytes: usize) {
        self.free.lock().expect("no panic").push(table.0);
    }

    fn pointer(&self, _table: PhysAddr) -> NonNull<u64> {
        unreachable!("loom's words are no plain memory")
    }

    fn clean(&self, table: PhysAddr, entries: Range<usize>) {
        for index in entries {
            let Some(entry) = self.entry(table, index) else { continue };
            let cached = entry.cached.load(Ordering::Relaxed);
            let cleaning = (thread::current().id(), table, index, cached);
            self.cleanings.lock().expect("no panic").push(cleaning);
        }
    }

    fn barrier(&self) {
        let thread = thread::current().id();
        let mine = |cleaning: &mut Cleaning| cleaning.0 == thread;
        let done: Vec<_> = self.cleanings.lock().expect("no panic").extract_if(.., mine).collect();
        for (_, table, index, cached) in done {
            let entry = self.entry(table, index).expect("watched");
            entry.memory.store(cached, Ordering::Release);
        }
    }

    unsafe fn load(&self, table: PhysAddr, index: usize) -> u64 {
        self.entry(table, index).map_or(0, |entry| entry.cached.load(Ordering::Acquire))
    }

    unsafe fn store(&self, table: PhysAddr, index: usize, value: u64) {
        match self.entry(table, index) {
            Some(entry) => entry.cached.store(value, Ordering::Release),
            None => assert_eq!(value, 0, "an entry that is not watched"),
        }
    }

    unsafe fn publish(
        &self,
        table: PhysAddr,
        index: usize,
        current: u64,
        new: u64,
    ) -> Result<(), u64> {
        let entry = &self.entry(table, index).expect("watched").cached;
        entry.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).map(drop)
    }

    unsafe fn unpublished<R>(
        &self,
        table: PhysAddr,
        bytes: usize,
        fill: impl FnOnce(&mut [u64]) -> R,
    ) -> R {
        let mut entries = vec![RUBBISH; bytes / 8];
        let result = fill(&mut entries);
        assert!(entries[WATCHED.min(bytes / 8)..].iter().all(|entry| *entry == 0));
        for index in 0..WATCHED {
            let entry = self.entry(table, index).expect("watched");
            entry.cached.store(entries.get(index).copied().unwrap_or(0), Ordering::Relaxed);
        }
        result
    }
}

const RW: Attributes = Attributes::new(Stage::One, Access::ReadWrite);

/// What the walker finds in memory for `iova`: a page's descriptor, or a fault.
fn walk(table: &PageTable<Ram>, iova: u64) -> Option<u64> {
    let mut at = table.root();
    for shift in [30, 21, 12] {
        let index = (iova >> shift) as usize & 511;
        let entry = table.pool().entry(at, index)?.memory.load(Ordering::Acquire);
        if entry & 1 == 0 {
            return None;
        }
        assert_ne!(entry, RUBBISH, "a table whose contents are not in memory yet");
        if shift == 12 {
            return Some(entry);
        }
        at = Descriptor(entry).address();
    }
    unreachable!()
}

/// Maps a page in its own part, and has the walker look for it.
fn map_and_walk(table: &PageTable<Ram>, iova: u64) {
    let phys = PhysAddr(iova + 16 * PAGE);
    // SAFETY: the threads' pages are different ones.
    let mut part = unsafe { table.part(Iova(iova)..Iova(iova + PAGE)) };
    let mapped = part.map(Iova(iova), phys, PAGE, RW, &mut Gather::new());
    mapped.expect("free, and there is memory");
    let leaf = Descriptor::leaf(phys, 3, RW.bits()).0;
    assert_eq!(walk(table, iova), Some(leaf), "mapped, but not visible to the walker");
}

/// Two threads map a page each, after a page was mapped at `before`.
fn two_threads(tables: u64, before: Option<u64>, pages: [u64; 2]) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        // Three levels, the root of level 1.
        let config = Config { input_bits: 32, ..Config::default() };
        let table = PageTable::new(config, Ram::new(tables)).expect("room for the root");
        let table = Arc::new(table);
        if let Some(before) = before {
            map_and_walk(&table, before);
        }
        let other = table.clone();
        let thread = thread::spawn(move || map_and_walk(&other, pages[0]));
        map_and_walk(&table, pages[1]);
        thread.join().expect("no panic");
        for iova in pages.into_iter().chain(before) {
            assert!(walk(&table, iova).is_some());
        }
    });
}

#[test]
fn what_is_mapped_beside_an_installer_of_the_last_table_is_visible() {
    // The tables above are there, by a page of another table of the last level.
    two_threads(5, Some(2 * MIB), [0, PAGE]);
}

#[test]
fn what_is_mapped_beside_an_installer_of_a_table_of_tables_is_visible() {
    // Both may make both tables below the root.
    two_threads(5, None, [0, PAGE]);
}

#[test]
fn what_is_mapped_in_another_table_below_a_new_one_is_visible() {
    two_threads(5, None, [0, 2 * MIB]);
}
