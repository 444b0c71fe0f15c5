//! The calls by which a simulated thread gives up its processor and is woken.
//!
//! *Read first*: [`super`]'s page.
//!
//! # Ordering
//! 1. Cost first: a call spends its cost, and other threads may run meanwhile.
//! 2. Then act: it reads the word and sleeps, or changes the word, at a single instant. No wake and
//!    no change comes in between.

use std::ptr;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use barewire::bus::platform::{AtomicU32, WAITERS, WaitWord};

use super::sched::{Line, Look, On, Sched, Sleep};
use super::{Engine, Ps};

/// A lock owner's id outside simulated threads. No run has that many threads.
pub(crate) const OUTSIDE_ID: u32 = (1 << 30) - 1;

impl Engine {
    /// The running simulated thread's index in the list given to [`Engine::run`]; `None` outside.
    #[must_use]
    pub fn running_index(&self) -> Option<usize> {
        (!self.0.yielder.get().is_null()).then(|| self.0.current.get())
    }

    /// The running simulated thread's priority, including lent priority. `None` outside, and for
    /// interrupt threads, which are above all priorities.
    #[must_use]
    pub fn priority(&self) -> Option<u8> {
        let priority = self.0.sched.borrow().tasks[self.running_index()?].priority;
        u8::try_from(priority).ok()
    }

    /// Whether the running thread shares its processor.
    #[must_use]
    pub fn shares_processor(&self) -> bool {
        self.running_index().is_some_and(|index| !self.0.sched.borrow().tasks[index].alone)
    }

    /// Changes the schedule at the running thread's time, then yields if necessary.
    fn change(&self, change: impl FnOnce(&mut Sched, usize, Ps)) {
        self.change_and_yield(change);
        self.fall_if_due();
    }

    fn change_and_yield(&self, change: impl FnOnce(&mut Sched, usize, Ps)) {
        let (index, now) = (self.0.current.get(), self.0.now.get());
        {
            let mut sched = self.0.sched.borrow_mut();
            sched.acts_at(index, now);
            change(&mut sched, index, now);
        }
        self.yield_now();
    }

    /// Puts the running thread to sleep. Returns whether it was woken before its deadline.
    fn sleep(&self, sleep: Sleep) -> bool {
        self.change(|sched, index, now| {
            let task = &sched.tasks[index];
            assert!(
                !task.is_interrupt() || matches!(sleep.on, On::Line(_)),
                "interrupt thread {:?} sleeps: a handler may only make calls that never block",
                task.name
            );
            sched.sleep(index, sleep, now);
        });
        self.0.sched.borrow().tasks[self.0.current.get()].woken
    }

