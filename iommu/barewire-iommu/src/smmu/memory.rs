//! A piece of a pool that the SMMU reads or writes too, word by word.
//!
//! # Safety
//! A [`Memory`] is the only owner of what it took from its pool, for as long as that borrow lives,
//! and every index is checked here. It is not given back when dropped, since the SMMU may still look
//! at it, but only to [`Memory::free`], which asks for a device that says it has stopped.
#![allow(unsafe_code, reason = "a pool's words are reached by address and index")]

use core::ops::Range;

use super::registers::Registers;
use crate::address::PhysAddr;
use crate::pool::Pool;

/// A device has said that it does not look at memory any more.
pub(crate) struct Stopped(());

impl Stopped {
    /// Whether the bits of `mask`, which say that a device looks at memory, are 0.
    pub(crate) fn seen(registers: &impl Registers, register: u32, mask: u32) -> Option<Self> {
        (registers.read32(register) & mask == 0).then_some(Self(()))
    }
}

/// Words from a pool.
pub(crate) struct Memory<'p, P: Pool> {
    pool: &'p P,
    at: PhysAddr,
    words: usize,
}

impl<'p, P: Pool> Memory<'p, P> {
    /// At least `bytes` of zeros, a power of two, aligned to their size and to 64 bytes.
    pub(crate) fn new(pool: &'p P, bytes: usize) -> Option<Self> {
        let bytes = bytes.max(64);
        let at = pool.alloc(bytes)?;
        // SAFETY: just allocated with this size, and nobody was told of it.
        unsafe { pool.unpublished(at, bytes, |words| words.fill(0)) };
        let memory = Self { pool, at, words: bytes / 8 };
        memory.clean(0..memory.words);
        Some(memory)
    }

    /// Where it is.
    pub(crate) fn at(&self) -> PhysAddr {
        self.at
    }

    /// Whose it is.
    pub(crate) fn pool(&self) -> &'p P {
        self.pool
    }

    /// Reads a word.
    pub(crate) fn load(&self, index: usize) -> u64 {
        assert!(index < self.words, "word {index} of {}", self.words);
        // SAFETY: allocated until `free` consumes self, and the index was checked.
        unsafe { self.pool.load(self.at, index) }
    }

    /// Reads a word that the device wrote: any value, where [`Pool::load`] may count on descriptors.
    pub(crate) fn load_any(&self, index: usize) -> u64 {
        #[cfg(target_has_atomic = "64")]
        return self.load(index);
        #[cfg(not(target_has_atomic = "64"))]
        {
            use core::sync::atomic::{AtomicU32, Ordering};

            assert!(index < self.words, "word {index} of {}", self.words);
            let half = |half: usize| {
                let start = self.pool.pointer(self.at).cast::<u32>();
                // SAFETY: allocated until `free` consumes self, and the index was checked.
                let at = unsafe { start.add(2 * index + half) };
                // SAFETY: an aligned u32 in there, that all access atomically.
                u64::from(unsafe { AtomicU32::from_ptr(at.as_ptr()) }.load(Ordering::Relaxed))
            };
            half(0) | half(1) << 32
        }
    }

    /// Writes a word.
    pub(crate) fn store(&self, index: usize, value: u64) {
        assert!(index < self.words, "word {index} of {}", self.words);
        // SAFETY: allocated until `free` consumes self, and the index was checked.
        unsafe { self.pool.store(self.at, index, value) };
    }

    /// Lets a device that does not snoop see what was stored, and what it stores be seen.
    pub(crate) fn clean(&self, words: Range<usize>) {
        self.pool.clean(self.at, words);
    }

    /// Gives it back: nobody was told of it.
    pub(crate) fn unused(self) {
        self.free(&Stopped(()));
    }

    /// Gives it back, its device having been seen to stand still.
    pub(crate) fn free(self, _stopped: &Stopped) {
        // SAFETY: from `alloc` with this size, unused after, and no device reaches it.
        unsafe { self.pool.free(self.at, self.words * 8) };
    }
}

/// A table of pointers to further pieces, all of one size, as the SMMU reads it.
pub(crate) struct Links<'p, P: Pool> {
    table: Memory<'p, P>,
    links: usize,
    child_bytes: usize,
}

/// What a link says besides the address; pieces are aligned to more.
const LOW_BITS: u64 = 0x3f;

impl<'p, P: Pool> Links<'p, P> {
    /// A table of `links` links to nothing.
    pub(crate) fn new(pool: &'p P, links: usize, child_bytes: usize) -> Option<Self> {
        Some(Self { table: Memory::new(pool, links * 8)?, links, child_bytes })
    }

    /// Where it is.
    pub(crate) fn at(&self) -> PhysAddr {
        self.table.at()
    }

    /// What link `index` points to; for looking and storing, not for keeping.
    pub(crate) fn get(&self, index: usize) -> Option<Memory<'p, P>> {
        let link = self.table.load(index);
        // Only `set` writes here, and it takes what it is given for good.
        let at = PhysAddr(link & !LOW_BITS);
        let memory = Memory { pool: self.table.pool, at, words: self.child_bytes / 8 };
        (link != 0).then_some(memory)
    }

    /// Lets link `index`, which points nowhere yet, point to `child`.
    pub(crate) fn set(&mut self, index: usize, child: Memory<'p, P>, low_bits: u64) {
        assert_eq!(child.words * 8, self.child_bytes, "of another size");
        assert_eq!(self.table.load(index), 0, "link {index} points somewhere already");
        // The address first and alone: where a store is two, the bits that make it valid come last.
        self.table.store(index, child.at.0);
        self.table.store(index, child.at.0 | low_bits & LOW_BITS);
        self.table.clean(index..index + 1);
    }

    /// Gives all of it back.
    pub(crate) fn free(self, stopped: &Stopped) {
        for index in 0..self.links {
            if let Some(child) = self.get(index) {
                child.free(stopped);
            }
        }
        self.table.free(stopped);
    }
}

impl<P: Pool> core::fmt::Debug for Memory<'_, P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} words at {}", self.words, self.at)
    }
}
