//! The policy as every unmap reads it: without a lock.
//!
//! # How it works
//! The policy is stored as words with a version that is odd while a thread changes them (a sequence
//! lock). A reader copies the words and reads the version before and after. If it is odd or another
//! one, the reader starts over. So readers write nothing, and unmaps on several processors do not
//! take this cache line from each other.
//!
//! # Ordering
//! 1. Writer: the odd version, a release fence, the words, the even version with release.
//! 2. Reader: the version with acquire, the words, an acquire fence, the version again. A reader that
//!    loaded a word of a change also sees the odd version before it.

use super::policy::{Deferred, Policy, Walks};
use crate::deferred::Bounds;
use crate::lock::{Lock, relax};
use crate::strategy::{Costs, Strategy};
use crate::sync::atomic::{AtomicU32, Ordering, fence};

/// The words of a [`Strategy`]'s costs.
const COSTS: usize = 6;

/// The words of a [`Bounds`], two each.
const BOUNDS: usize = 6;

/// The policy's flags, two strategies and the bounds.
const WORDS: usize = 1 + 2 * COSTS + BOUNDS;

/// Where the words begin: those of a strict policy come first, and a reader stops there.
const STRICT: usize = 1;
const DEFERRED: usize = STRICT + COSTS;
const LIMITS: usize = DEFERRED + COSTS;

/// Bits of the first word, besides the two bits that name the strategy.
const EACH_TABLE: u32 = 1 << 2;
const IS_DEFERRED: u32 = 1 << 3;
const DEFERRED_SHIFT: u32 = 4;

/// A policy that any thread may read or change.
#[derive(Debug)]
pub(super) struct SharedPolicy {
    version: AtomicU32,
    words: [AtomicU32; WORDS],
    /// Writers wait for each other.
    writing: Lock<()>,
}

impl SharedPolicy {
    pub(super) fn new(policy: &Policy) -> Self {
        let words = pack(policy).map(AtomicU32::new);
        Self { version: AtomicU32::new(0), words, writing: Lock::new(()) }
    }

    /// The current policy.
    pub(super) fn read(&self) -> Policy {
        self.read_some(unpack)
    }

    /// The current strategy of a strict domain.
    #[inline]
    pub(super) fn strategy(&self) -> Strategy {
        self.read_some(|words| unpack_strategy(words.at(0), STRICT, words))
    }

    /// Whether the domain is strict and an unmap is flushed as a whole, as by default.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        // One word, of which no change is seen in part.
        self.words[0].load(Ordering::Relaxed) & (EACH_TABLE | IS_DEFERRED) == 0
    }

    /// Reads words that belong together.
    #[inline(always)]
    fn read_some<T>(&self, unpack: impl Fn(Words<'_>) -> T) -> T {
        loop {
            let version = self.version.load(Ordering::Acquire);
            if version & 1 == 0 {
                let read = unpack(Words(&self.words));
                fence(Ordering::Acquire);
                if self.version.load(Ordering::Relaxed) == version {
                    return read;
                }
            }
            relax();
        }
    }

    /// Replaces the policy by the result of `change`.
    pub(super) fn change(&self, change: impl FnOnce(Policy) -> Policy) {
        self.writing.with(|()| {
            let policy = change(self.read());
            let version = self.version.load(Ordering::Relaxed);
            self.version.store(version.wrapping_add(1), Ordering::Relaxed);
            fence(Ordering::Release);
            for (word, value) in self.words.iter().zip(pack(&policy)) {
                word.store(value, Ordering::Relaxed);
            }
            self.version.store(version.wrapping_add(2), Ordering::Release);
        });
    }
}

/// The words, as a reader copies them.
#[derive(Clone, Copy)]
struct Words<'w>(&'w [AtomicU32; WORDS]);

impl Words<'_> {
    #[inline]
    fn at(self, index: usize) -> u32 {
        self.0[index].load(Ordering::Relaxed)
    }
}

fn pack(policy: &Policy) -> [u32; WORDS] {
    let mut words = [0; WORDS];
    words[0] = pack_strategy(&policy.strategy, &mut words[STRICT..]);
    if policy.walks == Walks::EachTable {
        words[0] |= EACH_TABLE;
    }
    if let Some(Deferred { bounds, strategy }) = &policy.deferred {
        words[0] |= IS_DEFERRED | pack_strategy(strategy, &mut words[DEFERRED..]) << DEFERRED_SHIFT;
        let limits = [bounds.entries as u64, bounds.bytes, bounds.age_ticks];
        let halves = limits.into_iter().flat_map(|limit| [limit as u32, (limit >> 32) as u32]);
        words[LIMITS..].iter_mut().zip(halves).for_each(|(word, half)| *word = half);
    }
    words
}

