//! How threads of the shuttle runs sleep and wake each other, and what their platform adds.

use std::cell::RefCell;
use std::mem::ManuallyDrop;

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::mpsc::{Sender, channel};
use shuttle::thread;

use barewire::bus::platform::{AtomicU32, WaitWord};

use crate::platform::{Interpose, Threads};
use crate::strict;

pub(crate) use shuttle::thread::yield_now;

/// A thread that sleeps, or is about to.
struct Sleeper {
    at: usize,
    thread: usize,
    bell: Sender<()>,
}

thread_local! {
    /// Shuttle runs all threads of a schedule on one thread of the system. A schedule that fails
    /// leaves sleepers behind, whose bells cannot be dropped outside of it.
    static SLEEPERS: RefCell<ManuallyDrop<Vec<Sleeper>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// Removes the sleepers for which `is_it` holds from the list.
fn take_sleepers(is_it: impl Fn(&Sleeper) -> bool) -> Vec<Sleeper> {
    SLEEPERS.with_borrow_mut(|sleepers| sleepers.extract_if(.., |sleeper| is_it(sleeper)).collect())
}

/// Sleeps as on a futex: checking the word and going to sleep is one step, so no wake-up is lost
/// between them. Needs no lock, which an interrupt handler that wakes could find taken.
pub(crate) fn sleep_while(word: WaitWord<'_>, expected: u32) {
    let (bell, rung) = channel();
    let sleeper = Sleeper { at: word.as_ptr().addr(), thread: me(), bell };
    SLEEPERS.with_borrow_mut(|sleepers| sleepers.push(sleeper));
    if word.load() == expected {
        rung.recv().expect("a sleeper is dropped after it was woken");
    }
    drop(take_sleepers(|sleeper| sleeper.thread == me()));
}

pub(crate) fn wake(word: *const AtomicU32) {
    for sleeper in take_sleepers(|sleeper| sleeper.at == word.addr()) {
        sleeper.bell.send(()).expect("it sleeps, or is about to");
    }
    // A woken thread of higher priority runs before the waker goes on.
    yield_now();
}

/// A number above 0 that no two threads share.
pub(crate) fn me() -> usize {
    usize::from(thread::current().id()) + 1
}

/// What the checker adds to a platform.
pub(crate) struct Shuttle;

impl Interpose for Shuttle {
    fn sleeps(&self) -> bool {
        assert!(!strict::is_handler(), "an interrupt handler sleeps");
        !thread_rng().gen_ratio(1, 8)
    }

    fn masked(&self, f: &mut dyn FnMut()) {
        strict::masked(f);
    }
}

/// Threads that sleep.
pub(crate) static PARK: Threads<Shuttle> = Threads { spins: 1, ..Threads::parking(Shuttle) };
/// Likewise, with a lock that would lend priorities.
pub(crate) static PARK_INHERITING: Threads<Shuttle> =
    Threads { spins: 1, ..Threads::inheriting(Shuttle) };
