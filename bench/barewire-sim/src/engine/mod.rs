//! Virtual time, and simulated threads that share it.
//!
//! *Read first*: nothing but this page.
//!
//! # How it works
//! Each simulated thread has its own time and a processor of its own, unless it is put
//! [on](Thread::on) a shared one. Other threads run only when a thread spends time. The thread with
//! the earliest time runs, and of equals the one listed first. So whatever a thread does after
//! [`Engine::spend_ps`] returns happens in the order of virtual time for all threads, and a program
//! has the same order on every run.
//!
//! Threads are stackful coroutines on one host thread. A switch costs some tens of nanoseconds;
//! there is none while the running thread is still the earliest. Outside [`Engine::run`] there is
//! one thread, the caller, and spending time only adds.
//!
//! # Shared processors
//! Of the threads on one processor the one with the highest priority runs, of equals the one that
//! became ready first, without time slices. A thread that becomes ready preempts one of lower
//! priority, even while that one spends time; it spends the rest when it runs again.
//! [`Costs::context_switch_ps`] is charged to the thread that a processor switches to, from another
//! thread or from idle (for which a kernel has a thread).
//!
//! A thread gives up its processor by [`Engine::wait`] (until a [`wake`](Engine::wake) of the
//! word), by [`Engine::sleep_until`], or by waiting for an interrupt line
//! ([`IntLine`](crate::line::IntLine), [`Board::wait_interrupt`](crate::Board::wait_interrupt)).
//!
//! # Interrupts
//! A hard interrupt is a [thread](Thread::interrupt) that waits for a line, handles it, and waits
//! again. It has priority over every other thread of its processor. It costs
//! [`Costs::interrupt_latency_ps`] to enter and [`Costs::interrupt_exit_ps`] to leave, instead of a
//! switch. It must sleep only for a line. Any other thread that waits for a line is woken by a
//! kernel's handler, [`Costs::irq_thread_ps`] after the line rises.
//!
//! # Ordering
//! 1. Sleepers first: a wake-up, a deadline or the rise of a line takes effect before any thread
//!    acts at the same instant.
//! 2. List order: of threads that act at the same instant, the one listed first goes first.
//!
//! # Panics in a simulated thread
//! The first panic ends the run and continues in the caller of [`Engine::run`]. Before that every
//! other thread is unwound at the point where it is, by a panic with the engine's own payload. Its
//! `Drop` code runs in virtual time. Sleeping threads are unwound when all remaining threads sleep,
//! because they may still be woken before that: for example by a thread that holds a bus and hands
//! it over while it unwinds.
//!
//! A thread that was woken may run for 10 more virtual milliseconds. So may a thread that catches
//! the panic which was to end it, as a bus does that has other threads to serve.
//!
//! A thread that is unwinding keeps its processor until it is done, so that no other thread sees
//! `std::thread::panicking`. Its sleeps return at once.
//!
//! # Not supported
//! - Several host threads on one engine.
//! - `run` from within a simulated thread of the same engine.
//! - Time slices.
//! - The time that a kernel's handler takes from the thread it interrupts.
//! - Nested interrupts.
//!
//! # Safety
//! This file uses unsafe code for two things that the coroutine crate's types cannot express:
//! threads that borrow from the caller of `run`, and access to the running coroutine's yielder from
//! deep in the call stack.

#![allow(unsafe_code, reason = "scoped coroutines and the yielder of the one that runs")]

mod costs;
mod felled;
mod sched;
mod sleep;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::chip::{PS_PER_NS, Ps};
pub use costs::Costs;
use sched::{INTERRUPT, Sched};
pub(crate) use sched::{Line, Look};
pub(crate) use sleep::OUTSIDE_ID;

/// What [`Engine::relax`] spends by default: a few instructions of a spin loop.
pub const RELAX_PS: Ps = 10 * PS_PER_NS;

#[cold]
fn time_ends() {
    assert!(
        std::thread::panicking(),
        "a simulated board's time ends 106 days after power-up: wait for less, or power a new board up"
    );
}

/// The end of time, 106 days after power-up: so far from the end of [`Ps`] that models add without
/// overflow.
pub const END_OF_TIME_PS: Ps = Ps::MAX / 2;

