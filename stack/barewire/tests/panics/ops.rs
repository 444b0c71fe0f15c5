//! The paths: each as an operation that is given to the bus, goes on, and ends.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake};
use std::{iter, mem};

use barewire::bus::queued::{Callback, Completed, Exchange};
use barewire::bus::{Device, Queued, Then};
use barewire::spi::{Error, MessageError, Transfer};

use crate::fuse::{Hook, Unwound, at, caught, run};
use crate::wire::Any;

/// A path through the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// One prepared access.
    Prepared,
    /// One sync message.
    Sync,
    /// One message submitted, its result fetched at the end.
    Async,
    /// One message put in the queue and left there until the end.
    Enqueue,
    /// One message submitted and waited for.
    Wait,
    /// The bus locked over two messages.
    Lock,
    /// One message put in the queue and taken back.
    Cancel,
    /// One message over borrowed bytes, as a future.
    Transact,
    /// One submitted message, as a future.
    QueuedFuture,
    /// One message with a callback.
    Callback,
    /// One message that runs twice, as its callback says.
    Again,
    /// One message that must not wait.
    Try,
}

impl Op {
    pub(crate) const ALL: [Op; 12] = [
        Op::Prepared,
        Op::Sync,
        Op::Async,
        Op::Enqueue,
        Op::Wait,
        Op::Lock,
        Op::Cancel,
        Op::Transact,
        Op::QueuedFuture,
        Op::Callback,
        Op::Again,
        Op::Try,
    ];

    /// One of each group of paths that leave the bus the same way.
    pub(crate) const UNLIKE: &[Op] = &[
        Op::Sync,
        Op::Async,
        Op::Wait,
        Op::Lock,
        Op::Cancel,
        Op::Transact,
        Op::QueuedFuture,
        Op::Again,
    ];

    /// One of each group whose node has the same owner: a thread's stack, a pinned message that is
    /// run, taken back or awaited, a future that borrows.
    #[cfg(miri)]
    pub(crate) const OWNERS: &[Op] =
        &[Op::Sync, Op::Async, Op::Cancel, Op::Transact, Op::QueuedFuture];

    /// Its callback, of a message that is planned before it is given.
    fn planned(self) -> Option<Option<Callback>> {
        match self {
            Op::Async | Op::Enqueue | Op::Wait | Op::Cancel | Op::QueuedFuture => Some(None),
            Op::Callback => Some(Some(&done)),
            Op::Again => Some(Some(&again)),
            Op::Prepared | Op::Sync | Op::Lock | Op::Transact | Op::Try => None,
        }
    }

    /// Whether it cannot begin while its thread has the bus locked.
    fn needs_the_bus(self) -> bool {
        matches!(self, Op::Prepared | Op::Sync | Op::Lock | Op::Try)
    }
}

/// The second message of [`Op::Lock`].
pub(crate) fn second_byte(byte: u8) -> u8 {
    byte | 0x80
}

/// How often a message may come over the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) min: usize,
    pub(crate) max: usize,
}

impl Times {
    const NEVER: Times = Times { min: 0, max: 0 };
    const ONCE: Times = Times { min: 1, max: 1 };
    const MAYBE: Times = Times { min: 0, max: 1 };
}

/// A task that is only told.
#[derive(Default)]
struct Signal(AtomicBool);

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
        at(Hook::Waker, 0);
    }
}

type Future<'b> =
    Pin<Box<dyn std::future::Future<Output = Result<usize, MessageError>> + Send + 'b>>;

type Message<'b> = Pin<Box<Queued<'b, Any, Exchange<1>>>>;

