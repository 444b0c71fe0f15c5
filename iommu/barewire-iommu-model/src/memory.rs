//! Physical memory for tables; every access is checked.
//!
//! An address is never handed out twice, so that a use after free cannot hide behind the next
//! owner. Fresh memory holds garbage that looks like descriptors.
//!
//! For a walker that does not snoop every word has two copies: the processors', and the one at the
//! point of coherency. A clean begins to write a word back, and the next barrier of the same thread
//! completes it. Until then a walker may see either copy, since a cache line may be written back at
//! any time.

use std::collections::BTreeMap;
use std::ops::Range;
use std::thread::{self, ThreadId};

use crate::descriptor::to_hardware;
use crate::violation::Violation;

/// The values a walker may see in a word: one value, or either of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct VisibleValues {
    pub(crate) cpu: u64,
    pub(crate) poc: u64,
}

impl VisibleValues {
    pub(crate) fn values(self) -> impl Iterator<Item = u64> {
        [Some(self.cpu), (self.poc != self.cpu).then_some(self.poc)].into_iter().flatten()
    }

    pub(crate) fn has(self, value: u64) -> bool {
        self.cpu == value || self.poc == value
    }

    /// The values as far as hardware reads them, in a table of `level`.
    pub(crate) fn to_hardware(self, level: u32) -> Self {
        Self { cpu: to_hardware(level, self.cpu), poc: to_hardware(level, self.poc) }
    }
}

/// Which of the two copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Copy {
    Cpu,
    Poc,
}

/// A clean that no barrier has completed yet.
struct Cleaning {
    thread: ThreadId,
    table: u64,
    index: usize,
    /// The entry's value for the processors when the clean began.
    value: u64,
}

struct Table {
    cpu: Vec<u64>,
    /// A separate copy if the walker does not snoop.
    poc: Option<Vec<u64>>,
}

/// Which allocations fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Shortage {
    /// None.
    #[default]
    Never,
    /// One allocation, after this many successful ones.
    Once(u64),
    /// That allocation and all later ones.
    From(u64),
}

pub(crate) struct Memory {
    tables: BTreeMap<u64, Table>,
    freed: BTreeMap<u64, usize>,
    next: u64,
    end: u64,
    coherent: bool,
    cleanings: Vec<Cleaning>,
    pub(crate) shortage: Shortage,
    /// The number of successful allocations.
    pub(crate) allocations: u64,
}

impl Memory {
    pub(crate) fn new(range: Range<u64>, coherent: bool) -> Self {
        Self {
            tables: BTreeMap::new(),
            freed: BTreeMap::new(),
            next: range.start,
            end: range.end,
            coherent,
            cleanings: Vec::new(),
            shortage: Shortage::Never,
            allocations: 0,
        }
    }

    pub(crate) fn alloc(&mut self, bytes: usize) -> Option<u64> {
        assert!(bytes.is_power_of_two() && bytes >= 8, "no table has {bytes} bytes");
        match &mut self.shortage {
            Shortage::Never => {}
            Shortage::From(0) => return None,
            Shortage::Once(0) => {
                self.shortage = Shortage::Never;
                return None;
            }
            Shortage::Once(left) | Shortage::From(left) => *left -= 1,
        }
        let at = self.next.next_multiple_of(bytes.max(64) as u64);
        let next = at + bytes as u64;
        if next > self.end {
            return None;
        }
        // An unused page between tables, so that an index past the end hits no other table.
        self.next = next + 4096;
        let garbage: Vec<u64> = (0..bytes as u64 / 8).map(|index| garbage(at, index)).collect();
        let poc = (!self.coherent).then(|| garbage.clone());
        self.tables.insert(at, Table { cpu: garbage, poc });
        self.allocations += 1;
        Some(at)
    }

    pub(crate) fn free(&mut self, table: u64, bytes: usize) -> Result<(), Violation> {
        match self.tables.get(&table) {
            Some(known) if known.cpu.len() * 8 == bytes => {
                self.tables.remove(&table);
                self.freed.insert(table, bytes);
                Ok(())
            }
            None if self.freed.contains_key(&table) => Err(Violation::FreeOfFreed { table }),
            _ => Err(Violation::FreeOfUnknown { table, bytes }),
        }
    }

    pub(crate) fn is_table(&self, table: u64) -> bool {
        self.tables.contains_key(&table)
    }

