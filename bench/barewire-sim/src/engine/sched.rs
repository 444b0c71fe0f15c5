//! The schedule: simulated threads, the processors they share, and what sleepers wait for.
//!
//! *Read first*: [`super`]'s page, whose rules this file implements. It knows nothing about
//! coroutines: it says which thread acts next, and until when that thread is first.
//!
//! # How it works
//! A thread that has a processor has a time at which it acts next: the end of what it spends. A
//! sleeper has at most one time at which its state changes. [`Sched::advance`] processes sleepers
//! in the order of time until a thread is next to act. When a thread loses its processor, the rest
//! of what it spends is kept, and spent when it has a processor again.
//!
//! Both times are in one array of keys, which is all that a switch reads. After every change of a
//! task's `state` or `at`, [`Sched::file`] updates its key.

use std::cell::Cell;
use std::cmp::Reverse;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use barewire::bus::platform::{AtomicU32, WAITERS};

use super::Costs;
use crate::chip::Ps;

/// Above any priority for [`super::Thread::on`].
pub(super) const INTERRUPT: u16 = 256;

/// The state of a line when it is checked.
pub(crate) enum Look {
    /// It is high.
    High,
    /// Low; check again at this time.
    Due(Ps),
    /// Low until some thread changes it.
    Never,
}

/// An interrupt line that a thread may sleep on.
pub(crate) trait Line {
    /// The line's state at `now`, which never decreases. A due time is later than `now`. This must
    /// not spend time.
    fn look(&self, now: Ps) -> Look;
}

/// The object that a sleeper waits for.
pub(super) enum On {
    /// The end of its wake-up, which is under way.
    Waking,
    /// A time.
    Timer,
    /// A wake call for this address.
    Word(usize),
    /// The lock word at this address; its owner hands it over.
    Lock(usize),
    Line(Rc<dyn Line>),
}

/// A sleeper.
pub(super) struct Sleep {
    pub(super) on: On,
    /// When its state changes.
    pub(super) at: Option<Ps>,
    /// When it times out.
    pub(super) deadline: Option<Ps>,
}

pub(super) enum State {
    /// Has its processor.
    Runs,
    /// Waits for its processor.
    Ready,
    Sleeps(Sleep),
    Ended,
}

pub(super) struct Task {
    pub(super) name: Rc<str>,
    pub(super) state: State,
    /// The time of its next action, while it runs.
    pub(super) at: Ps,
    /// The time it has yet to spend, while it is ready.
    left: Ps,
    pub(super) cpu: usize,
    /// No other thread is on its processor.
    pub(super) alone: bool,
    base: u16,
    /// Includes lent priority.
    pub(super) priority: u16,
    /// Its place among threads of equal priority: the lower, the earlier.
    turn: u64,
    /// It slept, so its processor must switch back to it.
    slept: bool,
    /// The thread to which it lends its priority.
    pub(super) lends_to: Option<usize>,
    /// The last sleep did not end by its deadline.
    pub(super) woken: bool,
    /// It is an interrupt thread that was entered and has not left.
    pub(super) entered: bool,
    /// It must [fall](super::felled) at its first yield after this time.
    pub(super) falls: Option<Ps>,
    /// The number of times it has fallen.
    pub(super) fallen: u32,
}

impl Task {
    pub(super) fn is_interrupt(&self) -> bool {
        self.base == INTERRUPT
    }
}

#[derive(Default)]
struct Cpu {
    runs: Option<usize>,
    /// The thread whose context is loaded. Handlers use that of the thread they interrupt.
    context: Option<usize>,
    masked: u32,
}

/// The key of a task that is not due.
const NEVER: u64 = u64::MAX;

/// A time, and whether a thread acts then; a sleeper's change at the same time sorts first.
fn key(at: Ps, acts: bool) -> u64 {
    at.min(super::END_OF_TIME_PS) << 1 | u64::from(acts)
}

/// All threads and processors of a run.
#[derive(Default)]
pub(super) struct Sched {
    pub(super) tasks: Vec<Task>,
    /// The time when each task is due, see [`key`].
    keys: Vec<u64>,
    cpus: Vec<Cpu>,
    /// The user's processor numbers and their indices in `cpus`.
    shared: Vec<(usize, usize)>,
    turns: u64,
    costs: Costs,
    /// The time of the last event.
    clock: Ps,
    /// The time at which lines must be checked; set by code that has no access to the schedule.
    look: Rc<Cell<Option<Ps>>>,
}

