//! The common part of all C libraries' mutexes: the kernel's word, the state in which an acquirer found it,
//! and the time to wait.

use std::time::Duration;

/// The state in which the mutex was found when it was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MutexState {
    /// Its last owner released it.
    Free,
    /// Its last owner ended while it held the mutex. Releasing it before `Held::make_consistent`
    /// makes it unusable for good.
    OwnerDied,
}

/// How often a waiter is asked whether to continue.
pub(super) const ASK_EVERY: Duration = Duration::from_millis(100);

/// futex(2): the bits of the word that are the owner's thread id.
pub(crate) const FUTEX_TID_MASK: u32 = 0x3fff_ffff;
/// futex(2): the owner ended while it held the mutex.
pub(crate) const FUTEX_OWNER_DIED: u32 = 0x4000_0000;