/// What is left to be done.
enum Rest<'b> {
    /// All.
    Everything,
    /// All, of a message that is planned.
    Planned(Message<'b>),
    /// The message is submitted: its result is to be fetched.
    Submitted(Message<'b>),
    /// The future is to be polled when it is woken.
    Pending(Future<'b>),
    /// Nothing.
    Nothing,
}

/// An operation on its way.
pub(crate) struct Given<'b> {
    pub(crate) op: Op,
    pub(crate) byte: u8,
    device: Device<'b, Any>,
    rest: Rest<'b>,
    signal: Arc<Signal>,
    /// As far as it is known.
    pub(crate) times: Times,
    /// What was wrong.
    pub(crate) wrong: Option<String>,
    /// Whether it ended so since the controller panicked.
    pub(crate) was_aborted: bool,
    /// Whether it runs before whatever its thread gives later.
    pub(crate) keeps_its_place: bool,
}

fn call_back(completed: &Completed<'_>) -> (u32, bool) {
    let good = completed.result().is_ok();
    let byte = completed.rx(0).and_then(|rx| rx.first().copied()).map_or(0, |rx| !rx);
    // What came in of a message that was aborted is not known.
    let byte = if good { byte } else { 0 };
    let before = run().count_callback(byte);
    at(Hook::Callback, byte);
    (before, good)
}

fn done(completed: &mut Completed<'_>) -> Then {
    call_back(completed);
    Then::Done
}

fn again(completed: &mut Completed<'_>) -> Then {
    if call_back(completed) == (0, true) { Then::Again } else { Then::Done }
}

async fn transact(device: Device<'_, Any>, byte: u8) -> Result<usize, MessageError> {
    let bytes = [byte];
    device.transact(&mut [Transfer::write(&bytes)]).await
}

async fn run_queued(mut queued: Message<'_>) -> Result<usize, MessageError> {
    queued.as_mut().run().await
}

impl<'b> Given<'b> {
    pub(crate) fn new(op: Op, byte: u8, device: Device<'b, Any>) -> Self {
        Self {
            op,
            byte,
            device,
            rest: Rest::Everything,
            signal: Arc::default(),
            times: Times::NEVER,
            wrong: None,
            was_aborted: false,
            keeps_its_place: op != Op::Transact,
        }
    }

    /// What it sends.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = u8> + use<> {
        let second = (self.op == Op::Lock).then_some(second_byte(self.byte));
        iter::once(self.byte).chain(second)
    }

    pub(crate) fn is_given(&self) -> bool {
        !matches!(self.rest, Rest::Everything | Rest::Planned(_))
    }

    fn fail(&mut self, what: String) {
        self.wrong.get_or_insert(format!("{:?} ({:#04x}): {what}", self.op, self.byte));
    }

    /// A hook panicked inside the call that runs the message: the result is lost.
    fn unwound(&mut self) {
        self.times = Times::MAYBE;
        self.rest = Rest::Nothing;
    }

    /// The message ended.
    fn ended(&mut self, result: Result<usize, MessageError>) {
        self.rest = Rest::Nothing;
        self.times = Times::ONCE;
        let run = run();
        match result {
            Ok(1) if matches!(self.op, Op::Callback | Op::Again) => {
                // It is called back each time it ran.
                let times = run.times_called_back(self.byte) as usize;
                self.times = Times { min: times, max: times };
                let expected = if self.op == Op::Again { 2 } else { 1 };
                if times != expected && !run.callback_fired_on(self.byte) {
                    self.fail(format!("was called back {times} times"));
                }
            }
            Ok(1) => {}
            Err(error) if error.error == Error::Aborted && run.controller_fired_on(self.byte) => {
                self.was_aborted = true;
                self.times = Times { min: 0, max: 2 };
            }
            other => self.fail(format!("ended with {other:?}")),
        }
    }

    fn caught(&mut self, called: Result<Result<usize, MessageError>, Unwound>) {
        match called {
            Ok(result) => self.ended(result),
            Err(Unwound) => self.unwound(),
        }
    }

    /// Plans it, as far as that is done before. The controller plans it where the bus is free.
    pub(crate) fn plan(&mut self) {
        let Some(callback) = self.op.planned() else { return };
        self.rest = match caught(|| self.device.queued([self.byte]).expect("plans")) {
            Ok(queued) => Rest::Planned(Box::pin(match callback {
                Some(callback) => queued.with_callback(callback),
                None => queued,
            })),
            Err(Unwound) => Rest::Nothing,
        };
    }

    /// Gives it to the bus, if that can be done while this thread has the bus locked or it has not.
    pub(crate) fn give(&mut self, locked: bool) {
        if locked && self.op.needs_the_bus() {
            return;
        }
        let (device, byte) = (self.device, self.byte);
        let bytes = [byte];
        match self.op {
            Op::Prepared => {
                let called = caught(|| device.prepare([byte])?.run().map(|rx| rx.len()));
                self.caught(called);
            }
            Op::Sync => {
                let called = caught(|| device.sync(&mut [Transfer::write(&bytes)]));
                self.caught(called);
            }
            Op::Try => match caught(|| device.try_sync(&mut [Transfer::write(&bytes)])) {
                Ok(Err(busy)) if busy.error == Error::Busy => self.rest = Rest::Nothing,
                called => self.caught(called),
            },
            Op::Lock => {
                let called = caught(|| {
                    let mut lock = device.bus().lock();
                    lock.sync(&device, &mut [Transfer::write(&bytes)])?;
                    lock.sync(&device, &mut [Transfer::write(&[second_byte(byte)])])
                });
                self.caught(called);
            }
            Op::Async | Op::Wait => self.submit(true),
            Op::Enqueue | Op::Cancel => self.submit(false),
            // On a free bus it is left for the next to call back.
            Op::Callback | Op::Again => self.submit(locked),
            Op::Transact => self.begin(Box::pin(transact(device, byte))),
            Op::QueuedFuture => {
                if let Some(queued) = self.take_planned() {
                    self.begin(Box::pin(run_queued(queued)));
                }
            }
        }
        match self.op {
            Op::Cancel => self.cancel(),
            Op::Wait if !locked => self.fetch(),
            _ => {}
        }
    }

    /// What was planned, unless that panicked.
    fn take_planned(&mut self) -> Option<Message<'b>> {
        match mem::replace(&mut self.rest, Rest::Nothing) {
            Rest::Planned(queued) => Some(queued),
            _ => None,
        }
    }

    fn submit(&mut self, submit: bool) {
        let Some(mut queued) = self.take_planned() else { return };
        // A hook's panic does not take it back.
        let called =
            caught(|| if submit { queued.as_mut().submit() } else { queued.as_mut().enqueue() });
        self.rest = Rest::Submitted(queued);
        if let Ok(Err(error)) = called {
            self.fail(format!("submitted with {error:?}"));
        }
    }

    fn cancel(&mut self) {
        let Rest::Submitted(queued) = &mut self.rest else { return };
        match caught(|| queued.as_mut().cancel()) {
            Ok(true) => self.rest = Rest::Nothing,
            Ok(false) => self.result_is_there(),
            Err(Unwound) => {
                // It is its owner's again: whether it ran its result says.
                let result = queued.as_mut().result();
                self.unwound();
                if let Some(result) = result {
                    self.ended(result);
                }
            }
        }
    }

    /// It was settled: its result is there, without waiting.
    pub(crate) fn result_is_there(&mut self) {
        let Rest::Submitted(queued) = &mut self.rest else { return };
        match queued.as_mut().result() {
            Some(result) => self.ended(result),
            None => self.fail("was not served in time".into()),
        }
    }

    /// Waits for what was submitted. A hook may panic on the way, several may; the message remains.
    pub(crate) fn fetch(&mut self) {
        for _ in 0..100 {
            let Rest::Submitted(queued) = &mut self.rest else { return };
            match caught(|| queued.as_mut().wait()) {
                Ok(Some(result)) => self.ended(result),
                Ok(None) => return self.fail("was lost".into()),
                Err(Unwound) => {}
            }
        }
        self.fail("never ends to panic".into());
    }

    fn begin(&mut self, future: Future<'b>) {
        self.rest = Rest::Pending(future);
        self.signal.0.store(true, Ordering::SeqCst);
        self.poll_if_woken();
    }

    /// Polls a future that was woken. Whether there was one.
    pub(crate) fn poll_if_woken(&mut self) -> bool {
        let Rest::Pending(future) = &mut self.rest else { return false };
        if !self.signal.0.swap(false, Ordering::SeqCst) {
            return false;
        }
        let waker = self.signal.clone().into();
        match caught(|| future.as_mut().poll(&mut Context::from_waker(&waker))) {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(result)) => self.ended(result),
            // As an executor has it, the task is no more.
            Err(Unwound) => self.unwound(),
        }
        true
    }

    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.rest, Rest::Pending(_))
    }

    pub(crate) fn is_submitted(&self) -> bool {
        matches!(self.rest, Rest::Submitted(_))
    }
}
