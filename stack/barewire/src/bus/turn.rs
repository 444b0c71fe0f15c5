//! Turns: an exclusive lock over several messages, and futures of messages over borrowed buffers.
//!
//! # How it works
//! A turn is a node that asks for the bus itself. A thread waits for its turn in [`Bus::lock`] and
//! keeps the wire until the lock is dropped. It releases the queue meanwhile, so that others can
//! remove their messages from it.
//!
//! A future ([`Device::transact`]) transfers inside `poll`: only the future accesses what it
//! borrows, so forgetting it is safe.
//! 1. If `poll` finds the bus taken, it queues a turn.
//! 2. When the turn comes, the node is removed from the queue, the bus goes on to the next node,
//!    and the task is woken to try again.
//! 3. If that poll finds the bus taken too, the future stays present for as long as a thread would
//!    spin before it sleeps. A holder that reaches its node in that time grants it the bus.
//!
//! So a future is passed over only while its task is not polled. It holds the bus between two polls in one case: on a bus of
//! [`Pump::Interrupt`](super::Pump::Interrupt), while a message above the device's poll limit is
//! [in flight](super::interrupt).
//!
//! # Safety
//! The owner of a granted turn is the holder of the bus.
#![allow(unsafe_code, reason = "the owner of a granted turn is made the holder of the bus")]

use core::fmt;
use core::future::Future;
use core::marker::{PhantomData, PhantomPinned};
use core::pin::Pin;
use core::ptr;
use core::task::{Context, Poll};

use super::inherit::Inheriting;
use super::lock::{Held, WireRight};
use super::node::{Entry, Node, Stage, Task};
use super::panics::Panics;
use super::platform::Platform;
use super::statistics::Path;
use super::uses::{AnyPlatform, Uses};
use super::visit::{Borrowed, Visit};
use super::{Bus, Device, Prepared, PreparedMessage};
use crate::controller::{Controller, plan_plain};
use crate::spi::{Error, MessageError, Settings, Transfer};

/// The bus, locked over several messages. Dropping it releases the bus.
///
/// The thread that locked the bus runs every message through the lock. Any other call of that
/// thread that would wait for the bus fails with [`Error::WouldDeadlock`], or waits for ever if the
/// platform does not tell contexts apart (see [`Platform::context`](super::Platform::context)).
/// This and other threads may submit, cancel and drop queued messages meanwhile.
///
/// The lock stays with its thread, because a bus with inheritance lends that thread priority.
pub struct Locked<'b, C: Controller + ?Sized, U: Uses = AnyPlatform> {
    wire: Option<WireRight<'b, C, U>>,
    _of_one_thread: PhantomData<*const ()>,
}

impl<C: Controller + ?Sized, U: Uses> fmt::Debug for Locked<'_, C, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locked").finish_non_exhaustive()
    }
}

impl<C: Controller + ?Sized, U: Uses> Bus<C, U> {
    /// Waits for the bus and locks it: no other message runs until the lock is dropped.
    ///
    /// # Panics
    /// If the caller's context already has the bus, through a lock or because this is a callback:
    /// it would wait for itself. If the bus is taken and [its type](Uses::QUEUE) says that nobody waits.
    /// ([`Bus::try_lock`] returns `None`.)
    pub fn lock(&self) -> Locked<'_, C, U> {
        let wire = self.try_acquire_wire().unwrap_or_else(|| self.acquire_wire_contended());
        Locked::new(wire)
    }

    #[cold]
    fn acquire_wire_contended(&self) -> WireRight<'_, C, U> {
        let held = match self.acquire_contended(0) {
            Ok(held) => held,
            Err(error) => panic!("Bus::lock: {error}"),
        };
        let mut panics = Panics::none();
        let wire = held.park(&mut panics);
        if panics.are_none() {
            return wire;
        }
        // As in `acquire_contended`.
        wire.release();
        panics.raise();
        self.acquire_wire_contended()
    }

    /// Locks the bus if it is free and nothing is queued. Never blocks.
    pub fn try_lock(&self) -> Option<Locked<'_, C, U>> {
        let wire = match self.inheriting() {
            None => self.try_acquire_wire(),
            Some(inheriting) => inheriting.try_acquire().map(|held| held.park(&mut Panics::none())),
        };
        wire.map(Locked::new)
    }
}

