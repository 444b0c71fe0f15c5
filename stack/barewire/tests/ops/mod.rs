//! The operations that tests of the bus mix: one enum, one way to perform each, one judge.
//!
//! # How it works
//! A [`Client`] performs [operations](Operation) on one bus, from one thread or task. Each operation
//! is planned, given to the bus, polled if it is a future, and ends. The model checkers' threads give
//! an operation when the one before it has ended ([`Client::run`]). The tests of panics give several,
//! and poll them afterwards. [`judge`] compares what the clients expect with the bytes on the wire.
//! Each message is one byte, and no two messages of a run have the same.
//!
//! A hook of a test may panic with [`InjectedPanic`] inside any call into the bus. The operation
//! [catches](caught) it, and notes whether its result is lost.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::{fmt, mem};

use barewire::bus::queued::{Callback, Exchange};
use barewire::bus::{Device, Queued, Statistics};
use barewire::controller::Controller;
use barewire::spi::{Error, MessageError, Transfer};

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
    /// One message put in the queue, and taken back at once if it has not run.
    Cancel,
    /// One message over borrowed bytes, as a future.
    Transact,
    /// One submitted message, as a future.
    Await,
    /// One message with a callback.
    Callback,
    /// One message that runs twice, as its callback says.
    Again,
    /// One message that must not wait.
    Try,
    /// Two futures over borrowed bytes in one task, the second dropped while the first may have been
    /// offered its turn.
    Race,
    /// One submitted message, as a future that is polled once, and dropped with its waker: the last of the
    /// waker to be dropped locks the bus.
    Abandon,
    /// A look at what was counted.
    Statistics,
}

impl Op {
    /// Whether its message is planned before it is given.
    fn is_planned(self) -> bool {
        use Op::{Abandon, Again, Async, Await, Callback, Cancel, Enqueue, Wait};
        matches!(self, Async | Enqueue | Wait | Cancel | Await | Callback | Again | Abandon)
    }

    /// Whether it cannot begin while its thread has the bus locked.
    fn needs_the_bus(self) -> bool {
        matches!(self, Op::Prepared | Op::Sync | Op::Lock | Op::Try | Op::Abandon)
    }
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

/// What a hook of a test panics with.
#[derive(Debug)]
pub(crate) struct InjectedPanic;

/// Runs `f` and catches what a hook raises. Another panic goes on.
pub(crate) fn caught<R>(f: impl FnOnce() -> R) -> Result<R, InjectedPanic> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| match payload.downcast() {
        Ok(injected) => *injected,
        Err(payload) => resume_unwind(payload),
    })
}

type Message<'b, C> = Pin<Box<Queued<'b, C, Exchange<1>>>>;

/// What a future sent, in order, and its result.
type Ran = (Vec<u8>, Result<usize, MessageError>);

type Running<'b> = Pin<Box<dyn Future<Output = Ran> + Send + 'b>>;

/// How far an operation is.
enum State<'b, C: Controller + ?Sized> {
    /// It is not given yet.
    New,
    /// It is not given yet; its message is planned.
    Planned(Message<'b, C>),
    /// The message is submitted: its result is to be fetched.
    Submitted(Message<'b, C>),
    /// The future is to be polled when it is woken.
    Pending(Running<'b>),
    /// Nothing ran: it was refused or taken back, or its planning panicked.
    NotRun,
    /// A hook panicked inside the call that runs the message: the result is lost, and it may have
    /// run or not.
    Lost,
    Ended(Result<usize, MessageError>),
}

/// An operation on its way.
pub(crate) struct Operation<'b, C: Controller + ?Sized> {
    pub(crate) op: Op,
    pub(crate) byte: u8,
    /// What it sends, in order; as far as that is known.
    bytes: Vec<u8>,
    device: Device<'b, C>,
    state: State<'b, C>,
    /// The waker of [`Op::Abandon`].
    pub(crate) waker: Option<Waker>,
    /// What went wrong first.
    wrong: Option<String>,
    /// Whether it runs before all messages that its client gives later.
    keeps_its_place: bool,
}

async fn transact<C: Controller + ?Sized>(device: Device<'_, C>, byte: u8) -> Ran {
    (vec![byte], device.transact(&mut [Transfer::write(&[byte])]).await)
}

async fn run_queued<C: Controller + ?Sized>(mut queued: Message<'_, C>, byte: u8) -> Ran {
    (vec![byte], queued.as_mut().run().await)
}

/// Looks once after each of two futures, drops the second, and waits for the first. A future runs
/// inside a poll, so a second one that ended while the first was pending ran before it.
async fn race<C: Controller + ?Sized>(device: Device<'_, C>, [one, two]: [u8; 2]) -> Ran {
    let bytes = [[one], [two]];
    let [mut first, mut second] = bytes.each_ref().map(|bytes| [Transfer::write(bytes)]);
    let mut first = pin!(device.transact(&mut first));
    let first_polled = poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx))).await;
    let second_polled = {
        let mut second = pin!(device.transact(&mut second));
        poll_fn(|cx| Poll::Ready(second.as_mut().poll(cx))).await
    };
    let sent = match (first_polled, second_polled) {
        (_, Poll::Pending) => vec![one],
        (Poll::Ready(_), Poll::Ready(_)) => vec![one, two],
        (Poll::Pending, Poll::Ready(_)) => vec![two, one],
    };
    let result = match first_polled {
        Poll::Ready(result) => result,
        Poll::Pending => first.await,
    };
    let failed = if let Poll::Ready(Err(error)) = second_polled { Some(error) } else { None };
    (sent, failed.map_or(result, Err))
}

