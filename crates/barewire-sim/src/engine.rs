//! Virtual time, and simulated threads that share it.
//!
//! *Read first*: nothing but this page.
//!
//! # How it works
//! Every simulated thread stands for a processor of its own and has its own time. Spending time is
//! the only way to let others run: the thread that is earliest runs, and of equals the one that
//! was given first. So whatever a thread does after [`Engine::spend_ps`] returns happens, for all
//! threads, in the order of virtual time, and the same program gives the same order each time.
//!
//! Threads are stackful coroutines on one thread of the host: a switch costs some tens of
//! nanoseconds, and none happens while the running thread is still the earliest. Outside
//! [`Engine::run`] there is one thread, the caller, and spending time only adds.
//!
//! # Panics in a simulated thread
//! The first panic ends the run: the other threads are unwound where they stand (their `Drop` code
//! runs, and may spend time), and the panic goes on in the caller of [`Engine::run`]. A thread
//! that is unwinding keeps its processor until it is done, so that no other thread sees
//! `std::thread::panicking`.
//!
//! # Not supported
//! Several host threads on one engine; `run` from within a simulated thread of the same engine.
//!
//! # Safety
//! This file opts in to unsafe code for two things the coroutine crate cannot promise by types:
//! threads that borrow from the caller of `run`, and reaching the running coroutine's yielder from
//! the depth of the call stack.

#![allow(unsafe_code, reason = "scoped coroutines and the yielder of the one that runs")]

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::chip::{PS_PER_NS, Ps};

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
    name: RefCell<Option<Rc<str>>>,
}

thread_local! {
    static CURRENT: RefCell<Option<Engine>> = const { RefCell::new(None) };
}

/// Relaxes the engine whose simulated thread calls: the hook for a lock's spin loop, as a plain
/// `fn()`. Outside [`Engine::run`] it is a hint to the host's processor and nothing else.
pub fn relax_current() {
    // Cloned out: the call may switch, and nothing may stay borrowed across a switch.
    match CURRENT.with_borrow(Clone::clone) {
        Some(engine) => engine.relax(),
        None => std::hint::spin_loop(),
    }
}

/// A simulated thread to be: a name and what it does.
pub struct Thread<'a> {
    name: Rc<str>,
    body: Box<dyn FnOnce() + 'a>,
}

impl<'a> Thread<'a> {
    /// A thread called `name` that runs `body` and ends.
    pub fn new(name: &str, body: impl FnOnce() + 'a) -> Self {
        Self { name: name.into(), body: Box::new(body) }
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
    name: Rc<str>,
    at: Ps,
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
            name: RefCell::new(None),
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
        self.spend_ps(self.0.relax_ps.get());
    }

    /// Sets what one [`Engine::relax`] spends; at least 1 ps, else a spinning thread would stop
    /// the time it waits for.
    pub fn set_relax_ps(&self, ps: Ps) {
        self.0.relax_ps.set(ps.max(1));
    }

    /// How often one thread gave way to another.
    #[must_use]
    pub fn switches(&self) -> u64 {
        self.0.switches.get()
    }

    /// The running simulated thread's name; `None` outside [`Engine::run`].
    #[must_use]
    pub fn running_name(&self) -> Option<Rc<str>> {
        self.0.name.borrow().clone()
    }

    /// Runs `threads` until all have ended; all begin now. Afterwards the time is that of the
    /// thread that ended last.
    ///
    /// # Panics
    /// With the panic of the first thread that panicked; if called from a simulated thread of the
    /// same engine; if the host has no memory for a stack.
    pub fn run(&self, threads: Vec<Thread<'_>>) {
        assert!(!self.0.running.replace(true), "Engine::run called from a simulated thread");
        let outer = CURRENT.replace(Some(self.clone()));
        let outcome = catch_unwind(AssertUnwindSafe(|| self.run_all(threads)));
        // Whatever happened, nothing of this run may be reached any more: `run_all` has dropped
        // its coroutines.
        CURRENT.set(outer);
        self.0.yielder.set(ptr::null());
        self.0.until.set(Ps::MAX);
        self.0.name.replace(None);
        self.0.running.set(false);
        if let Err(panic) = outcome {
            resume_unwind(panic);
        }
    }