impl<'b, C: Controller + ?Sized, U: Uses> Locked<'b, C, U> {
    fn new(wire: WireRight<'b, C, U>) -> Self {
        let bus = wire.bus;
        let lock = Self { wire: Some(wire), _of_one_thread: PhantomData };
        bus.set_user(false);
        lock
    }

    /// The wire, if the lock is of `bus`.
    fn wire(&mut self, bus: &Bus<C, U>) -> &mut WireRight<'b, C, U> {
        let wire = self.wire.as_mut().expect("a lock has its bus until it is dropped");
        // Compares addresses only: one of the two may be a trait object.
        let same = core::ptr::addr_eq(wire.bus, bus);
        assert!(same, "the device is on another bus than the lock");
        wire
    }

    /// Opens a device as [`Bus::device`] does, and keeps the bus.
    ///
    /// # Errors
    /// As [`Bus::device`].
    pub fn device(&mut self, settings: &Settings) -> Result<Device<'b, C, U>, Error> {
        let wire = self.wire.as_ref().expect("a lock has its bus until it is dropped");
        wire.open(settings)
    }

    /// Runs any message as [`Device::sync`] does, and keeps the bus.
    ///
    /// # Errors
    /// As [`Device::sync`].
    ///
    /// # Panics
    /// If the device is on another bus.
    pub fn sync(
        &mut self,
        device: &Device<'_, C, U>,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, MessageError> {
        device.run_planning(self.wire(device.bus()), message)
    }

    /// Runs a prepared access as [`Prepared::run`] does, and keeps the bus.
    ///
    /// # Errors
    /// As [`Prepared::run`].
    ///
    /// # Panics
    /// If the access is to another bus.
    pub fn run<'p, const N: usize>(
        &mut self,
        prepared: &'p mut Prepared<'_, C, N, U>,
    ) -> Result<&'p [u8; N], MessageError> {
        let wire = self.wire(prepared.device().bus());
        prepared.run_locked(wire)
    }

    /// Runs a prepared message as [`PreparedMessage::run`] does, and keeps the bus.
    ///
    /// # Errors
    /// As [`PreparedMessage::run`].
    ///
    /// # Panics
    /// If the message is to another bus.
    pub fn run_message(
        &mut self,
        prepared: &mut PreparedMessage<'_, '_, '_, C, U>,
    ) -> Result<usize, MessageError> {
        let wire = self.wire(prepared.device().bus());
        prepared.run_locked(wire)
    }
}

impl<C: Controller + ?Sized, U: Uses> Drop for Locked<'_, C, U> {
    fn drop(&mut self) {
        if let Some(wire) = self.wire.take() {
            wire.bus.clear_user();
            wire.release();
        }
    }
}

/// A message over borrowed buffers as a future: [`Device::transact`].
#[must_use = "a future does nothing unless polled"]
pub struct Transact<'b, 'm, 'd, C: Controller + ?Sized, U: Uses = AnyPlatform> {
    device: Device<'b, C, U>,
    message: &'m mut [Transfer<'d>],
    node: Node,
    /// Whether the message was left in flight; the node may have been settled meanwhile.
    in_flight: bool,
    _pinned: PhantomPinned,
}

// SAFETY: nodes may be shared; the other fields behave as a reference to the bus and a mutable
// slice of transfers.
unsafe impl<C: Controller + ?Sized + Send, U: Uses> Send for Transact<'_, '_, '_, C, U> {}

impl<C: Controller + ?Sized, U: Uses> fmt::Debug for Transact<'_, '_, '_, C, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transact")
            .field("device", &self.device)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

