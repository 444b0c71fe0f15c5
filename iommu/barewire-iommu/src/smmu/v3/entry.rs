//! Entries of 64 bytes that the SMMU reads while they change: stream table entries and context
//! descriptors (IHI 0070, 3.21.3).
//!
//! # How the hardware works
//! The SMMU may read an entry at any time, its 64-bit words in any order and each at another time, and
//! may cache it until a CMD_CFGI command names it. Each word is read as a whole. It ignores the fields
//! that the valid bit, V, and the configuration leave without a meaning.
//!
//! # How this driver uses it
//! [`replace`] changes an entry in one of two ways, and after each step waits until the SMMU has dropped
//! its cached copy.
//!
//! Without a gap, if all fields that have a meaning before and change what the new entry means are in
//! one word:
//! 1. *Prepare*: fields without a meaning in the old entry become the new entry's.
//! 2. *Switch*: one store to that word. Before it the SMMU sees the old entry, after it the new one.
//! 3. *Tidy*: fields without a meaning in the new entry become its own, which are 0.
//!
//! Otherwise through an invalid entry:
//! 1. *Invalid*: V becomes 0. Accesses are aborted, with C_BAD_STE or C_BAD_CD.
//! 2. *Write*: all other fields are written, with V still 0.
//! 3. *Valid*: V becomes 1.
//!
//! A processor without 64-bit atomics stores a word in halves, and clears the lower one in between.
//! There the second way is always taken: its first and last step change V alone.

use super::error::SmmuError;
use crate::pool::Pool;
use crate::smmu::memory::Memory;

/// Words of an entry.
pub(super) const WORDS: usize = 8;
const BYTES: u64 = 8 * WORDS as u64;

pub(super) type Entry = [u64; WORDS];

/// Whether a word is stored as a whole.
const IS_WHOLE: bool = cfg!(target_has_atomic = "64");

/// The bits of an entry that the SMMU reads.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// V, in the first word.
    pub(super) valid: u64,
    /// The fields that have a meaning.
    pub(super) used: fn(&Entry) -> Entry,
}

/// The size of a table of `1 << bits` entries.
///
/// # Errors
/// [`SmmuError::TableSize`] if no allocation is that large.
pub(super) fn table_bytes(bits: u8) -> Result<usize, SmmuError> {
    table_bytes_below(bits, isize::MAX as u64)
}

/// `limit` is the largest allocation.
fn table_bytes_below(bits: u8, limit: u64) -> Result<usize, SmmuError> {
    // StreamIDs have at most 32 bits.
    let bytes = BYTES << bits.min(32);
    let size = usize::try_from(bytes).ok().filter(|_| bytes <= limit);
    size.ok_or(SmmuError::TableSize { bits, bytes })
}

/// Replaces the entry at word `first`, by the steps of the module's documentation. `agree` makes the
/// SMMU see the stores and drop its copy.
///
/// # Errors
/// Of `agree`; it is then unknown which entry the SMMU uses.
pub(super) fn replace<P: Pool, E>(
    memory: &Memory<'_, P>,
    first: usize,
    kind: Kind,
    new: &Entry,
    mut agree: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let old: Entry = core::array::from_fn(|word| memory.load_any(first + word));
    let mut current = old;
    // Stores the words that change, and has the SMMU agree if there are any.
    let mut step = |words: &Entry| {
        let mut is_changed = false;
        for (index, &word) in words.iter().enumerate().filter(|&(i, &word)| current[i] != word) {
            memory.store(first + index, word);
            is_changed = true;
        }
        current = *words;
        if is_changed { agree() } else { Ok(()) }
    };
    if old == *new {
        return agree();
    }
    match plan(kind, &old, new, IS_WHOLE) {
        Plan::Switch { prepared, switched } => {
            // Step 1, prepare; step 2, switch; step 3, tidy.
            step(&prepared)?;
            step(&switched)?;
            step(new)
        }
        Plan::Gap => {
            let without_v = |entry: &Entry| {
                let mut entry = *entry;
                entry[0] &= !kind.valid;
                entry
            };
            // Step 1, invalid; step 2, write; step 3, valid.
            step(&without_v(&old))?;
            step(&without_v(new))?;
            step(new)
        }
    }
}

