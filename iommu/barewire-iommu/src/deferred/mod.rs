//! Deferred invalidation: unmapped ranges wait in a queue, and one flush invalidates all of them.
//!
//! # How it works
//! The queue is a ring of entries, oldest first, and one gather that covers all of them. Each entry
//! has a number, and a [`Ticket`] holds one. The number of entries that have left the ring tells
//! which tickets are complete. One thread at a time flushes:
//!
//! 1. Mark: under the lock, it marks the end of the ring and takes the gather. The flush is for the
//!    entries before the mark.
//! 2. Invalidate: without the lock, it issues the invalidation. Meanwhile other threads add entries
//!    behind the mark.
//! 3. Release: it frees the gathered tables and releases the entries before the mark. Only now are
//!    these entries complete. If the flush failed or panicked, the entries stay in the ring and the
//!    gather is put back.
//!
//! # Ordering
//! An entry is added under the lock, after its table changes, and the mark is set under the lock.
//! So the changes of all entries before the mark precede the flush, and no walk after the flush
//! sees the old descriptors.
//!
//! The ring never exceeds its [`Bounds`]. A range that does not fit is handed back to the caller,
//! which invalidates it at once.

use crate::lock::{Lock, relax};

/// Limits on what may wait in the flush queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The largest number of unmapped ranges; capped at the queue's capacity.
    pub entries: usize,
    /// The largest number of bytes in these ranges: IOVAs and pages that cannot be reused yet.
    pub bytes: u64,
    /// The age at which the oldest entry makes [`Domain::poll`](crate::Domain::poll) flush, in
    /// ticks of the caller's clock.
    pub age_ticks: u64,
}

impl Default for Bounds {
    /// The queue's capacity, with no limit on bytes or age.
    fn default() -> Self {
        Self { entries: usize::MAX, bytes: u64::MAX, age_ticks: u64::MAX }
    }
}

/// The owner of a queue: it says how entries are invalidated, freed and released.
pub(crate) trait Keeper {
    /// A queued entry.
    type Held;
    /// What a flush covers.
    type Gathered: Default;
    /// The error of a failed flush.
    type Error;

    /// Adds `more` to `all`.
    fn join(&self, all: &mut Self::Gathered, more: Self::Gathered);

    /// Flushes, and returns when the flush has completed.
    fn invalidate(&self, gathered: &Self::Gathered) -> Result<(), Self::Error>;

    /// Frees the gathered tables, after the flush.
    fn free(&self, gathered: Self::Gathered);

    /// Releases an entry, after the flush.
    fn release(&self, held: Self::Held);
}

/// A queue with room for `N` entries.
pub(crate) struct FlushQueue<K: Keeper, const N: usize> {
    ring: Lock<Ring<K, N>>,
}

struct Ring<K: Keeper, const N: usize> {
    entries: [Option<Entry<K::Held>>; N],
    /// The gather of the entries that no flush is under way for.
    gathered: K::Gathered,
    /// The number of entries that have left the ring.
    done: u64,
    /// The number of entries ever added.
    come: u64,
    /// The bytes of the entries in the ring.
    bytes: u64,
    /// A thread is between step 1 and step 3.
    flushing: bool,
    /// The latest time of the caller's clock.
    now_ticks: u64,
}

#[derive(Debug)]
struct Entry<T> {
    held: T,
    since_ticks: u64,
}

/// The outcome of an attempt to flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlushOutcome {
    /// The waiting entries were released; there may have been none.
    Done,
    /// Another thread is flushing.
    Busy,
}

/// A flush under way. If it is dropped while `gathered` is still there, the flush failed.
struct Flushing<'q, K: Keeper, const N: usize> {
    queue: &'q FlushQueue<K, N>,
    keeper: &'q K,
    gathered: Option<K::Gathered>,
}

impl<K: Keeper, const N: usize> Drop for Flushing<'_, K, N> {
    fn drop(&mut self) {
        self.queue.ring.with(|ring| {
            if let Some(gathered) = self.gathered.take() {
                self.keeper.join(&mut ring.gathered, gathered);
            }
            ring.flushing = false;
        });
    }
}

impl<K: Keeper, const N: usize> Ring<K, N> {
    fn place(number: u64) -> usize {
        (number % N as u64) as usize
    }

    fn len(&self) -> usize {
        (self.come - self.done) as usize
    }
}

