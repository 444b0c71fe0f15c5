//! A scheduler with strict priorities: one processor, as real-time threads of Linux share one.
//!
//! # How it works
//! Each thread has a priority for the schedule. The runnable thread of the highest priority runs,
//! and a thread that yields runs again. At each step one of the threads of equal priority is drawn.
//! So a thread that spins for a lower one spins until [`MAX_STEPS`], and the schedule fails.
//!
//! Strict priorities alone leave few schedules. So a runnable thread can be *held back* for a
//! random number of steps:
//! 1. at its start;
//! 2. each time it was blocked and becomes runnable;
//! 3. while a message of its own is on the wire ([`pause`]);
//! 4. at up to 15 random steps of a schedule, wherever it is. A page fault does that.
//!
//! Lower threads run meanwhile. When its time is over, the thread preempts them at whatever step
//! they have reached, and every atomic operation is two steps: before it, and after it.
//!
//! Each hold ends by itself, and a schedule has few of the fourth kind. So a spin for a thread of
//! higher priority ends, and a spin for a lower one outlasts them all.
//!
//! # Interrupts
//! One thread can be the controller's interrupt handler ([`handle_interrupts`]). It preempts all
//! others while its line is up: a transfer is done, the controller is [armed](arm), and no thread
//! is inside [`masked`]. The line is level-triggered: a handler that leaves it up is called again
//! before the interrupted thread makes a step.
//!
//! # Replaying
//! A schedule that fails prints its seed. `SHUTTLE_RANDOM_SEED` makes it the first of a run. A
//! spinning thread prints its backtrace.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::scheduler::{DataSource, RandomDataSource, Schedule, Scheduler, Task, TaskId};
use shuttle::thread::{self, JoinHandle};
use shuttle::{Config, MaxSteps, Runner};

/// No schedule of a correct bus is nearly as long: they have 200 to 400 steps, and at most some
/// 2,000.
const MAX_STEPS: usize = 20_000;
/// How often in a row a handler may find nothing to do.
const VAIN_CALLS_MAX: u32 = 100;
/// After how many steps of one thread alone its backtrace is printed.
const ALONE_MAX: usize = MAX_STEPS / 2;
/// The main thread's priority until it waits for the first time.
const FIRST: u8 = u8::MAX;

/// What the running thread and the scheduler tell each other.
///
/// Shuttle runs all threads of a schedule on one thread of the system, which has this for itself.
struct Processor {
    /// Steps so far.
    now: Cell<u64>,
    /// The running thread waits for its message on the wire.
    pausing: Cell<bool>,
    /// How many threads are inside [`masked`].
    masked: Cell<u32>,
    /// The thread that is the interrupt handler.
    handler: Cell<Option<usize>>,
    /// The handler was called and has not returned.
    handling: Cell<bool>,
    /// The controller may interrupt.
    armed: Cell<bool>,
    transfer: Cell<Transfer>,
}

/// The transfer that ends in an interrupt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transfer {
    None,
    /// Begun; the scheduler has not drawn yet how long it takes.
    Begun,
    /// Done from that step on.
    DoneAt(u64),
}

thread_local! {
    static PROCESSOR: Processor = const {
        Processor {
            now: Cell::new(0),
            pausing: Cell::new(false),
            masked: Cell::new(0),
            handler: Cell::new(None),
            handling: Cell::new(false),
            armed: Cell::new(false),
            transfer: Cell::new(Transfer::None),
        }
    };
}

impl Processor {
    fn reset(&self) {
        self.now.set(0);
        self.pausing.set(false);
        self.masked.set(0);
        self.handler.set(None);
        self.handling.set(false);
        self.armed.set(false);
        self.transfer.set(Transfer::None);
    }

    fn is_done(&self) -> bool {
        matches!(self.transfer.get(), Transfer::DoneAt(at) if at <= self.now.get())
    }

    fn interrupts(&self) -> bool {
        self.armed.get() && self.is_done() && self.masked.get() == 0
    }

