//! The machine's memory as a pool for tables.
#![allow(unsafe_code, reason = "a pool is an unsafe trait; nothing here dereferences a pointer")]

use std::ops::Range;
use std::ptr::NonNull;

use barewire_iommu::{PhysAddr, Pool};

use super::{Machine, Place, State};
use crate::memory::Copy;
use crate::violation::Violation;

// SAFETY: an address is handed out once and never again. Its memory is initialised (with garbage),
// aligned to its size, and accessed only by the methods below, each of which checks that the table
// and the entry exist.
unsafe impl Pool for Machine {
    fn alloc(&self, bytes: usize) -> Option<PhysAddr> {
        self.state().memory.alloc(bytes).map(PhysAddr)
    }

    unsafe fn free(&self, table: PhysAddr, bytes: usize) {
        self.state().free(table.0, bytes);
    }

    fn pointer(&self, table: PhysAddr) -> NonNull<u64> {
        panic!("{table:?} has no place in this address space: the machine's words are watched");
    }

    fn clean(&self, table: PhysAddr, entries: Range<usize>) {
        let mut state = self.state();
        state.counts.cleans += 1;
        state.touch(table.0);
        for index in entries {
            if let Err(violation) = state.memory.clean(table.0, index) {
                state.report(violation);
                return;
            }
        }
    }

    fn barrier(&self) {
        let mut state = self.state();
        state.unordered = false;
        for (table, index, old) in state.memory.complete() {
            state.changed(table, index, old);
        }
    }

    unsafe fn load(&self, table: PhysAddr, index: usize) -> u64 {
        let mut state = self.state();
        state.memory.load(table.0, index).unwrap_or_else(|violation| {
            state.report(violation);
            0
        })
    }

    unsafe fn store(&self, table: PhysAddr, index: usize, value: u64) {
        self.state().store(table.0, index, value);
    }

    unsafe fn publish(
        &self,
        table: PhysAddr,
        index: usize,
        current: u64,
        new: u64,
    ) -> Result<(), u64> {
        let mut state = self.state();
        match state.memory.load(table.0, index) {
            Ok(found) if found != current => Err(found),
            _ => {
                state.store(table.0, index, new);
                Ok(())
            }
        }
    }

    unsafe fn unpublished<R>(
        &self,
        table: PhysAddr,
        bytes: usize,
        fill: impl FnOnce(&mut [u64]) -> R,
    ) -> R {
        let mut words = self.state().before_fill(table.0, bytes);
        let result = fill(&mut words);
        self.state().memory.fill(table.0, &words);
        result
    }
}

impl State {
    /// Stores to a table that no root leads to, such as links of a chain, need no order.
    fn touch(&mut self, table: u64) {
        self.unordered |= self.places.contains_key(&table);
    }

    fn store(&mut self, table: u64, index: usize, value: u64) {
        self.counts.stores += 1;
        self.touch(table);
        match self.memory.store(table, index, value) {
            Ok(old) => self.changed(table, index, old),
            Err(violation) => self.report(violation),
        }
    }

    fn free(&mut self, table: u64, bytes: usize) {
        if let Some(Place { slot, base, .. }) = self.places.get(&table).copied() {
            let context = self.slots[slot].context;
            self.report(Violation::FreedHooked { table, context, iova: base });
        }
        if let Some((slot, iova)) = self.cached(table) {
            let context = self.slots[slot].context;
            self.report(Violation::FreedCached { table, context, iova });
        }
        if let Err(violation) = self.memory.free(table, bytes) {
            self.report(violation);
        }
    }

    /// The context that may walk through a table by a cached entry, and the address it translates
    /// there.
    fn cached(&self, table: u64) -> Option<(usize, u64)> {
        let mut slots = self.slots.iter().enumerate();
        slots.find_map(|(index, slot)| {
            let walk = slot.tlb.walks().find(|walk| walk.table == table)?;
            Some((index, walk.iovas.start))
        })
    }

    /// The contents of a table before plain stores fill it.
    fn before_fill(&mut self, table: u64, bytes: usize) -> Vec<u64> {
        if self.places.contains_key(&table) || self.cached(table).is_some() {
            self.report(Violation::Unpublished { table });
        }
        let known = self.memory.words(Copy::Cpu, table).map(<[u64]>::to_vec);
        if let Some(words) = known.as_ref().filter(|words| words.len() * 8 == bytes) {
            return words.clone();
        }
        self.report(match known {
            Some(words) => Violation::OutOfTable { table, index: words.len() },
            None => Violation::AccessToUnknown { table },
        });
        vec![0; bytes / 8]
    }
}
