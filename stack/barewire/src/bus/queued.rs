//! Submitted messages: the caller does not wait for them.
//!
//! # How it works
//! A [`Queued`] message owns its bytes or borrows them for `'static`, and it is pinned. Running it
//! touches no other memory of its owner, so forgetting it is safe. Submitting it is one push. Its
//! result comes through a callback, by [`Queued::result`], or as a future; one message may use all
//! three.
//!
//! [`Queued::submit`] makes sure that the queue is served: on a free bus the submitter serves it or
//! wakes the worker. [`Queued::enqueue`] does not: the message may stay in the queue of a free bus
//! until the next caller comes.
//!
//! Dropping a message that is queued removes it from the queue, even behind an idle lock. Dropping
//! a message that is on the wire waits for it, at most for its timeout. A message must not be
//! dropped in a callback, or in an interrupt handler that interrupted a user of its bus: the drop
//! would wait for the code it interrupted.
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
//! The node's message points into the pinned payload or at `'static` buffers. From the push until
//! the node is settled it belongs to the holder, and nothing here accesses it. [`Queued::drop`]
//! waits until the node is settled, so node and payload outlive the run.
#![allow(unsafe_code, reason = "a pinned message points at its own bytes")]

use core::fmt;
use core::future::Future;
use core::hash::{Hash, Hasher};
use core::marker::PhantomPinned;
use core::mem;
use core::pin::Pin;
use core::ptr;
use core::task::{Context, Poll};

use super::atomic::Cell;
pub use super::callback::{Callback, Completed, Then};
use super::node::{Node, Stage, Task};
use super::panics::Panics;
use super::queue::SERVE_MAX;
use super::uses::{AnyPlatform, Uses};
use super::{Device, Pump};
use crate::controller::{Controller, Plan};
use crate::spi::{Error, MessageError, Transfer};

/// The buffers of a queued message.
///
/// # Safety
/// The transfers that [`Payload::message`] returns point only at buffers that the payload owns or
/// that are `'static`, and nothing else refers to these buffers until the next call of a method of
/// the payload. A payload that may be moved (`Unpin`) returns transfers at an address that does not
/// change with its own.
pub unsafe trait Payload {
    /// Whether no code can change more of the message than its bytes. Otherwise
    /// [`Queued::with_payload`] checks whether any code did.
    const FIXED: bool = false;

    /// The planned transfers.
    fn message(self: Pin<&mut Self>) -> *mut [Transfer<'static>];
}

/// One exchange of `N` bytes in its own buffers.
pub struct Exchange<const N: usize> {
    tx: [u8; N],
    rx: [u8; N],
    plan: Plan,
    message: Option<[Transfer<'static>; 1]>,
    _pinned: PhantomPinned,
}

// SAFETY: the transfer points at `tx` and `rx`, which `tx_mut` and `rx` only reach through the
// payload.
unsafe impl<const N: usize> Payload for Exchange<N> {
    const FIXED: bool = true;

    #[inline]
    fn message(self: Pin<&mut Self>) -> *mut [Transfer<'static>] {
        // SAFETY: nothing is moved out of `this`.
        let this = unsafe { self.get_unchecked_mut() };
        // Made once, and made again after `tx_mut` or `rx`, which invalidate its pointers.
        if let Some(message) = &mut this.message {
            return message;
        }
        // SAFETY: pinned: the bytes do not move before the message is settled.
        let tx = unsafe { &*ptr::from_ref(&this.tx) };
        // SAFETY: likewise, and nothing else refers to them until then.
        let rx = unsafe { &mut *ptr::from_mut(&mut this.rx) };
        this.message.insert([Transfer::planned(tx, rx, this.plan)])
    }
}

/// A message of any number of transfers over `'static` buffers.
pub struct Fixed<const M: usize> {
    message: [Transfer<'static>; M],
    _pinned: PhantomPinned,
}

// SAFETY: the buffers are `'static`, and the transfers borrow them exclusively.
unsafe impl<const M: usize> Payload for Fixed<M> {
    const FIXED: bool = true;

