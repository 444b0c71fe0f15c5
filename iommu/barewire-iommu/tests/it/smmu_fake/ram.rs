//! Memory that records every store in order, and the stores that a device without snooping cannot
//! see yet.
#![allow(unsafe_code, reason = "a pool hands out memory")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use barewire_iommu::{PhysAddr, Pool};

/// The address at which the memory begins.
pub(crate) const BASE: u64 = 0x8_0000_0000;

/// A store, by its address, or `None` for a mark.
pub(crate) type Store = Option<(u64, u64)>;

/// Words at [`BASE`].
pub(crate) struct Ram {
    words: Vec<AtomicU64>,
    allocated: Mutex<BTreeMap<u64, usize>>,
    /// Allocations until there is no memory.
    pub(crate) left: Mutex<usize>,
    /// Words stored and not cleaned.
    stale: Mutex<Vec<bool>>,
    /// Words that a device wrote past the caches.
    unseen: Mutex<Vec<bool>>,
    /// Cleans that each thread began, and that its next barrier completes.
    cleaning: Mutex<Vec<(ThreadId, Range<usize>)>>,
    stores: Mutex<Option<Vec<Store>>>,
    /// Called at every barrier and every access to a register.
    interrupt: Mutex<Option<Interrupt>>,
}

/// Code that runs in the middle of the driver's work.
pub(crate) type Interrupt = Arc<dyn Fn() + Send + Sync>;

impl Ram {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            // Anything but zeros.
            words: (0..bytes / 8).map(|_| AtomicU64::new(0x5a5a_5a5a_5a5a_5a5b)).collect(),
            allocated: Mutex::default(),
            left: Mutex::new(usize::MAX),
            stale: Mutex::new(vec![false; bytes / 8]),
            unseen: Mutex::new(vec![false; bytes / 8]),
            cleaning: Mutex::default(),
            stores: Mutex::default(),
            interrupt: Mutex::default(),
        }
    }

    /// From now on calls `interrupt` at every barrier and every access to a register.
    pub(crate) fn interrupt_with(&self, interrupt: Option<Interrupt>) {
        *self.interrupt.lock().unwrap() = interrupt;
    }

    pub(crate) fn interrupt(&self) {
        let interrupt = self.interrupt.lock().unwrap().clone();
        if let Some(interrupt) = interrupt {
            interrupt();
        }
    }

    /// Pieces that are not given back.
    pub(crate) fn allocated(&self) -> usize {
        self.allocated.lock().unwrap().len()
    }

    pub(crate) fn is_allocated(&self, at: PhysAddr, bytes: usize) -> bool {
        let allocated = self.allocated.lock().unwrap();
        allocated
            .range(..=at.0)
            .next_back()
            .is_some_and(|(&from, &size)| at.0 + bytes as u64 <= from + size as u64)
    }

    /// Remembers stores from now on.
    pub(crate) fn watch(&self) {
        *self.stores.lock().unwrap() = Some(Vec::new());
    }

    /// Stores since `watch`.
    pub(crate) fn take_stores(&self) -> Vec<Store> {
        self.stores.lock().unwrap().take().unwrap_or_default()
    }

    /// Puts a mark among the stores.
    pub(crate) fn mark(&self) {
        if let Some(stores) = &mut *self.stores.lock().unwrap() {
            stores.push(None);
        }
    }

    pub(crate) fn device_read(&self, at: u64, snoops: bool) -> u64 {
        let index = index(at);
        let is_allocated = self.is_allocated(PhysAddr(at), 8);
        assert!(is_allocated, "the device reads {at:#x}, which is not allocated");
        assert!(snoops || !self.stale.lock().unwrap()[index], "{at:#x} was not cleaned");
        self.words[index].load(Ordering::Acquire)
    }

    pub(crate) fn device_write(&self, at: u64, value: u64, snoops: bool) {
        assert!(self.is_allocated(PhysAddr(at), 8), "the device writes {at:#x}");
        self.words[index(at)].store(value, Ordering::Release);
        if !snoops {
            self.unseen.lock().unwrap()[index(at)] = true;
        }
    }
}

fn index(at: u64) -> usize {
    usize::try_from(at.checked_sub(BASE).expect("above the base") / 8).unwrap()
}

// SAFETY: pieces are disjoint while they are in `allocated`, aligned to their size, and the words
// live as long as self.
unsafe impl Pool for Ram {
    fn alloc(&self, bytes: usize) -> Option<PhysAddr> {
        let mut left = self.left.lock().unwrap();
        *left = left.checked_sub(1)?;
        let mut allocated = self.allocated.lock().unwrap();
        let size = bytes.max(64) as u64;
        let end = BASE + self.words.len() as u64 * 8;
        let mut at = BASE;
        for (&from, &taken) in &*allocated {
            if at + size <= from {
                break;
            }
            at = (from + taken as u64).next_multiple_of(size);
        }
        if at + size > end {
            return None;
        }
        allocated.insert(at, bytes.max(64));
        Some(PhysAddr(at))
    }

    unsafe fn free(&self, table: PhysAddr, bytes: usize) {
        let freed = self.allocated.lock().unwrap().remove(&table.0);
        assert_eq!(freed, Some(bytes), "freed {table} with another size");
    }

    fn pointer(&self, table: PhysAddr) -> NonNull<u64> {
        let word = &self.words[index(table.0)];
        NonNull::from(word).cast()
    }

    fn clean(&self, table: PhysAddr, entries: Range<usize>) {
        let first = index(table.0);
        let words = first + entries.start..first + entries.end;
        self.cleaning.lock().unwrap().push((thread::current().id(), words));
    }

    fn barrier(&self) {
        std::sync::atomic::fence(Ordering::SeqCst);
        let own = thread::current().id();
        self.cleaning.lock().unwrap().retain(|(thread, words)| {
            if *thread == own {
                self.stale.lock().unwrap()[words.clone()].fill(false);
                self.unseen.lock().unwrap()[words.clone()].fill(false);
            }
            *thread != own
        });
        self.interrupt();
    }

    unsafe fn load(&self, table: PhysAddr, index_: usize) -> u64 {
        let is_unseen = self.unseen.lock().unwrap()[index(table.0) + index_];
        assert!(!is_unseen, "what the caches have of {table} is old");
        self.words[index(table.0) + index_].load(Ordering::Acquire)
    }

    unsafe fn store(&self, table: PhysAddr, index_: usize, value: u64) {
        let word = index(table.0) + index_;
        self.words[word].store(value, Ordering::Release);
        self.stale.lock().unwrap()[word] = true;
        // A clean under way need not have this store.
        self.cleaning.lock().unwrap().retain(|(_, words)| !words.contains(&word));
        if let Some(stores) = &mut *self.stores.lock().unwrap() {
            stores.push(Some((table.0 + 8 * index_ as u64, value)));
        }
    }

    unsafe fn unpublished<R>(
        &self,
        table: PhysAddr,
        bytes: usize,
        fill: impl FnOnce(&mut [u64]) -> R,
    ) -> R {
        let mut copy: Vec<u64> = (0..bytes / 8)
            .map(|word| self.words[index(table.0) + word].load(Ordering::Relaxed))
            .collect();
        let result = fill(&mut copy);
        for (word, value) in copy.into_iter().enumerate() {
            // SAFETY: as the caller promises.
            unsafe { self.store(table, word, value) };
        }
        result
    }
}
