//! What the server sleeps on.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;
use rustix::time::Timespec;

/// What makes the server look: rung by processes for their requests, and by the thread of the sockets.
#[derive(Clone, Copy)]
pub(super) struct Rings(&'static AtomicU32);

impl Rings {
    /// Those that are counted by that word.
    pub(super) fn of(word: &'static AtomicU32) -> Self {
        Self(word)
    }

    /// How often it was rung.
    pub(super) fn heard(self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// Rings.
    pub(super) fn ring(self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        wake(self.0);
    }

    /// Sleeps until it is rung, unless it was rung after `heard`; not longer than `timeout`.
    pub(super) fn wait(self, heard: u32, timeout: Option<&Timespec>) {
        // The server looks, whatever the reason for the return.
        let _ = futex::wait(self.0, futex::Flags::empty(), heard, timeout);
    }
}

/// Wakes who sleeps on a word.
pub(super) fn wake(word: &AtomicU32) {
    // Perhaps no thread sleeps. A process has one thread at a slot.
    let _ = futex::wake(word, futex::Flags::empty(), 1);
}