    pub(crate) fn tables(&self) -> usize {
        self.tables.len()
    }

    /// The violation for an entry that does not exist.
    fn missing(&self, table: u64, index: usize) -> Violation {
        if self.tables.contains_key(&table) {
            Violation::OutOfTable { table, index }
        } else if self.freed.contains_key(&table) {
            Violation::AccessToFreed { table }
        } else {
            Violation::AccessToUnknown { table }
        }
    }

    /// The value that the processor reads.
    pub(crate) fn load(&self, table: u64, index: usize) -> Result<u64, Violation> {
        let word = self.tables.get(&table).and_then(|known| known.cpu.get(index).copied());
        word.ok_or_else(|| self.missing(table, index))
    }

    /// The values a walker may read.
    pub(crate) fn seen(&self, table: u64, index: usize) -> Option<VisibleValues> {
        let known = self.tables.get(&table)?;
        let cpu = *known.cpu.get(index)?;
        Some(VisibleValues { cpu, poc: known.poc.as_ref().map_or(cpu, |poc| poc[index]) })
    }

    /// The valid values a walker may read in these entries.
    pub(crate) fn valid(&self, table: u64, entries: Range<usize>) -> Option<Vec<(usize, u64)>> {
        let known = self.tables.get(&table)?;
        let mut found = Vec::new();
        for index in entries {
            let cpu = *known.cpu.get(index)?;
            if cpu & 1 != 0 {
                found.push((index, cpu));
            }
            if let Some(poc) = &known.poc
                && poc[index] != cpu
                && poc[index] & 1 != 0
            {
                found.push((index, poc[index]));
            }
        }
        Some(found)
    }

    /// Stores, and returns the values a walker may have seen before.
    pub(crate) fn store(
        &mut self,
        table: u64,
        index: usize,
        new: u64,
    ) -> Result<VisibleValues, Violation> {
        let Some(before) = self.seen(table, index) else {
            return Err(self.missing(table, index));
        };
        if let Some(known) = self.tables.get_mut(&table) {
            known.cpu[index] = new;
        }
        Ok(before)
    }

    /// Begins to clean an entry.
    pub(crate) fn clean(&mut self, table: u64, index: usize) -> Result<(), Violation> {
        let value = self.load(table, index)?;
        if !self.coherent {
            let thread = thread::current().id();
            self.cleanings.push(Cleaning { thread, table, index, value });
        }
        Ok(())
    }

    /// Completes this thread's cleans. Returns the entries, each with the values a walker may have
    /// seen before. An entry that was stored to since its clean began needs another one.
    pub(crate) fn complete(&mut self) -> Vec<(u64, usize, VisibleValues)> {
        let thread = thread::current().id();
        let mut cleaned = Vec::new();
        for Cleaning { table, index, value, .. } in
            self.cleanings.extract_if(.., |cleaning| cleaning.thread == thread)
        {
            let Some(known) = self.tables.get_mut(&table) else { continue };
            if let Some(poc) = &mut known.poc
                && known.cpu[index] == value
            {
                cleaned.push((table, index, VisibleValues { cpu: value, poc: poc[index] }));
                poc[index] = value;
            }
        }
        cleaned
    }

    /// All words of a table in this copy.
    pub(crate) fn words(&self, copy: Copy, table: u64) -> Option<&[u64]> {
        let known = self.tables.get(&table)?;
        Some(if copy == Copy::Cpu { &known.cpu } else { known.poc.as_ref().unwrap_or(&known.cpu) })
    }

    /// Replaces all words of a table.
    pub(crate) fn fill(&mut self, table: u64, words: &[u64]) {
        if let Some(known) = self.tables.get_mut(&table)
            && known.cpu.len() == words.len()
        {
            known.cpu.copy_from_slice(words);
        }
    }

    /// The first entry of a table of `level` whose two copies mean different things to hardware.
    pub(crate) fn dirty(&self, table: u64, level: u32) -> Option<usize> {
        let known = self.tables.get(&table)?;
        let poc = known.poc.as_ref()?;
        let differ = |(cpu, poc): (&u64, &u64)| {
            cpu != poc && to_hardware(level, *cpu) != to_hardware(level, *poc)
        };
        known.cpu.iter().zip(poc).position(differ)
    }
}

