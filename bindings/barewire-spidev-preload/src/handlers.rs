//! Whether the program has handlers of signals, which may interrupt a message.
//!
//! # How it works
//! The library defines `sigaction` and similar functions to note the first handler; then it calls the originals.
//! Handlers of SIGSEGV and SIGBUS do not count: they are for the program's own faults, and none happens in a
//! message.
//!
//! # Ordering
//! 1. Note the handler.
//! 2. Wait for the messages that began before.
//! 3. Install it.
//!
//! A message looks after it has begun, so one that step 2 does not wait for sees the note.

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

static ANY: AtomicBool = AtomicBool::new(false);
/// A handler that does not block its own signal: the library cannot know that it runs.
static UNKNOWABLE: AtomicBool = AtomicBool::new(false);

/// Whether the program may have a handler.
#[inline]
pub(crate) fn any() -> bool {
    ANY.load(Ordering::SeqCst)
}

/// Notes that a handler of `signal` is being installed; true for the first, before which messages that have begun must end.
#[must_use]
pub(crate) fn note(signal: c_int, flags: c_int) -> bool {
    if matches!(signal, libc::SIGSEGV | libc::SIGBUS) {
        return false;
    }
    if flags & libc::SA_NODEFER != 0 {
        UNKNOWABLE.store(true, Ordering::Relaxed);
    }
    !ANY.swap(true, Ordering::SeqCst)
}

/// Whether the caller may be a handler: it runs with its signal blocked.
pub(crate) fn may_be_in_one() -> bool {
    if UNKNOWABLE.load(Ordering::Relaxed) {
        return true;
    }
    any() && !nothing_is_blocked()
}

fn nothing_is_blocked() -> bool {
    let mut now = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: it fills the set, and changes nothing without a new one.
    let got = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), now.as_mut_ptr()) };
    if got != 0 {
        return false;
    }
    // SAFETY: filled by the call above.
    let now = unsafe { now.assume_init() };
    // SAFETY: a valid set, and numbers of signals.
    (1..=31).all(|signal| unsafe { libc::sigismember(&raw const now, signal) } == 0)
}