    #[inline]
    fn message(self: Pin<&mut Self>) -> *mut [Transfer<'static>] {
        // SAFETY: nothing is moved out of `self`.
        &mut unsafe { self.get_unchecked_mut() }.message
    }
}

/// A message to submit. See the [module](self).
pub struct Queued<'b, C: Controller + ?Sized, P, U: Uses = AnyPlatform> {
    node: Node,
    device: Device<'b, C, U>,
    callback: Option<Callback>,
    /// Whether the payload's plan is that of its transfers as they are.
    planned: bool,
    payload: Cell<P>,
    _pinned: PhantomPinned,
}

// SAFETY: nodes may be shared, and the message points into the payload.
unsafe impl<C: Controller + ?Sized + Send, U: Uses, P: Send> Send for Queued<'_, C, P, U> {}

impl<C: Controller + ?Sized, U: Uses, P> fmt::Debug for Queued<'_, C, P, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queued")
            .field("device", &self.device)
            .field("stage", &self.node.stage())
            .finish_non_exhaustive()
    }
}

impl<'b, C: Controller + ?Sized, U: Uses> Device<'b, C, U> {
    /// Makes a message to submit: one exchange of `N` bytes that sends `tx`. It is planned here,
    /// once.
    ///
    /// # Errors
    /// A message that [`Controller::plan`] refuses.
    pub fn queued<const N: usize>(
        &self,
        tx: [u8; N],
    ) -> Result<Queued<'b, C, Exchange<N>, U>, MessageError> {
        let plan = self.plan_exchange(&tx)?;
        let payload = Exchange { tx, rx: [0; N], plan, message: None, _pinned: PhantomPinned };
        Ok(Queued::new(*self, payload))
    }

    /// Makes a message to submit, of any form, over `'static` buffers. It is planned here, once.
    ///
    /// # Errors
    /// A message that [`Controller::plan`] refuses.
    pub fn queued_message<const M: usize>(
        &self,
        mut message: [Transfer<'static>; M],
    ) -> Result<Queued<'b, C, Fixed<M>, U>, MessageError> {
        self.plan(&mut message)?;
        Ok(Queued::new(*self, Fixed { message, _pinned: PhantomPinned }))
    }

    /// Makes a message to submit over buffers of any kind, for example of lengths that are known at
    /// run time. It is planned here, once.
    ///
    /// # Errors
    /// A message that [`Controller::plan`] refuses.
    pub fn queued_payload<P: Payload + Unpin>(
        &self,
        mut payload: P,
    ) -> Result<Queued<'b, C, P, U>, MessageError> {
        let message = Pin::new(&mut payload).message();
        // SAFETY: the payload's promise: nothing else refers to its transfers.
        self.plan(unsafe { &mut *message })?;
        Ok(Queued::new(*self, payload))
    }
}

impl<'b, C: Controller + ?Sized, U: Uses, P> Queued<'b, C, P, U> {
    fn new(device: Device<'b, C, U>, payload: P) -> Self {
        const { assert!(U::QUEUE, "the bus's type says that nothing is queued") }
        Self {
            node: Node::new(Task::turn(0)),
            device,
            callback: None,
            planned: true,
            payload: Cell::new(payload),
            _pinned: PhantomPinned,
        }
    }

    /// Sets the callback to call each time the message ran.
    #[must_use]
    pub fn with_callback(mut self, callback: Callback) -> Self {
        self.callback = Some(callback);
        self
    }

    /// Gives `f` the payload while the message is not queued.
    fn own<R>(&self, f: impl FnOnce(Pin<&mut P>) -> R) -> Result<R, Error> {
        if self.node.stage() == Stage::Queued {
            return Err(Error::Busy);
        }
        Ok(self.payload.with_mut(|payload| {
            // SAFETY: the node is not queued, and the callers are methods of a pinned `&mut`, or of
            // a `&` that only reads: no other reference to the payload is in use.
            let payload = unsafe { &mut *payload };
            // SAFETY: the payload is pinned with the message.
            f(unsafe { Pin::new_unchecked(payload) })
        }))
    }

    /// Takes the result, once; `None` if the message has not run or was not submitted.
    pub fn result(self: Pin<&mut Self>) -> Option<Result<usize, MessageError>> {
        self.as_ref().get_ref().fetch()
    }

    fn fetch(&self) -> Option<Result<usize, MessageError>> {
        if self.node.stage() != Stage::Done {
            return None;
        }
        self.node.set_free();
        // SAFETY: the node was settled: the task is its owner's.
        Some(self.node.task.with(|task| unsafe { (*task).outcome() }))
    }