impl<'b, C: Controller + Send + ?Sized> Operation<'b, C> {
    fn new(op: Op, byte: u8, device: Device<'b, C>) -> Self {
        let has_two = matches!(op, Op::Lock | Op::Race);
        let bytes = if has_two { vec![byte, byte | 0x80] } else { vec![byte] };
        Self {
            op,
            byte,
            bytes,
            device,
            state: State::New,
            waker: None,
            wrong: None,
            keeps_its_place: true,
        }
    }

    pub(crate) fn is_given(&self) -> bool {
        !matches!(self.state, State::New | State::Planned(_))
    }

    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.state, State::Pending(_))
    }

    /// Its result, if it has one.
    pub(crate) fn result(&self) -> Option<Result<usize, MessageError>> {
        if let State::Ended(result) = self.state { Some(result) } else { None }
    }

    /// Notes what is wrong with it.
    pub(crate) fn fail(&mut self, what: impl fmt::Display) {
        self.wrong.get_or_insert(format!("{:?} ({:#04x}) {what}", self.op, self.byte));
    }

    fn end(&mut self, result: Result<usize, MessageError>) {
        let is_refused = self.op == Op::Try && result.is_err_and(|it| it.error == Error::Busy);
        self.state = if is_refused { State::NotRun } else { State::Ended(result) };
    }

    /// Runs it in one call.
    fn call(&mut self, f: impl FnOnce() -> Result<usize, MessageError>) {
        match caught(f) {
            Ok(result) => self.end(result),
            Err(InjectedPanic) => self.state = State::Lost,
        }
    }

    /// Plans it, if its path plans before it gives. The controller plans it where the bus is free.
    fn plan(&mut self, callback: Option<Callback>) {
        if !self.op.is_planned() {
            return;
        }
        self.state = match caught(|| self.device.queued([self.byte]).expect("plans")) {
            Ok(queued) => State::Planned(Box::pin(match callback {
                Some(callback) => queued.with_callback(callback),
                None => queued,
            })),
            Err(InjectedPanic) => State::NotRun,
        };
    }

    /// Gives it to the bus, unless its thread has the bus locked and it cannot begin then.
    fn give(&mut self, locked: bool) {
        if locked && self.op.needs_the_bus() {
            return;
        }
        let (device, byte) = (self.device, self.byte);
        match self.op {
            Op::Prepared => self.call(|| device.prepare([byte])?.run().map(|rx| rx.len())),
            Op::Sync => self.call(|| device.sync(&mut [Transfer::write(&[byte])])),
            Op::Try => self.call(|| device.try_sync(&mut [Transfer::write(&[byte])])),
            Op::Lock => {
                let second = self.bytes[1];
                self.call(|| {
                    let mut lock = device.bus().lock();
                    lock.sync(&device, &mut [Transfer::write(&[byte])])?;
                    lock.sync(&device, &mut [Transfer::write(&[second])])
                });
            }
            Op::Statistics => {
                assert_one_moment(&device.bus().statistics());
                self.state = State::NotRun;
            }
            Op::Async => self.submit(true),
            Op::Enqueue => self.submit(false),
            // On a free bus the callback is left to the next operation.
            Op::Callback | Op::Again => self.submit(locked),
            Op::Wait => {
                self.submit(true);
                if !locked {
                    self.fetch();
                }
            }
            Op::Cancel => {
                self.submit(false);
                self.cancel();
            }
            Op::Abandon => self.abandon(),
            Op::Transact => self.state = State::Pending(Box::pin(transact(device, byte))),
            Op::Race => {
                self.state = State::Pending(Box::pin(race(device, [byte, self.bytes[1]])));
            }
            Op::Await => {
                if let Some(queued) = self.take_planned() {
                    self.state = State::Pending(Box::pin(run_queued(queued, byte)));
                }
            }
        }
    }

    /// The planned message, unless planning panicked.
    fn take_planned(&mut self) -> Option<Message<'b, C>> {
        match mem::replace(&mut self.state, State::NotRun) {
            State::Planned(queued) => Some(queued),
            _ => None,
        }
    }

    fn submit(&mut self, submit: bool) {
        let Some(mut queued) = self.take_planned() else { return };
        // A hook's panic does not take it back.
        let called =
            caught(|| if submit { queued.as_mut().submit() } else { queued.as_mut().enqueue() });
        self.state = State::Submitted(queued);
        if let Ok(Err(error)) = called {
            self.fail(format_args!("submitted with {error:?}"));
        }
    }

    fn abandon(&mut self) {
        let (Some(queued), Some(waker)) = (self.take_planned(), self.waker.take()) else { return };
        let mut future = Box::pin(run_queued(queued, self.byte));
        let polled = caught(|| future.as_mut().poll(&mut Context::from_waker(&waker)));
        // A future that is dropped before its end may have run or not.
        self.state = match polled {
            Ok(Poll::Ready((_, result))) => State::Ended(result),
            _ => State::Lost,
        };
        let _ = caught(|| drop(future));
        let _ = caught(|| drop(waker));
    }

    fn cancel(&mut self) {
        let State::Submitted(queued) = &mut self.state else { return };
        match caught(|| queued.as_mut().cancel()) {
            Ok(true) => self.state = State::NotRun,
            Ok(false) => self.take_result(),
            Err(InjectedPanic) => {
                // It is its owner's again; its result says whether it ran.
                let result = queued.as_mut().result();
                self.state = result.map_or(State::Lost, State::Ended);
            }
        }
    }

    /// It was settled: its result is there, without waiting.
    pub(crate) fn take_result(&mut self) {
        let State::Submitted(queued) = &mut self.state else { return };
        match queued.as_mut().result() {
            Some(result) => self.end(result),
            None => self.fail("was not served in time"),
        }
    }

    /// Waits for the submitted messages. A hook may panic on the way, several may; the message
    /// remains.
    fn fetch(&mut self) {
        for _ in 0..100 {
            let State::Submitted(queued) = &mut self.state else { return };
            match caught(|| queued.as_mut().wait()) {
                Ok(Some(result)) => self.end(result),
                Ok(None) => return self.fail("was lost"),
                Err(InjectedPanic) => {}
            }
        }
        self.fail("never ends to panic");
    }

    /// Polls it, if it is a future that has not ended. Pending until it has.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let State::Pending(future) = &mut self.state else { return Poll::Ready(()) };
        match caught(|| future.as_mut().poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready((bytes, result))) => {
                self.bytes = bytes;
                self.end(result);
            }
            // As an executor has it, the task is no more.
            Err(InjectedPanic) => self.state = State::Lost,
        }
        Poll::Ready(())
    }

    /// How often it came over the wire, as far as it knows; or how it failed.
    pub(crate) fn times(&self) -> Result<Times, String> {
        match &self.state {
            State::New | State::Planned(_) | State::NotRun => Ok(Times::NEVER),
            State::Lost => Ok(Times::MAYBE),
            State::Ended(Ok(1)) => Ok(Times::ONCE),
            State::Ended(other) => Err(format!("{:?} ended with {other:?}", self.op)),
            State::Submitted(_) | State::Pending(_) => Err(format!("{:?} has not ended", self.op)),
        }
    }
}

