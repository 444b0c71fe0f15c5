//! A case: a mix of paths on one kind of bus, with a fuse, and what must hold afterwards.

use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Context;
use std::thread;
use std::time::{Duration, Instant};

use barewire::bus::{Bus, Platform, Pump};
use barewire::spi::Error;

use crate::fuse::{self, Fuse, Log, Run};
use crate::hooks::{Any, Signal, callback_of, hooked_bus};
use crate::ops::{self, Client, Op, Operation, Times, caught};
use crate::platform::name_of;
use crate::wire::{ASKING, Hook, PLAIN};

/// How the operations of a mix meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// One after the other, on a free bus.
    InTurn,
    /// Operations are given while their thread has the bus locked, if they allow that.
    BehindALock,
    /// As `BehindALock`, but another thread gives the first message.
    AcrossThreads,
}

/// Some paths, in order.
#[derive(Clone, Copy)]
pub(crate) struct Mix {
    ops: [Op; Self::OPS_MAX],
    len: usize,
}

impl Mix {
    const OPS_MAX: usize = 3;

    /// All mixes of `len` of these paths.
    pub(crate) fn all(paths: &[Op], len: usize) -> impl Iterator<Item = Self> {
        (0..paths.len().pow(len as u32)).map(move |mut number| {
            let mut ops = [Op::Sync; Self::OPS_MAX];
            for op in &mut ops[..len] {
                *op = paths[number % paths.len()];
                number /= paths.len();
            }
            Self { ops, len }
        })
    }

    fn ops(&self) -> &[Op] {
        &self.ops[..self.len]
    }
}

/// What is run. Its `Display` is the name of a failure, and selects the case.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) platform: &'static dyn Platform,
    pub(crate) pump: Pump,
    pub(crate) meeting: Meeting,
    pub(crate) mix: Mix,
    pub(crate) fuse: Option<Fuse>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let platform = name_of(self.platform);
        write!(f, "{platform} {:?} {:?} ", self.pump, self.meeting)?;
        for (index, op) in self.mix.ops().iter().enumerate() {
            write!(f, "{}{op:?}", if index == 0 { "" } else { "+" })?;
        }
        match self.fuse {
            Some(Fuse { hook, nth, ever_after: false }) => write!(f, " {hook:?}#{nth}"),
            Some(Fuse { hook, nth, ever_after: true }) => write!(f, " {hook:?}#{nth}.."),
            None => write!(f, " none"),
        }
    }
}

/// What the bus has to serve afterwards. A message of each path, after pairs. After a triple, only
/// two: one driven by its caller and one queued. A panic leaves the same behind on the bus then,
/// and all eight would take most of the time. Miri is slow.
fn served_afterwards(mix: Mix) -> &'static [Op] {
    use Op::{Async, Await, Callback, Lock, Prepared, Sync, Transact, Wait};
    match mix.len {
        _ if cfg!(miri) => &[Sync],
        3.. => &[Sync, Callback],
        _ => &[Prepared, Sync, Async, Wait, Lock, Transact, Await, Callback],
    }
}

/// The first byte of those.
const AFTER: u8 = 0x20;

/// How long something that threads do together may take.
const PATIENCE: Duration = Duration::from_secs(if cfg!(miri) { 300 } else { 20 });

/// Waits until `condition` holds.
fn comes_true(mut condition: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    while !condition() {
        if since.elapsed() > PATIENCE {
            return false;
        }
        thread::yield_now();
    }
    true
}

/// One thread's operations, and the driver that runs them.
struct Executor<'b> {
    bus: &'b Bus<Any>,
    run: Arc<Run>,
    client: Client<'b, Any>,
    /// Whether each operation is to be polled.
    signals: Vec<Arc<Signal>>,
}

impl<'b> Executor<'b> {
    fn new(bus: &'b Bus<Any>, run: &Arc<Run>, client: Client<'b, Any>) -> Self {
        let signals = client.ops.iter().map(|_| Arc::default()).collect();
        Self { bus, run: run.clone(), client, signals }
    }

    fn plan(&mut self) {
        self.client.plan(callback_of);
    }

