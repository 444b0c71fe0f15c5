//! Panics everywhere: each user hook that the bus calls panics at each of its calls, over all mixes
//! of paths.
//!
//! # How it works
//! A *mix* is some [operations](ops::Op) on one bus. It runs once without a panic, and the calls of
//! each [hook](wire::Hook) are counted. Then it runs once for each of these calls, and that call
//! panics. The test catches the panic around each call into the bus, and goes on. Afterwards
//! 1. CS is inactive and the bus is idle;
//! 2. each message came over the wire once, in its context's order; a message whose controller
//!    panicked may be missing and ends in `Aborted`;
//! 3. each future has ended, and was woken whenever it could go on;
//! 4. the bus serves a message of each path.
//!
//! A blocking call or a poll that raised a panic may have sent its own message or not: its result
//! is lost with the panic.
//!
//! # How to look at one case
//! The name of a failing case is its platform, pump, meeting, mix and the call that panicked, then
//! `..` if all later calls panicked too. `BAREWIRE_PANICS='parking Caller BehindALock
//! Async+Callback Waker#1'` runs it alone; parts of such names, separated by commas, run all that
//! contain each (`Transact,Waker`), or do not (`!Cancel`), and `none` those in which nothing
//! panics.
#![cfg(not(any(loom, shuttle)))]

mod case;
mod fuse;
mod hooks;
#[path = "../ops/mod.rs"]
mod ops;
#[path = "../platform/mod.rs"]
mod platform;
#[path = "../threads/sleep.rs"]
mod sleep;
#[path = "../threads/mod.rs"]
mod threads;
mod watch;
#[path = "../wire/mod.rs"]
mod wire;

use barewire::bus::{Platform, Pump};

use case::{Case, Meeting, Mix};
use fuse::Fuse;
use hooks::{INHERITING, PARKING, SPINNING};
use ops::Op::{
    self, Again, Async, Await, Callback, Cancel, Enqueue, Lock, Prepared, Sync, Transact, Try, Wait,
};
use watch::{Watch, choice, watched};
use wire::Hook::{self, Arm, Plan, PlatformWait, PlatformWake, Resume, Run, Sink, Start, Waker};