/// The bytes of an operation that are expected on the wire.
pub(crate) struct Record {
    op: Op,
    bytes: Vec<u8>,
    times: Times,
    keeps_its_place: bool,
}

/// Some operations of one thread or task, in order.
pub(crate) struct Client<'b, C: Controller + ?Sized> {
    pub(crate) ops: Vec<Operation<'b, C>>,
    /// Indices of `ops`, as they were given.
    order: Vec<usize>,
}

impl<'b, C: Controller + Send + ?Sized> Client<'b, C> {
    /// `first` and the bytes above it are its messages'. The even ones go to the first device.
    pub(crate) fn new(first: u8, ops: &[Op], devices: [Device<'b, C>; 2]) -> Self {
        let ops = (first..).zip(ops);
        let ops = ops.map(|(byte, &op)| Operation::new(op, byte, devices[usize::from(byte % 2)]));
        Self { ops: ops.collect(), order: Vec::new() }
    }

    /// Plans the operations whose messages are planned before they are given to the bus, with these
    /// callbacks.
    pub(crate) fn plan(&mut self, callback: impl Fn(Op) -> Option<Callback>) {
        self.ops.iter_mut().for_each(|op| op.plan(callback(op.op)));
    }

    /// Gives an operation to the bus, if that can be done while this thread has the bus locked or it
    /// has not.
    pub(crate) fn give(&mut self, index: usize, locked: bool) {
        // A borrowed message runs when its future is polled in its turn: later ones may run before.
        for op in self.ops.iter_mut().filter(|op| op.op == Op::Transact && op.is_pending()) {
            op.keeps_its_place = false;
        }
        self.ops[index].give(locked);
        if self.ops[index].is_given() {
            self.order.push(index);
        }
    }

    /// Gives each when the one before has ended, or needs nothing but to be fetched.
    pub(crate) async fn run(mut self) -> Self {
        for index in 0..self.ops.len() {
            self.give(index, false);
            poll_fn(|cx| self.ops[index].poll(cx)).await;
        }
        self
    }

    /// Waits for all that was submitted.
    pub(crate) fn fetch(&mut self) {
        self.ops.iter_mut().for_each(Operation::fetch);
    }

    /// The bytes expected on the wire, `times` each, or an error that is known already.
    pub(crate) fn records(
        &self,
        times: impl Fn(&Operation<'b, C>) -> Result<Times, String>,
    ) -> Result<Vec<Record>, String> {
        if let Some(wrong) = self.ops.iter().find_map(|op| op.wrong.clone()) {
            return Err(wrong);
        }
        let record = |&index: &usize| {
            let operation = &self.ops[index];
            let Operation { op, ref bytes, keeps_its_place, .. } = *operation;
            Ok(Record { op, bytes: bytes.clone(), times: times(operation)?, keeps_its_place })
        };
        self.order.iter().map(record).collect()
    }
}

/// Whether each client's bytes were sent as often as it expects and in its order, bytes under one
/// lock were sent together, and no others were sent. The error says which rule is broken.
pub(crate) fn judge(clients: &[Vec<Record>], sent: &[u8]) -> Result<(), String> {
    for Record { op, bytes, times, .. } in clients.iter().flatten() {
        for byte in bytes {
            let count = sent.iter().filter(|sent| *sent == byte).count();
            if count < times.min || count > times.max {
                return Err(format!("{op:?} came {count} times, not {times:?}: {sent:02x?}"));
            }
        }
        if *op == Op::Lock && times.min == 1 && !sent.windows(2).any(|two| two == bytes) {
            return Err(format!("a lock was broken into: {sent:02x?}"));
        }
    }
    clients.iter().try_for_each(|client| judge_order(client, sent))?;
    let is_known = |byte: &u8| clients.iter().flatten().any(|record| record.bytes.contains(byte));
    match sent.iter().find(|byte| !is_known(byte)) {
        Some(byte) => Err(format!("{byte:02x} was sent and never given: {sent:02x?}")),
        None => Ok(()),
    }
}

fn judge_order(client: &[Record], sent: &[u8]) -> Result<(), String> {
    let place = |byte: &u8| sent.iter().position(|sent| sent == byte);
    // Whether `after` was sent before `before`.
    let is_swapped = |before: &u8, after: &u8| {
        place(before).zip(place(after)).is_some_and(|(before, after)| before > after)
    };
    for (nth, earlier) in client.iter().enumerate() {
        if earlier.bytes.windows(2).any(|two| is_swapped(&two[0], &two[1])) {
            return Err(format!("{:?} is out of its own order: {sent:02x?}", earlier.op));
        }
        for later in client[nth + 1..].iter().filter(|_| earlier.keeps_its_place) {
            let mut pairs = earlier
                .bytes
                .iter()
                .flat_map(|one| later.bytes.iter().map(move |other| (one, other)));
            if pairs.any(|(before, after)| is_swapped(before, after)) {
                let (one, other) = (earlier.op, later.op);
                return Err(format!("{other:?} overtook {one:?}: {sent:02x?}"));
            }
        }
    }
    Ok(())
}

/// Every message is one transfer that sends one byte, but for those that were taken down.
pub(crate) fn assert_one_moment(counted: &Statistics) {
    let ended = counted.messages - counted.errors;
    assert_eq!([counted.transfers, counted.bytes_tx], [ended; 2], "of several moments");
}