impl<'b, C: Controller + ?Sized, U: Uses> Device<'b, C, U> {
    /// Runs any message, as [`Device::sync`], but does not block the thread while it waits for its turn. The message itself runs
    /// inside `poll`; on a bus of [`Pump::Interrupt`](super::Pump::Interrupt), one with a transfer above the device's
    /// [poll limit](crate::spi::Settings::poll_limit_ns) is left in flight, and the future is pending meanwhile.
    ///
    /// # Errors
    /// The future's are those of [`Device::sync`]; and [`Error::Aborted`] if it was not polled while its message was in flight
    /// and others, who waited, took the message down ([`Controller::is_overdue`]).
    pub fn transact<'m, 'd>(&self, message: &'m mut [Transfer<'d>]) -> Transact<'b, 'm, 'd, C, U> {
        const { assert!(U::QUEUE, "the bus's type says that nothing is queued") }
        let task = Task { priority: self.priority(), ..Task::turn(self.bus().context()) };
        let node = Node::new(task);
        Transact { device: *self, message, node, in_flight: false, _pinned: PhantomPinned }
    }
}

impl<'b, C: Controller + ?Sized, U: Uses> Transact<'b, '_, '_, C, U> {
    /// Runs the message, or starts it.
    fn run(
        &mut self,
        mut held: Held<'b, C, U>,
        cx: &Context<'_>,
    ) -> Poll<Result<usize, MessageError>> {
        if self.device.bus().is_interrupted() && self.waits_by_interrupt(&held) {
            return self.start(held, cx);
        }
        let ran = self.device.run_planning(&mut held.wire, self.message);
        held.release();
        Poll::Ready(ran)
    }

    /// Plans the message; whether it then has a transfer that waits by interrupt.
    #[cold]
    fn waits_by_interrupt(&mut self, held: &Held<'b, C, U>) -> bool {
        let (preset, message) = (self.device.preset(), &mut *self.message);
        // If the message is refused, its transfers may still be joined, and a joined message is polled.
        let planned = plan_plain(preset, message)
            || U::PLANS && held.wire.ask(|controller| controller.plan(preset, message)).is_ok();
        planned && message.iter().any(|transfer| transfer.plan.by_interrupt())
    }

    /// Starts the message, and leaves it in flight.
    #[cold]
    fn start(
        &mut self,
        held: Held<'b, C, U>,
        cx: &Context<'_>,
    ) -> Poll<Result<usize, MessageError>> {
        let (message, preset) = (self.erased(), ptr::from_ref(self.device.preset()));
        self.node.task.with_mut(|task| {
            // SAFETY: the node is not queued, so the task is ours.
            let task = unsafe { &mut *task };
            *task = Task { preset, message, path: Path::Immediate, ..Task::turn(task.context) };
        });
        self.node.set_queued();
        self.in_flight = true;
        let mut panics = Panics::none();
        // SAFETY: the node is queued and in no list; it is pinned, and dropping the future ends its flight.
        let entry = unsafe { Entry::new(&self.node) };
        Borrowed::new(held.park(&mut panics), entry).start(&mut panics);
        panics.raise();
        // Only now is the bus no longer ours, so that the waker may be cloned: the message may have been interrupted already.
        self.visit(cx)
    }

    /// The message without its lifetimes, for as long as the future is in a call.
    fn erased(&mut self) -> *mut [Transfer<'static>] {
        ptr::slice_from_raw_parts_mut(self.message.as_mut_ptr().cast(), self.message.len())
    }

    fn visitor(&mut self) -> Visit {
        Visit { node: &raw const self.node, message: self.erased(), spare: None }
    }

    /// Continues the message in flight.
    #[cold]
    fn visit(&mut self, cx: &Context<'_>) -> Poll<Result<usize, MessageError>> {
        if self.node.poll(cx).is_pending() {
            let mut panics = Panics::none();
            let mut visit = self.visitor();
            self.device.bus().attend(None, Some(&mut visit), &mut panics);
            panics.raise();
            if self.node.stage() == Stage::Queued {
                return Poll::Pending;
            }
        }
        self.in_flight = false;
        self.node.set_free();
        // SAFETY: the node was settled, so the task is ours again.
        let ran = self.node.task.with(|task| unsafe { (*task).ran });
        Poll::Ready(ran.map_err(|unfinished| unfinished.explain(self.message)))
    }

