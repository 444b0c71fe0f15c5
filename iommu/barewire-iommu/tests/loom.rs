//! Parts of one table under a model checker: threads that map and unmap below the same upper tables,
//! and a walker that reads as hardware does.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p barewire-iommu --release --test loom`
//!
//! Table memory is loom's: a table's entries contain rubbish until they are filled, and again after
//! the table is freed. A walker that finds rubbish came too early or stayed too long.
#![cfg(loom)]
#![allow(unsafe_code, reason = "a pool hands out memory, and parts are claimed for threads")]

mod stacks;

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Mutex;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use barewire_iommu::{
    Access, Attributes, Config, Context, Descriptor, Domain, FlushError, Gather, Granule,
    Invalidate, Iova, IovaWindow, PageTable, PhysAddr, Pool, Segment, Stage, Tlbi,
};

const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;

/// Entries of each table that may be anything but empty.
const WATCHED: usize = 3;
/// A valid descriptor that the driver never writes.
const RUBBISH: u64 = 0xbad_0000_0003;

struct Table {
    entries: [AtomicU64; WATCHED],
}

/// Tables at the addresses 1 to n pages.
struct Ram {
    tables: Vec<Table>,
    /// A mutex of `std`, not of loom: threads are not switched inside it, so it adds no
    /// interleavings.
    free: Mutex<Vec<u64>>,
}

impl Ram {
    fn new(tables: u64) -> Self {
        let rubbish = || Table { entries: [(); WATCHED].map(|()| AtomicU64::new(RUBBISH)) };
        Self {
            tables: (0..tables).map(|_| rubbish()).collect(),
            free: Mutex::new((1..=tables).rev().map(|n| n * PAGE).collect()),
        }
    }

    fn entry(&self, table: PhysAddr, index: usize) -> Option<&AtomicU64> {
        self.tables[(table.0 / PAGE) as usize - 1].entries.get(index)
    }

    fn overwrite(&self, table: PhysAddr, value: impl Fn(usize) -> u64) {
        for index in 0..WATCHED {
            self.entry(table, index).expect("watched").store(value(index), Ordering::Relaxed);
        }
    }
}

// SAFETY: a table is with one owner or free.
unsafe impl Pool for Ram {
    fn alloc(&self, _bytes: usize) -> Option<PhysAddr> {
        self.free.lock().expect("no panic").pop().map(PhysAddr)
    }

    unsafe fn free(&self, table: PhysAddr, _bytes: usize) {
        self.overwrite(table, |_| RUBBISH);
        self.free.lock().expect("no panic").push(table.0);
    }

    fn pointer(&self, _table: PhysAddr) -> NonNull<u64> {
        unreachable!("loom's words are no plain memory")
    }

    unsafe fn load(&self, table: PhysAddr, index: usize) -> u64 {
        self.entry(table, index).map_or(0, |entry| entry.load(Ordering::Acquire))
    }

