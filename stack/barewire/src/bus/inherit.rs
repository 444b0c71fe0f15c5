//! Priority inheritance: the wire and the queue are locks of the platform's own.
//!
//! # How it works
//! The bus word keeps its tag [`INHERITS`](super::word::INHERITS), so that no fast way in is ever
//! taken and all lead here; it is only the place where nodes are pushed. Two words guard the rest,
//! each acquired by a compare-and-swap from 0 to the caller's id and released by one from the id to
//! 0: `wire_owner`, and, for a few steps at a time, `queue_owner`. A thread that waits for one does
//! so in [`Inheritance::lock`](super::platform::Inheritance::lock) and lends its owner its priority.
//!
//! The holder runs its own message, and before it what its context submitted earlier, and no
//! other: running others' messages under a borrowed priority would defeat inheritance. Submitted
//! messages are run one at a time, by the worker or, without one, by whoever releases the bus next,
//! each in a turn of its own.
//!
//! A future cannot own a word, since it has no thread. If its poll does not find the wire free, it
//! pushes a node; whoever releases the wire next takes out all such nodes and wakes their tasks,
//! which try again. They are in no order among each other.
//!
//! # Ordering
//! 1. A submitter pushes (release), then sets [`WAITERS`] on a wire that is owned: its owner cannot
//!    release it by the short way, and looks at the queue afterwards. If the submitter finds the
//!    wire free it serves the queue itself. So no submitted message is missed.
//! 2. Acquiring a word is an acquire, releasing it a release.
//! 3. The one who serves says so in the bus word, and stops by a compare-and-swap that fails if
//!    anything was pushed or is queued: whoever finds the queue served need not wait for that.
//! 4. While a thread has the queue the word says that there may be messages and turns in it.
//!
//! # Safety
//! The owner of `wire_owner` has the wire, the owner of `queue_owner` has the queue.
#![allow(unsafe_code, reason = "the owners of two words are made the holder and the tender")]

use core::task::Waker;

use super::Bus;
use super::atomic::{AtomicU32, Ordering};
use super::lock::{Held, Pump};
use super::node::{Entry, Node, Task, Wakeup};
use super::panics::{Panics, contain};
use super::platform::{Inheritance, WAITERS};
use super::queue::Queue;
use super::serve::Server;
use super::word::{BACKLOG, TENDED, TURNS, pushed, tagged, tags, untagged};
use crate::controller::Controller;

fn try_own(word: &AtomicU32, inheritance: &dyn Inheritance) -> bool {
    word.compare_exchange(0, inheritance.id(), Ordering::Acquire, Ordering::Relaxed).is_ok()
}

fn own(word: &AtomicU32, inheritance: &dyn Inheritance) {
    if !try_own(word, inheritance) {
        inheritance.lock(word);
    }
}

fn disown(word: &AtomicU32, inheritance: &dyn Inheritance) {
    let (release, relaxed) = (Ordering::Release, Ordering::Relaxed);
    if word.compare_exchange(inheritance.id(), 0, release, relaxed).is_err() {
        inheritance.unlock(word);
    }
}

/// A bus with inheritance, and the locks of its platform.
pub(super) struct Inheriting<'b, C: ?Sized> {
    bus: &'b Bus<C>,
    locks: &'b dyn Inheritance,
}

impl<C: ?Sized> Bus<C> {
    /// The bus as one with inheritance, if it has that.
    pub(super) fn inheriting(&self) -> Option<Inheriting<'_, C>> {
        self.platform.inheritance().map(|locks| Inheriting { bus: self, locks })
    }

    /// Has the wire's owner look at the queue when it releases the wire. Whether nobody owns it.
    /// (Ordering 1.)
    pub(super) fn alert_owner(&self) -> bool {
        let mut seen = self.wire_owner.load(Ordering::Relaxed);
        let (release, relaxed) = (Ordering::Release, Ordering::Relaxed);
        while seen != 0 && seen & WAITERS == 0 {
            match self.wire_owner.compare_exchange_weak(seen, seen | WAITERS, release, relaxed) {
                Ok(_) => return false,
                Err(now) => seen = now,
            }
        }
        seen == 0
    }
}

