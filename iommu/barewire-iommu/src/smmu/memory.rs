//! Memory from a pool that the SMMU reads or writes too, accessed word by word.
//!
//! # Safety
//! A [`Memory`] is the only owner of its allocation while it lives, and every index is checked
//! here. It is not freed when dropped, since the SMMU may still access it. Only [`Memory::free`]
//! frees it, which requires proof that the device has stopped.
#![allow(unsafe_code, reason = "a pool's words are reached by address and index")]

use core::ops::Range;

use super::registers::Registers;
use crate::address::PhysAddr;
use crate::pool::Pool;

/// Proof that a device no longer accesses memory.
pub(crate) struct StopProof(());

impl StopProof {
    /// Reads `register`. The device accesses memory while a bit of `mask` is set there.
    pub(crate) fn seen(registers: &impl Registers, register: u32, mask: u32) -> Option<Self> {
        (registers.read32(register) & mask == 0).then_some(Self(()))
    }
}

/// An array of words from a pool.
pub(crate) struct Memory<'p, P: Pool> {
    pool: &'p P,
    at: PhysAddr,
    words: usize,
}

impl<'p, P: Pool> Memory<'p, P> {
    /// Allocates at least `bytes`, rounded up to a power of two, aligned to its size and to 64
    /// bytes, and zeroed.
    pub(crate) fn new(pool: &'p P, bytes: usize) -> Option<Self> {
        let bytes = bytes.max(64);
        let at = pool.alloc(bytes)?;
        // SAFETY: just allocated with this size, and no device knows it.
        unsafe { pool.unpublished(at, bytes, |words| words.fill(0)) };
        let memory = Self { pool, at, words: bytes / 8 };
        memory.clean(0..memory.words);
        Some(memory)
    }

    /// The physical address.
    pub(crate) fn at(&self) -> PhysAddr {
        self.at
    }

    /// The pool it came from.
    pub(crate) fn pool(&self) -> &'p P {
        self.pool
    }

    /// Reads a word.
    pub(crate) fn load(&self, index: usize) -> u64 {
        assert!(index < self.words, "word {index} of {}", self.words);
        // SAFETY: allocated until `free` consumes self, and the index was checked.
        unsafe { self.pool.load(self.at, index) }
    }

    /// Reads a word that the device wrote. It may have any value, while [`Pool::load`] may rely on
    /// descriptors.
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
                // SAFETY: an aligned u32 inside the allocation; all accesses to it are atomic.
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

    /// Writes the lines back for a device that does not snoop, and makes its stores visible.
    pub(crate) fn clean(&self, words: Range<usize>) {
        self.pool.clean(self.at, words);
    }

    /// Frees memory that no device was given.
    pub(crate) fn unused(self) {
        self.free(&StopProof(()));
    }

    /// Frees memory whose device was seen to have stopped.
    pub(crate) fn free(self, _stopped: &StopProof) {
        // SAFETY: from `alloc` with this size, unused after, and no device reaches it.
        unsafe { self.pool.free(self.at, self.words * 8) };
    }
}

/// A table of pointers to further allocations of one size, as the SMMU reads it.
pub(crate) struct Links<'p, P: Pool> {
    table: Memory<'p, P>,
    links: usize,
    child_bytes: usize,
}

/// The flag bits of a link; allocations are aligned to more.
const LOW_BITS: u64 = 0x3f;

impl<'p, P: Pool> Links<'p, P> {
    /// Creates a table of `links` empty links.
    pub(crate) fn new(pool: &'p P, links: usize, child_bytes: usize) -> Option<Self> {
        Some(Self { table: Memory::new(pool, links * 8)?, links, child_bytes })
    }

    /// The physical address.
    pub(crate) fn at(&self) -> PhysAddr {
        self.table.at()
    }

    /// The memory behind link `index`, for loads and stores. It must not be kept.
    pub(crate) fn get(&self, index: usize) -> Option<Memory<'p, P>> {
        let link = self.table.load(index);
        // Only `set` writes links, and it takes ownership of the memory.
        let at = PhysAddr(link & !LOW_BITS);
        let memory = Memory { pool: self.table.pool, at, words: self.child_bytes / 8 };
        (link != 0).then_some(memory)
    }

    /// Points link `index`, which is empty, to `child`.
    pub(crate) fn set(&mut self, index: usize, child: Memory<'p, P>, low_bits: u64) {
        assert_eq!(child.words * 8, self.child_bytes, "of another size");
        assert_eq!(self.table.load(index), 0, "link {index} points somewhere already");
        // First only the address. If a store is done in two halves, the bits that make it valid
        // come last.
        self.table.store(index, child.at.0);
        self.table.store(index, child.at.0 | low_bits & LOW_BITS);
        self.table.clean(index..index + 1);
    }

    /// Frees the table and everything behind it.
    pub(crate) fn free(self, stopped: &StopProof) {
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