/// Virtual time: a handle that is cheap to clone; all clones are one engine.
#[derive(Clone)]
pub struct Engine(Rc<Inner>);

struct Inner {
    /// The running thread's time.
    now: Cell<Ps>,
    /// The running thread acts first up to and including this time.
    until: Cell<Ps>,
    relax_ps: Cell<Ps>,
    switches: Cell<u64>,
    /// The running coroutine's yielder; null outside simulated threads.
    yielder: Cell<*const Yielder<(), ()>>,
    running: Cell<bool>,
    /// The running thread's index in `sched`; meaningless outside simulated threads.
    current: Cell<usize>,
    sched: RefCell<Sched>,
    costs: Cell<Costs>,
    /// A panic has ended the run: the remaining threads are unwound.
    felling: Cell<bool>,
    /// The message of that panic.
    first_panic: RefCell<Option<String>>,
    /// How many times a thread that unwinds has checked for other threads.
    refused: Cell<u32>,
    /// The number of threads that sleep on an interrupt line.
    line_sleepers: Cell<u32>,
    /// When those threads must check their lines again.
    look: Rc<Cell<Option<Ps>>>,
    /// A processor has not yet been given to the thread that is due.
    postponed: Cell<bool>,
    /// The next thread and its time limit, if the thread that yields has computed them.
    chosen: Cell<Option<(usize, Ps)>>,
}

thread_local! {
    static CURRENT: RefCell<Option<Engine>> = const { RefCell::new(None) };
}

/// Relaxes the engine of the calling simulated thread: the hook for a lock's spin loop, as a plain
/// `fn()`. Outside [`Engine::run`] it is only a hint to the host's processor.
pub fn relax_current() {
    // Cloned, because the call may switch, and nothing may stay borrowed across a switch.
    match current() {
        Some(engine) => engine.relax(),
        None => std::hint::spin_loop(),
    }
}

/// The engine of the calling simulated thread.
pub(crate) fn current() -> Option<Engine> {
    CURRENT.with_borrow(Clone::clone)
}

/// A simulated thread to start: a name, a body, and a processor.
pub struct Thread<'a> {
    name: Rc<str>,
    body: Box<dyn FnOnce() + 'a>,
    cpu: Option<usize>,
    priority: u16,
}

impl<'a> Thread<'a> {
    /// A thread called `name` that runs `body` and ends, on a processor of its own.
    pub fn new(name: &str, body: impl FnOnce() + 'a) -> Self {
        Self { name: name.into(), body: Box::new(body), cpu: None, priority: 0 }
    }

    /// Puts the thread on processor `cpu`, which it shares with all threads put there; the number
    /// is only a name. The higher `priority` runs first.
    #[must_use]
    pub fn on(self, cpu: usize, priority: u8) -> Self {
        Self { cpu: Some(cpu), priority: priority.into(), ..self }
    }

    /// Makes the thread the hard interrupt of processor `cpu`: above every priority there, entered
    /// without a context switch. It must wait for a line in a loop that ends when the wait returns
    /// false; by then all other threads have ended.
    #[must_use]
    pub fn interrupt(self, cpu: usize) -> Self {
        Self { cpu: Some(cpu), priority: INTERRUPT, ..self }
    }
}

impl fmt::Debug for Thread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A started thread.
struct Slot {
    coroutine: Coroutine<(), (), (), DefaultStack>,
    yielder: *const Yielder<(), ()>,
}

impl Engine {
    /// Creates an engine at time zero.
    #[must_use]
    pub fn new() -> Self {
        Self(Rc::new(Inner {
            now: Cell::new(0),
            until: Cell::new(Ps::MAX),
            relax_ps: Cell::new(RELAX_PS),
            switches: Cell::new(0),
            yielder: Cell::new(ptr::null()),
            running: Cell::new(false),
            current: Cell::new(0),
            sched: RefCell::new(Sched::default()),
            costs: Cell::new(Costs::default()),
            felling: Cell::new(false),
            first_panic: RefCell::new(None),
            refused: Cell::new(0),
            line_sleepers: Cell::new(0),
            look: Rc::default(),
            postponed: Cell::new(false),
            chosen: Cell::new(None),
        }))
    }

