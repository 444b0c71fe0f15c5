//! Ends the remaining threads after one has panicked.
//!
//! *Read first*: [`super`]'s page, on panics.
//!
//! # How it works
//! A thread *falls* when a panic begins at the point where it is suspended. The payload is
//! [`Fall`], which no code outside this file can name, and the panic hook is not called for it.
//! The panic ends at the bottom of the thread's stack, in [`catch`].
//!
//! Threads are not simply forgotten, because others may refer to data on their stacks: for instance
//! a node in a bus's queue that points to a buffer of `run`'s caller. Only `Drop` code removes such
//! a node.
//!
//! 1. Runnable threads: a thread that runs or is ready falls at once. If it holds a bus, its `Drop`
//!    code hands the bus to sleepers, which are served before they fall.
//! 2. Sleepers: a sleeping thread falls when all remaining threads sleep for good. If it is woken
//!    before, it may run for [`GRACE_PS`]. So may a thread that caught the panic of its first fall.
//! 3. Again: from its second fall on, a thread falls wherever it yields.
//! 4. Too often: a thread that has fallen [`FALLS_MAX`] times ends the process with a message.

use std::any::Any;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process;

use super::sched::{Sched, State, Task};
use super::{Engine, Slot};
use crate::chip::Ps;

/// How long a thread may run after it was woken, or after it caught the panic that was to end it.
pub(super) const GRACE_PS: Ps = 10_000_000_000;
/// The thread sleeps. It has [`GRACE_PS`] once it is woken.
const ONCE_WOKEN: Ps = Ps::MAX;
/// The number of falls after which the process ends.
const FALLS_MAX: u32 = 1_000;
/// The number of times a thread that unwinds may check for other threads, before the process ends.
const LOOKS_MAX: u32 = 1_000_000;

/// The panic payload for threads that did not panic themselves.
struct Fall;

/// Runs a thread's body to its end, or until the thread falls.
pub(super) fn catch(body: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body))
        && !panic.is::<Fall>()
    {
        resume_unwind(panic);
    }
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text")
}

impl Task {
    /// The time until which the running thread may run, given that it is first until `until`.
    pub(super) fn runs_until(&mut self, until: Ps) -> Ps {
        if self.falls == Some(ONCE_WOKEN) {
            self.falls = Some(self.at.saturating_add(GRACE_PS));
        }
        self.falls.map_or(until, |falls| until.min(falls))
    }
}

impl Engine {
    /// A thread or the schedule panicked: the remaining threads fall.
    pub(super) fn fell_all(&self, slots: &[Slot], panic: &(dyn Any + Send)) {
        let inner = &*self.0;
        let begins = !inner.felling.replace(true);
        if begins {
            inner.first_panic.replace(Some(text(panic).into()));
        }
        inner.chosen.set(None);
        inner.refused.set(0);
        let now = inner.now.get();
        let mut sched = inner.sched.borrow_mut();
        let mut ended = false;
        for (index, slot) in slots.iter().enumerate() {
            // A thread that has not begun has nothing to undo: its body is dropped with its
            // coroutine.
            let over = slot.coroutine.done() || !slot.coroutine.started();
            if over && !matches!(sched.tasks[index].state, State::Ended) {
                sched.end(index, now);
                ended = true;
            }
        }
        if begins {
            // Cases 1 and 2: runnable threads fall now, sleepers later.
            sched.fell(now, Sleepers::Stay);
        } else if !ended {
            sched.fell(now, Sleepers::Fall);
        }
    }

    /// Unwinds the running thread if it must fall.
    pub(super) fn fall_if_due(&self) {
        let inner = &*self.0;
        if !inner.felling.get() {
            return;
        }
        {
            let mut sched = inner.sched.borrow_mut();
            let task = &mut sched.tasks[inner.current.get()];
            if task.falls.is_none_or(|falls| inner.now.get() <= falls && falls > 0) {
                return;
            }
            task.fallen += 1;
            if task.fallen > FALLS_MAX {
                let name = &task.name;
                self.end_process(&format!("thread {name:?} catches whatever is to end it"));
            }
            // Cases 2 and 3: grace after the first fall, none later.
            let again = if task.fallen == 1 { inner.now.get() + GRACE_PS } else { 0 };
            task.falls = Some(again);
            inner.until.set(inner.until.get().min(again));
        }
        resume_unwind(Box::new(Fall));
    }

    /// A thread that unwinds waits for other threads. It keeps its processor, so they may never
    /// run. A process that ends with a message is better than one that hangs.
    pub(super) fn refuse(&self) {
        let refused = &self.0.refused;
        refused.set(refused.get().saturating_add(1));
        if refused.get() > LOOKS_MAX {
            self.end_process("a thread that unwinds waits for another, which cannot run any more");
        }
    }

    /// Ends the process with a message that a test harness does not capture.
    fn end_process(&self, why: &str) -> ! {
        let (name, first) = (self.running_name(), self.0.first_panic.take());
        let mut stderr = std::io::stderr().lock();
        let name = name.as_deref().unwrap_or("none");
        let _ = writeln!(
            stderr,
            "barewire-sim: {why}: the process ends here, in simulated thread {name:?}; what panicked \
             first: {}",
            first.as_deref().unwrap_or("that thread")
        );
        process::abort();
    }
}

/// What happens to threads that sleep.
#[derive(Clone, Copy)]
enum Sleepers {
    Stay,
    Fall,
}

impl Sched {
    /// Marks the remaining threads to fall.
    fn fell(&mut self, now: Ps, sleepers: Sleepers) {
        for index in 0..self.tasks.len() {
            let task = &mut self.tasks[index];
            match (&task.state, sleepers) {
                (State::Ended, _) => {}
                (State::Sleeps(_), Sleepers::Stay) => task.falls = Some(ONCE_WOKEN),
                (State::Sleeps(_), Sleepers::Fall) => {
                    task.falls = Some(0);
                    task.lends_to = None;
                    task.woken = false;
                    self.rouse(index);
                }
                _ => task.falls = Some(0),
            }
        }
        self.dispatch_all(now);
    }

    /// All remaining threads sleep for good: they fall.
    pub(super) fn fell_sleepers(&mut self) {
        let now = self.tasks.iter().map(|task| task.at).max().unwrap_or(0);
        self.fell(now, Sleepers::Fall);
    }
}