    /// Ends the message in flight: its chip is deselected when this returns.
    #[cold]
    fn take_down(&mut self) {
        let bus = self.device.bus();
        let mut panics = Panics::none();
        let (stage, waker) = self.node.set_cancelled();
        if stage == Stage::Queued {
            // Or the thread that attends to it at this moment sees that it is cancelled.
            bus.attend(None, Some(&mut self.visitor()), &mut panics);
        }
        bus.wait_settled(&self.node, &mut panics);
        panics.contain(|| drop(waker));
        panics.raise();
    }

    /// Acquires the bus if that needs no waiting. Otherwise the node is left queued, unless it was
    /// settled again meanwhile.
    fn try_acquire(&self, again: bool, panics: &mut Panics) -> Option<Held<'b, C, U>> {
        let bus = self.device.bus();
        if let Some(inheriting) = bus.inheriting() {
            return self.try_acquire_inherited(&inheriting, panics);
        }
        if let Some(held) = bus.try_acquire_idle() {
            return Some(held);
        }
        // A future that was woken in vain spins here, present, so that it is not passed over again.
        let mut looks = if again { bus.platform().spins() } else { 0 };
        // SAFETY: the node is pinned, and dropping the future removes it.
        unsafe { bus.push_and_serve(&self.node, panics) };
        loop {
            let stage = match self.node.stage() {
                Stage::Queued if looks > 0 => {
                    looks -= 1;
                    panics.contain(|| bus.platform().relax());
                    continue;
                }
                Stage::Queued => self.node.set_absent(),
                stage => stage,
            };
            match stage {
                // SAFETY: we were granted the bus.
                Stage::Granted => return Some(unsafe { bus.held() }),
                // SAFETY: we were handed the bus.
                Stage::Serve => unsafe { bus.accept(&self.node, panics) },
                _ => return None,
            }
        }
    }

    fn try_acquire_inherited(
        &self,
        inheriting: &Inheriting<'b, C, U>,
        panics: &mut Panics,
    ) -> Option<Held<'b, C, U>> {
        let bus = self.device.bus();
        let mut pushed = false;
        loop {
            if let Some(held) = inheriting.poll_acquire(panics) {
                if pushed {
                    inheriting.take_out(&self.node);
                }
                return Some(held);
            }
            if !pushed {
                self.node.set_queued();
                // SAFETY: the node is pinned, and dropping the future removes it.
                unsafe { bus.push(&self.node, false) };
                pushed = true;
            }
            if !bus.alert_owner() {
                return None;
            }
        }
    }
}

impl<C: Controller + ?Sized, U: Uses> Future for Transact<'_, '_, '_, C, U> {
    type Output = Result<usize, MessageError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: nothing is moved out of `this`.
        let this = unsafe { self.get_unchecked_mut() };
        if this.in_flight {
            return this.visit(cx);
        }
        let mut panics = Panics::none();
        let mut stage = this.node.stage();
        loop {
            if matches!(stage, Stage::Free | Stage::Removed) {
                let held = this.try_acquire(stage == Stage::Removed, &mut panics);
                let acquired = held.is_some();
                if let Some(held) = held {
                    // With inheritance another thread may be settling the node: then dropping the
                    // future waits for it.
                    if this.node.stage() != Stage::Queued {
                        this.node.set_free();
                    }
                    if panics.are_none() {
                        return this.run(held, cx);
                    }
                    // Of code that was served meanwhile: as in `acquire_contended`.
                    drop(held);
                }
                panics.raise();
                panics = Panics::none();
                if acquired {
                    stage = this.node.stage();
                    continue;
                }
            }
            match this.node.poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(settled) => stage = settled,
            }
        }
    }
}

impl<C: Controller + ?Sized, U: Uses> Drop for Transact<'_, '_, '_, C, U> {
    fn drop(&mut self) {
        if self.in_flight {
            self.take_down();
        } else if self.node.stage() == Stage::Queued {
            let mut panics = Panics::none();
            self.device.bus().take_out(&self.node, false, &mut panics);
            panics.raise();
        }
    }
}
