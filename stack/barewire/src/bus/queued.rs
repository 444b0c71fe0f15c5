//! The async path: messages that are submitted and not waited for, on the same handle as the
//! others.
//!
//! # How it works
//! A [`Queued`] message owns its bytes, or has them for ever (`'static`), and is pinned: whoever
//! runs it touches nothing else, so that forgetting anything is safe. Submitting it is one push;
//! it ends in a callback, in a result to be fetched, or as a future, all three at will.
//!
//! [`Queued::submit`] makes sure that somebody runs the queue: on a free bus the submitter itself does, or the
//! worker that it wakes. [`Queued::enqueue`] does not: its message may wait in the queue of a free bus until the
//! next caller comes.
//!
//! Dropping one that is queued takes it out, behind an idle lock too; dropping one that is on the
//! wire waits for it, at most for its timeout. A message must not be dropped in a callback, or by an
//! interrupt handler that came while its bus was in use: the drop would wait for what it
//! interrupted.
//!
//! ```
//! use core::pin::pin;
//! use barewire::bus::Bus;
//! use barewire::controller::null::Null;
//! use barewire::spi::Settings;
//!
//! let bus = Bus::new(Null::new());
//! let device = bus.device(&Settings::new(0, 20_000_000))?;
//! let mut first = pin!(device.queued([0x9f, 0, 0, 0])?);
//! let mut second = pin!(device.queued([0x05, 0])?);
//! first.as_mut().enqueue()?;
//! second.as_mut().enqueue()?;
//! bus.pump();
//! assert_eq!(first.as_mut().result(), Some(Ok(4)));
//! assert_eq!(second.as_mut().result(), Some(Ok(2)));
//! # Ok::<(), barewire::spi::Error>(())
//! ```
//!
//! # Safety
//! The node's message points into the pinned payload (or at `'static` buffers). From the push until
//! it is settled it is the holder's, and nothing here touches it; [`Queued::drop`] sees to it that
//! neither goes before.
#![allow(unsafe_code, reason = "a pinned message points at its own bytes")]

use core::fmt;
use core::future::Future;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr;
use core::task::{Context, Poll};

use super::atomic::Cell;
pub use super::callback::{Callback, Completed, Then};
use super::node::{Node, Stage, Task};
use super::panics::Panics;
use super::queue::SERVE_MAX;
use super::{Device, Pump};
use crate::controller::{Controller, Plan};
use crate::spi::{Error, MessageError, Transfer};

/// What a queued message sends and receives.
///
/// # Safety
/// What [`Payload::message`] returns points only at buffers that the payload owns or that are
/// `'static`, and nothing else refers to them until the next call of a method of the payload.
pub unsafe trait Payload {
    /// The transfers, planned.
    fn message(self: Pin<&mut Self>) -> *mut [Transfer<'static>];
}

/// One exchange of `N` bytes in buffers of its own.
pub struct Exchange<const N: usize> {
    tx: [u8; N],
    rx: [u8; N],
    plan: Plan,
    message: Option<[Transfer<'static>; 1]>,
    _pinned: PhantomPinned,
}

// SAFETY: the transfer points at `tx` and `rx`, which `tx_mut` and `rx` only reach through the
// payload again.
unsafe impl<const N: usize> Payload for Exchange<N> {
    #[inline]
    fn message(self: Pin<&mut Self>) -> *mut [Transfer<'static>] {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        // Made once; whoever looks at the bytes puts an end to what points at them.
        if let Some(message) = &mut this.message {
            return message;
        }
        // SAFETY: pinned: the bytes stay where they are until the message is settled.
        let tx = unsafe { &*ptr::from_ref(&this.tx) };
        // SAFETY: likewise, and nothing else refers to them meanwhile.
        let rx = unsafe { &mut *ptr::from_mut(&mut this.rx) };
        this.message.insert([Transfer::planned(tx, rx, this.plan)])
    }
}

/// A message of any form over `'static` buffers.
pub struct Fixed<const M: usize> {
    message: [Transfer<'static>; M],
    _pinned: PhantomPinned,
}

// SAFETY: the buffers are `'static`, and the transfers have them for themselves.
unsafe impl<const M: usize> Payload for Fixed<M> {
    #[inline]
    fn message(self: Pin<&mut Self>) -> *mut [Transfer<'static>] {
        // SAFETY: nothing is moved out of it.
        &mut unsafe { self.get_unchecked_mut() }.message
    }
}

/// A message to submit. See the [module](self).
pub struct Queued<'b, C: Controller + ?Sized, P> {
    node: Node,
    device: Device<'b, C>,
    callback: Option<Callback>,
    payload: Cell<P>,
    _pinned: PhantomPinned,
}

// SAFETY: the node is made to be shared, and its message lies in the payload.
unsafe impl<C: Controller + ?Sized + Send, P: Send> Send for Queued<'_, C, P> {}

impl<C: Controller + ?Sized, P> fmt::Debug for Queued<'_, C, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queued")
            .field("device", &self.device)
            .field("stage", &self.node.stage())
            .finish_non_exhaustive()
    }
}

