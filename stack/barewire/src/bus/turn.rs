//! Turns: an exclusive lock over several messages, and messages over borrowed buffers as futures.
//!
//! # How it works
//! A turn is a node that asks for the bus itself. A thread waits for its turn in [`Bus::lock`] and
//! keeps the wire until the lock is dropped; the queue it lets go of, so that others can get their
//! messages out behind it.
//!
//! A future ([`Device::transact`]) transfers inside `poll`: nobody but the future touches what it
//! borrows, so forgetting it is safe. It never has the bus between two polls. If `poll` finds the
//! bus taken, it queues a turn; when that comes, the node is taken out of the queue, the bus goes
//! on, and the task is woken to try again. A future that was woken in vain is present for a moment
//! in its next poll, as long as a thread would look before it sleeps: if the holder comes to its
//! node then, it is granted the bus. So it is passed over only while its task is not polled.
//!
//! # Safety
//! Who was granted a turn is the holder of the bus.
#![allow(unsafe_code, reason = "whose turn it is is made the holder of the bus")]

use core::fmt;
use core::future::Future;
use core::marker::{PhantomData, PhantomPinned};
use core::pin::Pin;
use core::task::{Context, Poll};

use super::inherit::Inheriting;
use super::lock::{Held, Wire};
use super::node::{Node, Stage, Task};
use super::panics::Panics;
use super::{Bus, Device, Prepared};
use crate::controller::Controller;
use crate::spi::{Error, MessageError, Settings, Transfer};

/// The bus, locked over several messages. Dropping it releases the bus.
///
/// The thread that has it uses it for every message: any other call that would wait for the bus
/// fails with [`Error::WouldDeadlock`], or waits for ever where the platform does not tell contexts
/// apart (see [`Platform::context`](super::Platform::context)). Queued messages may be submitted,
/// cancelled and dropped meanwhile, by this and by other threads.
///
/// It stays with its thread, whose priority a bus with inheritance lends.
pub struct Locked<'b, C: Controller + ?Sized> {
    wire: Option<Wire<'b, C>>,
    _of_one_thread: PhantomData<*const ()>,
}

impl<C: Controller + ?Sized> fmt::Debug for Locked<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locked").finish_non_exhaustive()
    }
}

impl<C: Controller + ?Sized> Bus<C> {
    /// Waits for the bus and locks it: no other message runs until the lock is dropped.
    ///
    /// # Panics
    /// If the caller's context has the bus already, in a lock or because this is a callback: it
    /// would wait for itself. ([`Bus::try_lock`] returns `None`.)
    pub fn lock(&self) -> Locked<'_, C> {
        let wire = self.try_acquire_wire().unwrap_or_else(|| self.acquire_wire_contended());
        Locked::new(wire)
    }

    #[cold]
    fn acquire_wire_contended(&self) -> Wire<'_, C> {
        let held = match self.acquire_contended(0) {
            Ok(held) => held,
            Err(error) => panic!("Bus::lock: {error}"),
        };
        let mut panics = Panics::none();
        let lock = Locked::new(held.park(&mut panics));
        // With the lock alive: it is dropped then.
        panics.raise();
        lock.into_wire()
    }

    /// Locks the bus if it is free and nothing waits; never blocks.
    pub fn try_lock(&self) -> Option<Locked<'_, C>> {
        let wire = match self.inheriting() {
            None => self.try_acquire_wire(),
            Some(inheriting) => inheriting.try_acquire().map(|held| held.park(&mut Panics::none())),
        };
        wire.map(Locked::new)
    }
}

impl<'b, C: Controller + ?Sized> Locked<'b, C> {
    fn new(wire: Wire<'b, C>) -> Self {
        let bus = wire.bus;
        let lock = Self { wire: Some(wire), _of_one_thread: PhantomData };
        bus.set_user();
        lock
    }

    /// The wire, if `bus` is the one.
    fn wire(&mut self, bus: &Bus<C>) -> &mut Wire<'b, C> {
        let wire = self.wire.as_mut().expect("a lock has its bus until it is dropped");
        // Sized or not, a bus is where its word is.
        let same = core::ptr::addr_eq(wire.bus, bus);
        assert!(same, "the device is on another bus than the lock");
        wire
    }

    fn into_wire(mut self) -> Wire<'b, C> {
        self.wire.take().expect("a lock has its bus until it is dropped")
    }

    /// Opens a device, as [`Bus::device`], and keeps the bus.
    ///
    /// # Errors
    /// As [`Bus::device`].
    pub fn device(&mut self, settings: &Settings) -> Result<Device<'b, C>, Error> {
        let wire = self.wire.as_ref().expect("a lock has its bus until it is dropped");
        let (program, effective) = wire.controller().configure(settings)?;
        let limits = wire.controller().limits();
        Ok(Device::new(wire.bus, *settings, program, effective, limits))
    }

    /// Runs any message, as [`Device::sync`], and keeps the bus.
    ///
    /// # Errors
    /// As [`Device::sync`].
    ///
    /// # Panics
    /// If the device is on another bus.
    pub fn sync(
        &mut self,
        device: &Device<'_, C>,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, MessageError> {
        device.run_planning(self.wire(device.bus()), message)
    }

    /// Runs a prepared access, as [`Prepared::run`], and keeps the bus.
    ///
    /// # Errors
    /// As [`Prepared::run`].
    ///
    /// # Panics
    /// If the access is to another bus.
    pub fn run<'p, const N: usize>(
        &mut self,
        prepared: &'p mut Prepared<'_, C, N>,
    ) -> Result<&'p [u8; N], MessageError> {
        let wire = self.wire(prepared.device().bus());
        prepared.run_locked(wire)
    }
}

