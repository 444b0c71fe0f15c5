//! What the model checkers run: threads that mix the paths, on a wire that is watched.
#![allow(
    unsafe_code,
    reason = "checkers' cells hand out pointers, and a bus is leaked and got back"
)]

#[cfg(loom)]
use loom::cell::UnsafeCell;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
#[cfg(loom)]
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use barewire::bus::queued::Exchange;
use barewire::bus::{Bus, Device, Platform, Prepared, Pump, Queued};
use barewire::controller::null::Null;
use barewire::controller::{
    Controller, Limits, Plan, Preset, Stopped, Unfinished, Wire, run_message,
};
use barewire::spi::{Data, Effective, Error, MessageError, Settings, Transfer};

/// A cell whose accesses the checker watches, where it can.
#[cfg(not(loom))]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// A wire whose bytes are watched: two accesses that are not ordered fail the run, and so does a
/// message that finds another inside.
pub(crate) struct Watched {
    sent: UnsafeCell<Vec<u8>>,
    selected: UnsafeCell<bool>,
    /// How many interrupts the message on the wire still needs.
    #[cfg(shuttle)]
    interrupts: usize,
}

impl Watched {
    fn new() -> Self {
        Self {
            sent: UnsafeCell::new(Vec::new()),
            selected: UnsafeCell::new(false),
            #[cfg(shuttle)]
            interrupts: 0,
        }
    }

    fn send(&self, bytes: &[u8]) {
        // SAFETY: whether this access is alone is what the checker checks here.
        self.sent.with_mut(|sent| unsafe { &mut *sent }.extend_from_slice(bytes));
    }

    fn set_selected(&self, to: bool) {
        // SAFETY: whether this access is alone is what the checker checks here.
        let was = self.selected.with_mut(|selected| unsafe { core::ptr::replace(selected, to) });
        assert_ne!(was, to, "one message inside another");
    }

    pub(crate) fn into_sent(self) -> Vec<u8> {
        // SAFETY: it is ours alone.
        self.sent.with_mut(|sent| unsafe { core::mem::take(&mut *sent) })
    }
}

impl Wire for Watched {
    fn select(&mut self, _: &Preset) {
        self.set_selected(true);
    }

    fn deselect(&mut self, _: &Preset) {
        self.set_selected(false);
    }

    fn exchange(&mut self, _: &Preset, _: &Plan, data: &mut Data<'_>) -> Result<(), Stopped> {
        self.send(data.tx().unwrap_or_default());
        #[cfg(shuttle)]
        crate::strict::pause();
        Ok(())
    }

    fn recover(&mut self) {}

    fn wait_ticks(&mut self, _: u32) {}
}

impl Controller for Watched {
    fn limits(&self) -> Limits {
        Null::new().limits()
    }

    fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
        Null::new().configure(settings)
    }

    fn plan(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        Null::new().plan(preset, message)
    }

    fn run(&mut self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<usize, Unfinished> {
        run_message(self, preset, message)
    }

    /// A byte says how many interrupts its message needs: up to two.
    #[cfg(shuttle)]
    fn start(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        let bytes = message[0].data().tx().unwrap_or_default();
        self.interrupts = usize::from(bytes[0]) % 3;
        if self.interrupts == 0 {
            return Poll::Ready(self.run(preset, message));
        }
        self.set_selected(true);
        crate::strict::begin_transfer();
        shuttle::thread::yield_now();
        Poll::Pending
    }

    #[cfg(shuttle)]
    fn resume(
        &mut self,
        _: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        crate::strict::disarm();
        // Between two accesses to registers.
        shuttle::thread::yield_now();
        if !crate::strict::transfer_is_done() {
            return Poll::Pending;
        }
        self.interrupts -= 1;
        if self.interrupts > 0 {
            crate::strict::begin_transfer();
            shuttle::thread::yield_now();
            return Poll::Pending;
        }
        let bytes = message[0].data().tx().unwrap_or_default();
        self.send(bytes);
        shuttle::thread::yield_now();
        self.set_selected(false);
        Poll::Ready(Ok(bytes.len()))
    }

    #[cfg(shuttle)]
    fn arm(&mut self) {
        shuttle::thread::yield_now();
        crate::strict::arm();
    }

    fn reclaim(&mut self) {}
}

/// A bus for threads that want it `'static`.
#[derive(Clone, Copy)]
pub(crate) struct Leaked(*mut Bus<Watched>);

// SAFETY: a reference to a bus may go to another thread.
unsafe impl Send for Leaked {}

