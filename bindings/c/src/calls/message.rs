//! Messages to submit: the caller does not wait for them.
//!
//! # How it works
//! A message is the core's queued message over the caller's buffers, with a callback that calls the C function.
//! Submitting the first message starts the bus's worker thread.
//!
//! # Closing
//! A message that is submitted while the bus is being closed may come too late for the worker. So the submitter looks again
//! after its push, and runs the queue itself if the bus is closed: the message fails, and its callback is called.
//!
//! # Safety
//! Pointers fulfil each function's documented conditions. The callback lives until the queued message was dropped.
#![allow(unsafe_code, reason = "functions for C code, and messages beside their bus")]

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use barewire::bus::Queued;
use barewire::bus::queued::{Callback, Completed, Then};
use barewire::spi::{Error, MessageError};
use barewire_open::{DynController, OwnedMessage};

use crate::border::{guard, put};
use crate::calls::device::DEVICES;
use crate::calls::prepared::message_of;
use crate::error::bw_error;
use crate::failure::{Failure, keep};
use crate::handle::{Table, Use};
use crate::shared::{SharedBus, in_any_callback, outside_callback, within_callback};
use crate::types::{BW_AGAIN, bw_callback, bw_device, bw_message, bw_transfer};

/// The messages.
pub(crate) static MESSAGES: Table<Message> = Table::new(4, "message");

/// The callback of a message.
struct CallbackTarget {
    callback: bw_callback,
    user: *mut c_void,
    /// The message's handle.
    handle: AtomicPtr<c_void>,
    shared: Arc<SharedBus>,
}

// SAFETY: the C function gets the pointer on any thread that calls it, as its documentation says.
unsafe impl Send for CallbackTarget {}

// SAFETY: likewise.
unsafe impl Sync for CallbackTarget {}

impl CallbackTarget {
    fn call(&self, completed: &Completed<'_>) -> Then {
        let Some(callback) = self.callback else { return Then::Done };
        let (code, length) = match completed.result() {
            Ok(length) => (bw_error::BW_OK, length),
            Err(error) => {
                let failure = Failure::of_message(&self.shared.bus, &error);
                (keep(failure), error.actual_length)
            }
        };
        let handle = self.handle.load(Ordering::Relaxed).cast();
        // SAFETY: as the caller of `bw_message_new` promised.
        let call = || unsafe { callback(self.user, handle, code, length) };
        let answer = within_callback(&self.shared, call);
        // On a closed bus it would fail again and again.
        match answer == BW_AGAIN && !self.shared.bus.is_closed() {
            true => Then::Again,
            false => Then::Done,
        }
    }
}

type CoreMessage = Queued<'static, DynController, OwnedMessage>;
type Closure = dyn Fn(&mut Completed<'_>) -> Then + Send + Sync;

/// The core's message, with the callback that it calls.
struct Inner {
    // Must be dropped first: it may still call the closure, and it borrows the bus.
    queued: ManuallyDrop<Pin<Box<CoreMessage>>>,
    closure: *mut Closure,
    called: Arc<CallbackTarget>,
}

// SAFETY: the closure is `Send`, and the pointer its only owner.
unsafe impl Send for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: dropped once, here. It waits until the message is not on the wire.
        unsafe { ManuallyDrop::drop(&mut self.queued) };
        // SAFETY: leaked by `bw_message_new`, and nothing refers to it any more.
        drop(unsafe { Box::from_raw(self.closure) });
    }
}

pub(crate) struct Message {
    /// `None` only while it is dropped.
    inner: Option<Inner>,
    submitted: bool,
    last: Option<Result<usize, MessageError>>,
}

// SAFETY: every access goes through `get_alone`, which is exclusive; a shared reference gives none.
unsafe impl Sync for Message {}

