//! A case: a mix of paths on one kind of bus, with a fuse, and what must hold afterwards.

use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use barewire::bus::{Bus, Platform, Pump};

use crate::fuse::{self, Fuse, Run, caught};
use crate::ops::{Given, Op, second_byte};
use crate::threads::name_of;
use crate::wire::{ASKING, Any, PLAIN, hooked_bus};

/// How the operations of a mix meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// One after the other, on a free bus.
    InTurn,
    /// All are given while their thread has the bus locked, as far as that can be.
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

/// What is run. Its `Display` is what a failure is called, and what selects it.
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

/// What the bus has to serve afterwards. A message of each path, after pairs. After triples one that is
/// driven by its caller and one that is queued: what a panic leaves behind on the bus is the same then, and
/// the eight would take most of the time. Miri is slow.
fn served_afterwards(mix: Mix) -> &'static [Op] {
    if cfg!(miri) {
        &[Op::Sync]
    } else if mix.len > 2 {
        &[Op::Sync, Op::Callback]
    } else {
        &[
            Op::Prepared,
            Op::Sync,
            Op::Async,
            Op::Wait,
            Op::Lock,
            Op::Transact,
            Op::QueuedFuture,
            Op::Callback,
        ]
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

/// One thread's operations.
struct Hand<'b> {
    bus: &'b Bus<Any>,
    run: Arc<Run>,
    ops: Vec<Given<'b>>,
    /// Indices of `ops`, as they were given.
    order: Vec<usize>,
}

impl<'b> Hand<'b> {
    fn give(&mut self, index: usize, locked: bool) {
        self.ops[index].give(locked);
        if self.ops[index].is_given() {
            self.order.push(index);
        }
    }

    /// Gives what is not given yet, as far as it can be.
    fn give_all(&mut self, locked: bool) {
        for index in 0..self.ops.len() {
            if !self.ops[index].is_given() {
                self.give(index, locked);
                if self.run.case.meeting == Meeting::InTurn {
                    self.drive();
                }
            }
        }
    }

    /// Delivers what interrupts come. Whether there were any.
    fn interrupted(&self) -> bool {
        // One that panicked was one.
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
        while self.ops.iter().any(Given::is_pending) {
            let mut polled = false;
            for op in &mut self.ops {
                polled |= op.poll_if_woken();
            }
            if polled || self.interrupted() {
                since = Instant::now();
            } else if self.is_alone() || since.elapsed() > PATIENCE {
                let lost = self.ops.iter_mut().find(|op| op.is_pending()).expect("one is");
                lost.wrong.get_or_insert(format!("{:?} is never woken", lost.op));
                return;
            } else {
                thread::yield_now();
            }
        }
    }

    /// Locks the bus, gives what can be given, and unlocks it when `then` has returned.
    fn give_behind_a_lock(&mut self, then: impl FnOnce()) {
        self.ops.iter_mut().for_each(Given::plan);
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
            for op in &mut self.ops {
                if op.is_submitted() {
                    op.result_is_there();
                }
            }
        }
    }

    /// Gives the rest, while futures that were woken are not polled, and then ends all.
    fn finish(&mut self) {
        self.give_all(false);
        self.drive();
        self.ops.iter_mut().for_each(Given::fetch);
        while self.interrupted() {}
    }

    /// What of the promises is broken, given what was sent.
    fn judge(&self, sent: &[u8]) -> Result<(), String> {
        if let Some(wrong) = self.ops.iter().find_map(|op| op.wrong.clone()) {
            return Err(wrong);
        }
        for op in &self.ops {
            for byte in op.bytes() {
                let times = sent.iter().filter(|&&sent| sent == byte).count();
                if times < op.times.min || times > op.times.max {
                    let (op, expected) = (op.op, op.times);
                    return Err(format!(
                        "{op:?} came {times} times, not {expected:?}: {sent:02x?}"
                    ));
                }
            }
            let is_pair = |two: &[u8]| two == [op.byte, second_byte(op.byte)];
            if op.op == Op::Lock && op.times.min == 1 && !sent.windows(2).any(is_pair) {
                return Err(format!("a lock was broken into: {sent:02x?}"));
            }
        }
        self.judge_order(sent)
    }

    fn judge_order(&self, sent: &[u8]) -> Result<(), String> {
        let place = |index: usize| sent.iter().position(|&sent| sent == self.ops[index].byte);
        for (nth, &earlier) in self.order.iter().enumerate() {
            for &later in &self.order[nth + 1..] {
                if self.ops[earlier].keeps_its_place
                    && let (Some(before), Some(after)) = (place(earlier), place(later))
                    && before > after
                {
                    let (one, other) = (self.ops[earlier].op, self.ops[later].op);
                    return Err(format!("{other:?} overtook {one:?}: {sent:02x?}"));
                }
            }
        }
        Ok(())
    }
}