    /// The running thread's time.
    #[inline]
    #[must_use]
    pub fn now_ps(&self) -> Ps {
        self.0.now.get()
    }

    /// Spends `ps` of the running thread's time. Returns when no other thread is earlier.
    ///
    /// # Panics
    /// If time exceeds [`END_OF_TIME_PS`]. If time stopped there instead, no deadline would ever be reached. A
    /// thread that unwinds may go beyond it.
    #[inline]
    pub fn spend_ps(&self, ps: Ps) {
        let now = self.0.now.get().saturating_add(ps);
        self.0.now.set(now);
        if now > END_OF_TIME_PS {
            time_ends();
        }
        if now > self.0.until.get() {
            self.switch();
        }
    }

    /// One turn of a spin loop: spends a little time, so that the awaited thread runs.
    pub fn relax(&self) {
        if std::thread::panicking() {
            self.refuse();
        }
        self.spend_ps(self.0.relax_ps.get());
    }

    /// Sets what one [`Engine::relax`] spends: at least 1 ps, since a thread that spins without
    /// spending would stop the time it waits for.
    pub fn set_relax_ps(&self, ps: Ps) {
        self.0.relax_ps.set(ps.max(1));
    }

    /// Sets the costs for later runs.
    pub fn set_costs(&self, costs: Costs) {
        self.0.costs.set(costs);
    }

    /// The costs.
    #[must_use]
    pub fn costs(&self) -> Costs {
        self.0.costs.get()
    }

    /// The number of switches between threads.
    #[must_use]
    pub fn switches(&self) -> u64 {
        self.0.switches.get()
    }

    /// The running simulated thread's name; `None` outside [`Engine::run`].
    #[must_use]
    pub fn running_name(&self) -> Option<Rc<str>> {
        Some(self.0.sched.borrow().tasks[self.running_index()?].name.clone())
    }

    /// Runs `threads`, which all begin now, until all have ended. Afterwards the time is that of
    /// the thread that ended last.
    ///
    /// # Panics
    /// - With the panic of the first thread that panicked.
    /// - If threads sleep that no thread will wake; the message names them.
    /// - If called from a simulated thread of the same engine.
    /// - If the host has no memory for a stack.
    pub fn run(&self, threads: Vec<Thread<'_>>) {
        assert!(!self.0.running.replace(true), "Engine::run called from a simulated thread");
        let outer = CURRENT.replace(Some(self.clone()));
        let outcome = catch_unwind(AssertUnwindSafe(|| self.run_all(threads)));
        // In any case no part of this run may be reachable any more: `run_all` has dropped its
        // coroutines.
        CURRENT.set(outer);
        self.0.yielder.set(ptr::null());
        self.0.until.set(Ps::MAX);
        self.0.sched.replace(Sched::default());
        self.0.felling.set(false);
        self.0.first_panic.take();
        self.0.line_sleepers.set(0);
        self.0.look.set(None);
        self.0.postponed.set(false);
        self.0.chosen.set(None);
        self.0.running.set(false);
        if let Err(panic) = outcome {
            resume_unwind(panic);
        }
    }

