//! Several processes on one controller's registers: a lock in a file, and who used the block last.
//!
//! [`SharedLock`] is libc's mutex in a file that every process maps: robust (it outlives its
//! owner), process-shared, with priority inheritance. [`ProcessShared`] wraps a controller and
//! holds the lock for each message. [`ChipPort`] wraps a chip's way to the bus, and holds another lock
//! for each operation, of many messages: see [`ChipLocks`].
//!
//! Read first: pthread_mutexattr_setrobust(3); this crate's README, on several processes.
//!
//! # How it works
//! Each opener has a number, and the file says whose message was the last. So a process knows
//! whether the block is as it left it:
//!
//! | what it finds | what it does before its message |
//! |---|---|
//! | itself as the last user | nothing |
//! | another | [`Controller::reclaim`]: the block is idle, but its settings are another's |
//! | a user that died holding the lock | the same, and the loss is counted and told |
//!
//! A clean change of user needs less than the whole of `reclaim`: CS is inactive and the FIFOs are
//! empty, only the driver's idea of what is in the block's registers is wrong. It is done whole all
//! the same: a driver then has one way back to a known block, and every change of user tries it,
//! not only a disaster. The price is its register accesses, once a change of user.
//!
//! # Ordering
//! 1. The lock is taken.
//! 2. If the last user was not this opener, or died: the file says *nobody*, then a dead owner's
//!    lock is made usable, then the block is reclaimed, then the file says *this opener*. A process
//!    that dies or panics between any two of these leaves a file that makes the next one reclaim.
//! 3. The message runs; CS is released on every path of it.
//! 4. The lock is given back.
//!
//! # What callers must know
//! * A message may wait for another process's: up to that one's timeout. This goes for `try_` calls
//!   too, which do not wait for this process's bus but, having it, run: do not make them from where
//!   waiting is not allowed. A signal handler that interrupts a message of another bus *on the same
//!   lock* gets `EDEADLK` as [`Error::Os`](barewire::spi::Error::Os).
//! * [`Bus::lock`](barewire::bus::Bus) holds the bus of this process; other processes' messages may
//!   come between its messages, on its chip too unless the driver has a [`ChipPort`].
//! * `ENOTRECOVERABLE`: somebody other than this crate gave the lock back without repairing it.
//!   Remove the file while no process has it open.
//! * After a fork parent and child may both go on: the child is an opener of its own. But another
//!   thread of the parent that was in a message has the child's bus taken for ever; fork first.
//! * A process that is stopped (SIGSTOP, a debugger) in a message stops all others.
//!
//! # Not supported
//! Processes of different PID namespaces (containers) on one lock: the kernel knows a robust
//! mutex's owner by its number. Programs of another word size, architecture or libc on one lock:
//! refused when opened. Emulated programs (qemu-user), whose kernel lists no robust mutexes.
//! Messages that finish by interrupt: `start` runs them whole, since only the thread that took the
//! lock may give it back. Network file systems.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use barewire::bus::Bus;
//! use barewire::controller::null::Null;
//! use barewire_linux::shared::{ProcessShared, SharedLock};
//!
//! let lock = SharedLock::open(Path::new("/run/lock/spi.lock"), Path::new("/dev/uio0"))?;
//! // The controller is brought up under the lock: others may be using it.
//! let controller = ProcessShared::bring_up(lock, Null::new)?
//!     .on_recovered(|recovered| eprintln!("a process died in a message: {recovered}"));
//! let recoveries = controller.recoveries();
//! let bus = Bus::new(controller);
//! assert_eq!(recoveries.times(), 0);
//! # Ok::<(), barewire_linux::shared::SharedError>(())
//! ```
//!
//! [`Controller::reclaim`]: barewire::controller::Controller::reclaim

mod chip;
mod controller;
mod error;
mod lock;
#[cfg(test)]
mod tests;

pub use chip::{ChipLock, ChipLocks, ChipPort};
pub use controller::{ProcessShared, Recovered, Recoveries};
pub use error::SharedError;
pub use lock::{Holder, SharedLock};