impl Leaked {
    pub(crate) fn get(self) -> &'static Bus<Watched> {
        // SAFETY: it is leaked until `take`, which comes after the threads have ended.
        unsafe { &*self.0 }
    }

    /// What was driven. The threads have ended.
    pub(crate) fn take(self) -> Watched {
        // Acquiring the lock orders all that was sent before this.
        drop(self.get().lock());
        // SAFETY: the pointer was leaked from a box, and no reference to it is left.
        unsafe { Box::from_raw(self.0) }.into_inner()
    }
}

pub(crate) fn model_bus(platform: &'static dyn Platform, pump: Pump) -> Leaked {
    let bus = Bus::with_platform(Watched::new(), platform).with_pump(pump);
    Leaked(Box::into_raw(Box::new(bus)))
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// One prepared access.
    Prepared,
    /// One sync message.
    Sync,
    /// One message submitted.
    Async,
    /// One message put in the queue and left there.
    Enqueue,
    /// One message submitted and waited for.
    Wait,
    /// The bus locked over two messages.
    Lock,
    /// One message put in the queue, and taken back at once if it has not run.
    Cancel,
    /// One message over borrowed bytes, as a future.
    Transact,
    /// Two such futures in one task, the second dropped while the first may have been offered its
    /// turn.
    Race,
    /// One message submitted, as a future.
    #[cfg(shuttle)]
    Run,
    /// One message that must not wait.
    Try,
    /// A look at what was counted.
    #[cfg(shuttle)]
    Statistics,
}

/// Which bytes a thread gave to the wire, in its order.
#[derive(Default)]
pub(crate) struct Outcome {
    sent: Vec<u8>,
    /// Pairs that must stand together.
    locked: Vec<[u8; 2]>,
    /// What was submitted, its results to be fetched when the threads have ended.
    submitted: Vec<Submitted>,
}

type Submitted = Pin<Box<Queued<'static, Watched, Exchange<1>>>>;

/// A thread's things, made before it begins: making them takes the bus, which is not what is
/// checked.
pub(crate) struct Worker {
    ops: Vec<Op>,
    number: u8,
    device: Device<'static, Watched>,
    prepared: Prepared<'static, Watched, 1>,
    messages: Vec<Submitted>,
}

impl Worker {
    pub(crate) fn new(bus: Leaked, number: u8, ops: Vec<Op>) -> Self {
        let device = bus.get().device(&Settings::new(0, 1_000_000)).expect("opens");
        let message = |_| Box::pin(device.queued([0]).expect("plans"));
        Self {
            number,
            device,
            prepared: device.prepare([0]).expect("plans"),
            messages: ops.iter().map(message).collect(),
            ops,
        }
    }

    /// Does it all as a thread.
    pub(crate) fn run(self) -> Outcome {
        block_on(self.run_as_task())
    }

    /// Runs the mix as a task: it awaits its futures, and blocks in everything else.
    pub(crate) async fn run_as_task(self) -> Outcome {
        let Self { ops, number, device, mut prepared, mut messages } = self;
        run_ops(&device, &mut prepared, &mut messages, number, &ops).await
    }
}