    /// The time at which the line rises, if only time has to pass for that.
    fn interrupts_at(&self) -> Option<u64> {
        match self.transfer.get() {
            Transfer::DoneAt(at) if self.armed.get() && self.masked.get() == 0 => Some(at),
            _ => None,
        }
    }
}

/// The running thread's message is on the wire: lower threads may run. Under other schedulers this
/// only yields.
pub(crate) fn pause() {
    PROCESSOR.with(|processor| processor.pausing.set(!processor.handling.get()));
    thread::yield_now();
}

/// A transfer begins that ends in an interrupt.
pub(crate) fn begin_transfer() {
    PROCESSOR.with(|processor| processor.transfer.set(Transfer::Begun));
}

/// Whether the transfer that was begun last is done.
pub(crate) fn transfer_is_done() -> bool {
    PROCESSOR.with(Processor::is_done)
}

/// The controller may interrupt.
pub(crate) fn arm() {
    PROCESSOR.with(|processor| processor.armed.set(true));
}

/// The controller is silent.
pub(crate) fn disarm() {
    PROCESSOR.with(|processor| processor.armed.set(false));
}

/// Calls `f` with the interrupt kept away. Threads of higher priority still preempt it, as they do
/// where only the controller's own interrupt is masked.
pub(crate) fn masked(f: &mut dyn FnMut()) {
    PROCESSOR.with(|processor| processor.masked.set(processor.masked.get() + 1));
    f();
    PROCESSOR.with(|processor| processor.masked.set(processor.masked.get() - 1));
}

/// Whether the caller is the interrupt handler, called.
pub(crate) fn is_handler() -> bool {
    PROCESSOR.with(|processor| processor.handling.get())
}

/// Makes `handler` the interrupt handler: it returns whether there was something to do. To be
/// called by the main thread before it waits for any other; the handle is to be
/// [stopped](Handling::stop).
pub(crate) fn handle_interrupts(handler: impl Fn() -> bool + Send + 'static) -> Handling {
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = stop.clone();
    let thread = thread::spawn(move || {
        let (mut calls, mut in_vain) = (0, 0);
        loop {
            // Comes back when the line is up, or when no thread can run.
            thread::yield_now();
            if stopped.load(Ordering::Relaxed) {
                return calls;
            }
            let up = PROCESSOR.with(Processor::interrupts);
            assert!(up, "deadlock: all threads sleep, and no interrupt will come");
            PROCESSOR.with(|processor| processor.handling.set(true));
            let did = handler();
            PROCESSOR.with(|processor| processor.handling.set(false));
            calls += 1;
            let still_up = PROCESSOR.with(Processor::interrupts);
            in_vain = if still_up && !did { in_vain + 1 } else { 0 };
            assert!(in_vain < VAIN_CALLS_MAX, "livelock: the handler does nothing, the line is up");
        }
    });
    PROCESSOR.with(|processor| processor.handler.set(Some(thread.thread().id().into())));
    Handling { stop, thread }
}

/// An interrupt handler.
pub(crate) struct Handling {
    stop: Arc<std::sync::atomic::AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Handling {
    /// Ends it, when all other threads have ended. Returns how often it was called.
    pub(crate) fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic")
    }
}

/// The priorities of a schedule's threads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Priorities {
    /// Drawn anew in each schedule; some are equal.
    Random,
    /// All are equal.
    Equal,
    /// Those of the threads that the main thread starts, in this order.
    Given(&'static [u8]),
}

/// The scheduler's record of a thread.
struct Thread {
    priority: u8,
    /// Not to be run before that step.
    held_until: u64,
    was_runnable: bool,
}

/// See the module.
pub(crate) struct Strict {
    schedules_left: usize,
    priorities: Priorities,
    preemptions: Arc<AtomicU64>,
    /// What the schedule's threads draw, and the seeds of the next schedules.
    data: RandomDataSource,
    /// What the scheduler draws.
    dice: RandomDataSource,
    seed: u64,
    threads: Vec<Thread>,
    halts_left: u64,
    halt_at: u64,
    /// For how many steps the running thread has been the only one to run.
    alone: usize,
}