    /// Waits until the message ran and returns its result; `None` if it was not submitted.
    ///
    /// A message that was only [enqueued](Queued::enqueue) is run here if no other thread runs it.
    ///
    /// # Errors
    /// As [`Device::sync`]; [`Error::WouldDeadlock`] if the caller's context has the bus, and then
    /// the message stays submitted.
    pub fn wait(self: Pin<&mut Self>) -> Option<Result<usize, MessageError>> {
        let this = self.as_ref().get_ref();
        if this.node.stage() == Stage::Queued {
            if let Err(error) = this.device.bus().wait_for(&this.node) {
                return Some(Err(MessageError::refused(error, 0)));
            }
        }
        this.fetch()
    }

    /// Cancels the message: removes it from the queue, or waits until it ran. Returns whether it
    /// was removed without running.
    ///
    /// Waits at most for the message on the wire. A [callback](Callback) may cancel other messages than its own.
    pub fn cancel(self: Pin<&mut Self>) -> bool {
        self.as_ref().get_ref().take_back() == Stage::Removed
    }

    fn take_back(&self) -> Stage {
        let mut stage = self.node.stage();
        let mut panics = Panics::none();
        if stage == Stage::Queued {
            stage = self.device.bus().take_out(&self.node, true, &mut panics);
        }
        if stage == Stage::Removed {
            self.node.set_free();
        }
        panics.raise();
        stage
    }
}

