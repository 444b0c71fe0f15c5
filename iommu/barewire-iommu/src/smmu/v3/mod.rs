//! SMMUv3: stream table, context descriptors, command and event queue.
//!
//! *Read first*: IHI 0070, chapter 3 (operation), 4 (commands), 5 (structures), 6 (registers).
//!
//! # How it works
//! - `features`: what the implementation supports: [`Features`].
//! - `device`: bring-up, and the shared handle: [`Smmu`].
//! - `errata`: which implementation it is, and what is known to be wrong with it: [`Identity`],
//!   [`Errata`].
//! - `queue`: the command queue of all CPUs: [`CommandQueue`]. `command` has the encodings, `refused`
//!   the commands that failed, `global_error` the errors of the SMMU as a whole: [`GlobalError`].
//! - `invalidate`: implements [`Invalidate`](crate::Invalidate) for [`Smmu`]. `range` splits ranges
//!   into commands.
//! - `stream_table`, `context_descriptor`: the tables of each stream: [`StreamTable`],
//!   [`ContextTable`]. `entry` changes one that the SMMU may be reading.
//! - `event`: reported faults: [`EventQueue`].
//!
//! # Ordering
//! Guarantees to the caller:
//! 1. Stores are visible: every walk that begins after [`flush`](crate::Invalidate::flush) or
//!    [`Smmu::run`] returned, or that the invalidation itself causes, sees the calling CPU's stores
//!    to tables before the call.
//! 2. Ok means complete: the SMMU has completed every command of the call. No access uses a
//!    translation that the commands cover, and no access that used one is still under way. Tables
//!    may be freed and pages reused.
//! 3. An error means unknown: the commands may complete later, or never. Repeating the call is
//!    always correct.
//! 4. Order inside a call: its commands take effect in the order given. Commands of other CPUs may
//!    come between them.
//! 5. Order between calls: if a call returned before another began, and the CPUs have synchronised,
//!    the first call's commands are earlier in the queue.
//! 6. No locks: a CPU waits for another CPU only as long as its patience allows. A CPU that is
//!    interrupted between reserving and publishing delays the commands behind its own, which may
//!    time out. Hypervisors and real-time systems mask interrupts around a flush, or allow more
//!    patience.
//! 7. Whole entries: [`StreamTable::set`] and [`ContextTable::set`] show the SMMU only the old
//!    entry, the new one or, for the changes that their documentation lists, an invalid one between.
//! 8. Errors belong to their call: a refused command is an error of the call that issued it only;
//!    see [`CommandQueue`] for the exceptions. Commands behind it are executed.
//! 9. Interrupt handlers: a handler may call [`Smmu::handle_errors`], and [`EventQueue::pop`] on a
//!    queue that it owns, wherever it comes. Neither waits for another CPU. A handler should issue no
//!    commands (`flush`, `run`, `set`): it may have interrupted a CPU between reserving and publishing,
//!    and then its commands stay behind that CPU's until it returns. Such a call returns
//!    [`FlushError::Timeout`](crate::FlushError::Timeout) when its patience ends, and never if its
//!    patience has no end. Mask the interrupt around calls that issue commands, or leave commands to a
//!    thread.
//!
//! # Not supported
//! - Two stages for one stream; EL2's and Secure streams.
//! - ATS and PRI (CMD_ATC_INV, page requests).
//! - Stalled faults (CMD_RESUME).
//! - Completion of CMD_SYNC by MSI or SEV, and interrupts by MSI.
//! - 2-level context descriptor tables.
//! - Enhanced command queues (ECMDQ).
//! - Broadcast TLB maintenance.
//! - 52-bit addresses.
//! - MPAM.
//! - Hardware update of access flags.
//! - S2FWB (SMMU_IDR3.FWB): STE.S2FWB is always 0. Stage 2's MemAttr are combined with the attributes
//!   of the access, and the weaker one wins, as on an SMMU without it. So a device that asks for
//!   non-cacheable accesses gets them, whatever the table says.
//! - Tables and queues at fixed addresses.

mod command;
mod context_descriptor;
mod device;
mod entry;
mod errata;
mod error;
mod event;
mod features;
#[cfg(test)]
mod fields;
mod global_error;
mod invalidate;
mod queue;
mod range;
mod refused;
mod registers;
mod stream_table;

pub use command::{Command, Scope};
pub use context_descriptor::{ContextDescriptor, ContextTable};
pub use device::{Disabled, Settings, Smmu};
pub use errata::{Errata, Erratum, Identity};
pub use error::{SmmuError, Unsupported};
pub use event::{Event, EventClass, EventKind, EventQueue};
pub use features::Features;
pub use global_error::{GlobalError, GlobalErrors};
pub use queue::CommandQueue;
pub use stream_table::{Stream, StreamLayout, StreamTable};
