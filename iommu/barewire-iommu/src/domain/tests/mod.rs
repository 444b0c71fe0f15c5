//! A domain on an arena, with hardware and an allocator that write down what happens and in what
//! order.
#![allow(unsafe_code, reason = "wraps a pool and an allocator")]

mod deferred;
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
/// Where the memory lies that is mapped.
const PHYS: u64 = 0x8_0000_0000;

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Event {
    Flush(Vec<Tlbi>),
    /// A flush that failed.
    Failed,
    /// A table went back to the pool.
    Freed(PhysAddr),
    /// Addresses went back to the allocator.
    Released(Range<Iova>),
}

/// Hardware, pool and allocator at once.
struct Bench<'a> {
    events: Mutex<Vec<Event>>,
    arena: &'a Arena<'a>,
    iovas: IovaWindow<Vec<u64>>,
    has_ranges: bool,
    /// Flushes that fail from now on.
    failures: Mutex<u32>,
    /// Tables that the pool still gives.
    left: Mutex<usize>,
}

impl Bench<'_> {
    fn say(&self, event: Event) {
        lock(&self.events).push(event);
    }

    /// What happened since it was asked last.
    fn events(&self) -> Vec<Event> {
        core::mem::take(&mut lock(&self.events))
    }

    /// Flushes since it was asked last, as their operations.
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

// SAFETY: the window's.
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

/// The value, though a test that failed may have had it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pool apart from the bench, since `&Bench` would be the domain's pool, hardware and allocator at
/// once, with methods of one name.
struct Tables<'b, 'a>(&'b Bench<'a>);

// SAFETY: the arena's; chains are freed one by one.
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

/// A bench of IOVAs from 16 MiB to 256 MiB, and a domain on it.
fn with_domain(test: impl FnOnce(&Bench<'_>, Tested<'_, '_>)) {
    testing::with_arena(Granule::Size4K, if cfg!(miri) { 16 } else { 128 }, |arena| {
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
    Domain::with_queue(Config::default(), context, Tables(bench), bench, bench).unwrap()
}

fn rw() -> Attributes {
    testing::rw(Stage::One)
}

/// `count` pages that do not continue each other.
fn scattered(count: u64) -> Vec<Segment> {
    (0..count).map(|i| Segment { phys: PhysAddr(PHYS + 2 * i * PAGE), len: PAGE }).collect()
}

/// As many tables as the pool has.
fn tables_left(bench: &Bench<'_>) -> usize {
    testing::drained(bench.arena, PAGE as usize)
}