    fn give(&mut self, index: usize, locked: bool) {
        self.client.give(index, locked);
        self.signals[index].set();
        self.poll_if_woken(index);
    }

    /// Polls a future that was woken. Whether there was one.
    fn poll_if_woken(&mut self, index: usize) -> bool {
        let (op, signal) = (&mut self.client.ops[index], &self.signals[index]);
        let polls = op.is_pending() && signal.take();
        if polls {
            let _ = op.poll(&mut Context::from_waker(&signal.clone().into()));
        }
        polls
    }

    /// Gives all operations that are not given yet and can be.
    fn give_all(&mut self, locked: bool) {
        for index in 0..self.signals.len() {
            if !self.client.ops[index].is_given() {
                self.give(index, locked);
                if self.run.case.meeting == Meeting::InTurn {
                    self.drive();
                }
            }
        }
    }

    /// Delivers all pending interrupts. Whether there were any.
    fn interrupted(&self) -> bool {
        // An interrupt that panicked counts as one.
        self.run.case.pump == Pump::Interrupt && caught(|| self.bus.interrupt()).unwrap_or(true)
    }

    /// Whether this thread is the only one.
    fn is_alone(&self) -> bool {
        let Case { pump, meeting, .. } = self.run.case;
        pump != Pump::Worker && meeting != Meeting::AcrossThreads
    }

    /// Goes on with the futures until they have ended.
    fn drive(&mut self) {
        let mut since = Instant::now();
        while self.client.ops.iter().any(Operation::is_pending) {
            let mut polled = false;
            for index in 0..self.signals.len() {
                polled |= self.poll_if_woken(index);
            }
            if polled || self.interrupted() {
                since = Instant::now();
            } else if self.is_alone() || since.elapsed() > PATIENCE {
                let mut pending = self.client.ops.iter_mut().filter(|op| op.is_pending());
                return pending.next().expect("one is").fail("is never woken");
            } else {
                thread::yield_now();
            }
        }
    }

    /// Locks the bus, gives all operations that can be given under a lock, and unlocks it when
    /// `then` has returned.
    fn give_behind_a_lock(&mut self, then: impl FnOnce()) {
        self.plan();
        let lock = loop {
            // A hook may panic while others are served first.
            if let Ok(lock) = caught(|| self.bus.lock()) {
                break lock;
            }
        };
        then();
        self.give_all(true);
        let _ = caught(|| drop(lock));
        if self.is_alone() && self.run.case.pump == Pump::Caller {
            // Before the panic arrived here.
            self.client.ops.iter_mut().for_each(Operation::take_result);
        }
    }

    /// Gives the rest, while futures that were woken are not polled, and then ends all.
    fn finish(&mut self) {
        self.give_all(false);
        self.drive();
        self.client.fetch();
        while self.interrupted() {}
    }
}

/// How often an operation must be on the wire after these panics, or how it failed.
fn times(log: &Log, operation: &Operation<'_, Any>) -> Result<Times, String> {
    let (op, byte) = (operation.op, operation.byte);
    match operation.result() {
        // It is called back each time it ran.
        Some(Ok(1)) if matches!(op, Op::Callback | Op::Again) => {
            let times = log.times_called_back(byte);
            let expected = if op == Op::Again { 2 } else { 1 };
            if times != expected && !log.fired.contains(&(Hook::Callback, byte)) {
                return Err(format!("{op:?} was called back {times} times"));
            }
            Ok(Times { min: times, max: times })
        }
        Some(Err(error)) if error.error == Error::Aborted && log.controller_fired_on(byte) => {
            Ok(Times { min: 0, max: 2 })
        }
        _ => operation.times(),
    }
}

/// Serves until it is stopped; if a hook's panic ends that, it serves again.
fn work(bus: &Bus<Any>, run: &Arc<Run>, stop: &AtomicBool) {
    run.enter(false);
    while caught(|| bus.serve(stop)).is_err() {}
}

