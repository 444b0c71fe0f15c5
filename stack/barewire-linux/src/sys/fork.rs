//! Notices a fork: cached values of this process or thread are wrong in the child.
//!
//! # Safety
//! The handler that runs in the child only increments an atomic. That is allowed there, whatever
//! the parent's other threads were doing.
#![allow(unsafe_code, reason = "pthread_atfork, which takes a C function")]

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);
static HANDLER: Once = Once::new();

extern "C" fn in_the_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Makes [`forks`] count from now on.
pub(crate) fn watch() {
    HANDLER.call_once(|| {
        // SAFETY: the handler is a function of this program and touches one atomic (module,
        // Safety).
        let errno = unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
        assert_eq!(errno, 0, "pthread_atfork has room for one handler");
    });
}

/// How many forks there were between the process that called [`watch`] and this one. One load.
#[inline]
pub(crate) fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}