/// Serves until it is stopped, however often a hook's panic ends that.
fn work(bus: &Bus<Any>, run: &Arc<Run>, stop: &AtomicBool) {
    run.enter(false);
    while caught(|| bus.serve(stop)).is_err() {}
}

/// Runs a case. Returns what became of its fuse, or which promise is broken.
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
    let hand = |first: u8, ops: &[Op]| {
        let given = |(byte, &op): (u8, &Op)| Given::new(op, byte, devices[usize::from(byte % 2)]);
        let ops: Vec<_> = (first..).zip(ops).map(given).collect();
        // After a failure a message may still be queued. It is leaked then.
        ManuallyDrop::new(Hand { bus, run: run.clone(), ops, order: Vec::new() })
    };
    let mut hands = match (case.meeting, case.mix.ops()) {
        (Meeting::InTurn, ops) => {
            let mut hand = hand(1, ops);
            hand.ops.iter_mut().for_each(Given::plan);
            hand.finish();
            vec![hand]
        }
        (Meeting::BehindALock, ops) => {
            let mut hand = hand(1, ops);
            hand.give_behind_a_lock(|| {});
            hand.finish();
            vec![hand]
        }
        (Meeting::AcrossThreads, ops) => {
            let (their_ops, own_ops) = ops.split_at(1);
            let (mut own, mut theirs) = (hand(2, own_ops), hand(1, their_ops));
            theirs.ops.iter_mut().for_each(Given::plan);
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
                            || run.second_waits()
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
    judge(run, bus, &hands)?;
    hands.drain(..).for_each(|hand| drop(ManuallyDrop::into_inner(hand)));
    run.forget_sent();
    let mut after = hand(AFTER, served_afterwards(case.mix));
    after.ops.iter_mut().for_each(Given::plan);
    after.finish();
    judge(run, bus, slice::from_ref(&after)).map_err(|wrong| format!("afterwards {wrong}"))?;
    drop(ManuallyDrop::into_inner(after));
    Ok(())
}

/// The bus is as it should be when all has ended.
fn judge(run: &Run, bus: &Bus<Any>, hands: &[ManuallyDrop<Hand<'_>>]) -> Result<(), String> {
    let sent = run.sent();
    hands.iter().try_for_each(|hand| hand.judge(&sent))?;
    let ops = || hands.iter().flat_map(|hand| &hand.ops);
    let expected: Vec<_> = ops().flat_map(Given::bytes).collect();
    if let Some(unknown) = sent.iter().find(|byte| !expected.contains(byte)) {
        return Err(format!("{unknown:02x} was sent and never given: {sent:02x?}"));
    }
    if ops().filter(|op| op.was_aborted).count() > run.panics() {
        return Err("more messages were aborted than panicked".into());
    }
    if run.is_selected() {
        return Err("CS is active".into());
    }
    if run.is_interleaved() {
        return Err(format!("one message inside another: {sent:02x?}"));
    }
    let idle = || bus.try_lock().is_some();
    if !(idle() || run.case.pump == Pump::Worker && comes_true(idle)) {
        return Err("the bus is not idle".into());
    }
    Ok(())
}
