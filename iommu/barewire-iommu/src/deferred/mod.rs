//! Deferred invalidation: what was unmapped waits in a queue, and one flush is for all of it.
//!
//! # How it works
//! A ring of what is held, oldest first, and what all of it has gathered. Each entry has a number; a
//! [`Ticket`] is such a number, and how many have left the ring tells which tickets are complete.
//! One thread at a time flushes:
//!
//! 1. Under the lock it marks the end of the ring and takes what was gathered: the flush will be for
//!    the entries before the mark.
//! 2. Without the lock it invalidates. Meanwhile others add entries behind the mark.
//! 3. It frees what was gathered and releases the entries before the mark: only then do they count
//!    as complete. If the flush failed or panicked they stay, and what was gathered goes back.
//!
//! # Ordering
//! An entry is added under the lock after its tables were changed, and the mark is set under the
//! lock: so those changes were made before the flush began, and no walk after it sees the old.
//!
//! The ring never holds more than its [`Bounds`] say: what does not fit is handed back, to be
//! invalidated at once.

use crate::lock::{Lock, relax};

/// What may wait before it is invalidated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Unmapped ranges, at most; no more than the queue has room for.
    pub entries: usize,
    /// Their bytes, at most: IOVAs and pages that nobody can use.
    pub bytes: u64,
    /// How old the oldest gets before [`Domain::poll`](crate::Domain::poll) flushes, in ticks of the
    /// caller's clock.
    pub age_ticks: u64,
}

impl Default for Bounds {
    /// As many as there is room for, of any size and age.
    fn default() -> Self {
        Self { entries: usize::MAX, bytes: u64::MAX, age_ticks: u64::MAX }
    }
}

/// Whose queue it is.
pub(crate) trait Keeper {
    /// What waits.
    type Held;
    /// What a flush is for.
    type Gathered: Default;
    /// Why a flush failed.
    type Error;

    /// Adds to what was gathered.
    fn join(&self, all: &mut Self::Gathered, more: Self::Gathered);

    /// Flushes, and returns when it is complete.
    fn invalidate(&self, gathered: &Self::Gathered) -> Result<(), Self::Error>;

    /// Frees what was gathered, after the flush.
    fn free(&self, gathered: Self::Gathered);

    /// Lets go of what waited, after the flush.
    fn release(&self, held: Self::Held);
}

/// A queue of `N` entries.
pub(crate) struct FlushQueue<K: Keeper, const N: usize> {
    ring: Lock<Ring<K, N>>,
}

struct Ring<K: Keeper, const N: usize> {
    entries: [Option<Entry<K::Held>>; N],
    /// By the entries that no flush is under way for.
    gathered: K::Gathered,
    /// Entries that left.
    done: u64,
    /// Entries that came.
    come: u64,
    /// Of those here.
    bytes: u64,
    /// Somebody is between step 1 and step 3.
    flushing: bool,
    /// The caller's clock, as last told.
    now_ticks: u64,
}

#[derive(Debug)]
struct Entry<T> {
    held: T,
    since_ticks: u64,
}

/// What became of an attempt to flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flushed {
    /// What waited has been released; there may have been nothing.
    Done,
    /// Another thread is at it.
    Busy,
}

/// A flush under way. If it ends before `gathered` was taken, it failed.
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
    /// Nothing waits.
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
    /// Hands everything back if the bounds leave no room.
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

    /// Tells the time, and whether the oldest entry is too old now.
    ///
    /// An entry's age counts from the time told last before it came, so it is never older than it
    /// is taken to be.
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

    /// Entries and bytes that wait.
    pub(crate) fn waiting(&self) -> (usize, u64) {
        self.ring.with(|ring| (ring.len(), ring.bytes))
    }

    /// The number of the entry that came last.
    pub(crate) fn last(&self) -> u64 {
        self.ring.with(|ring| ring.come)
    }

    /// Whether the entry has been released.
    pub(crate) fn completed(&self, number: u64) -> bool {
        self.ring.with(|ring| number <= ring.done)
    }

    /// Invalidates what waits and releases it, unless another thread is at it.
    ///
    /// # Errors
    /// The flush's; then nothing is released.
    pub(crate) fn try_flush(&self, keeper: &K) -> Result<Flushed, K::Error> {
        // Step 1: mark the ring's end and take what was gathered.
        let begun = self.ring.with(|ring| {
            if ring.flushing {
                return Err(Flushed::Busy);
            }
            if ring.len() == 0 {
                return Err(Flushed::Done);
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
        Ok(Flushed::Done)
    }

    /// Flushes, or lets others, until the entry has been released.
    ///
    /// # Errors
    /// The flush's.
    pub(crate) fn wait(&self, keeper: &K, number: u64) -> Result<(), K::Error> {
        while !self.completed(number) {
            if self.try_flush(keeper)? == Flushed::Busy {
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
