//! Noticing a fork: what is cached of this process or thread is another's in the child.
//!
//! # Safety
//! The handler that runs in the child adds to one atomic, and nothing else: that is allowed there
//! whatever the parent's other threads were at.
#![allow(unsafe_code, reason = "pthread_atfork, which takes a C function")]

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);
static HANDLER: Once = Once::new();

extern "C" fn in_the_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Sees to it that [`forks`] counts from here on.
pub(crate) fn watch() {
    HANDLER.call_once(|| {
        // SAFETY: the handler is a function of this program and touches one atomic (module,
        // Safety).
        let errno = unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
        assert_eq!(errno, 0, "pthread_atfork has room for one handler");
    });
}

/// How many forks lie between the process that began to [`watch`] and this one. One load.
#[inline]
pub(crate) fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}