async fn run_ops(
    device: &Device<'static, Watched>,
    prepared: &mut Prepared<'static, Watched, 1>,
    messages: &mut Vec<Submitted>,
    number: u8,
    ops: &[Op],
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut submitted = Vec::new();
    let mut next = (0..).map(|n| number << 4 | n);
    let mut byte = || next.next().expect("some are left");
    let mut message = |one| {
        let mut message = messages.pop().expect("one an operation");
        *message.as_mut().tx_mut().expect("is free") = [one];
        message
    };
    for &op in ops {
        let one = byte();
        match op {
            Op::Prepared => {
                *prepared.tx_mut() = [one];
                prepared.run().expect("runs");
                outcome.sent.push(one);
            }
            Op::Sync => {
                device.sync(&mut [Transfer::write(&[one])]).expect("runs");
                outcome.sent.push(one);
            }
            Op::Try => match device.try_sync(&mut [Transfer::write(&[one])]) {
                Ok(_) => outcome.sent.push(one),
                Err(error) => assert_eq!(error.error, Error::Busy),
            },
            #[cfg(shuttle)]
            Op::Statistics => assert_one_moment(&device.bus().statistics()),
            Op::Lock => {
                let two = byte();
                let mut lock = device.bus().lock();
                lock.sync(device, &mut [Transfer::write(&[one])]).expect("runs");
                lock.sync(device, &mut [Transfer::write(&[two])]).expect("runs");
                drop(lock);
                outcome.sent.extend([one, two]);
                outcome.locked.push([one, two]);
            }
            Op::Async | Op::Enqueue => {
                let mut queued = message(one);
                match op {
                    Op::Async => queued.as_mut().submit(),
                    _ => queued.as_mut().enqueue(),
                }
                .expect("is free");
                submitted.push(queued);
                outcome.sent.push(one);
            }
            Op::Wait => {
                let mut queued = message(one);
                queued.as_mut().submit().expect("is free");
                assert_eq!(queued.as_mut().wait(), Some(Ok(1)));
                outcome.sent.push(one);
            }
            Op::Cancel => {
                let mut queued = message(one);
                queued.as_mut().enqueue().expect("is free");
                if !queued.as_mut().cancel() {
                    outcome.sent.push(one);
                }
            }
            #[cfg(shuttle)]
            Op::Run => {
                let mut queued = message(one);
                assert_eq!(queued.as_mut().run().await, Ok(1));
                outcome.sent.push(one);
            }
            Op::Transact => {
                let bytes = [one];
                let mut message = [Transfer::write(&bytes)];
                device.transact(&mut message).await.expect("runs");
                outcome.sent.push(one);
            }
            Op::Race => {
                let two = byte();
                let bytes = [[one], [two]];
                let [mut first, mut second] =
                    bytes.each_ref().map(|bytes| [Transfer::write(bytes)]);
                let raced = race(device.transact(&mut first), device.transact(&mut second));
                let ran: &[u8] = match raced.await {
                    Raced::FirstAlone => &[one],
                    Raced::InOrder => &[one, two],
                    Raced::SecondFirst => &[two, one],
                };
                outcome.sent.extend(ran);
            }
        }
    }
    outcome.submitted = submitted;
    outcome
}

/// Which of two futures ran. A future takes its place in its thread's order when it runs, and it
/// runs inside a poll.
enum Raced {
    FirstAlone,
    InOrder,
    SecondFirst,
}

/// Looks once after each, drops the second, and waits for the first.
async fn race<T>(first: impl Future<Output = T>, second: impl Future<Output = T>) -> Raced {
    let mut first = pin!(first);
    let first_ran = poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx).is_ready())).await;
    let second_ran = {
        let mut second = pin!(second);
        poll_fn(|cx| Poll::Ready(second.as_mut().poll(cx).is_ready())).await
    };
    if !first_ran {
        first.await;
    }
    match (first_ran, second_ran) {
        (_, false) => Raced::FirstAlone,
        (true, true) => Raced::InOrder,
        (false, true) => Raced::SecondFirst,
    }
}

/// A future that wakes itself gives others a chance before it is polled again. The checker forgets
/// an unpark over a yield, so wake-ups are remembered here.
#[cfg(loom)]
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(loom::thread::Thread, AtomicBool);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.1.store(true, Ordering::Relaxed);
            self.0.unpark();
        }
    }
    let unpark = std::sync::Arc::new(Unpark(loom::thread::current(), AtomicBool::new(false)));
    let waker = unpark.clone().into();
    let mut cx = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        if unpark.1.swap(false, Ordering::Relaxed) {
            loom::thread::yield_now();
        } else {
            loom::thread::park();
        }
    }
}

#[cfg(shuttle)]
use shuttle::future::block_on;

/// The results of what was submitted: all of it ran. The threads have ended.
pub(crate) fn assert_results(outcomes: &mut [Outcome]) {
    for mut queued in outcomes.iter_mut().flat_map(|outcome| outcome.submitted.drain(..)) {
        assert_eq!(queued.as_mut().wait(), Some(Ok(1)));
    }
}

/// Every message is one transfer that sends one byte.
#[cfg(shuttle)]
pub(crate) fn assert_one_moment(counted: &barewire::bus::Statistics) {
    assert_eq!([counted.transfers, counted.bytes_tx], [counted.messages; 2], "of several moments");
}

/// Each thread's bytes came once, in its own order, and what was locked together.
pub(crate) fn assert_promises(sent: &[u8], outcomes: &[Outcome]) {
    let mut total = 0;
    for (number, outcome) in (0_u8..).zip(outcomes) {
        let own: Vec<u8> = sent.iter().copied().filter(|byte| byte >> 4 == number).collect();
        assert_eq!(own, outcome.sent, "thread {number} out of its order in {sent:02x?}");
        for pair in &outcome.locked {
            assert!(sent.windows(2).any(|two| two == pair), "{pair:02x?} apart in {sent:02x?}");
        }
        total += own.len();
    }
    assert_eq!(sent.len(), total, "more than was given in {sent:02x?}");
}