    fn run_all(&self, threads: Vec<Thread<'_>>) {
        let inner = &*self.0;
        let begin = inner.now.get();
        let mut end = begin;
        let mut slots: Vec<Slot> =
            threads.into_iter().map(|thread| self.start(thread, begin)).collect();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            while let Some(index) = earliest(&slots) {
                inner.until.set(runs_until(&slots, index));
                let slot = &mut slots[index];
                inner.now.set(slot.at);
                inner.yielder.set(slot.yielder);
                inner.name.replace(Some(slot.name.clone()));
                let result = slot.coroutine.resume(());
                slot.at = inner.now.get();
                slot.yielder = inner.yielder.get();
                if let CoroutineResult::Return(()) = result {
                    end = end.max(slot.at);
                    slots.remove(index);
                }
            }
        }));
        match outcome {
            Ok(()) => inner.now.set(end),
            Err(panic) => {
                for slot in &mut slots {
                    // The next attempt to switch comes back as an unwind, see `switch`.
                    inner.until.set(0);
                    inner.yielder.set(slot.yielder);
                    slot.coroutine.force_unwind();
                }
                resume_unwind(panic);
            }
        }
    }

    fn start(&self, thread: Thread<'_>, at: Ps) -> Slot {
        let engine = self.clone();
        let Thread { name, body } = thread;
        let entry = move |yielder: &Yielder<(), ()>, ()| {
            engine.0.yielder.set(yielder);
            body();
        };
        // SAFETY: what `body` borrows outlives the call of `run`, and the coroutine is a local of
        // `run_all`, which drives it to its end or unwinds and drops it before it returns; it is
        // never forgotten.
        let coroutine = unsafe { Coroutine::with_stack_unchecked(DefaultStack::default(), entry) };
        Slot { coroutine, name, at, yielder: ptr::null() }
    }

    #[cold]
    fn switch(&self) {
        let yielder = self.0.yielder.get();
        // A thread that unwinds keeps its processor: the host counts panics per host thread, and
        // another simulated thread would see this one's.
        if yielder.is_null() || std::thread::panicking() {
            return;
        }
        self.0.switches.set(self.0.switches.get() + 1);
        // SAFETY: the pointer was set by the coroutine that runs now (each resume restores that of
        // the coroutine it resumes, and `run` clears it), so its yielder lives further down this
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

fn earliest(slots: &[Slot]) -> Option<usize> {
    (0..slots.len()).min_by_key(|&index| (slots[index].at, index))
}

/// The last instant at which the thread at `index` still goes before all others.
fn runs_until(slots: &[Slot], index: usize) -> Ps {
    let others = slots.iter().enumerate().filter(|&(other, _)| other != index);
    // Of equals the lower index runs: against a lower one, one instant less.
    others
        .map(|(other, slot)| if other < index { slot.at.saturating_sub(1) } else { slot.at })
        .min()
        .unwrap_or(Ps::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_a_thread_time_only_adds() {
        let engine = Engine::new();
        engine.spend_ps(5);
        engine.set_relax_ps(2);
        engine.relax();
        relax_current();
        assert_eq!(engine.now_ps(), 7);
        engine.spend_ps(Ps::MAX);
        assert_eq!(engine.now_ps(), END_OF_TIME_PS);
    }

    fn trace(steps: [(&'static str, Ps); 3]) -> Vec<(Ps, &'static str)> {
        let engine = Engine::new();
        let seen = RefCell::new(Vec::new());
        let threads = steps.map(|(name, step)| {
            let (engine, seen) = (&engine, &seen);
            Thread::new(name, move || {
                for _ in 0..4 {
                    engine.spend_ps(step);
                    assert_eq!(engine.running_name().as_deref(), Some(name));
                    seen.borrow_mut().push((engine.now_ps(), name));
                }
            })
        });
        engine.run(threads.into());
        assert_eq!(engine.running_name(), None);
        seen.into_inner()
    }

    #[test]
    fn the_earliest_runs_and_of_equals_the_first_given() {
        let seen = trace([("a", 10), ("b", 20), ("c", 10)]);
        let times: Vec<Ps> = seen.iter().map(|&(at, _)| at).collect();
        assert!(times.is_sorted(), "{seen:?}");
        let names: String = seen.iter().map(|&(_, name)| name).collect();
        assert_eq!(names, "acabcacabcbb");
        assert_eq!(seen, trace([("a", 10), ("b", 20), ("c", 10)]), "same program, same order");
    }

    #[test]
    fn the_time_after_a_run_is_the_last_threads() {
        let engine = Engine::new();
        engine.spend_ps(100);
        engine.run(vec![
            Thread::new("long", || engine.spend_ps(50)),
            Thread::new("short", || engine.spend_ps(1)),
        ]);
        assert_eq!(engine.now_ps(), 150);
    }

    #[test]
    fn a_single_thread_never_switches() {
        let engine = Engine::new();
        engine.run(vec![Thread::new("only", || (0..1000).for_each(|_| engine.spend_ps(1)))]);
        assert_eq!((engine.now_ps(), engine.switches()), (1000, 0));
    }

    #[test]
    fn relax_lets_the_one_waited_for_go_on() {
        let engine = Engine::new();
        let done = Cell::new(false);
        engine.run(vec![
            Thread::new("waits", || {
                while !done.get() {
                    relax_current();
                }
                assert!(engine.now_ps() >= 70_000);
            }),
            Thread::new("works", || {
                engine.spend_ps(70_000);
                done.set(true);
            }),
        ]);
    }

    /// Spends time when dropped, as a chip-select guard does.
    struct Guard<'a>(&'a Engine, &'a Cell<u32>);
    impl Drop for Guard<'_> {
        fn drop(&mut self) {
            self.0.spend_ps(1_000_000);
            self.1.set(self.1.get() + 1);
        }
    }

    #[test]
    fn a_panic_unwinds_all_and_goes_on_in_the_caller() {
        let engine = Engine::new();
        let dropped = Cell::new(0);
        let ended = Cell::new(false);
        let panic = catch_unwind(AssertUnwindSafe(|| {
            engine.run(vec![
                Thread::new("panics", || {
                    let _guard = Guard(&engine, &dropped);
                    engine.spend_ps(5);
                    resume_unwind(Box::new("broken"));
                }),
                Thread::new("stands", || {
                    let _guard = Guard(&engine, &dropped);
                    loop {
                        // Even a thread that swallows unwinds comes to its end.
                        let _ = catch_unwind(AssertUnwindSafe(|| engine.spend_ps(1)));
                        if engine.now_ps() > 1_000_000_000 {
                            break;
                        }
                        engine.spend_ps(1);
                    }
                    ended.set(true);
                }),
                Thread::new("far ahead", || {
                    let _guard = Guard(&engine, &dropped);
                    engine.spend_ps(2_000_000_000);
                }),
            ]);
        }));
        let panic = panic.expect_err("the panic goes on");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"broken"));
        assert_eq!(dropped.get(), 3);
        assert!(!ended.get());
        // The engine is whole again.
        engine.run(vec![Thread::new("after", || engine.spend_ps(1))]);
    }

    #[test]
    fn a_panic_caught_within_a_thread_disturbs_no_other() {
        let engine = Engine::new();
        let dropped = Cell::new(0);
        engine.run(vec![
            Thread::new("catches", || {
                let caught = catch_unwind(AssertUnwindSafe(|| {
                    let _guard = Guard(&engine, &dropped);
                    resume_unwind(Box::new("inner"));
                }));
                assert!(caught.is_err());
                engine.spend_ps(1);
            }),
            Thread::new("other", || {
                for _ in 0..10 {
                    engine.spend_ps(300_000);
                    assert!(!std::thread::panicking());
                }
            }),
        ]);
        assert_eq!(dropped.get(), 1);
    }

    #[test]
    #[should_panic(expected = "called from a simulated thread")]
    fn a_run_within_a_run_is_refused() {
        let engine = Engine::new();
        engine.run(vec![Thread::new("outer", || engine.run(vec![]))]);
    }
}