impl<C: Controller + ?Sized> Drop for Locked<'_, C> {
    fn drop(&mut self) {
        if let Some(wire) = self.wire.take() {
            wire.bus.clear_user();
            wire.release();
        }
    }
}

/// A message over borrowed buffers as a future: it waits for its turn, and runs inside `poll`.
#[must_use = "a future does nothing unless polled"]
pub struct Transact<'b, 'm, 'd, C: Controller + ?Sized> {
    device: Device<'b, C>,
    message: &'m mut [Transfer<'d>],
    node: Node,
    _pinned: PhantomPinned,
}

// SAFETY: the node is made to be shared; the rest is what a reference to the bus and a mutable
// slice of transfers are.
unsafe impl<C: Controller + ?Sized + Send> Send for Transact<'_, '_, '_, C> {}

impl<C: Controller + ?Sized> fmt::Debug for Transact<'_, '_, '_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transact")
            .field("device", &self.device)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

impl<'b, C: Controller + ?Sized> Device<'b, C> {
    /// Runs any message without blocking the thread for its turn: as [`Device::sync`], as a
    /// future. The transfer itself runs inside `poll`.
    pub fn transact<'m, 'd>(&self, message: &'m mut [Transfer<'d>]) -> Transact<'b, 'm, 'd, C> {
        let task = Task { priority: self.priority(), ..Task::turn(self.bus().context()) };
        Transact { device: *self, message, node: Node::new(task), _pinned: PhantomPinned }
    }
}

impl<'b, C: Controller + ?Sized> Transact<'b, '_, '_, C> {
    fn run(&mut self, mut held: Held<'b, C>) -> Poll<Result<usize, MessageError>> {
        let ran = self.device.run_planning(&mut held.wire, self.message);
        held.release();
        Poll::Ready(ran)
    }

    /// Acquires the bus if that needs no waiting; else the node is queued, unless it was settled
    /// again meanwhile.
    fn try_acquire(&self, again: bool, panics: &mut Panics) -> Option<Held<'b, C>> {
        let bus = self.device.bus();
        if let Some(inheriting) = bus.inheriting() {
            return self.try_acquire_inherited(&inheriting, panics);
        }
        if let Some(held) = bus.try_acquire_idle() {
            return Some(held);
        }
        // A future that was woken in vain is not passed over while it is polled and looks.
        let mut looks = if again { bus.platform.spins() } else { 0 };
        // SAFETY: pinned, and dropping it takes the node out.
        unsafe { bus.push_and_serve(&self.node, panics) };
        loop {
            let stage = match self.node.stage() {
                Stage::Queued if looks > 0 => {
                    looks -= 1;
                    panics.contain(|| bus.platform.relax());
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
        inheriting: &Inheriting<'b, C>,
        panics: &mut Panics,
    ) -> Option<Held<'b, C>> {
        let bus = self.device.bus();
        let mut pushed = false;
        loop {
            if let Some(held) = inheriting.poll_acquire(panics) {
                if pushed {
                    inheriting.take_out(&self.node, panics);
                }
                return Some(held);
            }
            if !pushed {
                self.node.set_queued();
                // SAFETY: pinned, and dropping it takes the node out.
                unsafe { bus.push(&self.node, false) };
                pushed = true;
            }
            if !bus.alert_owner() {
                return None;
            }
        }
    }
}

impl<C: Controller + ?Sized> Future for Transact<'_, '_, '_, C> {
    type Output = Result<usize, MessageError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        let mut panics = Panics::none();
        let mut stage = this.node.stage();
        loop {
            if matches!(stage, Stage::Free | Stage::Removed) {
                let held = this.try_acquire(stage == Stage::Removed, &mut panics);
                // Of whom it served meanwhile. What it holds is released then.
                panics.raise();
                panics = Panics::none();
                if let Some(held) = held {
                    // With inheritance another thread may be about to settle it: dropping waits.
                    if this.node.stage() != Stage::Queued {
                        this.node.set_free();
                    }
                    return this.run(held);
                }
            }
            match this.node.poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(settled) => stage = settled,
            }
        }
    }
}

impl<C: Controller + ?Sized> Drop for Transact<'_, '_, '_, C> {
    fn drop(&mut self) {
        if self.node.stage() == Stage::Queued {
            let mut panics = Panics::none();
            self.device.bus().take_out(&self.node, &mut panics);
            panics.raise();
        }
    }
}
