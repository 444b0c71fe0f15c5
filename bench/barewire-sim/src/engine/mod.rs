//! Virtual time, and simulated threads that share it.
//!
//! *Read first*: nothing but this page.
//!
//! # How it works
//! A simulated thread stands for a processor of its own, unless it is put [on](Thread::on) one that
//! it shares, and has its own time. Spending time is the only way to let others run: the thread
//! that is earliest runs, and of equals the one that was given first. So whatever a thread does
//! after [`Engine::spend_ps`] returns happens, for all threads, in the order of virtual time, and
//! the same program gives the same order each time.
//!
//! Threads are stackful coroutines on one thread of the host: a switch costs some tens of
//! nanoseconds, and none happens while the running thread is still the earliest. Outside
//! [`Engine::run`] there is one thread, the caller, and spending time only adds.
//!
//! # Shared processors
//! Of the threads on one processor the one of highest priority runs, of equals the one that became
//! ready first, without time slices. One that becomes ready takes the processor from a lower one
//! in the middle of what that spends: the rest is spent when it has the processor again.
//! [`Costs::context_switch_ps`] is charged to the thread that a processor is switched to: from
//! another one, or from idleness, which a kernel has a thread for.
//!
//! A thread gives its processor away by [`Engine::wait`] (until a [`wake`](Engine::wake) of the
//! word), [`Engine::sleep_until`], or waiting for an interrupt line
//! ([`IntLine`](crate::line::IntLine), [`Board::wait_interrupt`](crate::Board::wait_interrupt)).
//!
//! # Interrupts
//! A hard interrupt is a [thread](Thread::interrupt) that waits for a line, handles it, and waits
//! again. It goes before every other thread of its processor; entering costs
//! [`Costs::interrupt_latency_ps`] and leaving [`Costs::interrupt_exit_ps`] instead of a switch. It
//! must not sleep for anything but a line. Any other thread that waits for a line is woken by a
//! kernel's handler, [`Costs::irq_thread_ps`] after the line rises.
//!
//! # Ordering
//! 1. What is due to sleepers (a wake-up, a deadline, a line that rises) happens before whatever a
//!    thread does at the same instant.
//! 2. Of threads that act at the same instant, the one that was given first goes first.
//!
//! # Panics in a simulated thread
//! The first panic ends the run, and goes on in the caller of [`Engine::run`]. Every other thread
//! is unwound before that, where it stands, by a panic with a payload of the engine's own; its
//! `Drop` code runs in virtual time. Those that sleep are unwound when all that are left do, so that
//! they may be woken before: whoever holds a bus hands it on when it is unwound.
//!
//! A thread that was woken, or that catches the panic by which it is to end, as a bus does that has
//! others to serve, goes on for 10 virtual milliseconds as any thread does.
//!
//! A thread that is unwinding keeps its processor until it is done, so that no other thread sees
//! `std::thread::panicking`; its sleeps return at once.
//!
//! # Not supported
//! Several host threads on one engine; `run` from within a simulated thread of the same engine.
//! Time slices. The time that a kernel's handler takes from the thread it interrupts. Interrupts
//! that interrupt a handler.
//!
//! # Safety
//! This file opts in to unsafe code for two things the coroutine crate cannot promise by types:
//! threads that borrow from the caller of `run`, and reaching the running coroutine's yielder from
//! the depth of the call stack.

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

/// What [`Engine::relax`] spends unless told otherwise: a few instructions of a spin loop.
pub const RELAX_PS: Ps = 10 * PS_PER_NS;

/// Where time stops: far enough from the end of [`Ps`] that models add without overflow. It is 106
/// days after power-up.
pub const END_OF_TIME_PS: Ps = Ps::MAX / 2;

/// The keeper of virtual time: a handle, cheap to clone, all clones one engine.
#[derive(Clone)]
pub struct Engine(Rc<Inner>);

struct Inner {
    /// The running thread's time.
    now: Cell<Ps>,
    /// The running thread is the one to run up to and including this time.
    until: Cell<Ps>,
    relax_ps: Cell<Ps>,
    switches: Cell<u64>,
    /// The running coroutine's yielder; null outside any simulated thread.
    yielder: Cell<*const Yielder<(), ()>>,
    running: Cell<bool>,
    /// The running thread's place in `sched`; meaningless outside any simulated thread.
    current: Cell<usize>,
    sched: RefCell<Sched>,
    costs: Cell<Costs>,
    /// A panic ended the run: the threads that are left are unwound.
    felling: Cell<bool>,
    /// What that panic said.
    first_panic: RefCell<Option<String>>,
    /// How often a thread that unwinds has looked for what others are to do.
    refused: Cell<u32>,
    /// How many threads sleep on an interrupt line.
    line_sleepers: Cell<u32>,
    /// When those are to look again.
    look: Rc<Cell<Option<Ps>>>,
    /// Processors are still to be given to whom they are due.
    postponed: Cell<bool>,
    /// Who acts next and until when, where the thread that gives way has found out.
    chosen: Cell<Option<(usize, Ps)>>,
}

thread_local! {
    static CURRENT: RefCell<Option<Engine>> = const { RefCell::new(None) };
}

