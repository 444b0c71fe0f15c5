//! Several processes on one controller's registers: a lock in a file, which also records the last
//! user.
//!
//! [`SharedLock`] is libc's mutex in a file that every process maps: robust (it survives its
//! owner), process-shared, with priority inheritance. [`ProcessShared`] wraps a controller and
//! holds the lock for each message. [`ChipPort`] wraps a chip's port and holds a second lock for
//! each operation of several messages: see [`ChipLocks`].
//!
//! Read first: pthread_mutexattr_setrobust(3); this crate's README, on several processes.
//!
//! # How it works
//! Each opener has a number, and the file stores the number of the last user. So a process knows
//! whether the block is in the state in which it left it:
//!
//! | the last user | what a process does before its message |
//! |---|---|
//! | itself | nothing |
//! | another opener | [`Controller::reclaim`]: the block is idle, but configured for the other |
//! | an opener that died while it held the lock | `reclaim`; the death is counted and reported |
//!
//! After a regular change of user less than `reclaim` would suffice: CS is inactive, the FIFOs are
//! empty, and only the driver's knowledge of the registers is outdated. `reclaim` is used
//! nevertheless. So a driver has one way back to a known block, and every change of user tests it,
//! not only a crash. The cost is its register accesses, once per change of user.
//!
//! Deaths are counted in the file ([`Recoveries`]), so that each process can report them. After a fork
//! the child takes a new number before its first message: the two are different openers.
//!
//! # Ordering
//! 1. Acquire the lock.
//! 2. If the last user was another opener, or died: write *no user* to the file, reclaim the block, write *this opener* to the file. If a process
//!    dies or panics between any two of these steps, the next one reclaims.
//! 3. Run the message; CS is deasserted on every path.
//! 4. Release the lock.
//!
//! # What callers must know
//! * A message may wait for another process's message, up to that one's timeout. `try_` calls do not: they return
//!   [`Error::Busy`](barewire::spi::Error::Busy). A signal handler that interrupts a message of another bus
//!   *on the same lock* gets `EDEADLK` as [`Error::Os`](barewire::spi::Error::Os) from the other calls.
//! * [`Bus::lock`](barewire::bus::Bus) locks the bus of this process only. Messages of other
//!   processes may run between its messages, even to its chip, unless the driver has a
//!   [`ChipPort`].
//! * An opener is seen by those who open the lock, not only by those who wait for it: one that wants the
//!   controller for itself ([`SharedLock::open_exclusive`]) is refused while another has the lock open, and refuses
//!   others. Both learn each other's processes.
//! * A child that was made by a fork keeps its parent's lock open until it ends or execs.
//! * After a fork both parent and child may continue: the child is an opener of its own. But if
//!   another thread of the parent was in a message at the fork, the child's bus is held for ever.
//!   Fork first.
//! * A process that is stopped (SIGSTOP, a debugger) within a message stops all others.
//!
//! # Not supported
//! Processes of different PID namespaces (containers) on one lock: the kernel identifies a robust
//! mutex's owner by its thread id. The second namespace is refused at opening. A child in another one than
//! the process that opened the lock, by unshare(2) and a fork, is refused its first message (`EXDEV`). Programs with another word size or architecture: the lock
//! refuses to open. Programs whose C library is neither glibc nor musl, and emulated ones (qemu-user): they have no list of robust futexes
//! of which the kernel knows. A child that shares its parent's memory (vfork): it is refused when it opens a lock, but a lock that its
//! parent opened must not be used in it.
//! Messages that finish by interrupt: `start` runs them completely, because only the thread that
//! acquired the lock may release it. Network file systems.
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
mod lifeline;
mod lock;
#[cfg(test)]
mod lock_tests;
mod origin;
mod presence;
mod retry;
#[cfg(test)]
mod tests;

pub use chip::{ChipLock, ChipLocks, ChipPort, Claim};
pub use controller::{ProcessShared, Recovered, Recoveries};
pub use error::SharedError;
pub use lifeline::Lifeline;
pub(crate) use lock::LockFile;
pub use lock::{Holder, SharedLock};
pub use presence::BusUser;
pub(crate) use presence::UserNames;
