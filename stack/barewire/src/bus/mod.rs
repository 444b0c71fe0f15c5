//! The bus: one controller, its lock, its queue, and the paths that run messages on it.
//!
//! | path | use it for | cost on an idle bus |
//! |---|---|---|
//! | [`Prepared`], [`PreparedMessage`] | accesses known in advance | one atomic to acquire, the register accesses, one atomic to release |
//! | [`Device::sync`] | any message; the caller waits for it | as a prepared access, plus the validation of the message |
//! | [`Device::queued`], [`Device::transact`] | messages the caller does not wait for; they end in a callback, a poll or a future | one push; the holder, a [worker](Bus::serve) or an [interrupt](Bus::interrupt) runs the message |
//! | [`Bus::lock`] | several messages with no other message between them | as sync |
//!
//! One bus offers all of them, and a program may mix them. Firmware that needs few of them says so by the bus's type
//! ([`Uses`]): the promises about what it uses hold all the same.
//!
//! # Promises
//! 1. Messages of one context run in the order in which it submitted them, whatever paths it mixes.
//!    A context is a thread, as [`Platform::context`] identifies it. The message of a [`Transact`]
//!    future counts as submitted when a poll of the future starts it, not at the first poll.
//! 2. Messages are never interleaved on the wire: a message runs only while its runner holds the
//!    bus. A [lock](Bus::lock) holds the wire over several messages.
//! 3. CS is deasserted on every error, cancel and panic path, and the bus is released or handed to
//!    the next waiter. The promise covers what is written to the CS line. The pin follows unless
//!    another program drives the line's bank ([`gpio`](crate::controller::gpio)); a process that is
//!    killed writes nothing. A panic in user code (controller, callback, waker, platform) affects
//!    no other caller: the queue is served first, then the panic is raised in the caller that ran
//!    the code. If several panics occur in one call, the first is raised.
//! 4. `try_` calls never block. They may be called from a signal or interrupt handler, even one
//!    that interrupted a message on the same bus; they then return [`Error::Busy`]. One that fails has
//!    touched nothing: it serves nobody and wakes nobody. A `try_` call
//!    that runs its message polls the wire, and does not wait for another process that uses the controller. If messages were submitted meanwhile, it hands the
//!    queue to a waiting thread or to the worker; if there is neither, it runs them itself.
//! 5. Every waiter is served. Messages of equal priority run first come, first served. At most 16
//!    messages of higher priority, submitted later, run before a message. A holder runs at most 16 messages of others
//!    before it hands the bus to a waiting thread or to the worker. (If there is neither, it runs
//!    submitted messages for as long as they keep coming: see [`Pump::Caller`].) A [`Queued`]
//!    message needs no poll to run. A [`Transact`] future enters the queue with a poll, under the
//!    same limit of 16. When its turn comes it leaves the queue: its task is woken, and the bus runs
//!    the next message at once, so that a task that is never polled delays no other message. The exception is a [`Transact`] whose
//!    message is in flight on a bus of [`Pump::Interrupt`]: it holds the bus until it is polled to its end or dropped, at most until
//!    its message [is overdue](crate::controller::Controller::is_overdue) and another waits. With priority inheritance the platform's
//!    lock decides the order instead: threads go by priority, a thread of low priority waits for as
//!    long as threads of higher priority come, and futures retry in no defined order.
//! 6. With a [platform](Platform::inheritance) that has priority inheritance, a waiting thread
//!    lends its priority to the holder, and the holder runs no messages of other contexts.
//! 7. [Statistics], when on, count exactly what was on the wire. A reader gets all counters as they
//!    were between two messages. When off, they cost one load of a flag.
//!
//! # Dropped futures
//! A future may be dropped at any moment. The bus then guarantees:
//!
//! | dropped | guarantee |
//! |---|---|
//! | [`Transact`], before its turn | it leaves the queue, and its message does not run |
//! | [`Transact`], its message in flight | the message is taken down before the drop returns: [`Controller::reclaim`](crate::controller::Controller::reclaim) brings the block to idle, and CS inactive |
//! | [`Queued`] or its future, before its turn | the message leaves the queue, and does not run |
//! | [`Queued`] or its future, its message on the wire | the drop returns when the message has ended, because its buffers are in use |
//!
//! In each case the messages of others run as if the dropped one had not been submitted. The code is
//! `Drop` in `turn` and `queued`; the tests are `tests/worst_moments/futures.rs` and `holders.rs`.
//!
//! # Code of users inside the bus
//! A waker, and what a panic carries, is woken or dropped by the caller that cancelled, replaced or caught it, when this
//! has no right of the bus. So they may use the bus in any way.
//!
//! A callback and a controller (a tracer in it, for example) run while their context has the bus: the bytes are the
//! message's, and no other message may come between a callback and the message that it asks to run again. They may
//! submit, cancel and drop other messages. They must not wait for that bus, and no more must a context that holds a
//! [lock](Bus::lock):
//!
//! - If the [platform](Platform::context) tells threads apart, sync, a prepared access and
//!   [`Bus::device`] return [`Error::WouldDeadlock`], and [`Bus::lock`] panics. (For a controller, if it says that it [may
//!   use its bus](crate::controller::Controller::may_use_its_bus).)
//! - If it does not (a bus from [`Bus::new`], for example), these calls wait for ever. So does dropping or cancelling a
//!   queued message inside a callback.
//! - A message that is cancelled or dropped in its own callback ends the program: its bytes are in use.
//! - On every platform, dropping or cancelling a queued message waits for ever in an interrupt handler
//!   that interrupted a user of the same bus.
//!
//! # No unbounded spinning
//! A thread that waits sleeps through the [platform](Platform::wait). No loop in this module spins
//! until a thread of lower priority, or interrupted code, makes progress:
//!
//! | loop | ends because |
//! |---|---|
//! | compare-and-swap: `fetch_update` of the bus word, the flight and the bell; `Entry::settle`, `Node::poll`, `Node::hand_over`, `Bus::alert_owner` | lock-free: a round fails only if another thread's succeeded |
//! | `Counters::read` | lock-free: a round fails only if a message was counted meanwhile |
//! | `QueueRight::release`, `Server::hand_over`, `Server::step_aside` | another round only after a push, a cancel, or an owner that became absent |
//! | `Bus::spin_for_idle` | bounded: 63 relaxes, then a place in the queue |
//! | `Bus::wait`, `Bus::serve` | bounded: [`Platform::spins`] relaxes, then [`Platform::wait`] |
//! | `Bus::wait` on a bus of [`Pump::Interrupt`] | bounded while a message is in flight by the controller's deadline; otherwise as above |
//! | `Bus::attend` | another round only after a poll of the flight's owner |
//! | `Transact::try_acquire` | bounded: [`Platform::spins`] relaxes, then the poll is pending |
//! | `Server::serve_on`, `Inheriting::serve` | each round runs a message or takes a node out |
//! | `Inheriting::run_own`, `Inheriting::wake_turns` | bounded: at most one round for each node that was in the queue at the beginning |
//! | `Bus::wait_settled` | sleeps in `Bus::wait`; repeats only if a function of the platform panicked |
//!
//! # Files
//! - `word`: the bus word, its states and transitions. `lock`: [`Bus`] and the rights to its wire
//!   and its queue.
//! - `acquire`: waiting for the bus. `serve`: what the holder runs for others.
//! - `node`: a place in the queue. `queue`: the order of the nodes.
//! - `turn`, `queued`, `device`, `owned`, `prepared`: the paths. `callback`: the end of a queued
//!   message. `joined`: a short message run as one transfer.
//! - `worker`, `interrupt`, `inherit`: three other ways to serve the queue. `visit`: a future's message in flight.
//! - `uses`: what a program uses, as a type. `panics`: panics of user code. `platform`: waiting and contexts. `statistics`: counters.

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
mod uses;
mod visit;
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
pub use uses::{Alone, AnyPlatform, Plain, Uses};

#[cfg(doc)]
use crate::spi::Error;