impl Sched {
    pub(super) fn new(costs: Costs, look: Rc<Cell<Option<Ps>>>) -> Self {
        Self { costs, look, ..Self::default() }
    }

    /// Adds a thread, ready to begin, on the processor the user calls `cpu`, or on its own.
    pub(super) fn add(&mut self, name: Rc<str>, cpu: Option<usize>, priority: u16) {
        let known = self.shared.iter().find(|&&(user, _)| Some(user) == cpu);
        let place = known.map_or(self.cpus.len(), |&(_, place)| place);
        if place == self.cpus.len() {
            self.cpus.push(Cpu::default());
            self.shared.extend(cpu.map(|user| (user, place)));
        }
        let turn = self.turn();
        self.keys.push(NEVER);
        self.tasks.push(Task {
            name,
            state: State::Ready,
            at: 0,
            left: 0,
            cpu: place,
            alone: cpu.is_none(),
            base: priority,
            priority,
            turn,
            slept: false,
            lends_to: None,
            woken: false,
            entered: false,
            falls: None,
            fallen: 0,
        });
    }

    fn turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    /// Enters into the schedule when `index` is due.
    fn schedule(&mut self, index: usize) {
        let task = &self.tasks[index];
        self.keys[index] = match &task.state {
            State::Runs => key(task.at, true),
            State::Sleeps(sleep) => sleep.at.map_or(NEVER, |at| key(at, false)),
            State::Ready | State::Ended => NEVER,
        };
    }

    /// The running thread `index` acts next at `at`.
    pub(super) fn acts_at(&mut self, index: usize, at: Ps) {
        self.tasks[index].at = at;
        self.schedule(index);
    }

    /// Gives every processor to the thread that should have it.
    pub(super) fn dispatch_all(&mut self, now: Ps) {
        for cpu in 0..self.cpus.len() {
            self.dispatch(cpu, now);
        }
    }

    fn dispatch(&mut self, cpu: usize, now: Ps) {
        let runs = self.cpus[cpu].runs;
        if runs.is_some() && self.cpus[cpu].masked > 0 {
            return;
        }
        let ready = self
            .tasks
            .iter()
            .enumerate()
            .filter(|(_, task)| task.cpu == cpu && matches!(task.state, State::Ready));
        let Some((best, _)) = ready.max_by_key(|(_, task)| (task.priority, Reverse(task.turn)))
        else {
            return;
        };
        if let Some(runs) = runs {
            if self.tasks[best].priority <= self.tasks[runs].priority {
                return;
            }
            // It keeps its turn, so among equals it continues first.
            let task = &mut self.tasks[runs];
            task.left = task.at.saturating_sub(now);
            task.state = State::Ready;
            self.schedule(runs);
        }
        self.give(cpu, best, now);
    }

    fn give(&mut self, cpu: usize, index: usize, now: Ps) {
        let cpu = &mut self.cpus[cpu];
        let task = &mut self.tasks[index];
        let cost = if task.is_interrupt() {
            task.entered = task.slept;
            if task.slept { self.costs.interrupt_latency_ps } else { 0 }
        } else {
            let other = cpu.context.is_some_and(|context| context != index);
            cpu.context = Some(index);
            if task.slept || other { self.costs.context_switch_ps } else { 0 }
        };
        task.slept = false;
        task.at = now.saturating_add(cost).saturating_add(task.left).min(super::END_OF_TIME_PS);
        task.left = 0;
        task.state = State::Runs;
        cpu.runs = Some(index);
        self.schedule(index);
    }

    /// Puts the running thread `index` to sleep.
    pub(super) fn sleep(&mut self, index: usize, sleep: Sleep, now: Ps) {
        let turn = self.turn();
        let task = &mut self.tasks[index];
        let cpu = &mut self.cpus[task.cpu];
        assert!(cpu.masked == 0, "{} sleeps with interrupts masked", task.name);
        task.turn = turn;
        task.slept = true;
        task.woken = true;
        task.state = State::Sleeps(sleep);
        cpu.runs = None;
        self.schedule(index);
        self.dispatch_all(now);
    }

    /// The running thread `index` is done.
    pub(super) fn end(&mut self, index: usize, now: Ps) {
        let task = &mut self.tasks[index];
        task.at = now;
        task.state = State::Ended;
        self.cpus[task.cpu].runs = None;
        self.schedule(index);
        self.dispatch_all(now);
    }

