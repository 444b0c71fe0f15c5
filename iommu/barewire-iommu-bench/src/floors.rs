//! The floors: the least that mapping and unmapping can be, written by hand.
//!
//! # How it works
//! - *floor_a* stores 8 bytes for each page into tables that are ready: plain stores, which the compiler
//!   may make vectors of.
//! - *floor_b* allocates a table for each 2 MiB, zeroes it, does the same, and publishes it with
//!   one release store.
//! - *floor_drop* takes whole tables off: a store of 0 each at level 2, and back to the pool.
//! - *floor_leaf* stores 0 for each page, atomically one by one, as a table in use needs it.
//!
//! They check nothing, find nothing (who calls knows every table), and cannot fail but for memory.
//! What they write is what barewire-iommu writes (a test compares the tables), so nothing is left out.
//! Their instructions are counted under review (`tests/snapshots/`).
//!
//! # Safety
//! The tables are the caller's, allocated, and nobody else touches them.
#![allow(unsafe_code, reason = "what safe code is measured against")]

use core::hint::black_box;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use barewire_iommu::{Descriptor, PhysAddr, Pool, Segment};

use crate::pool::{TABLE, Tables};

/// Entries of a table.
const ENTRIES: usize = TABLE / 8;

/// Tables side by side, seen as one run of entries.
#[derive(Debug)]
pub struct Ready {
    tables: Vec<PhysAddr>,
}

impl Ready {
    /// `count` empty tables.
    ///
    /// # Panics
    /// If the pool is empty.
    pub fn new(count: usize) -> Self {
        Self { tables: (0..count).map(|_| empty_table().expect("the pool has tables")).collect() }
    }

    /// An entry, for tests.
    pub fn entry(&self, index: usize) -> u64 {
        // SAFETY: the table is ours, the index within it.
        unsafe { Tables.load(self.tables[index / ENTRIES], index % ENTRIES) }
    }

    /// The entries from `first`, table by table.
    fn spans(&self, first: usize, count: usize) -> impl Iterator<Item = (NonNull<u64>, usize)> {
        let mut at = first;
        core::iter::from_fn(move || {
            let left = first + count - at;
            (left > 0).then(|| {
                let (table, index) = (self.tables[at / ENTRIES], at % ENTRIES);
                let take = left.min(ENTRIES - index);
                at += take;
                // SAFETY: within the table.
                (unsafe { Tables.pointer(table).add(index) }, take)
            })
        })
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        for &table in &self.tables {
            // SAFETY: they came from there, and nobody else knows them.
            unsafe { Tables.free(table, TABLE) };
        }
    }
}

fn empty_table() -> Option<PhysAddr> {
    let table = Tables.alloc(TABLE)?;
    // SAFETY: it is ours.
    unsafe { Tables.pointer(table).write_bytes(0, ENTRIES) };
    Some(table)
}

/// Stores a page's descriptor for each segment, from entry `first`.
#[inline(never)]
pub fn bench_iommu_floor_a(ready: &Ready, first: usize, list: &[Segment], leaf_bits: u64) {
    let mut rest = list;
    for (entries, count) in ready.spans(first, list.len()) {
        let (now, later) = rest.split_at(count);
        rest = later;
        // SAFETY: `count` entries lie there, ours alone.
        let entries = unsafe { core::slice::from_raw_parts_mut(entries.as_ptr(), count) };
        for (entry, segment) in entries.iter_mut().zip(now) {
            *entry = segment.phys.0 | leaf_bits;
        }
    }
}

/// Stores `count` descriptors, `step` bytes apart, from entry `first`.
#[inline(never)]
pub fn bench_iommu_floor_a_run(
    ready: &Ready,
    first: usize,
    phys: PhysAddr,
    step: u64,
    count: usize,
    leaf_bits: u64,
) {
    let mut next = phys.0 | leaf_bits;
    for (entries, count) in ready.spans(first, count) {
        // SAFETY: `count` entries lie there, ours alone.
        let entries = unsafe { core::slice::from_raw_parts_mut(entries.as_ptr(), count) };
        for entry in entries {
            *entry = next;
            next += step;
        }
    }
}

/// Stores a page's descriptor for each segment into new tables, and hooks those into `above` from
/// entry `first`. The list fills its tables. Returns whether there was memory.
#[inline(never)]
pub fn bench_iommu_floor_b(above: &Ready, first: usize, list: &[Segment], leaf_bits: u64) -> bool {
    for (index, list) in list.chunks(ENTRIES).enumerate() {
        let Some(table) = empty_table() else { return false };
        // Zeroed for good: else the compiler might see that all of it is written anyway.
        let entries = black_box(Tables.pointer(table)).as_ptr();
        // SAFETY: the table is ours until it is published.
        let entries = unsafe { core::slice::from_raw_parts_mut(entries, ENTRIES) };
        for (entry, segment) in entries.iter_mut().zip(list) {
            *entry = segment.phys.0 | leaf_bits;
        }
        hook(above, first + index).store(Descriptor::table(table).0, Ordering::Release);
    }
    true
}

/// Takes `count` tables off `above` from entry `first`, and gives them back.
#[inline(never)]
pub fn bench_iommu_floor_drop(above: &Ready, first: usize, count: usize) {
    for index in first..first + count {
        let entry = hook(above, index);
        let table = Descriptor(entry.load(Ordering::Relaxed)).address();
        entry.store(0, Ordering::Release);
        // SAFETY: `floor_b` had it from there, and nobody walks here.
        unsafe { Tables.free(table, TABLE) };
    }
}

/// Stores 0 in `count` entries from `first`.
#[inline(never)]
pub fn bench_iommu_floor_leaf(ready: &Ready, first: usize, count: usize) {
    for (entries, count) in ready.spans(first, count) {
        for index in 0..count {
            // SAFETY: `count` entries lie there.
            let entry = unsafe { entries.add(index) };
            // SAFETY: aligned, and only accessed atomically now.
            unsafe { AtomicU64::from_ptr(entry.as_ptr()) }.store(0, Ordering::Relaxed);
        }
    }
}

/// Entry `index` of one table.
fn hook(above: &Ready, index: usize) -> &AtomicU64 {
    assert!(index < ENTRIES, "one table above");
    // SAFETY: within the first table.
    let entry = unsafe { Tables.pointer(above.tables[0]).add(index) };
    // SAFETY: aligned, and only accessed atomically.
    unsafe { AtomicU64::from_ptr(entry.as_ptr()) }
}

/// An entry of the table that `hook` leads to, for tests.
pub(crate) fn entry_of(hook: Descriptor, index: usize) -> Option<u64> {
    assert!(index < ENTRIES, "within the table");
    // SAFETY: a hooked table is `floor_b`'s, the index within it.
    hook.is_table(2).then(|| unsafe { Tables.load(hook.address(), index) })
}
