//! Turns: an exclusive lock over several messages, and messages over borrowed buffers as futures.
//!
//! # How it works
//! A turn is a place in the queue that, when it comes, makes its owner the holder of the bus. A
//! thread waits for its turn in [`Bus::lock`]; a future in its task ([`Device::transact`]), which
//! is woken then, takes the bus that is [offered](super::offer) to it, and transfers inside `poll`:
//! nobody but the future touches what it borrows, so forgetting it is safe. What a forgotten turn
//! keeps is the bus, as any forgotten guard does.
//!
//! # Safety
//! Who was granted a turn is the holder of the bus.
#![allow(unsafe_code, reason = "whose turn it is is made the holder of the bus")]

use core::fmt;
use core::future::Future;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::lock::Held;
use super::node::{Kind, Node, Stage, Task};
use super::{Bus, Device, Prepared};
use crate::controller::Controller;
use crate::spi::{Error, MessageError, Settings, Transfer};

/// The bus, locked over several messages. Dropping it gives the bus back.
///
/// Whoever has it must use it for every message: a sync call on a device of the bus would wait for
/// ever.
pub struct Locked<'b, C: Controller + ?Sized> {
    held: Option<Held<'b, C>>,
}

impl<C: Controller + ?Sized> fmt::Debug for Locked<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locked").finish_non_exhaustive()
    }
}

impl<C: Controller + ?Sized> Bus<C> {
    /// Waits for the bus and locks it: no other message runs until the lock is dropped.
    pub fn lock(&self) -> Locked<'_, C> {
        Locked { held: Some(self.take()) }
    }

    /// Locks the bus if it is free and nothing waits; never blocks.
    pub fn try_lock(&self) -> Option<Locked<'_, C>> {
        self.try_take().map(|held| Locked { held: Some(held) })
    }
}

impl<'b, C: Controller + ?Sized> Locked<'b, C> {
    /// The bus, held, if `bus` is the one.
    fn held(&mut self, bus: &Bus<C>) -> &mut Held<'b, C> {
        let held = self.held.as_mut().expect("a lock has its bus until it is dropped");
        // Sized or not, a bus is where its word is.
        let same = core::ptr::addr_eq(held.bus(), bus);
        assert!(same, "the device is on another bus than the lock");
        held
    }

    /// Opens a device, as [`Bus::device`], and keeps the bus.
    ///
    /// # Errors
    /// As [`Bus::device`].
    pub fn device(&mut self, settings: &Settings) -> Result<Device<'b, C>, Error> {
        let held = self.held.as_ref().expect("a lock has its bus until it is dropped");
        let (program, effective) = held.controller().configure(settings)?;
        Ok(Device::new(held.bus(), *settings, program, effective))
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
        let held = self.held(device.bus());
        held.serve_cancels();
        device.run_planning(held, message)
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
        let held = self.held(prepared.device().bus());
        held.serve_cancels();
        prepared.run_locked(held)
    }
}

impl<C: Controller + ?Sized> Drop for Locked<'_, C> {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            held.release();
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
        let priority = self.priority();
        let task = Task { kind: Kind::Offer, priority, ..Task::turn(self.bus().context()) };
        Transact { device: *self, message, node: Node::new(task), _pinned: PhantomPinned }
    }
}

impl<'b, C: Controller + ?Sized> Transact<'b, '_, '_, C> {
    fn run(&mut self, mut held: Held<'b, C>) -> Result<usize, MessageError> {
        let ran = self.device.run_planning(&mut held, self.message);
        held.release();
        ran
    }
}

impl<C: Controller + ?Sized> Future for Transact<'_, '_, '_, C> {
    type Output = Result<usize, MessageError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        let bus = this.device.bus();
        loop {
            match this.node.stage() {
                Stage::Free | Stage::Removed => {
                    let free = match bus.platform.inheritance() {
                        Some(inheritance) => bus.take_free_inherited(inheritance),
                        None => bus.try_take(),
                    };
                    if let Some(held) = free {
                        this.node.set_free();
                        return Poll::Ready(this.run(held));
                    }
                    this.node.set_queued();
                    let take = bus.platform.inheritance().is_none();
                    // SAFETY: pinned, and dropping it takes the node back.
                    if unsafe { bus.push(&this.node, take) } && take {
                        // SAFETY: the push took the bus.
                        unsafe { bus.held() }.pump();
                    } else if let Some(inheritance) = bus.platform.inheritance()
                        && let Some(held) = bus.force(inheritance)
                    {
                        let held = bus.take_back_inherited(held, &this.node);
                        return Poll::Ready(this.run(held));
                    }
                }
                Stage::Granted => match bus.claim(&this.node) {
                    Some(held) => return Poll::Ready(this.run(held)),
                    // Taken back for a moment.
                    None => bus.platform.relax(),
                },
                Stage::Done => return Poll::Ready(Err(MessageError::refused(Error::Aborted, 0))),
                Stage::Queued | Stage::Pump => {
                    if this.node.poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

impl<C: Controller + ?Sized> Drop for Transact<'_, '_, '_, C> {
    fn drop(&mut self) {
        let bus = self.device.bus();
        loop {
            let stage = match self.node.stage() {
                Stage::Queued => bus.cancel(&self.node),
                stage => stage,
            };
            match stage {
                // Nobody will use the turn, or it was taken back for a moment.
                Stage::Granted => match bus.claim(&self.node) {
                    Some(held) => return held.release(),
                    None => bus.platform.relax(),
                },
                // Woken to try again, which it will not.
                Stage::Removed => return bus.pass_turn_inherited(),
                _ => return,
            }
        }
    }
}