    /// Makes a sleeper ready. The caller must call [`Sched::dispatch_all`] afterwards.
    pub(super) fn rouse(&mut self, index: usize) {
        let turn = self.turn();
        let task = &mut self.tasks[index];
        task.turn = turn;
        task.left = 0;
        task.state = State::Ready;
        self.schedule(index);
    }

    /// Makes a sleeper ready after `delay`.
    fn rouse_after(&mut self, index: usize, now: Ps, delay: Ps) {
        if delay == 0 {
            self.rouse(index);
            return;
        }
        let at = Some(now.saturating_add(delay));
        self.tasks[index].state = State::Sleeps(Sleep { on: On::Waking, at, deadline: None });
        self.schedule(index);
    }

    /// The time from a wake by `waker` until `index` is ready: another processor must be signalled.
    fn wake_delay(&self, waker: usize, index: usize) -> Ps {
        if self.tasks[waker].cpu == self.tasks[index].cpu { 0 } else { self.costs.wake_ps }
    }

    /// The sleepers on the word at `address`.
    fn sleepers(&self, address: usize) -> impl Iterator<Item = usize> {
        let on_word = move |task: &Task| matches!(&task.state, State::Sleeps(Sleep { on: On::Word(word), .. }) if *word == address);
        (0..self.tasks.len()).filter(move |&index| on_word(&self.tasks[index]))
    }

    pub(super) fn has_sleepers(&self, address: usize) -> bool {
        self.sleepers(address).next().is_some()
    }

    /// Wakes all sleepers on the word at `address`.
    pub(super) fn wake(&mut self, waker: usize, address: usize, now: Ps) {
        let mut sleepers: Vec<usize> = self.sleepers(address).collect();
        sleepers.sort_by_key(|&index| self.tasks[index].turn);
        for index in sleepers {
            self.rouse_after(index, now, self.wake_delay(waker, index));
        }
        self.dispatch_all(now);
    }

    /// Makes every sleeper on a line check it.
    fn look_again(&mut self, at_least: Ps) {
        let now = self.clock.max(at_least);
        for index in 0..self.tasks.len() {
            let state = &mut self.tasks[index].state;
            if let State::Sleeps(Sleep { on: On::Line(_), at, .. }) = state {
                *at = Some(now);
                self.schedule(index);
            }
        }
    }

    pub(super) fn mask(&mut self, index: usize) {
        self.cpus[self.tasks[index].cpu].masked += 1;
    }

    /// The caller must call [`Sched::dispatch_all`] afterwards.
    pub(super) fn unmask(&mut self, index: usize) {
        self.cpus[self.tasks[index].cpu].masked -= 1;
    }

    /// Puts `index` to sleep until the word is handed over to it, and lends its priority to
    /// `owner`.
    pub(super) fn wait_for_owner(&mut self, index: usize, address: usize, owner: usize, now: Ps) {
        if owner < self.tasks.len() {
            self.tasks[index].lends_to = Some(owner);
            self.inherit(owner);
        }
        self.sleep(index, Sleep { on: On::Lock(address), at: None, deadline: None }, now);
    }

    /// Hands `word` over from `index` to the waiter of highest priority, or releases it.
    pub(super) fn hand_over(&mut self, index: usize, word: &AtomicU32, now: Ps) {
        let address = std::ptr::from_ref(word).addr();
        let waits = |task: &Task| matches!(&task.state, State::Sleeps(Sleep { on: On::Lock(word), .. }) if *word == address);
        let waiters: Vec<usize> =
            (0..self.tasks.len()).filter(|&index| waits(&self.tasks[index])).collect();
        let order = |&index: &usize| (self.tasks[index].priority, Reverse(self.tasks[index].turn));
        let next = waiters.iter().copied().max_by_key(order);
        let Some(next) = next else {
            word.store(0, Relaxed);
            return;
        };
        let more = if waiters.len() > 1 { WAITERS } else { 0 };
        word.store((next as u32 + 1) | more, Relaxed);
        for waiter in waiters {
            self.tasks[waiter].lends_to = (waiter != next).then_some(next);
        }
        self.rouse_after(next, now, self.wake_delay(index, next));
        self.inherit(index);
        self.inherit(next);
        self.dispatch_all(now);
    }

