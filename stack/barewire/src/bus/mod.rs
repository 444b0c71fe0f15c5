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
//!    a thread, as [`Platform::context`] tells them apart. A [`Transact`] future gives its message
//!    in the poll in which it runs.
//! 2. A message is never interleaved with another on the wire: whoever runs one holds the bus. A
//!    [lock](Bus::lock) holds the wire over several.
//! 3. CS is released on every error, cancel and panic path, and the bus is released or handed to
//!    the next waiter. That is a promise of what is written to CS's line: its pin follows if no other
//!    program drives the line's bank ([`gpio`](crate::controller::gpio)), and a process that is killed
//!    writes nothing. A panic in user code (controller, callback, waker, platform) loses at most
//!    that panic: everybody else is served, then it is raised in the caller that ran the code. If
//!    several panic in one call, the first is raised.
//! 4. `try_` calls never block: they may be made from a signal or interrupt handler, even one
//!    that interrupted a message on the same bus; they then return [`Error::Busy`]. One that runs
//!    polls the wire; if others submitted messages meanwhile it hands the queue to a thread that
//!    waits, or to the worker, or else runs it.
//! 5. Nobody who waits is forgotten, nor starved: equals are served first come, first served; by
//!    priority a message is overtaken at most 16 times; a holder serves others at most 16 times
//!    before it hands the bus to a thread that waits or to the worker. (Where there is neither, it
//!    serves what others submit for as long as they do: see [`Pump::Caller`].) A [`Transact`]
//!    future waits between its polls without a place in this: from each poll on it is passed over
//!    no more often than a message, then it is woken; while its task is not polled it delays
//!    nobody, and others may go before it. A [`Queued`] message needs no poll to be run.
//!    With priority inheritance the platform's lock has the order instead: threads go by priority, and
//!    one of lower priority waits for as long as higher ones come; futures try again in no order.
//! 6. With a [platform](Platform::inheritance) that has priority inheritance, a thread that waits
//!    lends the holder its priority, and the holder runs no messages of other contexts.
//! 7. [Statistics], when on, equal what was on the wire and are of one moment; when off they cost
//!    one look at a flag.
//!
//! # Not to be done
//! A context that has the bus, in a [lock](Bus::lock) or in a [callback](queued::Callback), would
//! wait for itself. Sync, a prepared access and [`Bus::device`] then return
//! [`Error::WouldDeadlock`], and [`Bus::lock`] panics, on a platform whose
//! [`context`](Platform::context) tells threads apart. On any other, [`Bus::new`]'s among them,
//! they wait for ever. What waits for ever on all: dropping or cancelling a queued message in a
//! callback, or in an interrupt handler that came while its bus was in use.
//!
//! # No loop waits for a thread
//! A thread that waits sleeps through the [platform](Platform::wait). No loop in here spins until a
//! thread of lower priority, or code that was interrupted, has gone on:
//!
//! | loop | ends because |
//! |---|---|
//! | compare-and-swap: `fetch_update` of the bus word, the flight and the bell; `Entry::settle`, `Node::poll`, `Node::hand_over`, `Bus::alert_owner` | lock-free: a round fails only if another thread's succeeded |
//! | `Counters::read` | lock-free: a round fails only if a message was counted meanwhile |
//! | `Tended::release`, `Server::hand_over`, `Server::step_aside` | a round more only after somebody pushed or cancelled, or an owner was absent at last |
//! | `Bus::spin_for_idle` | bounded: 63 relaxes, then a place in the queue |
//! | `Bus::wait`, `Bus::serve` | bounded: [`Platform::spins`] relaxes, then [`Platform::wait`] |
//! | `Bus::wait` on a bus of [`Pump::Interrupt`] | while a message flies it attends to that: the controller's deadline bounds it; else as above |
//! | `Transact::try_acquire` | bounded: [`Platform::spins`] relaxes, then the poll is pending |
//! | `Server::serve_on`, `Inheriting::serve` | each round runs a message or takes a node out |
//! | `Inheriting::run_own`, `Inheriting::wake_turns` | bounded: the nodes counted before |
//! | `Bus::wait_settled` | sleeps in `Bus::wait`; a round more only after a hook of the platform panicked |
//!
//! # The rooms
//! `word` has the bus word, its states and who changes them; `lock` the bus and the rights to its
//! wire and its queue; `acquire` the ways to wait for it, `serve` what its holder does for others. A
//! place in the queue is a `node`, their order the `queue`'s. `turn`, `queued`, `device` and
//! `prepared` are the paths; `callback` what a queued message ends in; `worker`, `interrupt` and `inherit` three other ways to be served;
//! `panics` keeps what user code throws.

mod acquire;
mod atomic;
mod callback;
mod device;
mod inherit;
mod interrupt;
mod joined;
mod lock;
mod node;
mod owned;
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

pub use callback::Then;
pub use device::Device;
pub use lock::{Bus, Pump};
pub use owned::OwnedDevice;
pub use platform::Platform;
pub use prepared::{Prepared, PreparedMessage};
pub use queued::Queued;
pub use statistics::{HISTO_BUCKETS, Statistics};
pub use turn::{Locked, Transact};

#[cfg(doc)]
use crate::spi::Error;
