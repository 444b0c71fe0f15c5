//! The floors: the minimum work of mapping and unmapping, written by hand.
//!
//! # How it works
//! - *floor_a* stores 8 bytes per page into tables that exist: plain stores, which the compiler may
//!   vectorise.
//! - *floor_b* allocates a table for each 2 MiB, zeroes it, fills it like floor_a, and publishes it
//!   with one release store.
//! - *floor_b_unzeroed* does not zero it, because every entry is stored anyway.
//! - *floor_drop* removes whole tables: it stores 0 in their entries at level 2 and frees them.
//! - *floor_leaf* stores 0 for each page by a separate atomic store, as a table in use needs it.
//!
//! They check nothing and search for nothing, because the caller knows every table. They fail only
//! if there is no memory. A test compares their tables with barewire-iommu's, so no work is left
//! out. Their instruction counts are reviewed (`tests/snapshots/`).
//!
//! # Safety
//! The tables are allocated, belong to the caller and have no other user.
#![allow(unsafe_code, reason = "what safe code is measured against")]

use core::hint::black_box;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use barewire_iommu::{Descriptor, PhysAddr, Pool, Segment};

use crate::pool::{TABLE, Tables};

/// The number of entries of a table.
const ENTRIES: usize = TABLE / 8;

/// Several tables, seen as one run of entries.
#[derive(Debug)]
pub struct Ready {
    tables: Vec<PhysAddr>,
}

impl Ready {
    /// Creates `count` empty tables.
    ///
    /// # Panics
    /// If the pool is empty.
    pub fn new(count: usize) -> Self {
        Self { tables: (0..count).map(|_| empty_table().expect("the pool has tables")).collect() }
    }

    /// Reads an entry, for tests.
    pub fn entry(&self, index: usize) -> u64 {
        // SAFETY: the table is ours, the index within it.
        unsafe { Tables.load(self.tables[index / ENTRIES], index % ENTRIES) }
    }

    /// The entries from `first` on, grouped by table.
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
            // SAFETY: they came from there and have no other user.
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

/// Stores a page descriptor for each segment, from entry `first` on.
#[inline(never)]
pub fn bench_iommu_floor_a(ready: &Ready, first: usize, list: &[Segment], leaf_bits: u64) {
    let mut rest = list;
    for (entries, count) in ready.spans(first, list.len()) {
        let (now, later) = rest.split_at(count);
        rest = later;
        // SAFETY: there are `count` entries, and they are ours only.
        let entries = unsafe { core::slice::from_raw_parts_mut(entries.as_ptr(), count) };
        for (entry, segment) in entries.iter_mut().zip(now) {
            *entry = segment.phys.0 | leaf_bits;
        }
    }
}

/// Stores `count` descriptors whose addresses are `step` bytes apart, from entry `first` on.
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
        // SAFETY: there are `count` entries, and they are ours only.
        let entries = unsafe { core::slice::from_raw_parts_mut(entries.as_ptr(), count) };
        for entry in entries {
            *entry = next;
            next += step;
        }
    }
}

/// Stores a page descriptor for each segment into new tables, and hooks those into `above` from
/// entry `first` on. The list must fill its tables. Returns whether there was memory.
#[inline(never)]
pub fn bench_iommu_floor_b(above: &Ready, first: usize, list: &[Segment], leaf_bits: u64) -> bool {
    for (index, list) in list.chunks(ENTRIES).enumerate() {
        let Some(table) = empty_table() else { return false };
        // `black_box` keeps the zeroing: the compiler might see that every entry is overwritten.
        fill(black_box(table), list, leaf_bits);
        hook(above, first + index).store(Descriptor::table(table).0, Ordering::Release);
    }
    true
}

/// [`bench_iommu_floor_b`] without the zeroing.
#[inline(never)]
pub fn bench_iommu_floor_b_unzeroed(
    above: &Ready,
    first: usize,
    list: &[Segment],
    leaf_bits: u64,
) -> bool {
    for (index, list) in list.chunks(ENTRIES).enumerate() {
        let Some(table) = Tables.alloc(TABLE) else { return false };
        fill(table, list, leaf_bits);
        hook(above, first + index).store(Descriptor::table(table).0, Ordering::Release);
    }
    true
}

/// Stores a page descriptor for each segment into a table that is not published.
#[inline]
fn fill(table: PhysAddr, list: &[Segment], leaf_bits: u64) {
    let entries = Tables.pointer(table).as_ptr();
    // SAFETY: the table is ours until it is published.
    let entries = unsafe { core::slice::from_raw_parts_mut(entries, ENTRIES) };
    for (entry, segment) in entries.iter_mut().zip(list) {
        *entry = segment.phys.0 | leaf_bits;
    }
}

/// Removes `count` tables from `above`, from entry `first` on, and frees them.
#[inline(never)]
pub fn bench_iommu_floor_drop(above: &Ready, first: usize, count: usize) {
    for index in first..first + count {
        let entry = hook(above, index);
        let table = Descriptor(entry.load(Ordering::Relaxed)).address();
        entry.store(0, Ordering::Release);
        // SAFETY: `floor_b` allocated it there, and no walker uses it.
        unsafe { Tables.free(table, TABLE) };
    }
}

/// Stores 0 in `count` entries, from `first` on.
#[inline(never)]
pub fn bench_iommu_floor_leaf(ready: &Ready, first: usize, count: usize) {
    for (entries, count) in ready.spans(first, count) {
        for index in 0..count {
            // SAFETY: there are `count` entries.
            let entry = unsafe { entries.add(index) };
            // SAFETY: aligned, and only accessed atomically now.
            unsafe { AtomicU64::from_ptr(entry.as_ptr()) }.store(0, Ordering::Relaxed);
        }
    }
}

/// Entry `index` of the first table.
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
    // SAFETY: a hooked table is `floor_b`'s, and the index is within it.
    hook.is_table(2).then(|| unsafe { Tables.load(hook.address(), index) })
}