/// Relaxes the engine whose simulated thread calls: the hook for a lock's spin loop, as a plain
/// `fn()`. Outside [`Engine::run`] it is a hint to the host's processor and nothing else.
pub fn relax_current() {
    // Cloned out: the call may switch, and nothing may stay borrowed across a switch.
    match current() {
        Some(engine) => engine.relax(),
        None => std::hint::spin_loop(),
    }
}

/// The engine whose simulated thread calls.
pub(crate) fn current() -> Option<Engine> {
    CURRENT.with_borrow(Clone::clone)
}

/// A simulated thread to be: a name, what it does, and where it runs.
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

    /// The same on processor `cpu`, shared by all that are put there: a name, no more. The higher
    /// `priority` goes first.
    #[must_use]
    pub fn on(self, cpu: usize, priority: u8) -> Self {
        Self { cpu: Some(cpu), priority: priority.into(), ..self }
    }

    /// The same as the hard interrupt of processor `cpu`: above every priority there, entered
    /// without a context switch. It is to wait for a line in a loop, which ends when
    /// the wait returns false: then all other threads have ended.
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

/// A thread that was started.
struct Slot {
    coroutine: Coroutine<(), (), (), DefaultStack>,
    yielder: *const Yielder<(), ()>,
}

impl Engine {
    /// An engine at time zero.
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

    /// Lets `ps` pass for the running thread; returns when no other thread is earlier. Stops at
    /// [`END_OF_TIME_PS`].
    #[inline]
    pub fn spend_ps(&self, ps: Ps) {
        let now = self.0.now.get().saturating_add(ps).min(END_OF_TIME_PS);
        self.0.now.set(now);
        if now > self.0.until.get() {
            self.switch();
        }
    }

    /// One turn of a spin loop: spends a little, so that whoever is waited for goes on.
    pub fn relax(&self) {
        if std::thread::panicking() {
            self.refuse();
        }
        self.spend_ps(self.0.relax_ps.get());
    }

    /// Sets what one [`Engine::relax`] spends; at least 1 ps, else a spinning thread would stop
    /// the time it waits for.
    pub fn set_relax_ps(&self, ps: Ps) {
        self.0.relax_ps.set(ps.max(1));
    }

    /// What threads cost in the runs to come.
    pub fn set_costs(&self, costs: Costs) {
        self.0.costs.set(costs);
    }

    /// What threads cost.
    #[must_use]
    pub fn costs(&self) -> Costs {
        self.0.costs.get()
    }

    /// How often one thread gave way to another.
    #[must_use]
    pub fn switches(&self) -> u64 {
        self.0.switches.get()
    }

    /// The running simulated thread's name; `None` outside [`Engine::run`].
    #[must_use]
    pub fn running_name(&self) -> Option<Rc<str>> {
        Some(self.0.sched.borrow().tasks[self.running_index()?].name.clone())
    }

    /// Runs `threads` until all have ended; all begin now. Afterwards the time is that of the
    /// thread that ended last.
    ///
    /// # Panics
    /// With the panic of the first thread that panicked; if threads sleep that nobody will wake
    /// any more, naming them; if called from a simulated thread of the same engine; if the host has
    /// no memory for a stack.
    pub fn run(&self, threads: Vec<Thread<'_>>) {
        assert!(!self.0.running.replace(true), "Engine::run called from a simulated thread");
        let outer = CURRENT.replace(Some(self.clone()));
        let outcome = catch_unwind(AssertUnwindSafe(|| self.run_all(threads)));
        // Whatever happened, nothing of this run may be reached any more: `run_all` has dropped
        // its coroutines.
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
            // Later ones come of the first, and were told by the panic hook.
            first_panic.get_or_insert(panic);
        }
        // What is dropped with a thread that never began is no simulated thread's.
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

    /// Who acts next, and until when; nobody when all have ended.
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
        // SAFETY: what `body` borrows outlives the call of `run`, and the coroutine is a local of
        // `run_all`, which drives it to its end before it returns; it is never forgotten.
        let coroutine = unsafe { Coroutine::with_stack_unchecked(DefaultStack::default(), entry) };
        Slot { coroutine, yielder: ptr::null() }
    }

    /// Whether the caller is a simulated thread that may give way. A thread that unwinds keeps its
    /// processor: the host counts panics per host thread, and another simulated thread would see
    /// this one's.
    fn may_switch(&self) -> bool {
        !self.0.yielder.get().is_null() && !std::thread::panicking()
    }

    /// Others are due before the running thread acts at its time.
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

    /// Returns when the running thread, whose place is in the schedule, is the one to act; unwinds
    /// if the thread is to fall.
    fn give_way(&self) {
        self.yield_now();
        self.fall_if_due();
    }

    /// [`Engine::give_way`] for a caller that sees for itself whether the thread is to fall.
    fn yield_now(&self) {
        let inner = &*self.0;
        let index = inner.current.get();
        // What happens to sleepers is carried out here: often the thread then goes on at once.
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
        // SAFETY: the pointer was set by the coroutine that runs now (each resume restores that of
        // the coroutine it resumes, and `run_all` clears it), so its yielder lives further down this
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
