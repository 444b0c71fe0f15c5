//! The platform: how a thread waits for the bus, and how contexts are told apart.
//!
//! # For platform authors
//! A prepared access or a sync message on an idle bus does not call the platform; a lock, a
//! submitted message and a callback ask for the context. A caller that finds the bus taken
//! [relaxes](Platform::relax) up to [`Platform::spins`] times, then sleeps in [`Platform::wait`]
//! until the thread that finishes its message calls [`Platform::wake`].
//!
//! [`Spin`], the platform of [`Bus::new`](super::Bus::new), never sleeps.
//!
//! # Safe and unsafe platforms
//! A [`Platform`] is safe to implement: whatever it does, at worst a caller waits for ever. It sees the bus's words as
//! [`WaitWord`]s, which it cannot write; a function that is to be called once has no effect the second time; and the bus asks for
//! [`Platform::inheritance`] once, when it is made. An [`Inheritance`] is unsafe to implement: its locks are what keeps two
//! threads off the controller.
//!
//! # Ordering
//! `wait` and `wake` need no memory ordering of their own: the bus writes the word with release
//! before `wake` and reads it with acquire after `wait`.
#![allow(unsafe_code, reason = "an unsafe trait: its locks keep threads off the controller")]

pub use super::atomic::AtomicU32;

/// A word on which a thread may sleep. It carries the bus's own state, so a platform can read it and not write it:
///
/// ```compile_fail
/// # use barewire::bus::platform::WaitWord;
/// fn wait(word: WaitWord<'_>) {
///     word.store(0);
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WaitWord<'w>(&'w AtomicU32);

impl WaitWord<'_> {
    /// Its value now.
    #[must_use]
    pub fn load(self) -> u32 {
        // Under loom, reading and writing in one reads the newest value, as a kernel's lock does.
        #[cfg(loom)]
        return self.0.fetch_or(0, super::atomic::Ordering::Relaxed);
        #[cfg(not(loom))]
        self.0.load(super::atomic::Ordering::Relaxed)
    }

    /// Its address, as [`Platform::wake`] gets it.
    #[must_use]
    pub fn as_ptr(self) -> *const AtomicU32 {
        self.0
    }
}

impl<'w> From<&'w AtomicU32> for WaitWord<'w> {
    fn from(word: &'w AtomicU32) -> Self {
        Self(word)
    }
}

/// How threads of this system wait for each other.
pub trait Platform: Sync {
    /// The caller's context: a number above 0 that no two live threads share. Messages of one
    /// context run in the order in which it submitted them, even if their priorities differ. Called
    /// only if the bus is not idle, and by locks, callbacks and submissions.
    ///
    /// The default, 0, tells no contexts apart. Then all messages run in one order, priorities have
    /// no effect, and a context that waits for a bus it holds waits for ever.
    fn context(&self) -> usize {
        0
    }

    /// Called between two polls of a condition that will change soon.
    fn relax(&self) {
        core::hint::spin_loop();
    }

    /// How many times to relax before sleeping.
    fn spins(&self) -> u32 {
        100
    }

    /// Sleeps while `word` holds `expected`. May return early, without a reason. Must not miss a
    /// [`Platform::wake`] that comes after the word changed.
    fn wait(&self, word: WaitWord<'_>, expected: u32);

    /// Wakes the threads that sleep on `word`. The word may have been freed by now: use only its
    /// address. Must be callable wherever `try_` calls are made. If it panics it is called once
    /// more, because a thread sleeps.
    fn wake(&self, word: *const AtomicU32);

    /// Runs `f` with the controller's interrupt masked on this processor. `f` acts once, however often it is
    /// called. Called only for a bus with [`Pump::Interrupt`](super::Pump::Interrupt), from threads and from the handler
    /// itself, never nested.
    fn masked(&self, f: &mut dyn FnMut()) {
        f();
    }

    /// Priority inheritance, if the platform has it. The bus then uses its locks. Called once, when the
    /// bus is made.
    fn inheritance(&self) -> Option<&dyn Inheritance> {
        None
    }
}

/// [`Inheritance`]: the bit of a word that makes its owner release it by [`Inheritance::unlock`].
/// Linux calls it `FUTEX_WAITERS`.
pub const WAITERS: u32 = 1 << 31;

/// A lock whose waiters lend their priority to its owner: the protocol of Linux's PI futexes.
///
/// A word is 0 when free, else the owner's id, with [`WAITERS`] if releasing it needs
/// [`Inheritance::unlock`]. The bus itself does the uncontended operations: a compare-and-swap from
/// 0 to the id, and back. A bus has two such words, and a thread that owns the first may lock the
/// second.
///
/// # Safety
/// No two live threads have the same id, and a thread always the same one. When [`Inheritance::lock`] returns, the
/// word holds the caller's id, and did not hold another thread's since: so no two threads have locked a word at once.
/// [`Inheritance::unlock`] changes the caller's word only, as it says. Neither writes anything else into a word than it says.
pub unsafe trait Inheritance: Sync {
    /// The caller's id: above 0, below 2³⁰.
    fn id(&self) -> u32;

    /// Acquires a word that another thread owns, and lends that thread the caller's priority until
    /// then. On return the word holds the caller's id.
    fn lock(&self, word: &AtomicU32);

    /// Releases the caller's word, on which [`WAITERS`] is set: hands it to the waiter of highest
    /// priority, or frees it if there is no waiter.
    fn unlock(&self, word: &AtomicU32);
}

/// Waits by spinning: for bare metal, and for threads with a processor each.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Spin;

impl Platform for Spin {
    fn wait(&self, _word: WaitWord<'_>, _expected: u32) {
        self.relax();
    }

    fn wake(&self, _word: *const AtomicU32) {}
}
