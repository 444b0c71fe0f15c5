//! The bus: one controller, who may drive it, and the paths through it.
//!
//! | path | for | costs on an idle bus |
//! |---|---|---|
//! | [`Prepared`], [`PreparedMessage`] | accesses known in advance | one atomic in, the register accesses, one atomic out |
//! | [`Device::sync`] | any message, the caller waits | the same and the message's validation |
//! | [`Device::queued`], [`Device::transact`] | the caller goes on; a callback, a poll or a future ends it | one push; the holder, a [worker](Bus::serve) or an [interrupt](Bus::interrupt) runs it |
//! | [`Bus::lock`] | several messages that nobody comes between | as sync |
//!
//! All are methods of one handle, in any mix.
//!
//! # Promises
//! 1. Messages of one context run in the order it gave them, whatever paths it mixes. A context is
//!    a thread, as [`Platform::context`] tells them apart.
//! 2. A message is never interleaved with another on the wire: whoever runs one holds the bus. A
//!    [lock](Bus::lock) holds it over several.
//! 3. CS is released on every error, cancel and panic path, and the bus is given back or on.
//! 4. `try_` calls never block: they may be made from a signal or interrupt handler, even one
//!    that interrupted a message on the same bus; they then return [`Error::Busy`]. One that runs
//!    polls the wire; if others submitted messages meanwhile it hands the queue to a thread that
//!    waits, or to the worker, or else runs it.
//! 5. Nobody who waits is forgotten, nor starved: equals are served first come, first served; by
//!    priority a message is overtaken at most 16 times; a holder serves others at most 16 times
//!    before it hands the bus to a thread that waits or to the worker. (Where there is neither, it
//!    serves what others submit for as long as they do: see [`Pump::Caller`].)
//! 6. With a [platform](Platform::inheritance) that has priority inheritance, who waits lends the
//!    holder its priority, and the holder runs no others' messages.
//! 7. [Statistics], when on, equal what was on the wire; when off they cost one look at a flag.
//!
//! # Not to be done
//! A thread that holds the bus, by [`Bus::lock`] or in a [callback](queued::Callback), must not
//! wait for it: no sync, no lock, no dropping of a message that is queued. It would wait for itself.
//!
//! # The rooms
//! The word and what it guards are in `lock`, everything that happens when the bus is not simply
//! idle in `pump`; a place in the queue is a `node`, their order the `queue`'s. `worker`,
//! `interrupt` and `inherit` are the three other ways to be served.

mod acquire;
mod atomic;
mod device;
mod inherit;
mod interrupt;
mod lock;
mod node;
mod panics;
pub mod platform;
mod prepared;
mod queue;
pub mod queued;
mod serve;
mod statistics;
#[cfg(test)]
mod tests;
mod turn;
mod word;
mod worker;

pub use device::Device;
pub use lock::{Bus, Pump};
pub use platform::Platform;
pub use prepared::{Prepared, PreparedMessage};
pub use queued::{Queued, Then};
pub use statistics::{HISTO_BUCKETS, Statistics};
pub use turn::{Locked, Transact};

#[cfg(doc)]
use crate::spi::Error;