    /// Sleeps while `word` holds `expected`, until an [`Engine::wake`] of it. Returns at once
    /// outside simulated threads.
    ///
    /// # Panics
    /// In an interrupt thread, and with interrupts [masked](Engine::masked).
    pub fn wait<'w>(&self, word: impl Into<WaitWord<'w>>, expected: u32) {
        self.wait_word(word.into(), expected, None);
    }

    /// [`Engine::wait`] for at most `timeout_ps`. Returns false on timeout.
    ///
    /// # Panics
    /// As [`Engine::wait`].
    pub fn wait_timeout(&self, word: &AtomicU32, expected: u32, timeout_ps: Ps) -> bool {
        self.wait_word(word.into(), expected, Some(timeout_ps))
    }

    fn wait_word(&self, word: WaitWord<'_>, expected: u32, timeout_ps: Option<Ps>) -> bool {
        if !self.may_switch() {
            // A thread that unwinds cannot sleep.
            self.relax();
            return true;
        }
        self.spend_ps(self.costs().futex_call_ps);
        if word.load() != expected {
            return true;
        }
        let deadline = timeout_ps.map(|ps| self.now_ps().saturating_add(ps));
        let on = On::Word(word.as_ptr().addr());
        self.sleep(Sleep { on, at: deadline, deadline })
    }

    /// Wakes all threads that sleep on `word`. Only the address is used, so the word may be gone.
    /// No effect outside simulated threads.
    pub fn wake(&self, word: *const AtomicU32) {
        if self.running_index().is_none() {
            return;
        }
        let sleepers = self.0.sched.borrow().has_sleepers(word.addr());
        let costs = self.costs();
        self.spend_ps(if sleepers { costs.wake_call_ps } else { costs.futex_call_ps });
        if sleepers {
            self.stir(|sched, index, now| sched.wake(index, word.addr(), now));
        }
    }

    /// [`Engine::change`] for calls that a thread may also make while it unwinds: it changes the
    /// schedule and keeps its processor.
    fn stir(&self, change: impl FnOnce(&mut Sched, usize, Ps)) {
        if self.may_switch() {
            self.change(change);
        } else {
            let (index, now) = (self.0.current.get(), self.0.now.get());
            let mut sched = self.0.sched.borrow_mut();
            sched.acts_at(index, now);
            sched.mask(index);
            change(&mut sched, index, now);
            sched.unmask(index);
            self.dispatch_later();
        }
    }

    /// The schedule was changed by a thread that still keeps its processor.
    fn dispatch_later(&self) {
        self.0.postponed.set(true);
        self.0.until.set(0);
    }

    /// Gives up the processor and sleeps until `at`; the wake-up's cost comes on top. Outside
    /// simulated threads, time jumps to `at`.
    ///
    /// # Panics
    /// As [`Engine::wait`].
    pub fn sleep_until(&self, at: Ps) {
        if !self.may_switch() {
            self.spend_ps(at.saturating_sub(self.now_ps()));
            return;
        }
        self.spend_ps(self.costs().futex_call_ps);
        if at > self.now_ps() {
            self.sleep(Sleep { on: On::Timer, at: Some(at), deadline: Some(at) });
        }
    }

    /// Sleeps until `line` is high. Returns false if `timeout_ps` passed before, or, in an
    /// interrupt thread, if all other threads have ended.
    pub(crate) fn wait_line(&self, line: Rc<dyn Line>, timeout_ps: Option<Ps>) -> bool {
        let Some(index) = self.running_index() else {
            return self.wait_line_unthreaded(&*line, timeout_ps);
        };
        if !self.may_switch() {
            return false;
        }
        let entered = std::mem::take(&mut self.0.sched.borrow_mut().tasks[index].entered);
        let (costs, interrupt) = (self.costs(), self.is_interrupt(index));
        if entered {
            self.spend_ps(costs.interrupt_exit_ps);
        } else if !interrupt {
            self.spend_ps(costs.futex_call_ps);
        }
        let now = self.now_ps();
        let deadline = timeout_ps.map(|ps| now.saturating_add(ps));
        self.0.line_sleepers.set(self.0.line_sleepers.get() + 1);
        // The line is checked for the first time when the sleep begins.
        let woken = self.sleep(Sleep { on: On::Line(line), at: Some(now), deadline });
        self.0.line_sleepers.set(self.0.line_sleepers.get() - 1);
        woken
    }

    fn is_interrupt(&self, index: usize) -> bool {
        self.0.sched.borrow().tasks[index].is_interrupt()
    }

    /// A processor without threads that waits for an event and then enters the handler.
    fn wait_line_unthreaded(&self, line: &dyn Line, timeout_ps: Option<Ps>) -> bool {
        let deadline = timeout_ps.map(|ps| self.now_ps().saturating_add(ps));
        loop {
            let now = self.now_ps();
            let late = deadline.is_some_and(|deadline| deadline <= now);
            let at = match (line.look(now), deadline) {
                (Look::High, _) => {
                    self.spend_ps(self.costs().interrupt_latency_ps);
                    return true;
                }
                _ if late => return false,
                (Look::Due(at), Some(deadline)) => at.min(deadline),
                (Look::Due(at), None) => at,
                (Look::Never, Some(deadline)) => deadline,
                (Look::Never, None) => panic!("nothing will raise the interrupt line waited for"),
            };
            self.spend_ps(at.saturating_sub(now));
        }
    }

    /// Called when something changed that an interrupt line depends on.
    #[inline]
    pub(crate) fn look_again(&self) {
        if self.0.line_sleepers.get() > 0 {
            // A model may call this while the schedule processes an event, at the event's time.
            let carried_out = self.0.sched.try_borrow_mut().is_err();
            let now = self.now_ps();
            self.0.look.set(Some(if carried_out { 0 } else { now }));
            // The check is due before the running thread's next action.
            self.0.until.set(self.0.until.get().min(now.saturating_sub(1)));
        }
    }

    /// Runs `f` with interrupts and other threads of the caller's processor masked.
    pub fn masked(&self, f: &mut dyn FnMut()) {
        let Some(index) = self.running_index() else { return f() };
        self.0.sched.borrow_mut().mask(index);
        let masked = UnmaskOnDrop(self, index);
        f();
        drop(masked);
        // Deferred interrupts and threads run now.
        self.give_way_if_due();
    }

    fn give_way_if_due(&self) {
        if self.0.now.get() > self.0.until.get() {
            self.switch();
        }
    }

    /// [`Inheritance::id`](barewire::bus::platform::Inheritance::id).
    pub(crate) fn lock_id(&self) -> u32 {
        self.running_index().map_or(OUTSIDE_ID, |index| index as u32 + 1)
    }

    /// [`Inheritance::lock`](barewire::bus::platform::Inheritance::lock).
    pub(crate) fn lock(&self, word: &AtomicU32) {
        let id = self.lock_id();
        self.spend_ps(self.costs().futex_call_ps);
        loop {
            let found = word.load(Relaxed);
            if found & !WAITERS == 0 {
                if word.compare_exchange(found, found | id, Acquire, Relaxed).is_ok() {
                    return;
                }
                continue;
            }
            assert_ne!(found & !WAITERS, id, "it locks a word that it holds");
            assert!(self.may_switch(), "a thread that unwinds cannot wait for a lock");
            word.store(found | WAITERS, Relaxed);
            let owner = (found & !WAITERS) as usize - 1;
            let address = ptr::from_ref(word).addr();
            self.change_and_yield(|sched, index, now| {
                let task = &sched.tasks[index];
                assert!(!task.is_interrupt(), "interrupt thread {:?} waits for a lock", task.name);
                sched.wait_for_owner(index, address, owner, now);
            });
            // A thread that falls here does not own the word, unless it was handed over before.
            if word.load(Relaxed) & !WAITERS != id {
                self.fall_if_due();
            }
            return;
        }
    }

    /// [`Inheritance::unlock`](barewire::bus::platform::Inheritance::unlock).
    pub(crate) fn unlock(&self, word: &AtomicU32) {
        self.spend_ps(self.costs().wake_call_ps);
        self.stir(|sched, index, now| sched.hand_over(index, word, now));
    }
}

/// Unmasks interrupts on drop, also after a panic.
struct UnmaskOnDrop<'e>(&'e Engine, usize);

impl Drop for UnmaskOnDrop<'_> {
    fn drop(&mut self) {
        self.0.0.sched.borrow_mut().unmask(self.1);
        self.0.dispatch_later();
    }
}