impl<C: ?Sized> Inheriting<'_, C> {
    /// Whether the caller owns the wire.
    pub(super) fn owns_wire(&self) -> bool {
        self.bus.wire_owner.load(Ordering::Relaxed) & !WAITERS == self.locks.id()
    }

    fn own_wire(&self) {
        own(&self.bus.wire_owner, self.locks);
    }

    /// Releases the wire and looks at nothing else.
    fn disown_wire(&self) {
        disown(&self.bus.wire_owner, self.locks);
    }

    /// Whether nothing was pushed and the queue is empty.
    fn is_empty(&self) -> bool {
        let word = self.bus.word.load(Ordering::Acquire);
        pushed(word).is_null() && tags(word) & (BACKLOG | TURNS) == 0
    }
}

impl<'b, C: Controller + ?Sized> Inheriting<'b, C> {
    /// Lets `f` have the queue, with what was pushed in it.
    fn with_queue<R>(&self, panics: &mut Panics, f: impl FnOnce(&mut Queue) -> R) -> R {
        own(&self.bus.queue_owner, self.locks);
        // SAFETY: module, Safety.
        let mut tended = unsafe { self.bus.tended() };
        let _ = tended.gather(panics);
        let (value, turns, messages) = tended.queue(|queue| {
            let value = f(queue);
            (value, queue.count(Task::is_turn), queue.count(Task::is_message))
        });
        // Gathering said both. (Ordering 4.)
        let none = if turns == 0 { TURNS } else { 0 } | if messages == 0 { BACKLOG } else { 0 };
        let tell = |seen| Some(untagged(seen, none));
        let _ = self.bus.word.fetch_update(Ordering::Release, Ordering::Relaxed, tell);
        disown(&self.bus.queue_owner, self.locks);
        value
    }