impl<'b, C: Controller + ?Sized> Device<'b, C> {
    /// A message to submit: one exchange of `N` bytes, sending `tx`, planned here once.
    ///
    /// # Errors
    /// What [`Controller::plan`] refuses.
    pub fn queued<const N: usize>(
        &self,
        tx: [u8; N],
    ) -> Result<Queued<'b, C, Exchange<N>>, MessageError> {
        let plan = self.plan_exchange(&tx)?;
        let payload = Exchange { tx, rx: [0; N], plan, message: None, _pinned: PhantomPinned };
        Ok(Queued::new(*self, payload))
    }

    /// A message to submit, of any form, over buffers that are there for ever; planned here once.
    ///
    /// # Errors
    /// What [`Controller::plan`] refuses.
    pub fn queued_message<const M: usize>(
        &self,
        mut message: [Transfer<'static>; M],
    ) -> Result<Queued<'b, C, Fixed<M>>, MessageError> {
        self.plan(&mut message)?;
        Ok(Queued::new(*self, Fixed { message, _pinned: PhantomPinned }))
    }
}

impl<'b, C: Controller + ?Sized, P> Queued<'b, C, P> {
    fn new(device: Device<'b, C>, payload: P) -> Self {
        Self {
            node: Node::new(Task::turn(0)),
            device,
            callback: None,
            payload: Cell::new(payload),
            _pinned: PhantomPinned,
        }
    }

    /// The same, with what to do each time it ran.
    #[must_use]
    pub fn with_callback(mut self, callback: Callback) -> Self {
        self.callback = Some(callback);
        self
    }

    /// Lets `f` have the payload while the message is nobody else's.
    fn own<R>(&self, f: impl FnOnce(Pin<&mut P>) -> R) -> Result<R, Error> {
        if self.node.stage() == Stage::Queued {
            return Err(Error::Busy);
        }
        Ok(self.payload.with_mut(|payload| {
            // SAFETY: the node is not queued, and callers have the message for themselves (they
            // are methods of a pinned `&mut`, or of a `&` that only reads).
            let payload = unsafe { &mut *payload };
            // SAFETY: it is pinned with the message.
            f(unsafe { Pin::new_unchecked(payload) })
        }))
    }

    /// The result, once, when it ran; `None` as long as it has not, or nothing was submitted.
    pub fn result(self: Pin<&mut Self>) -> Option<Result<usize, MessageError>> {
        self.as_ref().get_ref().fetch()
    }

    fn fetch(&self) -> Option<Result<usize, MessageError>> {
        if self.node.stage() != Stage::Done {
            return None;
        }
        self.node.set_free();
        // SAFETY: it was settled: the task is its owner's.
        Some(self.node.task.with(|task| unsafe { (*task).outcome() }))
    }

    /// Waits until it ran, and returns the result; `None` if nothing was submitted.
    ///
    /// A message that was only [enqueued](Queued::enqueue) is run by this if nobody else does.
    ///
    /// # Errors
    /// As [`Device::sync`]; [`Error::WouldDeadlock`] if the caller's context has the bus, and then
    /// the message stays submitted.
    pub fn wait(self: Pin<&mut Self>) -> Option<Result<usize, MessageError>> {
        let this = self.as_ref().get_ref();
        if this.node.stage() == Stage::Queued
            && let Err(error) = this.device.bus().wait_for(&this.node)
        {
            return Some(Err(MessageError::refused(error, 0)));
        }
        this.fetch()
    }

    /// Takes it back: out of the queue, or when it ran. Whether it did not run.
    ///
    /// Waits at most for the message on the wire. Must not be called in a
    /// [callback](Callback).
    pub fn cancel(self: Pin<&mut Self>) -> bool {
        self.as_ref().get_ref().take_back() == Stage::Removed
    }

    fn take_back(&self) -> Stage {
        let mut stage = self.node.stage();
        let mut panics = Panics::none();
        if stage == Stage::Queued {
            stage = self.device.bus().take_out(&self.node, &mut panics);
        }
        if stage == Stage::Removed {
            self.node.set_free();
        }
        panics.raise();
        stage
    }
}

