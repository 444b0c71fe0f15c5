//! The bus: one controller, who may drive it, and the paths through it.
//!
//! | path | for | costs |
//! |---|---|---|
//! | [`Prepared`], [`PreparedMessage`] | accesses known in advance | one atomic in, the register accesses, one atomic out |
//! | [`Device::sync`] | any message, the caller waits | the same and the message's validation |
//!
//! # Promises
//! 1. A message is never interleaved with another on the wire: whoever runs one holds the bus.
//! 2. CS is released on every error and panic path, and the bus is given back.
//! 3. `try_` calls never block: they may be made from a signal or interrupt handler, even one
//!    that interrupted a message on the same bus; they then return [`Error::Busy`].
//! 4. What a device's settings imply is computed when they are set; what a prepared message
//!    implies is computed when it is prepared.
//!
//! Messages of one context run in the order it gave them, since a call returns only when its
//! message has run. A caller that finds the bus taken spins (see [`Bus::with_relax`]); callers
//! that spin are not served in order.

mod atomic;
mod device;
mod inherit;
mod interrupt;
mod lock;
mod node;
pub mod platform;
mod prepared;
mod pump;
mod queue;
pub mod queued;
mod statistics;
#[cfg(test)]
mod tests;
mod turn;
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