impl<K: Keeper, const N: usize> FlushQueue<K, N> {
    /// Creates an empty queue.
    pub(crate) fn new() -> Self {
        Self {
            ring: Lock::new(Ring {
                entries: [const { None }; N],
                gathered: K::Gathered::default(),
                done: 0,
                come: 0,
                bytes: 0,
                flushing: false,
                now_ticks: 0,
            }),
        }
    }

    /// Adds an entry of `bytes` and returns its number, counted from 1.
    ///
    /// # Errors
    /// Returns everything to the caller if the bounds leave no room.
    pub(crate) fn push(
        &self,
        keeper: &K,
        held: K::Held,
        gathered: K::Gathered,
        bytes: u64,
        bounds: &Bounds,
    ) -> Result<u64, (K::Held, K::Gathered)> {
        self.ring.with(|ring| {
            let sum = ring.bytes.saturating_add(bytes);
            if ring.len() >= N.min(bounds.entries) || sum > bounds.bytes {
                return Err((held, gathered));
            }
            let since_ticks = ring.now_ticks;
            ring.entries[Ring::<K, N>::place(ring.come)] = Some(Entry { held, since_ticks });
            keeper.join(&mut ring.gathered, gathered);
            ring.bytes = sum;
            ring.come += 1;
            Ok(ring.come)
        })
    }

    /// Updates the clock, and returns whether the oldest entry is too old now.
    ///
    /// An entry's age counts from the last update before it was added. So an entry is never older
    /// than the age computed for it.
    pub(crate) fn is_due(&self, now_ticks: u64, bounds: &Bounds) -> bool {
        self.ring.with(|ring| {
            ring.now_ticks = ring.now_ticks.max(now_ticks);
            if ring.len() == 0 {
                return false;
            }
            let oldest = &ring.entries[Ring::<K, N>::place(ring.done)];
            let since_ticks = oldest.as_ref().map_or(ring.now_ticks, |entry| entry.since_ticks);
            ring.now_ticks - since_ticks >= bounds.age_ticks
        })
    }

    /// The number of waiting entries and of their bytes.
    pub(crate) fn waiting(&self) -> (usize, u64) {
        self.ring.with(|ring| (ring.len(), ring.bytes))
    }

    /// The number of the newest entry.
    pub(crate) fn last(&self) -> u64 {
        self.ring.with(|ring| ring.come)
    }

    /// Whether the entry was released.
    pub(crate) fn completed(&self, number: u64) -> bool {
        self.ring.with(|ring| number <= ring.done)
    }

    /// Flushes and releases the waiting entries, unless another thread is flushing.
    ///
    /// # Errors
    /// The error of the flush. Nothing is released then.
    pub(crate) fn try_flush(&self, keeper: &K) -> Result<FlushOutcome, K::Error> {
        // Step 1: mark the ring's end and take what was gathered.
        let begun = self.ring.with(|ring| {
            if ring.flushing {
                return Err(FlushOutcome::Busy);
            }
            if ring.len() == 0 {
                return Err(FlushOutcome::Done);
            }
            ring.flushing = true;
            Ok((ring.done..ring.come, ring.bytes, core::mem::take(&mut ring.gathered)))
        });
        let (numbers, bytes, gathered) = match begun {
            Ok(begun) => begun,
            Err(flushed) => return Ok(flushed),
        };
        let mut flushing = Flushing { queue: self, keeper, gathered: Some(gathered) };
        // Step 2: invalidate, without the lock.
        if let Some(gathered) = &flushing.gathered {
            keeper.invalidate(gathered)?;
        }
        // Step 3: free what was gathered.
        if let Some(gathered) = flushing.gathered.take() {
            keeper.free(gathered);
        }
        for number in numbers.clone() {
            let entry = self.ring.with(|ring| ring.entries[Ring::<K, N>::place(number)].take());
            if let Some(entry) = entry {
                keeper.release(entry.held);
            }
        }
        self.ring.with(|ring| {
            ring.done = numbers.end;
            ring.bytes -= bytes;
        });
        Ok(FlushOutcome::Done)
    }

    /// Flushes, or waits for the flush of another thread, until the entry was released.
    ///
    /// # Errors
    /// The error of the flush.
    pub(crate) fn wait(&self, keeper: &K, number: u64) -> Result<(), K::Error> {
        while !self.completed(number) {
            if self.try_flush(keeper)? == FlushOutcome::Busy {
                relax();
            }
        }
        Ok(())
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
