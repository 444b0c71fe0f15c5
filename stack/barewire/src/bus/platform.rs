//! The platform seam: how a thread that must wait for the bus waits, and who it is.
//!
//! # For platform authors
//! A prepared access or a sync message on a bus that nobody else wants asks its platform nothing; a
//! lock, a submitted message and a callback ask for the context. A caller that finds the bus taken
//! [relaxes](Platform::relax) up to [`Platform::spins`] times, then sleeps in [`Platform::wait`]
//! until the thread that finishes its message calls [`Platform::wake`].
//!
//! [`Spin`] never sleeps and is what [`Bus::new`](super::Bus::new) uses.
//!
//! # Ordering
//! `wait` and `wake` need order nothing: the word is written with release before `wake`, and read
//! with acquire after `wait`.

pub use super::atomic::AtomicU32;

/// How threads of this machine wait for each other.
pub trait Platform: Sync {
    /// The caller's context: a number that no two live threads share. Messages of one context run
    /// in the order it gave them, also where priorities differ. Asked only where the bus was not
    /// free.
    ///
    /// The default, 0, tells no contexts apart; then all messages run in one order, priorities have
    /// no effect, and a context that waits for a bus it has waits for ever. Else a number above 0.
    fn context(&self) -> usize {
        0
    }

    /// Between two looks at something that will change soon.
    fn relax(&self) {
        core::hint::spin_loop();
    }

    /// How often to relax before sleeping.
    fn spins(&self) -> u32 {
        100
    }

    /// Sleeps while `word` holds `expected`. May return early, for no reason at all; must not miss
    /// a [`Platform::wake`] that comes after the word changed.
    fn wait(&self, word: &AtomicU32, expected: u32);

    /// Wakes whoever sleeps on `word`. The word itself may be gone by now: only its address may be
    /// used. Must be callable from wherever `try_` calls are made. If it panics it is called once
    /// again, since somebody sleeps.
    fn wake(&self, word: *const AtomicU32);

    /// Runs `f`, once, with the controller's interrupt kept from this processor. Only a bus whose
    /// queue an interrupt handler pumps ([`Pump::Interrupt`](super::Pump::Interrupt)) asks for it,
    /// from threads and from the handler itself, never nested.
    fn masked(&self, f: &mut dyn FnMut()) {
        f();
    }

    /// Priority inheritance, if the bus is to have it: its lock then is a word that this takes and
    /// gives back.
    fn inheritance(&self) -> Option<&dyn Inheritance> {
        None
    }
}

/// [`Inheritance`]: the word's bit that has its owner release it by [`Inheritance::unlock`].
/// Linux's `FUTEX_WAITERS`.
pub const WAITERS: u32 = 1 << 31;

/// A lock whose waiters lend their priority to its owner: the protocol of Linux's PI futexes.
///
/// A word is 0 when free, else the owner's id, with [`WAITERS`] if releasing it needs
/// [`Inheritance::unlock`]. The uncontended ways, a compare-and-swap from 0 to the id and back,
/// are the bus's own. A bus has two such words, and a thread that owns the first may lock the
/// second.
pub trait Inheritance: Sync {
    /// The caller's id: above 0, below 2 to the 30.
    fn id(&self) -> u32;

    /// Acquires the word, which another thread owns, and lends that the caller's priority until
    /// then. On return the word holds the caller's id.
    fn lock(&self, word: &AtomicU32);

    /// Releases the caller's word, on which [`WAITERS`] is set: to the waiter of highest priority,
    /// or to nobody if there is none.
    fn unlock(&self, word: &AtomicU32);
}

/// Waits by looking: for bare metal, and for threads that each have a processor.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Spin;

impl Platform for Spin {
    fn wait(&self, _word: &AtomicU32, _expected: u32) {
        self.relax();
    }

    fn wake(&self, _word: *const AtomicU32) {}
}
