//! SMMUv3: stream table, context descriptors, command and event queue.
//!
//! *Read first*: IHI 0070, chapter 3 (operation), 4 (commands), 5 (structures), 6 (registers).
//!
//! # How it works
//! - `features`: what the implementation can do: [`Features`].
//! - `device`: bring-up, and the handle everybody shares: [`Smmu`].
//! - `queue`: many CPUs' commands in one ring: [`CommandQueue`]; `command` has their encodings.
//! - `invalidate`: [`Smmu`] is an [`Invalidate`](crate::Invalidate); `range` cuts ranges to commands.
//! - `stream_table`, `context_descriptor`: who goes by which table: [`StreamTable`], [`ContextTable`].
//! - `event`: what went wrong: [`EventQueue`].
//!
//! # Ordering
//! What a caller may count on:
//! 1. Stores to tables by the calling CPU before [`flush`](crate::Invalidate::flush), or
//!    [`Smmu::run`], are seen by every walk that begins after it returned, and by those that the
//!    invalidation itself sets off.
//! 2. When it returns Ok, the SMMU has completed every command of the call: no access goes through a
//!    translation that the commands cover, and none that went through one is still on its way. Tables
//!    may be freed and pages given back.
//! 3. When it returns an error, nothing of 2 is known. The commands may complete later, or not. The
//!    same call again is always right.
//! 4. Commands of one call are executed in the order given, or so that nobody can tell. Those of
//!    another CPU may come between them.
//! 5. A call that returned before another began, on any CPUs that know of it by their own
//!    synchronisation, was before it in the queue.
//! 6. Calls on different CPUs need no lock, and none waits for another CPU otherwise than with the
//!    patience given. A CPU that is interrupted between reserving and publishing holds back the
//!    commands behind its own, so that they may time out: hypervisors and real-time systems mask
//!    interrupts around a flush, or give more patience.
//! 7. [`StreamTable::set`] and [`ContextTable::set`] never show the SMMU an entry that is not the old
//!    one, an invalid one or the new one.
//! 8. A refused command is an error of the call that issued it, and of no other; see [`CommandQueue`]
//!    for the exceptions. Commands behind it are executed.
//! 9. An interrupt handler may call anything that takes `&self`.
//!
//! # Not supported
//! Two stages for one stream; EL2's and Secure streams; ATS and PRI (CMD_ATC_INV, page requests);
//! stalled faults (CMD_RESUME); completion of CMD_SYNC by MSI or SEV, and interrupts by MSI; 2-level
//! context descriptor tables; enhanced command queues (ECMDQ); broadcast TLB maintenance; 52-bit
//! addresses; MPAM; hardware update of access flags; error and event queues at fixed addresses.

mod command;
mod context_descriptor;
mod device;
mod error;
mod event;
mod features;
mod invalidate;
mod queue;
mod range;
mod registers;
mod stream_table;

pub use command::{Command, Scope};
pub use context_descriptor::{ContextDescriptor, ContextTable};
pub use device::{Disabled, Settings, Smmu};
pub use error::{SmmuError, Unsupported};
pub use event::{Event, EventClass, EventKind, EventQueue};
pub use features::Features;
pub use queue::CommandQueue;
pub use stream_table::{Stream, StreamLayout, StreamTable};