    unsafe fn store(&self, table: PhysAddr, index: usize, value: u64) {
        match self.entry(table, index) {
            Some(entry) => entry.store(value, Ordering::Release),
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
        let entry = self.entry(table, index).expect("watched");
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
        self.overwrite(table, |index| entries.get(index).copied().unwrap_or(0));
        result
    }
}

type Shared = Arc<PageTable<Ram>>;

/// Three levels, the root of level 1.
fn table(tables: u64) -> Shared {
    let config = Config { input_bits: 32, ..Config::default() };
    Arc::new(PageTable::new(config, Ram::new(tables)).expect("room for the root"))
}

const RW: Attributes = Attributes::new(Stage::One, Access::ReadWrite);

fn leaf(phys: u64) -> u64 {
    Descriptor::leaf(PhysAddr(phys), 3, RW.bits()).0
}

/// What hardware finds for `iova`: a page's descriptor, or a fault.
fn walk(table: &Shared, iova: u64) -> Option<u64> {
    let mut at = table.root();
    for shift in [30, 21, 12] {
        let index = (iova >> shift) as usize & 511;
        let entry = table.pool().entry(at, index)?.load(Ordering::Acquire);
        if entry & 1 == 0 {
            return None;
        }
        assert_ne!(entry, RUBBISH, "a table that is not published yet, or freed");
        if shift == 12 {
            return Some(entry);
        }
        at = Descriptor(entry).address();
    }
    unreachable!()
}

/// Runs `work` on a part in a thread of its own. Its gather is released when all threads are done, as if
/// by an invalidation.
fn spawn(
    table: &Shared,
    range: Range<u64>,
    work: impl FnOnce(&mut barewire_iommu::Part<'_, Ram>, &mut Gather) + Send + 'static,
) -> thread::JoinHandle<Gather> {
    let table = table.clone();
    thread::spawn(move || {
        let mut gather = Gather::new();
        // SAFETY: the threads' ranges are disjoint.
        let mut part = unsafe { table.part(Iova(range.start)..Iova(range.end)) };
        work(&mut part, &mut gather);
        gather
    })
}

fn finish(table: &Shared, threads: impl IntoIterator<Item = thread::JoinHandle<Gather>>) {
    let gathers: Vec<Gather> =
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    for mut gather in gathers {
        // SAFETY: the gather is of this table, and the walker is done.
        unsafe { table.release(&mut gather) };
    }
}

fn map(part: &mut barewire_iommu::Part<'_, Ram>, iova: u64, phys: u64, gather: &mut Gather) {
    part.map(Iova(iova), PhysAddr(phys), PAGE, RW, gather).expect("free, and there is memory");
}

#[test]
fn neighbours_in_one_table() {
    loom::model(|| {
        // Each thread may allocate both tables below the root, so there must be room for two of
        // each.
        let table = table(5);
        let threads = [0, 1].map(|n| {
            spawn(&table, n * PAGE..(n + 1) * PAGE, move |part, gather| {
                map(part, n * PAGE, (n + 16) * PAGE, gather);
                let found = part.iova_to_phys(Iova(n * PAGE)).expect("mapped just now");
                assert_eq!(found.phys, PhysAddr((n + 16) * PAGE));
            })
        });
        for n in [0, 1] {
            let found = walk(&table, n * PAGE);
            assert!(found.is_none_or(|found| found == leaf((n + 16) * PAGE)), "{found:x?}");
        }
        finish(&table, threads);
        for n in [0, 1] {
            assert_eq!(walk(&table, n * PAGE), Some(leaf((n + 16) * PAGE)));
        }
        // The loser's tables went back.
        assert_eq!(table.pool().free.lock().expect("no panic").len(), 2);
    });
}

#[test]
fn mapping_beside_unmapping() {
    loom::model(|| {
        let table = table(5);
        // SAFETY: no other part yet.
        let mut first = unsafe { table.part(Iova(0)..Iova(PAGE)) };
        map(&mut first, 0, 16 * PAGE, &mut Gather::new());
        drop(first);
        let unmaps = spawn(&table, 0..PAGE, |part, gather| {
            assert_eq!(part.unmap(Iova(0), PAGE, gather), Ok(PAGE));
            map(part, 0, 18 * PAGE, gather);
        });
        let maps = spawn(&table, PAGE..2 * PAGE, |part, gather| {
            map(part, PAGE, 17 * PAGE, gather);
        });
        let found = walk(&table, 0);
        assert!(
            found.is_none_or(|found| found == leaf(16 * PAGE) || found == leaf(18 * PAGE)),
            "{found:x?}"
        );
        let found = walk(&table, PAGE);
        assert!(found.is_none_or(|found| found == leaf(17 * PAGE)), "{found:x?}");
        finish(&table, [unmaps, maps]);
        assert_eq!(walk(&table, 0), Some(leaf(18 * PAGE)));
        assert_eq!(walk(&table, PAGE), Some(leaf(17 * PAGE)));
    });
}

#[test]
fn tables_go_beside_tables_that_come() {
    loom::model(|| {
        let table = table(7);
        // SAFETY: no other part yet.
        let mut first = unsafe { table.part(Iova(0)..Iova(4 * MIB)) };
        for at in [0, 2 * MIB] {
            map(&mut first, at, 16 * PAGE + at, &mut Gather::new());
        }
        drop(first);
        // Two tables are unhooked and linked to each other while a walker may be in them.
        let unmaps = spawn(&table, 0..4 * MIB, |part, gather| {
            assert_eq!(part.unmap(Iova(0), 4 * MIB, gather), Ok(4 * MIB));
            assert_eq!(gather.tables(), 2);
            map(part, 2 * MIB, 18 * PAGE, gather);
        });
        let maps = spawn(&table, 4 * MIB..4 * MIB + PAGE, |part, gather| {
            map(part, 4 * MIB, 17 * PAGE, gather);
            assert_eq!(part.unmap(Iova(4 * MIB), PAGE, gather), Ok(PAGE));
        });
        let found = walk(&table, 2 * MIB);
        assert!(
            found
                .is_none_or(|found| found == leaf(16 * PAGE + 2 * MIB) || found == leaf(18 * PAGE)),
            "{found:x?}"
        );
        let found = walk(&table, 4 * MIB);
        assert!(found.is_none_or(|found| found == leaf(17 * PAGE)), "{found:x?}");
        finish(&table, [unmaps, maps]);
        assert_eq!(
            [0, 2 * MIB, 4 * MIB].map(|at| walk(&table, at)),
            [None, Some(leaf(18 * PAGE)), None]
        );
    });
}

#[test]
fn a_failed_call_leaves_the_neighbour_alone() {
    loom::model(|| {
        // Room for the root and one table of each level. Both threads need both tables, so one of
        // them may fail.
        let table = table(3);
        let threads = [0, 1].map(|n| {
            spawn(&table, n * PAGE..(n + 1) * PAGE, move |part, gather| {
                let list = [Segment { phys: PhysAddr((n + 16) * PAGE), len: PAGE }];
                if part.map_sg(Iova(n * PAGE), &list, RW, gather).is_ok() {
                    assert_eq!(part.unmap(Iova(n * PAGE), PAGE, gather), Ok(PAGE));
                }
            })
        });
        for n in [0, 1] {
            let found = walk(&table, n * PAGE);
            assert!(found.is_none_or(|found| found == leaf((n + 16) * PAGE)), "{found:x?}");
        }
        finish(&table, threads);
        assert_eq!([0, PAGE].map(|at| walk(&table, at)), [None, None]);
    });
}

/// Hardware without a TLB.
struct NoTlb;

impl Invalidate for &NoTlb {
    fn flush(&self, _: Context, _: &[Tlbi]) -> Result<(), FlushError> {
        Ok(())
    }
}

type Small = Domain<Ram, &'static NoTlb, IovaWindow<[u64; 16]>, 0>;

/// A domain of three levels, with addresses for two tables.
fn domain(tables: u64) -> Arc<Small> {
    let config = Config { input_bits: 32, ..Config::default() };
    let iovas = IovaWindow::new(Iova(0)..Iova(4 * MIB), Granule::Size4K, [0; 16]);
    let domain = Domain::with_queue(config, Context::Asid(1), Ram::new(tables), &NoTlb, iovas);
    Arc::new(domain.expect("room for the root"))
}

/// Maps a page at `iova`, finds it, and unmaps it.
fn pair(domain: &Small, iova: u64) {
    let page = [Segment { phys: PhysAddr(iova + 16 * PAGE), len: PAGE }];
    let mapped = domain.map_at(Iova(iova), &page, RW).expect("free, and there is memory");
    let found = domain.iova_to_phys(&mapped, Iova(iova)).expect("mapped just now");
    assert_eq!(found.phys, page[0].phys);
    domain.unmap(mapped).expect("mapped just now");
}

/// Tables go while others map beside them: a freed table is full of rubbish.
fn reclaiming(before: Option<u64>, iova: u64) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let domain = domain(5);
        if let Some(before) = before {
            pair(&domain, before);
        }
        let maps = domain.clone();
        let thread = thread::spawn(move || pair(&maps, iova));
        let mut freed = domain.reclaim().expect("nothing fails");
        thread.join().expect("no panic");
        freed += domain.reclaim().expect("nothing fails");
        assert!((2..=5).contains(&freed), "{freed}");
        assert_eq!(domain.pool().free.lock().expect("no panic").len(), 4, "all but the root");
    });
}

#[test]
fn a_table_is_not_reclaimed_while_a_page_is_mapped_in_it() {
    reclaiming(None, 0);
}

#[test]
fn a_page_is_mapped_in_a_table_that_is_being_reclaimed() {
    reclaiming(Some(0), PAGE);
}

#[test]
fn a_page_is_mapped_beside_a_table_that_is_being_reclaimed() {
    reclaiming(Some(2 * MIB), 0);
}