impl<'b, C: Controller + ?Sized, P: Payload> Queued<'b, C, P> {
    /// Submits it: it runs after what was submitted before. On a bus that the
    /// [caller pumps](Pump::Caller), and that is idle, here and now.
    ///
    /// # Errors
    /// [`Error::Busy`] if it is submitted already and has not run.
    #[inline]
    pub fn submit(self: Pin<&mut Self>) -> Result<(), Error> {
        let bus = self.device.bus();
        let run_here = bus.pump != Pump::Worker;
        let nobody = self.as_ref().get_ref().push(run_here)?;
        if bus.platform.inheritance().is_some() {
            // The worker comes by itself, and with its own priority.
            if !run_here {
                bus.ring();
            } else if bus.alert_owner() {
                bus.pump();
            }
        } else if nobody {
            if run_here {
                // SAFETY: the push acquired the bus.
                unsafe { bus.held() }.release_contended(SERVE_MAX);
            } else {
                bus.ring();
            }
        }
        Ok(())
    }

    /// Puts it in the queue and leaves it there for the next who holds the bus, or for
    /// [`Bus::pump`](super::Bus::pump). The cheapest way to submit many.
    ///
    /// # Errors
    /// [`Error::Busy`] if it is submitted already and has not run.
    #[inline]
    pub fn enqueue(self: Pin<&mut Self>) -> Result<(), Error> {
        self.as_ref().get_ref().push(false)?;
        Ok(())
    }

    /// Pushes the node; see [`Bus::push`](super::Bus) for what it returns.
    #[inline]
    fn push(&self, acquire: bool) -> Result<bool, Error> {
        let message = self.own(Payload::message)?;
        let bus = self.device.bus();
        let task = Task {
            program: self.device.program(),
            message,
            callback: self.callback,
            priority: self.device.priority(),
            ..Task::turn(bus.context())
        };
        // SAFETY: it is not queued: the task is its owner's.
        self.node.task.with_mut(|place| unsafe { *place = task });
        self.node.set_queued();
        // SAFETY: module, Safety.
        Ok(unsafe { bus.push(&self.node, acquire) })
    }

    /// Runs it as a future, which ends with its length in bytes. Dropping the future cancels it.
    pub fn run(self: Pin<&mut Self>) -> Running<'_, 'b, C, P> {
        Running { queued: self, submitted: false }
    }
}

impl<C: Controller + ?Sized, const N: usize> Queued<'_, C, Exchange<N>> {
    /// What is sent, to change.
    ///
    /// # Errors
    /// [`Error::Busy`] while it is submitted and has not run.
    pub fn tx_mut(self: Pin<&mut Self>) -> Result<&mut [u8; N], Error> {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        let tx = this.own(|payload| {
            // SAFETY: likewise.
            let payload = unsafe { payload.get_unchecked_mut() };
            payload.message = None;
            &raw mut payload.tx
        })?;
        // SAFETY: ours as long as `this` is borrowed.
        Ok(unsafe { &mut *tx })
    }

    /// What came in last.
    ///
    /// # Errors
    /// [`Error::Busy`] while it is submitted and has not run.
    pub fn rx(self: Pin<&Self>) -> Result<[u8; N], Error> {
        self.own(|payload| {
            // SAFETY: nothing is moved out of it.
            let payload = unsafe { payload.get_unchecked_mut() };
            payload.message = None;
            payload.rx
        })
    }
}

impl<C: Controller + ?Sized, P> Drop for Queued<'_, C, P> {
    fn drop(&mut self) {
        self.take_back();
    }
}

/// A queued message as a future. Dropping it takes the message back.
#[must_use = "a future does nothing unless polled"]
pub struct Running<'q, 'b, C: Controller + ?Sized, P> {
    queued: Pin<&'q mut Queued<'b, C, P>>,
    submitted: bool,
}

impl<C: Controller + ?Sized, P> fmt::Debug for Running<'_, '_, C, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("submitted", &self.submitted).finish_non_exhaustive()
    }
}

impl<C: Controller + ?Sized, P: Payload> Future for Running<'_, '_, C, P> {
    type Output = Result<usize, MessageError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.submitted {
            let submitted = self.queued.as_mut().submit();
            submitted.map_err(|error| MessageError::refused(error, 0))?;
            self.submitted = true;
        }
        match self.queued.node.poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(_) => match self.queued.as_mut().result() {
                Some(result) => Poll::Ready(result),
                // Polled again after its end.
                None => Poll::Ready(Err(MessageError::refused(Error::Aborted, 0))),
            },
        }
    }
}

impl<C: Controller + ?Sized, P> Drop for Running<'_, '_, C, P> {
    fn drop(&mut self) {
        // What was not submitted here is not ours to take back.
        if self.submitted {
            self.queued.as_mut().cancel();
        }
    }
}
