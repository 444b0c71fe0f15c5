//! The last commands that the SMMU refused, so that each call finds its own.

use crate::sync::atomic::{AtomicU32, Ordering, fence};

/// The number of refused commands that are recorded.
const KEPT: usize = 8;

/// The positions and reasons of refused commands.
pub(super) struct RefusedCommands {
    /// The number of refused commands so far.
    count: AtomicU32,
    /// The positions of the last ones.
    at: [AtomicU32; KEPT],
    /// The reasons of the last ones.
    codes: [AtomicU32; KEPT],
}

impl RefusedCommands {
    pub(super) fn new() -> Self {
        Self {
            count: AtomicU32::new(0),
            at: core::array::from_fn(|_| AtomicU32::new(0)),
            codes: core::array::from_fn(|_| AtomicU32::new(0)),
        }
    }

    pub(super) fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    /// Records a refused command. Only the CPU that recovers calls this.
    pub(super) fn note(&self, at: u32, code: u32) {
        let count = self.count.load(Ordering::Relaxed);
        let slot = count as usize % KEPT;
        // Release: a reader of this value also sees its count, or a later one.
        self.at[slot].store(at, Ordering::Release);
        self.codes[slot].store(code, Ordering::Release);
        self.count.store(count.wrapping_add(1), Ordering::Release);
    }

    /// The reason of a command refused after the first `before`, at a position from `first` to before
    /// `end`.
    pub(super) fn between(&self, before: u32, first: u32, end: u32) -> Option<u8> {
        let now = self.count();
        let mut found = None;
        for count in (0..now.wrapping_sub(before).min(KEPT as u32)).rev() {
            let slot = now.wrapping_sub(1).wrapping_sub(count) as usize % KEPT;
            let at = self.at[slot].load(Ordering::Relaxed);
            let code = self.codes[slot].load(Ordering::Relaxed) as u8;
            if at.wrapping_sub(first) < end.wrapping_sub(first) {
                found = found.or(Some(code));
            }
        }
        // An entry overwritten before or while we read may have been ours.
        fence(Ordering::Acquire);
        let overwritten = self.count.load(Ordering::Relaxed).wrapping_sub(before) >= KEPT as u32;
        let last = self.codes[now.wrapping_sub(1) as usize % KEPT].load(Ordering::Relaxed) as u8;
        found.or(overwritten.then_some(last))
    }
}