    fn acquire_wire(&self) -> Held<'b, C> {
        self.own_wire();
        // SAFETY: module, Safety.
        unsafe { self.bus.held() }
    }

    fn try_acquire_wire(&self) -> Option<Held<'b, C>> {
        // SAFETY: module, Safety.
        try_own(&self.bus.wire_owner, self.locks).then(|| unsafe { self.bus.held() })
    }

    /// Acquires the bus if it is free and nothing waits, which may be the caller's own.
    pub(super) fn try_acquire(&self) -> Option<Held<'b, C>> {
        let held = self.try_acquire_wire()?;
        if self.is_empty() {
            return Some(held);
        }
        held.release();
        None
    }

    /// Acquires the bus, and runs what the caller's context submitted before.
    pub(super) fn acquire(&self, panics: &mut Panics) -> Held<'b, C> {
        self.run_own(self.acquire_wire(), panics)
    }

    /// The same if the wire is free: for a future.
    pub(super) fn poll_acquire(&self, panics: &mut Panics) -> Option<Held<'b, C>> {
        self.try_acquire_wire().map(|held| self.run_own(held, panics))
    }

    fn run_own(&self, mut held: Held<'b, C>, panics: &mut Panics) -> Held<'b, C> {
        if self.is_empty() {
            return held;
        }
        let context = self.bus.context();
        let is_own = |task: &Task| task.context == context && task.is_message();
        // Those of now: one that is queued again comes after the caller's own.
        let count = self.with_queue(panics, |queue| queue.count(is_own));
        for _ in 0..count {
            let take_own = |queue: &mut Queue| queue.take_if(|_, task| is_own(task));
            let Some(entry) = self.with_queue(panics, take_own) else { break };
            if let Some(waker) = run_one(held, entry, panics) {
                self.disown_wire();
                panics.contain(|| waker.wake());
                self.own_wire();
            }
            // SAFETY: it is still ours, or again.
            held = unsafe { self.bus.held() };
        }
        held
    }

    /// Takes a cancelled node out of the queue, if it is there.
    pub(super) fn take_out(&self, node: &Node, panics: &mut Panics) {
        let is_it = |queued: &Node, _: &Task| core::ptr::eq(queued, node);
        if let Some(entry) = self.with_queue(panics, |queue| queue.take_if(is_it)) {
            // Its owner is the caller: nobody is to be woken by it.
            let wakeup = entry.settle_removed();
            panics.contain(|| drop(wakeup));
        }
    }

    /// Serves what is queued, each message in a turn of its own, unless somebody does already.
    /// Returns how many ran. (Ordering 3.)
    pub(super) fn serve(&self, panics: &mut Panics) -> usize {
        let begin = |seen| {
            let left = !pushed(seen).is_null() || tags(seen) & BACKLOG != 0;
            (left && tags(seen) & TENDED == 0).then(|| tagged(seen, TENDED))
        };
        let end = |seen| Some(untagged(seen, TENDED));
        let mut served = 0;
        while self.bus.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, begin).is_ok() {
            let ran = contain(|| self.serve_one(panics));
            // Before a waker is called: a task that is polled there may have to serve.
            let _ = self.bus.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, end);
            match ran {
                Ok(None) => {}
                Ok(Some(waker)) => {
                    served += 1;
                    panics.contain(|| waker.map(Waker::wake));
                    self.wake_turns(panics);
                }
                Err(payload) => {
                    // The platform's: the queue is left to whoever comes next.
                    panics.add(payload);
                    return served;
                }
            }
        }
        served
    }

    /// Runs the next message, if any. Returns whom to wake.
    fn serve_one(&self, panics: &mut Panics) -> Option<Option<Waker>> {
        if self.with_queue(panics, |queue| queue.count(Task::is_message)) == 0 {
            return None;
        }
        let held = self.acquire_wire();
        let waker = match self.with_queue(panics, take_next_message) {
            Some(entry) => run_one(held, entry, panics),
            None => {
                held.pass_on();
                None
            }
        };
        self.disown_wire();
        Some(waker)
    }

    /// Wakes the futures that found the wire owned: all that are queued now, and each outside any
    /// lock. Returns how many messages are queued.
    fn wake_turns(&self, panics: &mut Panics) -> usize {
        let both = |queue: &mut Queue| (queue.count(Task::is_turn), queue.count(Task::is_message));
        let (turns, messages) = self.with_queue(panics, both);
        for _ in 0..turns {
            let turn = |queue: &mut Queue| queue.take_if(|_, task| task.is_turn());
            let Some(entry) = self.with_queue(panics, turn) else { break };
            let Some(Wakeup { sleeper, waker }) = entry.settle_removed() else { continue };
            self.bus.wake_sleeper(sleeper, panics);
            panics.contain(|| waker.map(Waker::wake));
        }
        messages
    }

    /// Releases the bus, and sees to what was submitted meanwhile. Never unwinds.
    pub(super) fn release(&self, held: Held<'b, C>, panics: &mut Panics) {
        held.pass_on();
        let released = contain(|| {
            self.disown_wire();
            if !self.is_empty() && self.wake_turns(panics) > 0 {
                match self.bus.pump {
                    Pump::Worker => self.bus.ring_quietly(panics),
                    _ => drop(self.serve(panics)),
                }
            }
        });
        released.unwrap_or_else(|payload| panics.add(payload));
    }
}

/// Runs one message, and keeps the wire. Returns whom to wake when that is released.
fn run_one<C: Controller + ?Sized>(
    held: Held<'_, C>,
    entry: Entry,
    panics: &mut Panics,
) -> Option<Waker> {
    let mut server = Server::new(held, 0, None, panics);
    let attend = |server: &mut Server<'_, '_, C>| match entry.is_cancelled() {
        true => server.wake(entry.settle_removed()),
        false => server.run(entry),
    };
    if let Err(payload) = contain(|| attend(&mut server)) {
        server.panics.add(payload);
        server.settle_left();
    }
    server.waker
}

/// Takes the next message out of the queue; turns stay.
fn take_next_message(queue: &mut Queue) -> Option<Entry> {
    let mut turns = Queue::new();
    let message = loop {
        match queue.take_next() {
            Some(entry) if entry.is_turn() => turns.add(entry),
            message => break message,
        }
    };
    while let Some(turn) = turns.take_next() {
        queue.add(turn);
    }
    message
}