fn unpack(words: Words<'_>) -> Policy {
    let flags = words.at(0);
    let walks = if flags & EACH_TABLE != 0 { Walks::EachTable } else { Walks::Gathered };
    let deferred = (flags & IS_DEFERRED != 0).then(|| {
        let limit = |index: usize| {
            let at = LIMITS + 2 * index;
            u64::from(words.at(at)) | u64::from(words.at(at + 1)) << 32
        };
        let entries = limit(0) as usize;
        Deferred {
            bounds: Bounds { entries, bytes: limit(1), age_ticks: limit(2) },
            strategy: unpack_strategy(flags >> DEFERRED_SHIFT, DEFERRED, words),
        }
    });
    Policy { strategy: unpack_strategy(flags, STRICT, words), walks, deferred }
}

/// Writes the costs to the first words. Returns the two bits that name the strategy.
fn pack_strategy(strategy: &Strategy, words: &mut [u32]) -> u32 {
    match *strategy {
        Strategy::ByPage => 0,
        Strategy::ByRange => 1,
        Strategy::ByContext => 2,
        Strategy::Adaptive(Costs {
            address_ps,
            range_ps,
            context_ps,
            wait_ps,
            miss_ps,
            tlb_entries,
        }) => {
            let costs = [address_ps, range_ps, context_ps, wait_ps, miss_ps, tlb_entries];
            words[..COSTS].copy_from_slice(&costs);
            3
        }
    }
}

#[inline]
fn unpack_strategy(flags: u32, first: usize, words: Words<'_>) -> Strategy {
    match flags & 0b11 {
        0 => Strategy::ByPage,
        1 => Strategy::ByRange,
        2 => Strategy::ByContext,
        _ => Strategy::Adaptive(Costs {
            address_ps: words.at(first),
            range_ps: words.at(first + 1),
            context_ps: words.at(first + 2),
            wait_ps: words.at(first + 3),
            miss_ps: words.at(first + 4),
            tlb_entries: words.at(first + 5),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(first: u32) -> Strategy {
        Strategy::Adaptive(Costs {
            address_ps: first,
            range_ps: first + 1,
            context_ps: first + 2,
            wait_ps: first + 3,
            miss_ps: first + 4,
            tlb_entries: first + 5,
        })
    }

    #[cfg(not(loom))]
    #[test]
    #[cfg_attr(miri, ignore = "takes Miri a minute, and shows it nothing that the others do not")]
    fn every_policy_is_read_as_it_was_written() {
        let shared = SharedPolicy::new(&Policy::default());
        assert_eq!(shared.read(), Policy::default());
        let strategies = [
            Strategy::ByPage,
            Strategy::ByRange,
            Strategy::ByContext,
            costs(1),
            costs(u32::MAX - 5),
        ];
        let bounds = Bounds { entries: 7, bytes: (9 << 32) + 8, age_ticks: u64::MAX - 1 };
        for strategy in strategies {
            for walks in [Walks::Gathered, Walks::EachTable] {
                let deferred = strategies
                    .into_iter()
                    .flat_map(|strategy| {
                        [bounds, Bounds::default()].map(|bounds| Deferred { bounds, strategy })
                    })
                    .map(Some);
                for deferred in deferred.chain([None]) {
                    let policy = Policy { strategy, walks, deferred };
                    shared.change(|_| policy);
                    assert_eq!(shared.read(), policy);
                }
            }
        }
    }

    #[cfg(not(loom))]
    #[test]
    fn a_change_is_made_of_the_policy_before_it() {
        let shared = SharedPolicy::new(&Policy::default());
        shared.change(|policy| Policy { walks: Walks::EachTable, ..policy });
        shared.change(|policy| Policy { strategy: Strategy::ByPage, ..policy });
        let expected =
            Policy { strategy: Strategy::ByPage, walks: Walks::EachTable, deferred: None };
        assert_eq!(shared.read(), expected);
    }

    /// A reader never sees words of two policies.
    #[cfg(loom)]
    #[test]
    fn loom_readers_see_one_policy() {
        use loom::sync::Arc;

        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let [first, second] = [10, 20].map(|number| Policy::from(costs(number)));
            let shared = Arc::new(SharedPolicy::new(&first));
            let writer = {
                let shared = Arc::clone(&shared);
                loom::thread::spawn(move || shared.change(|_| second))
            };
            let seen = shared.read();
            assert!(seen == first || seen == second, "{seen:?}");
            writer.join().expect("the writer does not panic");
            assert_eq!(shared.read(), second);
        });
    }
}