/// What a bus can be.
type Kind = (&'static dyn Platform, Pump);

const KINDS: &[Kind] = &[
    (&SPINNING, Pump::Caller),
    (&SPINNING, Pump::Worker),
    (&SPINNING, Pump::Interrupt),
    (&PARKING, Pump::Caller),
    (&PARKING, Pump::Worker),
    (&PARKING, Pump::Interrupt),
    (&INHERITING, Pump::Caller),
    (&INHERITING, Pump::Worker),
];

/// For triples: threads that spin differ from those that sleep in pairs already.
const SLEEPING: &[Kind] = KINDS.split_at(3).1;

/// All but those that only the model checkers mix.
const PATHS: &[Op] =
    &[Prepared, Sync, Async, Enqueue, Wait, Lock, Cancel, Transact, Await, Callback, Again, Try];

/// One of each group of paths that leave the bus the same way.
const UNLIKE: &[Op] = &[Sync, Async, Wait, Lock, Cancel, Transact, Await, Again];

/// One of each group whose node has the same owner: a thread's stack, a pinned message that is run,
/// taken back or awaited, a future that borrows.
#[cfg(miri)]
const OWNERS: &[Op] = &[Sync, Async, Cancel, Transact, Await];

/// Every hook; the tracer's last.
const HOOKS: &[Hook] =
    &[Plan, Run, Start, Resume, Arm, Hook::Callback, Waker, PlatformWake, PlatformWait, Sink];

/// Paths whose callers or callbacks may free a message.
const FREEING: &[Hook] = &[Run, Resume, Hook::Callback, Waker, PlatformWake, PlatformWait];

/// Which mixes are run, and which hooks panic.
#[derive(Clone, Copy)]
struct Sweep {
    kinds: &'static [Kind],
    meeting: Meeting,
    paths: &'static [Op],
    len: usize,
    hooks: &'static [Hook],
    /// Each call from the nth on panics, not only the nth.
    ever_after: bool,
}

impl Sweep {
    const fn pairs(meeting: Meeting) -> Self {
        Self { kinds: KINDS, meeting, paths: PATHS, len: 2, hooks: HOOKS, ever_after: false }
    }

    /// For panics in a tracer's calls, triples find nothing beyond pairs.
    const fn triples(meeting: Meeting) -> Self {
        Self {
            kinds: SLEEPING,
            len: 3,
            hooks: HOOKS.split_at(HOOKS.len() - 1).0,
            ..Self::pairs(meeting)
        }
    }

    /// Several callbacks and wakers panic in one call.
    const fn often(self) -> Self {
        Self { hooks: &[Hook::Callback, Waker], ever_after: true, ..self }
    }

    /// Fewer, for Miri, which is a thousand times slower and looks for what is freed too early.
    const fn under_miri(self, kinds: &'static [Kind], paths: &'static [Op]) -> Self {
        if cfg!(miri) { Self { kinds, paths, hooks: FREEING, ..self } } else { self }
    }

    /// All mixes if `BAREWIRE_WHOLE` is set; else in a debug build every seventh of three paths, under Miri every
    /// fourth or fifth of two. None of these has a divisor in common with the number of paths, so each path still
    /// occurs at each position.
    fn run(self, what: &str) {
        let is_whole = std::env::var_os("BAREWIRE_WHOLE").is_some();
        let step = match self.len {
            _ if is_whole => 1,
            2 if cfg!(miri) && self.paths.len() % 5 == 0 => 4,
            2 if cfg!(miri) => 5,
            3 if cfg!(debug_assertions) => 7,
            _ => 1,
        };
        watched(what, move |watch| {
            for &(platform, pump) in self.kinds {
                for mix in Mix::all(self.paths, self.len).step_by(step) {
                    let meeting = self.meeting;
                    self.blow(watch, Case { platform, pump, meeting, mix, fuse: None });
                }
            }
        });
    }

    /// Runs a mix with each call of each hook panicking in turn.
    fn blow(self, watch: &Watch, mix: Case) {
        watch.count_mix();
        let quiet = watch.run(mix);
        for &hook in self.hooks {
            let calls = match &quiet {
                Some(quiet) => quiet.calls(hook).min(calls_max(hook)),
                // Not chosen, or it fails anyway.
                None if choice().is_some_and(|choice| choice.contains('#')) => 12,
                None => 0,
            };
            for nth in 1..=calls {
                let fuse = Some(Fuse { hook, nth, ever_after: self.ever_after });
                watch.run(Case { fuse, ..mix });
            }
        }
    }
}

/// A platform is called as often as threads have to wait, which may be often. Under Miri only the
/// first two, since each case takes half a second there.
fn calls_max(hook: Hook) -> u32 {
    match hook {
        PlatformWait | PlatformWake if cfg!(miri) => 2,
        PlatformWait | PlatformWake => 4,
        _ => u32::MAX,
    }
}

const PARKING_ALONE: &[Kind] = &[(&PARKING, Pump::Caller)];
#[cfg(miri)]
const OTHERS_ALONE: &[Kind] = &[(&PARKING, Pump::Interrupt), (&INHERITING, Pump::Caller)];

#[test]
fn pairs_in_turn() {
    Sweep::pairs(Meeting::InTurn).under_miri(PARKING_ALONE, UNLIKE).run("pairs in turn");
}

#[test]
fn pairs_behind_a_lock() {
    let pairs = Sweep::pairs(Meeting::BehindALock);
    // The other paths are in the test of pairs in turn.
    #[cfg(miri)]
    let pairs = pairs.under_miri(PARKING_ALONE, OWNERS);
    pairs.run("pairs behind a lock");
}

#[test]
#[cfg(miri)]
fn pairs_behind_a_lock_on_other_buses() {
    let pairs = Sweep::pairs(Meeting::BehindALock);
    pairs.under_miri(OTHERS_ALONE, OWNERS).run("pairs behind a lock on other buses");
}

#[test]
fn pairs_across_threads() {
    let pairs = Sweep::pairs(Meeting::AcrossThreads);
    #[cfg(miri)]
    let pairs = pairs.under_miri(PARKING_ALONE, OWNERS);
    pairs.run("pairs across threads");
}

#[test]
fn pairs_that_panic_often() {
    let pairs = Sweep::pairs(Meeting::BehindALock);
    #[cfg(miri)]
    let pairs = pairs.under_miri(PARKING_ALONE, OWNERS);
    pairs.often().run("pairs that panic often");
}

#[test]
#[cfg(not(miri))]
fn triples_in_turn() {
    Sweep::triples(Meeting::InTurn).run("triples in turn");
}

#[test]
#[cfg(not(miri))]
fn triples_behind_a_lock() {
    Sweep::triples(Meeting::BehindALock).run("triples behind a lock");
}

#[test]
#[cfg(not(miri))]
fn triples_across_threads() {
    Sweep::triples(Meeting::AcrossThreads).run("triples across threads");
}

#[test]
#[cfg(not(miri))]
fn triples_that_panic_often() {
    Sweep::triples(Meeting::BehindALock).often().run("triples that panic often");
}