/// Runs a case. Returns the outcome of its fuse, or the broken promise.
pub(crate) fn run_case(case: Case) -> Result<Arc<Run>, String> {
    let run = Run::new(case);
    let said = |payload: Box<dyn std::any::Any + Send>| {
        Err(format!("panicked: {}", fuse::message(&*payload)))
    };
    run.enter(false);
    let bus = hooked_bus(case.platform, case.pump);
    let stop = AtomicBool::new(false);
    let judged = thread::scope(|scope| {
        if case.pump == Pump::Worker {
            scope.spawn(|| work(&bus, &run, &stop));
        }
        let ran = catch_unwind(AssertUnwindSafe(|| run_and_judge(&run, &bus)));
        run.disarm();
        stop.store(true, Ordering::SeqCst);
        bus.ring();
        ran.unwrap_or_else(said)
    });
    judged.map(|()| run)
}

fn run_and_judge(run: &Arc<Run>, bus: &Bus<Any>) -> Result<(), String> {
    let case = run.case;
    // The plain device's are the even bytes, so that each path comes with both.
    run.disarm();
    let devices = [PLAIN, ASKING].map(|settings| bus.device(&settings).expect("opens"));
    run.arm();
    let executor = |first: u8, ops: &[Op]| {
        // After a failure a message may still be queued. It is leaked then.
        ManuallyDrop::new(Executor::new(bus, run, Client::new(first, ops, devices)))
    };
    let mut executors = match case.meeting {
        Meeting::InTurn | Meeting::BehindALock => {
            let mut own = executor(1, case.mix.ops());
            if case.meeting == Meeting::InTurn {
                own.plan();
            } else {
                own.give_behind_a_lock(|| {});
            }
            own.finish();
            vec![own]
        }
        Meeting::AcrossThreads => {
            let (their_ops, own_ops) = case.mix.ops().split_at(1);
            let (mut own, mut theirs) = (executor(2, own_ops), executor(1, their_ops));
            theirs.plan();
            let is_given = AtomicBool::new(false);
            thread::scope(|scope| {
                own.give_behind_a_lock(|| {
                    let second = scope.spawn(|| {
                        run.enter(true);
                        theirs.give(0, false);
                        is_given.store(true, Ordering::SeqCst);
                        theirs.finish();
                    });
                    let met = || {
                        is_given.load(Ordering::SeqCst)
                            || run.second_waits.load(Ordering::SeqCst)
                            || second.is_finished()
                    };
                    assert!(comes_true(met), "the second thread neither waits nor ends");
                });
                own.finish();
            });
            vec![own, theirs]
        }
    };
    run.disarm();
    judge(run, bus, &executors)?;
    executors.drain(..).for_each(|ended| drop(ManuallyDrop::into_inner(ended)));
    run.log().sent.clear();
    let mut after = executor(AFTER, served_afterwards(case.mix));
    after.plan();
    after.finish();
    judge(run, bus, slice::from_ref(&after)).map_err(|wrong| format!("afterwards {wrong}"))?;
    drop(ManuallyDrop::into_inner(after));
    Ok(())
}

/// The bus is as it should be when all has ended.
fn judge(
    run: &Run,
    bus: &Bus<Any>,
    executors: &[ManuallyDrop<Executor<'_>>],
) -> Result<(), String> {
    let log = run.log();
    let clients = || executors.iter().map(|executor| &executor.client);
    let records: Result<Vec<_>, _> =
        clients().map(|client| client.records(|operation| times(&log, operation))).collect();
    ops::judge(&records?, &log.sent)?;
    let has_failed = |it: &&Operation<'_, Any>| matches!(it.result(), Some(Err(_)));
    if clients().flat_map(|client| &client.ops).filter(has_failed).count() > log.fired.len() {
        return Err("more messages were aborted than panicked".into());
    }
    if log.selected {
        return Err("CS is active".into());
    }
    if log.interleaved {
        return Err(format!("one message inside another: {:02x?}", log.sent));
    }
    // An idle bus may still call hooks.
    drop(log);
    let idle = || bus.try_lock().is_some();
    if !(idle() || run.case.pump == Pump::Worker && comes_true(idle)) {
        return Err("the bus is not idle".into());
    }
    Ok(())
}
