//! A domain on an arena, with hardware and an allocator that record all events in order.
#![allow(unsafe_code, reason = "wraps a pool and an allocator")]

mod deferred;
mod reclaim;
mod strict;
mod threads;

use core::ops::Range;
use core::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec;
use std::vec::Vec;

use super::*;
use crate::format::Granule;
use crate::iova::IovaWindow;
use crate::pool::Arena;
use crate::strategy::Costs;
use crate::testing;
use crate::tlbi::Tlbi;

const PAGE: u64 = 1 << 12;
const MIB: u64 = 1 << 20;
/// The address of the memory that tests map.
const PHYS: u64 = 0x8_0000_0000;

/// One recorded event.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Event {
    Flush(Vec<Tlbi>),
    /// A flush that failed.
    Failed,
    /// A table returned to the pool.
    Freed(PhysAddr),
    /// Addresses returned to the allocator.
    Released(Range<Iova>),
}

/// Hardware, pool and allocator in one.
struct Bench<'a> {
    events: Mutex<Vec<Event>>,
    arena: &'a Arena<'a>,
    iovas: IovaWindow<Vec<u64>>,
    has_ranges: bool,
    /// How many of the next flushes fail.
    failures: Mutex<u32>,
    /// How many more tables the pool gives out.
    left: Mutex<usize>,
}

impl Bench<'_> {
    fn say(&self, event: Event) {
        lock(&self.events).push(event);
    }

    /// The events since the last call.
    fn events(&self) -> Vec<Event> {
        core::mem::take(&mut lock(&self.events))
    }

    /// The operations of each flush since the last call.
    fn flushes(&self) -> Vec<Vec<Tlbi>> {
        let flush = |event| if let Event::Flush(list) = event { Some(list) } else { None };
        self.events().into_iter().filter_map(flush).collect()
    }

    fn commands(&self) -> u64 {
        self.flushes().iter().flatten().map(Tlbi::commands).sum()
    }

    fn fail(&self, count: u32) {
        *lock(&self.failures) = count;
    }
}

impl Invalidate for Bench<'_> {
    fn flush(&self, _: Context, operations: &[Tlbi]) -> Result<(), FlushError> {
        assert!(!operations.is_empty(), "a flush of nothing");
        let mut failures = lock(&self.failures);
        if *failures > 0 {
            *failures -= 1;
            self.say(Event::Failed);
            return Err(FlushError::Timeout);
        }
        self.say(Event::Flush(operations.to_vec()));
        Ok(())
    }

    fn has_ranges(&self) -> bool {
        self.has_ranges
    }
}

// SAFETY: the ranges come from the window.
unsafe impl IovaAllocator for Bench<'_> {
    fn alloc(&self, size: u64) -> Option<Iova> {
        self.iovas.alloc(size)
    }

    fn claim(&self, range: Range<Iova>) -> Result<(), ClaimError> {
        self.iovas.claim(range)
    }

    unsafe fn release(&self, range: Range<Iova>) {
        self.say(Event::Released(range.clone()));
        // SAFETY: the caller's promise is the same.
        unsafe { self.iovas.release(range) };
    }
}

/// Locks, also if a failed test poisoned the mutex.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pool is a type of its own: `&Bench` would be the domain's pool, hardware and allocator at
/// once, with methods of the same name.
struct Tables<'b, 'a>(&'b Bench<'a>);

// SAFETY: the tables are the arena's; chains are freed table by table.
unsafe impl Pool for Tables<'_, '_> {
    fn alloc(&self, bytes: usize) -> Option<PhysAddr> {
        let mut left = lock(&self.0.left);
        *left = left.checked_sub(1)?;
        self.0.arena.alloc(bytes)
    }

    unsafe fn free(&self, table: PhysAddr, bytes: usize) {
        self.0.say(Event::Freed(table));
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.arena.free(table, bytes) };
    }

    fn pointer(&self, table: PhysAddr) -> NonNull<u64> {
        self.0.arena.pointer(table)
    }
}

type Tested<'b, 'a> = Domain<Tables<'b, 'a>, &'b Bench<'a>, &'b Bench<'a>, 4>;

/// Calls `test` with a bench of IOVAs from 16 MiB to 256 MiB and a domain on it.
fn with_domain(test: impl FnOnce(&Bench<'_>, Tested<'_, '_>)) {
    with_tables(if cfg!(miri) { 16 } else { 128 }, test);
}

/// [`with_domain`] with a pool of that many tables.
fn with_tables(tables: usize, test: impl FnOnce(&Bench<'_>, Tested<'_, '_>)) {
    testing::with_arena(Granule::Size4K, tables, |arena| {
        let window = Iova(16 * MIB)..Iova(256 * MIB);
        let words = ((window.end.0 - window.start.0) / PAGE / 64) as usize;
        let bench = Bench {
            events: Mutex::default(),
            arena,
            iovas: IovaWindow::new(window, Granule::Size4K, vec![0; words]),
            has_ranges: false,
            failures: Mutex::new(0),
            left: Mutex::new(usize::MAX),
        };
        let domain = domain(&bench, 1);
        test(&bench, domain);
    });
}

fn domain<'b, 'a>(bench: &'b Bench<'a>, asid: u16) -> Tested<'b, 'a> {
    let context = Context::Asid(asid);
    Domain::with_queue(config(), context, Tables(bench), bench, bench).unwrap()
}

/// Four levels. Under Miri the root has 2 entries, not 512: each takes a millisecond when tables are freed.
fn config() -> Config {
    Config { input_bits: if cfg!(miri) { 40 } else { 48 }, ..Config::default() }
}

fn rw() -> Attributes {
    testing::rw(Stage::One)
}

/// `count` pages, none of which continues another.
fn scattered(count: u64) -> Vec<Segment> {
    (0..count).map(|i| Segment { phys: PhysAddr(PHYS + 2 * i * PAGE), len: PAGE }).collect()
}

/// The number of tables left in the pool.
fn tables_left(bench: &Bench<'_>) -> usize {
    testing::drained(bench.arena, PAGE as usize)
}