/// How an entry is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Plan {
    /// Without a gap: what the entry is after step 1 and 2.
    Switch { prepared: Entry, switched: Entry },
    /// Through an invalid entry.
    Gap,
}

/// Plans a replacement; `is_whole` if a word is stored as a whole.
fn plan(kind: Kind, old: &Entry, new: &Entry, is_whole: bool) -> Plan {
    let (used_before, used_after) = ((kind.used)(old), (kind.used)(new));
    let prepared: Entry =
        core::array::from_fn(|i| old[i] & used_before[i] | new[i] & !used_before[i]);
    let mut differ = (0..WORDS).filter(|&i| (prepared[i] ^ new[i]) & used_after[i] != 0);
    let mut switched = prepared;
    if let Some(word) = differ.next() {
        switched[word] = new[word];
    }
    if is_whole && differ.next().is_none() {
        Plan::Switch { prepared, switched }
    } else {
        Plan::Gap
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Kind, Plan, plan, table_bytes, table_bytes_below};
    use crate::smmu::v3::SmmuError;

    /// V is bit 0; bit 1 says whether the second and third word have a meaning.
    const KIND: Kind = Kind {
        valid: 1,
        used: |entry| match entry[0] & 0b11 {
            0b01 => [0b11, 0, 0, 0, 0, 0, 0, 0],
            0b11 => [!0, !0, !0, 0, 0, 0, 0, 0],
            _ => [1, 0, 0, 0, 0, 0, 0, 0],
        },
    };

    fn entry(first: u64, second: u64, third: u64) -> Entry {
        [first, second, third, 0, 0, 0, 0, 0]
    }

    #[test]
    fn one_word_switches() {
        let from = |old: Entry, new: Entry| plan(KIND, &old, &new, true);
        let switch = |prepared, switched| Plan::Switch { prepared, switched };
        // The fields of the new entry have no meaning before.
        let (plain, full) = (entry(1, 0, 0), entry(0xff03, 5, 6));
        assert_eq!(from(plain, full), switch(entry(0xff01, 5, 6), full));
        // Nor those of the old one after.
        assert_eq!(from(full, plain), switch(full, entry(1, 5, 6)));
        assert_eq!(from(full, entry(0xff03, 7, 6)), switch(full, entry(0xff03, 7, 6)));
        assert_eq!(from(full, entry(0xff03, 7, 8)), Plan::Gap);
        assert_eq!(from(full, entry(0xfe03, 7, 6)), Plan::Gap);
        // Invalid entries have no fields.
        assert_eq!(from(entry(0, 9, 9), full), switch(entry(0xff02, 5, 6), full));
    }

    /// If a 64-bit store is made as two stores, every change clears V first.
    #[test]
    fn halves_never_switch() {
        let (plain, full) = (entry(1, 0, 0), entry(0xff03, 5, 6));
        for (old, new) in [(plain, full), (full, plain), (full, entry(0xff03, 7, 6))] {
            assert_eq!(plan(KIND, &old, &new, false), Plan::Gap);
        }
    }

    /// On every target: what a 32-bit processor refuses, computed where numbers are longer too.
    #[test]
    fn flaw_7_sizes_do_not_overflow() {
        let small = |bits| table_bytes_below(bits, i32::MAX as u64);
        assert_eq!(small(0), Ok(64));
        assert_eq!(small(24), Ok(1 << 30));
        for bits in 25..=32 {
            assert_eq!(small(bits), Err(SmmuError::TableSize { bits, bytes: 64 << bits }));
        }
        assert_eq!(table_bytes(24), Ok(1 << 30));
        let large = table_bytes(32);
        match usize::BITS {
            64 => assert_eq!(large.map(|bytes| bytes as u64), Ok(1 << 38)),
            _ => assert_eq!(large, Err(SmmuError::TableSize { bits: 32, bytes: 1 << 38 })),
        }
    }
}