    /// Computes the priority of `index` from its own and those lent to it, and then likewise along
    /// the chain of owners it waits for.
    fn inherit(&mut self, mut index: usize) {
        loop {
            let lenders = self.tasks.iter().filter(|task| task.lends_to == Some(index));
            let lent = lenders.map(|task| task.priority).max().unwrap_or(0);
            let task = &mut self.tasks[index];
            let priority = task.base.max(lent);
            let unchanged = task.priority == priority;
            task.priority = priority;
            match task.lends_to {
                Some(next) if !unchanged => index = next,
                _ => return,
            }
        }
    }

    /// Processes sleepers. Returns the next thread to act and the last time at which it is still
    /// first, or `None` if all threads sleep for good or have ended.
    pub(super) fn advance(&mut self) -> Option<(usize, Ps)> {
        // The time at which sleepers became ready that have no processor yet.
        let mut roused = None;
        loop {
            if let Some(at) = self.look.take() {
                self.look_again(at);
            }
            let (mut first, mut second) = ((NEVER, 0), (NEVER, usize::MAX));
            for (index, &key) in self.keys.iter().enumerate() {
                if key < first.0 {
                    second = first;
                    first = (key, index);
                } else if key < second.0 {
                    second = (key, index);
                }
            }
            let ((key, index), (other, other_index)) = (first, second);
            // Everything due at a time is processed before a processor switches because of it.
            if let Some(now) = roused
                && key != self::key(now, false)
            {
                self.dispatch_all(now);
                roused = None;
                continue;
            }
            if key == NEVER {
                return None;
            }
            if key & 1 == 0 {
                self.expire(index, key >> 1);
                roused = Some(key >> 1);
                continue;
            }
            // Of equals the lower index acts, after changes of sleepers.
            let gives_way = other & 1 == 0 || other_index < index;
            let until = match other {
                NEVER => Ps::MAX,
                _ => (other >> 1).saturating_sub(u64::from(gives_way)),
            };
            return Some((index, until));
        }
    }

    /// Carries out everything due at `now` for the sleeper `index`. The caller must call
    /// [`Sched::dispatch_all`] afterwards.
    fn expire(&mut self, index: usize, now: Ps) {
        self.clock = now;
        let task = &mut self.tasks[index];
        let interrupt = task.is_interrupt();
        let State::Sleeps(sleep) = &mut task.state else { return };
        let late = sleep.deadline.is_some_and(|deadline| deadline <= now);
        let mut by_kernel = late;
        if let On::Line(line) = &sleep.on {
            let look = line.look(now);
            if !matches!(look, Look::High) && !late {
                sleep.at = match (look, sleep.deadline) {
                    (Look::Due(at), Some(deadline)) => Some(at.min(deadline)),
                    (Look::Due(at), None) => Some(at),
                    (_, deadline) => deadline,
                };
                self.schedule(index);
                return;
            }
            task.woken = matches!(look, Look::High);
            by_kernel = true;
        } else if late {
            task.woken = false;
        }
        // The processor itself enters a handler. A kernel's handler wakes a thread.
        let delay = if by_kernel && !interrupt { self.costs.irq_thread_ps } else { 0 };
        self.rouse_after(index, now, delay);
    }

    /// Called when no thread can act any more. If only interrupt threads that wait for a line are
    /// left, lets their waits return. Returns false if the remaining threads all wait and none of
    /// them can be woken.
    pub(super) fn dismiss(&mut self) -> bool {
        let left = || self.tasks.iter().filter(|task| !matches!(task.state, State::Ended));
        if left().any(|task| !task.is_interrupt()) {
            return false;
        }
        let now = self.tasks.iter().map(|task| task.at).max().unwrap_or(0);
        for index in 0..self.tasks.len() {
            let task = &mut self.tasks[index];
            if matches!(task.state, State::Sleeps(_)) {
                task.woken = false;
                task.slept = false;
                self.rouse(index);
            }
        }
        self.dispatch_all(now);
        true
    }

    pub(super) fn all_ended(&self) -> bool {
        self.tasks.iter().all(|task| matches!(task.state, State::Ended))
    }

    /// The object that each sleeping thread waits for, for the report of a deadlock.
    pub(super) fn sleep_report(&self) -> String {
        let why = |task: &Task| {
            let State::Sleeps(sleep) = &task.state else { return None };
            let what = match &sleep.on {
                On::Word(_) => "a wake of its word",
                On::Lock(_) => "the owner of its lock",
                On::Line(_) => "an interrupt",
                On::Timer | On::Waking => "a time",
            };
            Some(format!("{:?} waits for {what}", task.name))
        };
        self.tasks.iter().filter_map(why).collect::<Vec<_>>().join(", ")
    }
}
