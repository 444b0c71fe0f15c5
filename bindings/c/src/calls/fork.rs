//! Notices a fork: in the child, all handles fail.
//!
//! # Safety
//! The handler that runs in the child writes atomics and nothing else, which is allowed there, whatever the parent's
//! other threads were doing. The library stays loaded, and so does the handler.
#![allow(unsafe_code, reason = "pthread_atfork, which takes a C function")]

use std::sync::Once;
use std::sync::atomic::Ordering;

use crate::calls::device::DEVICES;
use crate::calls::message::MESSAGES;
use crate::calls::prepared::PREPARED;
use crate::shared::{BUSES, FORKS};

extern "C" fn in_the_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    BUSES.forked();
    DEVICES.forked();
    PREPARED.forked();
    MESSAGES.forked();
}

/// Notices forks from now on.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is a function of this library and writes atomics (module, Safety).
        let errno = unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
        assert_eq!(errno, 0, "pthread_atfork has room for one handler");
    });
}
