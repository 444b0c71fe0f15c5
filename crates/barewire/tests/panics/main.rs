//! Panics everywhere: each user hook that the bus calls panics at each of its calls, over all mixes
//! of paths.
//!
//! # How it works
//! A *mix* is some [operations](ops::Op) on one bus. It runs once without a panic, which counts the
//! calls of each [hook](fuse::Hook), and once more for each of these calls, which panics. Whoever
//! made the call that raises the panic catches it and goes on. Afterwards
//! 1. CS is inactive and the bus idle,
//! 2. each message that was given came over the wire once, and in its context's order, but for the
//!    one whose controller panicked, which may have come and ended in `Aborted`,
//! 3. each future has ended, or was woken whenever it could go on,
//! 4. the bus serves a message of each path.
//!
//! A call that raised a panic may have sent its own message or not, and so may a future that was
//! polled then. Nobody can tell them any more.
//!
//! # How to look at one case
//! A failure is called by platform, pump, meeting, mix and the call that panicked, `..` if all later
//! ones did too. `BAREWIRE_PANICS='parking Caller BehindALock Async+Callback Waker#1'` runs it alone;
//! parts of such names, separated by commas, run all that contain each (`Transact,Waker`), or do not
//! (`!Cancel`), and `none` those in which nothing panics.
#![cfg(not(any(loom, shuttle)))]

mod case;
mod fuse;
mod ops;
#[path = "../threads/mod.rs"]
mod threads;
mod watch;
mod wire;

use barewire::bus::{Platform, Pump};

use case::{Case, Meeting, Mix};
use fuse::{Fuse, Hook};
use watch::{Watch, choice, watched};
use wire::{INHERITING, PARKING, SPINNING};

/// What a bus can be.
type Kind = (&'static dyn Platform, Pump);

const KINDS: [Kind; 8] = [
    (&SPINNING, Pump::Caller),
    (&SPINNING, Pump::Worker),
    (&SPINNING, Pump::Interrupt),
    (&PARKING, Pump::Caller),
    (&PARKING, Pump::Worker),
    (&PARKING, Pump::Interrupt),
    (&INHERITING, Pump::Caller),
    (&INHERITING, Pump::Worker),
];

/// Those on which one thread does everything, so that the nth call is always the same.
const KINDS_OF_ONE_THREAD: [Kind; 3] =
    [(&PARKING, Pump::Caller), (&PARKING, Pump::Interrupt), (&INHERITING, Pump::Caller)];

/// A platform is called as often as threads have to wait, which may be often.
fn calls_max(hook: Hook) -> u32 {
    match hook {
        Hook::PlatformWait | Hook::PlatformWake => 4,
        _ => u32::MAX,
    }
}

/// Runs a mix with each call of these hooks panicking in turn, and with all from that one on if
/// `ever_after`.
fn blow(watch: &Watch, mix: Case, hooks: &[Hook], ever_after: bool) {
    watch.count_mix();
    let quiet = watch.run(mix);
    for &hook in hooks {
        let calls = match &quiet {
            Some(quiet) => quiet.calls(hook).min(calls_max(hook)),
            // It was not chosen, or fails anyway.
            None if choice().is_some() => 12,
            None => 0,
        };
        for nth in 1..=calls {
            watch.run(Case { fuse: Some(Fuse { hook, nth, ever_after }), ..mix });
        }
    }
}

/// Runs all mixes of `len` paths on buses of these kinds.
fn blow_all(
    watch: &Watch,
    kinds: &[Kind],
    meeting: Meeting,
    len: usize,
    hooks: &[Hook],
    ever_after: bool,
) {
    for &(platform, pump) in kinds {
        for mix in Mix::all(len) {
            let mix = Case { platform, pump, meeting, mix, fuse: None };
            blow(watch, mix, hooks, ever_after);
        }
    }
}

macro_rules! everywhere {
    ($($(#[$attribute:meta])* $name:ident: $len:expr, $meeting:expr, $kinds:expr, $hooks:expr, $ever_after:expr;)*) => {$(
        $(#[$attribute])*
        #[test]
        fn $name() {
            let what = stringify!($name).replace('_', " ");
            watched(&what, |watch| {
                blow_all(watch, &$kinds, $meeting, $len, &$hooks, $ever_after);
            });
        }
    )*};
}

/// In the second mode all calls panic from the nth on.
const OFTEN: [Hook; 2] = [Hook::Callback, Hook::Waker];

// Under Miri pairs only, where one thread does everything, and across threads where they sleep.
const PAIRS: &[Kind] = if cfg!(miri) { &KINDS_OF_ONE_THREAD } else { &KINDS };
const PAIRS_ACROSS: &[Kind] = if cfg!(miri) { &[(&PARKING, Pump::Caller)] } else { &KINDS };

everywhere! {
    pairs_in_turn: 2, Meeting::InTurn, PAIRS, Hook::ALL, false;
    pairs_behind_a_lock: 2, Meeting::BehindALock, PAIRS, Hook::ALL, false;
    pairs_across_threads: 2, Meeting::AcrossThreads, PAIRS_ACROSS, Hook::ALL, false;
    pairs_that_panic_often: 2, Meeting::BehindALock, PAIRS, OFTEN, true;
    #[cfg(not(miri))]
    triples_in_turn: 3, Meeting::InTurn, KINDS, Hook::ALL, false;
    #[cfg(not(miri))]
    triples_behind_a_lock: 3, Meeting::BehindALock, KINDS, Hook::ALL, false;
    #[cfg(not(miri))]
    triples_across_threads: 3, Meeting::AcrossThreads, KINDS, Hook::ALL, false;
    #[cfg(not(miri))]
    triples_that_panic_often: 3, Meeting::BehindALock, KINDS, OFTEN, true;
}