impl Drop for Message {
    fn drop(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        let shared = Arc::clone(&inner.called.shared);
        if in_any_callback() {
            // Dropping it may wait for this callback; if it is of another bus, by a callback there that waits for
            // this one.
            shared.keep(Box::new(inner));
        } else {
            drop(inner);
            shared.sweep();
        }
    }
}

impl Message {
    fn parts(&mut self) -> Result<(Pin<&mut CoreMessage>, &Arc<SharedBus>), Failure> {
        let gone = || Failure::new(bw_error::BW_ERROR_CLOSED, "this message was freed");
        let inner = self.inner.as_mut().ok_or_else(gone)?;
        Ok((inner.queued.as_mut(), &inner.called.shared))
    }

    /// Notes a result, and returns it to C.
    fn ended(&mut self, ran: Result<usize, MessageError>) -> Result<usize, Failure> {
        self.submitted = false;
        self.last = Some(ran);
        self.result_of(ran)
    }

    fn result_of(&mut self, ran: Result<usize, MessageError>) -> Result<usize, Failure> {
        let (_, shared) = self.parts()?;
        ran.map_err(|error| Failure::of_message(&shared.bus, &error))
    }

    fn submit(&mut self) -> Result<(), Failure> {
        let (queued, shared) = self.parts()?;
        if shared.bus.is_closed() {
            return Err(Failure::closed(&shared.bus));
        }
        shared.bus.start_worker()?;
        match queued.submit() {
            Ok(()) => {}
            Err(Error::Busy) => {
                let text = "the message is submitted and has not run: wait for it, or cancel it";
                return Err(Failure::new(bw_error::BW_ERROR_BUSY, text));
            }
            Err(error) => return Err(Failure::of_error(&shared.bus, error)),
        }
        let late = shared.bus.is_closed().then(|| Arc::clone(shared));
        self.submitted = true;
        self.last = None;
        if let Some(shared) = late {
            // The worker may have ended before the push: see the module, Closing.
            shared.bus.pump();
        }
        Ok(())
    }

    fn poll(&mut self) -> Result<usize, Failure> {
        let (queued, _) = self.parts()?;
        if let Some(ran) = queued.result() {
            return self.ended(ran);
        }
        if self.submitted {
            return Err(Failure::new(bw_error::BW_ERROR_PENDING, "the message has not run yet"));
        }
        match self.last {
            Some(ran) => self.result_of(ran),
            None => Err(not_submitted()),
        }
    }

    fn wait(&mut self) -> Result<usize, Failure> {
        if !self.submitted {
            return self.poll();
        }
        let (queued, shared) = self.parts()?;
        outside_callback(shared, "waiting for a message of the bus")?;
        match queued.wait() {
            Some(Err(error)) if error.error == Error::WouldDeadlock => {
                Err(Failure::of_message(&shared.bus, &error))
            }
            Some(ran) => self.ended(ran),
            None => self.poll(),
        }
    }

    fn cancel(&mut self) -> Result<bool, Failure> {
        if !self.submitted {
            return Err(not_submitted());
        }
        let (queued, shared) = self.parts()?;
        outside_callback(shared, "cancelling a message of the bus")?;
        let removed = queued.cancel();
        if removed {
            self.submitted = false;
            self.last = None;
        }
        Ok(removed)
    }
}

fn not_submitted() -> Failure {
    let text = "the message is not submitted: call bw_submit first";
    Failure::new(bw_error::BW_ERROR_NOT_SUBMITTED, text)
}

