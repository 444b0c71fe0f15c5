//! The platform of the shuttle runs: threads that sleep until they are woken, each a context of
//! its own.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering;

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::mpsc::{Sender, channel};
use shuttle::thread;

use barewire::bus::Platform;
use barewire::bus::platform::{AtomicU32, Inheritance, WAITERS};

use crate::strict;

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

/// Takes the sleepers out of the list for whom `is_it` holds.
fn take_sleepers(is_it: impl Fn(&Sleeper) -> bool) -> Vec<Sleeper> {
    SLEEPERS.with_borrow_mut(|sleepers| sleepers.extract_if(.., |sleeper| is_it(sleeper)).collect())
}

/// Sleeps as on a futex: nothing comes between the look at the word and a wake-up that is for it.
/// Needs no lock, which an interrupt handler that wakes could find taken.
fn sleep_while(word: &AtomicU32, expected: u32) {
    let (bell, rung) = channel();
    let sleeper = Sleeper { at: core::ptr::from_ref(word).addr(), thread: me(), bell };
    SLEEPERS.with_borrow_mut(|sleepers| sleepers.push(sleeper));
    if word.load(Ordering::SeqCst) == expected {
        rung.recv().expect("a sleeper is dropped after it was woken");
    }
    drop(take_sleepers(|sleeper| sleeper.thread == me()));
}

fn wake(at: usize) {
    for sleeper in take_sleepers(|sleeper| sleeper.at == at) {
        sleeper.bell.send(()).expect("it sleeps, or is about to");
    }
    // A woken thread of higher priority runs before the waker goes on.
    thread::yield_now();
}

fn me() -> usize {
    usize::from(thread::current().id()) + 1
}

/// Threads that sleep, and a lock that would lend priorities, or not.
pub(crate) struct Park {
    pub(crate) inherits: bool,
}

impl Platform for Park {
    fn context(&self) -> usize {
        me()
    }

    fn spins(&self) -> u32 {
        1
    }

    fn relax(&self) {
        thread::yield_now();
    }

    fn wait(&self, word: &AtomicU32, expected: u32) {
        assert!(!strict::is_handler(), "an interrupt handler sleeps");
        // It may return early, for no reason.
        if !thread_rng().gen_ratio(1, 8) {
            sleep_while(word, expected);
        }
    }

    fn wake(&self, word: *const AtomicU32) {
        wake(word.addr());
    }

    fn masked(&self, f: &mut dyn FnMut()) {
        strict::masked(f);
    }

    fn inheritance(&self) -> Option<&dyn Inheritance> {
        self.inherits.then_some(self as &dyn Inheritance)
    }
}

impl Inheritance for Park {
    fn id(&self) -> u32 {
        me() as u32
    }

    fn lock(&self, word: &AtomicU32) {
        loop {
            let seen = word.load(Ordering::SeqCst);
            assert_ne!(seen & !WAITERS, self.id(), "locked twice by one thread");
            let wanted = if seen == 0 { self.id() | WAITERS } else { seen | WAITERS };
            let set = word.compare_exchange(seen, wanted, Ordering::SeqCst, Ordering::SeqCst);
            match set {
                Ok(0) => return,
                Ok(_) => sleep_while(word, wanted),
                Err(_) => {}
            }
        }
    }

    fn unlock(&self, word: &AtomicU32) {
        assert_eq!(word.load(Ordering::SeqCst), self.id() | WAITERS, "ours, and forced");
        word.store(0, Ordering::SeqCst);
        wake(core::ptr::from_ref(word).addr());
    }
}