impl Strict {
    pub(crate) fn new(schedules: usize, priorities: Priorities) -> Self {
        let seed = std::env::var("SHUTTLE_RANDOM_SEED").ok();
        let seed = seed.map_or_else(
            || RandomState::new().hash_one(0),
            |seed| seed.parse().expect("SHUTTLE_RANDOM_SEED is a number"),
        );
        Self {
            schedules_left: schedules,
            priorities,
            preemptions: Arc::new(AtomicU64::new(0)),
            data: RandomDataSource::initialize(seed),
            dice: RandomDataSource::initialize(seed),
            seed,
            threads: Vec::new(),
            halts_left: 0,
            halt_at: 0,
            alone: 0,
        }
    }

    /// How often a thread preempted another, in all schedules.
    pub(crate) fn preemptions(&self) -> Arc<AtomicU64> {
        self.preemptions.clone()
    }

    /// Runs `f` in all schedules.
    pub(crate) fn run(self, f: impl Fn() + Send + Sync + 'static) {
        let mut config = Config::new();
        config.max_steps = MaxSteps::FailAfter(MAX_STEPS);
        // A task that a waker runs is nested in another thread's calls.
        config.stack_size = 1 << 18;
        Runner::new(self, config).run(f);
    }

    fn below(&mut self, end: u64) -> u64 {
        self.dice.next_u64() % end
    }

    /// A number of steps from 1 to `2 << powers`, small ones as probable as large ones.
    fn steps(&mut self, powers: u64) -> u64 {
        let max = 2 << self.below(powers);
        self.below(max) + 1
    }

    /// For how many steps a thread is held back; in half of the cases not at all.
    fn hold(&mut self) -> u64 {
        match self.below(2) {
            0 => 0,
            _ => self.steps(8),
        }
    }

    fn draw_priority(&mut self, thread: usize) -> u8 {
        match self.priorities {
            Priorities::Equal => 0,
            Priorities::Given(given) => thread.checked_sub(1).map_or(0, |index| given[index]),
            Priorities::Random => self.below(5) as u8,
        }
    }

    /// Takes note of which threads are new, blocked, or runnable again.
    fn look_at(&mut self, runnable: &[&Task], now: u64) {
        for id in 0..self.threads.len() {
            if !runnable.iter().any(|task| usize::from(task.id()) == id) {
                self.threads[id].was_runnable = false;
                if self.threads[id].priority == FIRST {
                    self.threads[id].priority = self.draw_priority(id);
                }
            }
        }
        for task in runnable {
            let id = usize::from(task.id());
            while self.threads.len() <= id {
                let id = self.threads.len();
                // The main thread is above all until it waits, so that all others are there before
                // the first of them runs.
                let priority = if id == 0 { FIRST } else { self.draw_priority(id) };
                self.threads.push(Thread { priority, held_until: 0, was_runnable: false });
            }
            if !self.threads[id].was_runnable {
                let held = if id == 0 { 0 } else { self.hold() };
                self.threads[id].was_runnable = true;
                self.threads[id].held_until = now + held;
            }
        }
    }

    /// Holds the running thread back if it pauses, or if it is time to halt it.
    fn hold_current(&mut self, current: usize, now: u64) {
        let (pauses, is_handler) =
            PROCESSOR.with(|processor| (processor.pausing.take(), processor.handling.get()));
        let halts = self.halts_left > 0 && now >= self.halt_at;
        if halts {
            self.halts_left -= 1;
            self.halt_at = now + self.steps(6);
        }
        if is_handler || !(pauses || halts) {
            return;
        }
        if self.threads[current].priority != FIRST {
            self.threads[current].held_until = now + self.hold();
        }
    }