/// Makes a message to submit, and stores its handle in `*message`. The transfers are copied; their buffers are not.
/// `callback`, which may be NULL, is called each time it ran. The message may be submitted again and again.
///
/// # Safety
/// `transfers` is NULL or valid for `count` of them. Their buffers are NULL or valid for `len` bytes until
/// `bw_message_free`, and nothing else uses them while the message is submitted. `callback` is as its type says and may be
/// called in any thread with `user`. `message` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_message_new(
    device: *mut bw_device,
    transfers: *const bw_transfer,
    count: usize,
    callback: bw_callback,
    user: *mut c_void,
    message: *mut *mut bw_message,
) -> bw_error {
    guard(|| {
        let device = DEVICES.get(device)?;
        if message.is_null() {
            return Err(Failure::null("the place for the message's handle"));
        }
        device.shared.sweep();
        // SAFETY: the caller's promise.
        let owned = unsafe { message_of(transfers, count) }?;
        let queued = owned.queued(&device.core);
        let queued = queued.map_err(|error| Failure::of_message(&device.shared.bus, &error))?;
        let called = Arc::new(CallbackTarget {
            callback,
            user,
            handle: AtomicPtr::new(ptr::null_mut()),
            shared: Arc::clone(&device.shared),
        });
        let calls = Arc::clone(&called);
        let closure: Box<Closure> = Box::new(move |completed| calls.call(completed));
        let closure = Box::into_raw(closure);
        // SAFETY: leaked, and freed by `Inner` after the queued message.
        let queued = queued.with_callback(unsafe { &*closure } as Callback);
        let queued = ManuallyDrop::new(Box::pin(queued));
        let inner = Some(Inner { queued, closure, called: Arc::clone(&called) });
        let handle = MESSAGES.insert(Message { inner, submitted: false, last: None })?;
        // It cannot be submitted before its maker has the handle.
        called.handle.store(handle, Ordering::Relaxed);
        // SAFETY: not null, and the caller's promise.
        unsafe { message.write(handle.cast()) };
        Ok(())
    })
}

/// Uses a message alone.
fn with<R>(
    handle: *mut bw_message,
    with: impl FnOnce(&mut Message) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let used: Use<Message> = MESSAGES.get_alone(handle)?;
    // SAFETY: no other call uses it.
    with(unsafe { &mut *used.as_ptr() })
}

/// Submits the message: it runs after those submitted before it, and the call does not wait. `BW_ERROR_BUSY` if it is
/// submitted and has not run.
///
/// # Safety
/// The message's buffers and callback are as `bw_message_new` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_submit(message: *mut bw_message) -> bw_error {
    guard(|| with(message, Message::submit))
}

/// How the message ran last: `BW_OK` or why it failed; `BW_ERROR_PENDING` while it has not run. `*length`, if `length` is not
/// NULL, gets its length in bytes. Does not wait.
///
/// # Safety
/// `length` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_poll(message: *mut bw_message, length: *mut usize) -> bw_error {
    guard(|| {
        let ran = with(message, Message::poll)?;
        // SAFETY: the caller's promise.
        unsafe { put(ran, length) };
        Ok(())
    })
}

/// Waits until the message ran, then does as `bw_poll`. `BW_ERROR_WOULD_DEADLOCK` under the
/// thread's own lock and in a callback.
///
/// # Safety
/// `length` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_wait(message: *mut bw_message, length: *mut usize) -> bw_error {
    guard(|| {
        let ran = with(message, Message::wait)?;
        // SAFETY: the caller's promise.
        unsafe { put(ran, length) };
        Ok(())
    })
}

/// Cancels the message: removes it from the queue, or waits until it ran. `*removed`, if `removed` is not NULL, gets 1 if it
/// was removed without running, else 0.
///
/// # Safety
/// `removed` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_cancel(message: *mut bw_message, removed: *mut i32) -> bw_error {
    guard(|| {
        let was_removed = with(message, Message::cancel)?;
        // SAFETY: the caller's promise.
        unsafe { put(i32::from(was_removed), removed) };
        Ok(())
    })
}

/// Frees the message; cancels it first if it is submitted. In a callback it may be called too, also for the message
/// that ran: the bus keeps it until a later call outside, and its buffers must stay until the callback returned.
#[unsafe(no_mangle)]
pub extern "C" fn bw_message_free(message: *mut bw_message) -> bw_error {
    guard(|| MESSAGES.close(message).map(drop))
}