/// All of a message that a plan depends on, and the plan: FNV-1a over it.
fn form_of(message: &[Transfer<'_>]) -> u64 {
    struct Form(u64);

    impl Hasher for Form {
        fn write(&mut self, bytes: &[u8]) {
            for &byte in bytes {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }

        fn finish(&self) -> u64 {
            self.0
        }
    }

    let mut form = Form(0xcbf2_9ce4_8422_2325);
    for transfer in message {
        let Transfer { data, plan, delay_ticks, inactive_ticks, .. } = transfer;
        (data.len(), data.tx().is_some(), data.rx().is_some()).hash(&mut form);
        (plan, delay_ticks, inactive_ticks).hash(&mut form);
        (transfer.speed_hz, transfer.word_delay_ns, transfer.delay_ns).hash(&mut form);
        (transfer.cs_change_delay_ns, transfer.bits_per_word, transfer.cs_change).hash(&mut form);
    }
    message.len().hash(&mut form);
    form.finish()
}

impl<'b, C: Controller + ?Sized, U: Uses, P: Payload> Queued<'b, C, P, U> {
    /// Lends `f` the payload, to change or to read its bytes. If more of the message changed than its bytes, the
    /// next submission plans it again.
    ///
    /// # Errors
    /// [`Error::Busy`] while the message is submitted and has not run.
    pub fn with_payload<R>(
        self: Pin<&mut Self>,
        f: impl FnOnce(Pin<&mut P>) -> R,
    ) -> Result<R, Error> {
        // SAFETY: nothing is moved out of `this`.
        let this = unsafe { self.get_unchecked_mut() };
        let before = this.form()?;
        // `f` may panic.
        let planned = mem::replace(&mut this.planned, P::FIXED);
        let result = this.own(f)?;
        this.planned = planned && this.form() == Ok(before);
        Ok(result)
    }

    fn form(&self) -> Result<u64, Error> {
        // SAFETY: the payload's promise: nothing else refers to its transfers.
        self.own(|payload| if P::FIXED { 0 } else { form_of(unsafe { &*payload.message() }) })
    }

    /// Plans a message that was changed.
    #[inline]
    fn plan(&mut self) -> Result<(), Error> {
        if P::FIXED || self.planned { Ok(()) } else { self.plan_again() }
    }

    #[cold]
    fn plan_again(&mut self) -> Result<(), Error> {
        let message = self.own(Payload::message)?;
        // SAFETY: the payload's promise: nothing else refers to its transfers.
        self.device.plan(unsafe { &mut *message }).map_err(|refused| refused.error)?;
        self.planned = true;
        Ok(())
    }

    /// Submits the message; it runs after the messages submitted before it. If the [caller
    /// pumps](Pump::Caller) the bus and the bus is idle, it runs in this call.
    ///
    /// # Errors
    /// [`Error::Busy`] if the message is submitted and has not run. Those of [`Device::queued_payload`], if
    /// [`Queued::with_payload`] changed more than bytes; then this may wait for the bus, to plan the message.
    #[inline]
    pub fn submit(self: Pin<&mut Self>) -> Result<(), Error> {
        // SAFETY: nothing is moved out of `this`.
        let this = unsafe { self.get_unchecked_mut() };
        this.plan()?;
        let bus = this.device.bus();
        let run_here = bus.pump != Pump::Worker;
        let was_free = this.push(run_here)?;
        if bus.inherits() {
            // The worker comes with its own priority; only ring for it.
            if !run_here {
                bus.ring();
            } else if bus.alert_owner() {
                bus.pump();
            }
        } else if was_free {
            if run_here {
                // SAFETY: the push acquired the bus.
                unsafe { bus.held() }.release_contended(SERVE_MAX);
            } else {
                bus.ring();
            }
        }
        Ok(())
    }

    /// Puts the message in the queue for the next holder, or for [`Bus::pump`](super::Bus::pump).
    /// The cheapest way to submit many messages.
    ///
    /// # Errors
    /// As [`Queued::submit`].
    #[inline]
    pub fn enqueue(self: Pin<&mut Self>) -> Result<(), Error> {
        // SAFETY: nothing is moved out of `this`.
        let this = unsafe { self.get_unchecked_mut() };
        this.plan()?;
        this.push(false)?;
        Ok(())
    }

    /// Pushes the node. Returns what [`Bus::push`](super::Bus) returns.
    #[inline]
    fn push(&self, acquire: bool) -> Result<bool, Error> {
        let message = self.own(Payload::message)?;
        let bus = self.device.bus();
        let task = Task {
            preset: self.device.preset(),
            message,
            callback: self.callback,
            priority: self.device.priority(),
            ..Task::turn(bus.context())
        };
        // SAFETY: the node is not queued: the task is its owner's.
        self.node.task.with_mut(|place| unsafe { *place = task });
        self.node.set_queued();
        // SAFETY: module, Safety.
        Ok(unsafe { bus.push(&self.node, acquire) })
    }

    /// Runs the message as a future of its length in bytes. Dropping the future cancels it.
    pub fn run(self: Pin<&mut Self>) -> Running<'_, 'b, C, P, U> {
        Running { queued: self, submitted: false }
    }
}

impl<C: Controller + ?Sized, U: Uses, const N: usize> Queued<'_, C, Exchange<N>, U> {
    /// The bytes to send, to change them.
    ///
    /// # Errors
    /// [`Error::Busy`] while the message is submitted and has not run.
    pub fn tx_mut(self: Pin<&mut Self>) -> Result<&mut [u8; N], Error> {
        // SAFETY: nothing is moved out of `this`.
        let this = unsafe { self.get_unchecked_mut() };
        let tx = this.own(|payload| {
            // SAFETY: nothing is moved out of `payload`.
            let payload = unsafe { payload.get_unchecked_mut() };
            payload.message = None;
            &raw mut payload.tx
        })?;
        // SAFETY: the bytes are ours for as long as `this` is borrowed.
        Ok(unsafe { &mut *tx })
    }

    /// The bytes that were received last.
    ///
    /// # Errors
    /// [`Error::Busy`] while the message is submitted and has not run.
    pub fn rx(self: Pin<&Self>) -> Result<[u8; N], Error> {
        self.own(|payload| {
            // SAFETY: nothing is moved out of `payload`.
            let payload = unsafe { payload.get_unchecked_mut() };
            payload.message = None;
            payload.rx
        })
    }
}

impl<C: Controller + ?Sized, U: Uses, P> Drop for Queued<'_, C, P, U> {
    fn drop(&mut self) {
        self.take_back();
    }
}

/// A queued message as a future. Dropping it cancels the message.
#[must_use = "a future does nothing unless polled"]
pub struct Running<'q, 'b, C: Controller + ?Sized, P, U: Uses = AnyPlatform> {
    queued: Pin<&'q mut Queued<'b, C, P, U>>,
    submitted: bool,
}

impl<C: Controller + ?Sized, U: Uses, P> fmt::Debug for Running<'_, '_, C, P, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("submitted", &self.submitted).finish_non_exhaustive()
    }
}

impl<C: Controller + ?Sized, U: Uses, P: Payload> Future for Running<'_, '_, C, P, U> {
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
                // Polled again after it was ready.
                None => Poll::Ready(Err(MessageError::refused(Error::Aborted, 0))),
            },
        }
    }
}

impl<C: Controller + ?Sized, U: Uses, P> Drop for Running<'_, '_, C, P, U> {
    fn drop(&mut self) {
        // A message that this future did not submit is not its own to cancel.
        if self.submitted {
            self.queued.as_mut().cancel();
        }
    }
}