    fn draw_transfer(&mut self, now: u64) {
        PROCESSOR.with(|processor| {
            if processor.transfer.get() == Transfer::Begun {
                processor.transfer.set(Transfer::DoneAt(now + self.hold()));
            }
        });
    }

    /// The thread to run, or when there will be one.
    fn choose(&mut self, runnable: &[&Task], now: u64) -> Result<TaskId, Option<u64>> {
        let (handler, handles, mut next) = PROCESSOR.with(|processor| {
            let handles = processor.handling.get() || processor.interrupts();
            (processor.handler.get(), handles, processor.interrupts_at())
        });
        let mut best = None;
        let (mut highest, mut equals) = (0, 0);
        for task in runnable {
            let id = usize::from(task.id());
            if Some(id) == handler {
                if handles {
                    return Ok(task.id());
                }
                continue;
            }
            let Thread { priority, held_until, .. } = self.threads[id];
            if held_until > now {
                next = Some(next.map_or(held_until, |next| next.min(held_until)));
                continue;
            }
            if best.is_none() || priority > highest {
                (best, highest, equals) = (Some(task.id()), priority, 1);
            } else if priority == highest {
                equals += 1;
                if self.below(equals) == 0 {
                    best = Some(task.id());
                }
            }
        }
        best.ok_or(next)
    }

    /// Prints the place of a thread that runs on and on: this is called on its stack.
    fn look_for_spins(&mut self, goes_on: bool) {
        self.alone = if goes_on { self.alone + 1 } else { 0 };
        if self.alone == ALONE_MAX {
            eprintln!("a thread alone for {ALONE_MAX} steps:\n{}", Backtrace::force_capture());
        }
    }

    fn count_preemption(&self, runnable: &[&Task], current: usize, chosen: usize, now: u64) {
        let goes_on = runnable.iter().any(|task| usize::from(task.id()) == current)
            && self.threads[current].held_until <= now;
        let handler = PROCESSOR.with(|processor| processor.handler.get());
        let is_higher = Some(chosen) == handler
            || self.threads[chosen].priority > self.threads[current].priority;
        if chosen != current && goes_on && is_higher && Some(current) != handler {
            self.preemptions.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Scheduler for Strict {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.schedules_left = self.schedules_left.checked_sub(1)?;
        self.seed = self.data.reinitialize();
        self.dice = RandomDataSource::initialize(!self.seed);
        PROCESSOR.with(Processor::reset);
        self.threads.clear();
        self.alone = 0;
        self.halts_left = (1 << self.below(5)) - 1;
        self.halt_at = self.steps(8);
        Some(Schedule::new(self.seed))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        _: bool,
    ) -> Option<TaskId> {
        let mut now = PROCESSOR.with(|processor| processor.now.get()) + 1;
        self.look_at(runnable, now);
        self.draw_transfer(now);
        if let Some(current) = current {
            self.hold_current(current.into(), now);
        }
        loop {
            PROCESSOR.with(|processor| processor.now.set(now));
            match self.choose(runnable, now) {
                Ok(chosen) => {
                    self.look_for_spins(current == Some(chosen));
                    if let Some(current) = current {
                        self.count_preemption(runnable, current.into(), chosen.into(), now);
                    }
                    return Some(chosen);
                }
                // All are held back: time goes by.
                Err(Some(next)) => now = next,
                // Only the handler's thread is left. Running it tells it so.
                Err(None) => return Some(runnable[0].id()),
            }
        }
    }

    fn next_u64(&mut self) -> u64 {
        self.data.next_u64()
    }
}

impl Drop for Strict {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the schedule that failed: SHUTTLE_RANDOM_SEED={}", self.seed);
        }
    }
}

mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use shuttle::sync::atomic::AtomicU32;
    use shuttle::sync::mpsc;

    use super::*;

    /// Two threads, the first of the lower priority.
    const TWO: Priorities = Priorities::Given(&[1, 2]);

    fn join(threads: [JoinHandle<()>; 2]) {
        for thread in threads {
            thread.join().expect("no panic");
        }
    }

    fn spawn_spinner(flag: &Arc<AtomicU32>) -> JoinHandle<()> {
        let flag = flag.clone();
        thread::spawn(move || {
            while flag.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
        })
    }

    fn spawn_setter(flag: &Arc<AtomicU32>) -> JoinHandle<()> {
        let flag = flag.clone();
        thread::spawn(move || flag.store(1, Ordering::SeqCst))
    }

    #[test]
    #[should_panic(expected = "exceeded max_steps")]
    fn a_spin_for_a_lower_thread_is_found() {
        Strict::new(100, TWO).run(|| {
            let flag = Arc::new(AtomicU32::new(0));
            let threads = [spawn_setter(&flag), spawn_spinner(&flag)];
            join(threads);
        });
    }

    #[test]
    fn a_spin_for_a_higher_thread_ends() {
        Strict::new(1_000, TWO).run(|| {
            let flag = Arc::new(AtomicU32::new(0));
            let threads = [spawn_spinner(&flag), spawn_setter(&flag)];
            join(threads);
        });
    }

    #[test]
    fn a_thread_may_sleep_for_a_lower_one() {
        Strict::new(1_000, TWO).run(|| {
            let (bell, rung) = mpsc::channel();
            let lower = thread::spawn(move || bell.send(()).expect("it waits"));
            let higher = thread::spawn(move || rung.recv().expect("is rung"));
            join([lower, higher]);
        });
    }

    #[test]
    fn a_higher_thread_comes_between_any_two_atomics_and_runs_to_its_end() {
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let all = seen.clone();
        Strict::new(2_000, TWO).run(move || {
            let counter = Arc::new(AtomicU32::new(0));
            let (counts, looks, seen) = (counter.clone(), counter, all.clone());
            let lower = thread::spawn(move || {
                (0..20).for_each(|_| {
                    counts.fetch_add(1, Ordering::SeqCst);
                });
            });
            let higher = thread::spawn(move || {
                let looks = [(); 3].map(|()| looks.load(Ordering::SeqCst));
                seen.lock().expect("no panic").insert(looks);
            });
            join([lower, higher]);
        });
        let seen = seen.lock().expect("no panic");
        for count in 0..=20 {
            assert!(seen.contains(&[count; 3]), "not before {count} in {seen:?}");
        }
    }

    #[test]
    fn the_handler_comes_between_any_two_atomics_but_not_while_masked() {
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let all = seen.clone();
        Strict::new(2_000, Priorities::Equal).run(move || {
            let counter = Arc::new(AtomicU32::new(0));
            let (counts, seen) = (counter.clone(), all.clone());
            let handling = handle_interrupts(move || {
                disarm();
                seen.lock().expect("no panic").insert(counter.load(Ordering::SeqCst));
                true
            });
            let thread = thread::spawn(move || {
                let count = || counts.fetch_add(1, Ordering::SeqCst);
                arm();
                begin_transfer();
                (0..5).for_each(|_| assert!(count() < 15));
                masked(&mut || (0..5).for_each(|_| assert!(count() < 15)));
                (0..5).for_each(|_| assert!(count() < 15));
            });
            thread.join().expect("no panic");
            assert!(handling.stop() <= 1, "it was armed once");
        });
        let seen: Vec<_> = seen.lock().expect("no panic").iter().copied().collect();
        // At 5 before the mask, at 10 after it.
        assert_eq!(seen, [0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15]);
    }

    #[test]
    #[should_panic(expected = "livelock")]
    fn a_handler_that_leaves_its_line_up_is_found() {
        Strict::new(100, Priorities::Equal).run(|| {
            let counter = AtomicU32::new(0);
            let handling = handle_interrupts(|| false);
            let thread = thread::spawn(move || {
                arm();
                begin_transfer();
                (0..500).for_each(|_| counter.store(1, Ordering::SeqCst));
                disarm();
            });
            thread.join().expect("no panic");
            handling.stop();
        });
    }
}