/// Looks like a table, a block, a page and an invalid entry in turn, with addresses where nothing
/// is.
fn garbage(table: u64, index: u64) -> u64 {
    let mixed = (table ^ index << 7).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed & 0x0000_0fff_f000_0000) | 0x07c4 | (index & 0b11)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_to_tables_is_watched() {
        let mut memory = Memory::new(0x1_0000..0x10_0000, true);
        let table = memory.alloc(0x1000).unwrap();
        assert_eq!(table % 0x1000, 0);
        assert!((0..512).any(|index| memory.load(table, index).unwrap() & 1 != 0), "garbage");
        assert_eq!(memory.load(table, 512), Err(Violation::OutOfTable { table, index: 512 }));
        assert_eq!(
            memory.store(table + 8, 0, 0),
            Err(Violation::AccessToUnknown { table: table + 8 })
        );
        let bytes = 0x2000;
        assert_eq!(memory.free(table, bytes), Err(Violation::FreeOfUnknown { table, bytes }));
        assert_eq!(memory.free(0, 8), Err(Violation::FreeOfUnknown { table: 0, bytes: 8 }));
        assert_eq!(memory.free(table, 0x1000), Ok(()));
        assert_eq!(memory.free(table, 0x1000), Err(Violation::FreeOfFreed { table }));
        assert_eq!(memory.load(table, 0), Err(Violation::AccessToFreed { table }));
        assert_eq!(memory.tables(), 0);
        let small = memory.alloc(16).unwrap();
        assert_eq!(small % 64, 0);
        assert_ne!(memory.alloc(0x1000), Some(table), "never handed out twice");
    }

    #[test]
    fn memory_runs_out_when_told() {
        let mut memory = Memory::new(0x1_0000..0x10_0000, true);
        memory.shortage = Shortage::Once(1);
        assert!(memory.alloc(64).is_some());
        assert!(memory.alloc(64).is_none());
        assert!(memory.alloc(64).is_some());
        memory.shortage = Shortage::From(1);
        assert!(memory.alloc(64).is_some());
        assert!(memory.alloc(64).is_none());
        assert!(memory.alloc(64).is_none());
        memory.shortage = Shortage::Never;
        assert!(memory.alloc(0x10_0000).is_none(), "there is no more than there is");
    }

    #[test]
    fn a_walker_that_does_not_snoop_sees_either_until_cleaned() {
        let mut memory = Memory::new(0x1_0000..0x10_0000, false);
        let table = memory.alloc(64).unwrap();
        let old = memory.load(table, 3).unwrap();
        memory.store(table, 3, 77).unwrap();
        let either = VisibleValues { cpu: 77, poc: old };
        assert_eq!(memory.seen(table, 3), Some(either));
        assert_eq!(memory.dirty(table, 3), Some(3));
        memory.clean(table, 2).unwrap();
        let two = memory.seen(table, 2).unwrap();
        assert_eq!(memory.complete(), [(table, 2, two)]);
        assert_eq!(memory.dirty(table, 3), Some(3));
        // A clean is complete after a barrier, and only of the thread that cleaned.
        memory.clean(table, 3).unwrap();
        let others = std::thread::scope(|scope| scope.spawn(|| memory.complete().len()).join());
        assert_eq!((others.unwrap(), memory.dirty(table, 3)), (0, Some(3)));
        assert_eq!(memory.complete(), [(table, 3, either)]);
        assert_eq!(memory.seen(table, 3), Some(VisibleValues { cpu: 77, poc: 77 }));
        assert_eq!((memory.dirty(table, 3), memory.complete().len()), (None, 0));
        // Stores after the clean are not cleaned by it.
        memory.store(table, 3, 78).unwrap();
        memory.clean(table, 3).unwrap();
        memory.store(table, 3, 79).unwrap();
        assert_eq!((memory.complete().len(), memory.dirty(table, 3)), (0, Some(3)));
    }

    #[test]
    fn a_bit_that_hardware_ignores_needs_no_clean() {
        let mut memory = Memory::new(0x1_0000..0x10_0000, false);
        let table = memory.alloc(8).unwrap();
        memory.store(table, 0, 0x5003).unwrap();
        memory.clean(table, 0).unwrap();
        memory.complete();
        memory.store(table, 0, 0x5003 | 1 << 55).unwrap();
        assert_eq!((memory.dirty(table, 2), memory.dirty(table, 3)), (None, Some(0)));
    }
}