    fn run_all(&self, threads: Vec<Thread<'_>>) {
        let inner = &*self.0;
        let begin = inner.now.get();
        let mut sched = Sched::new(inner.costs.get(), inner.look.clone());
        for thread in &threads {
            sched.add(thread.name.clone(), thread.cpu, thread.priority);
        }
        sched.dispatch_all(begin);
        inner.sched.replace(sched);
        let mut slots: Vec<Slot> =
            threads.into_iter().map(|thread| self.start(thread.body)).collect();
        let mut first_panic = None;
        while let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.drive(&mut slots))) {
            self.fell_all(&slots, &*panic);
            // Later panics follow from the first, and the panic hook has printed them.
            first_panic.get_or_insert(panic);
        }
        // Data dropped with a thread that never began is dropped outside simulated threads.
        inner.yielder.set(ptr::null());
        drop(slots);
        if let Some(panic) = first_panic {
            resume_unwind(panic);
        }
        let ends = |sched: &Sched| sched.tasks.iter().map(|task| task.at).max();
        inner.now.set(ends(&inner.sched.borrow()).unwrap_or(begin));
    }

    /// Runs the threads until all have ended, or one panics.
    fn drive(&self, slots: &mut [Slot]) {
        let inner = &*self.0;
        while let Some((index, until)) = self.next() {
            self.resume_at(index, until);
            let slot = &mut slots[index];
            inner.yielder.set(slot.yielder);
            let result = slot.coroutine.resume(());
            slot.yielder = inner.yielder.get();
            if let CoroutineResult::Return(()) = result {
                inner.sched.borrow_mut().end(index, inner.now.get());
            }
        }
    }

    /// The next thread and its time limit; `None` when all have ended.
    fn next(&self) -> Option<(usize, Ps)> {
        if let Some(chosen) = self.0.chosen.take() {
            return Some(chosen);
        }
        let mut sched = self.0.sched.borrow_mut();
        if let Some(chosen) = sched.advance() {
            return Some(chosen);
        }
        if sched.all_ended() {
            return None;
        }
        if self.0.felling.get() {
            sched.fell_sleepers();
            return sched.advance();
        }
        let dismissed = sched.dismiss();
        assert!(
            dismissed,
            "all simulated threads are asleep and nothing will wake them: {}",
            sched.sleep_report()
        );
        sched.advance()
    }

    /// Makes `index` the running thread, until `until`.
    #[inline]
    fn resume_at(&self, index: usize, until: Ps) {
        let inner = &*self.0;
        let task = &mut inner.sched.borrow_mut().tasks[index];
        inner.now.set(task.at);
        inner.until.set(task.runs_until(until));
        inner.current.set(index);
    }

    fn start<'a>(&self, body: Box<dyn FnOnce() + 'a>) -> Slot {
        let engine = self.clone();
        let entry = move |yielder: &Yielder<(), ()>, ()| {
            engine.0.yielder.set(yielder);
            felled::catch(body);
        };
        // SAFETY: `body` borrows from the caller of `run`, which outlives it. The coroutine is a
        // local of `run_all`, which runs it to its end before it returns and never forgets it.
        let coroutine = unsafe { Coroutine::with_stack_unchecked(DefaultStack::default(), entry) };
        Slot { coroutine, yielder: ptr::null() }
    }

    /// Whether the caller is a simulated thread that may yield. A thread that unwinds keeps its
    /// processor: the host counts panics per host thread, so another simulated thread would see
    /// this one's.
    fn may_switch(&self) -> bool {
        !self.0.yielder.get().is_null() && !std::thread::panicking()
    }

    /// Other threads are due before the running thread acts at its time.
    #[cold]
    fn switch(&self) {
        let inner = &*self.0;
        if !self.may_switch() {
            return;
        }
        inner.refused.set(0);
        let index = inner.current.get();
        {
            let mut sched = inner.sched.borrow_mut();
            sched.acts_at(index, inner.now.get());
            if inner.postponed.take() {
                sched.dispatch_all(inner.now.get());
            }
        }
        self.give_way();
    }

    /// Yields, and returns when the running thread is the next to act. Unwinds if the thread must
    /// fall. The schedule has its time already.
    fn give_way(&self) {
        self.yield_now();
        self.fall_if_due();
    }

    /// [`Engine::give_way`] for a caller that checks itself whether the thread must fall.
    fn yield_now(&self) {
        let inner = &*self.0;
        let index = inner.current.get();
        // Process sleepers here: often this thread then continues at once.
        let chosen = inner.sched.borrow_mut().advance();
        if let Some((next, until)) = chosen
            && next == index
        {
            self.resume_at(index, until);
            return;
        }
        inner.chosen.set(chosen);
        inner.switches.set(inner.switches.get() + 1);
        let yielder = inner.yielder.get();
        // SAFETY: the coroutine that runs now has set the pointer: each resume restores the pointer
        // of the coroutine it resumes, and `run_all` clears it. So its yielder is further down this
        // very stack.
        unsafe { (*yielder).suspend(()) }
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("now_ps", &self.now_ps()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
