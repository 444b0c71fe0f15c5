//! Priority inheritance: the platform's locks guard the wire and the queue.
//!
//! # How it works
//! The bus word keeps its tag [`INHERITS`](super::word::INHERITS), so that every fast path fails
//! and all callers come here. The word only collects pushed nodes. Two other words guard the rest:
//! `wire_owner`, and, for a few steps at a time, `queue_owner`. A compare-and-swap from 0 to the
//! caller's id acquires one, another from the id to 0 releases it. A thread that waits for one does
//! so in [`Inheritance::lock`](super::platform::Inheritance::lock), which lends the owner its
//! priority.
//!
//! The holder runs its own message, and before it the messages that its context submitted earlier.
//! It runs no others: running them under a borrowed priority would defeat inheritance. Submitted
//! messages are run one at a time, each in a turn of its own, by the worker; without a worker, by
//! the thread that releases the bus next.
//!
//! A future has no thread and so cannot own a word. If its poll finds the wire owned, it pushes a
//! node. The thread that releases the wire next removes all such nodes and wakes their tasks, which
//! try again, in no defined order.
//!
//! # Ordering
//! 1. A submitter pushes (release), then sets [`WAITERS`] on the wire word if the wire is owned.
//!    The owner then cannot release it by the short path, and looks at the queue afterwards. If the
//!    submitter finds the wire free, it serves the queue itself. So no submitted message is missed.
//! 2. Acquiring a word is an acquire, releasing it a release.
//! 3. A thread that serves sets TENDED in the bus word and stops by a compare-and-swap that fails
//!    if anything was pushed or is queued. Another thread that finds TENDED set need not wait.
//! 4. While a thread owns the queue, the bus word says that it may contain messages and turns. Afterwards it may say
//!    so of a kind that the queue no longer has, until a thread looked for one in vain.
//!
//! # Safety
//! The owner of `wire_owner` has the wire, the owner of `queue_owner` has the queue.
#![allow(unsafe_code, reason = "the owners of two words are the holder and the tender")]

use core::task::Waker;

use super::Bus;
use super::atomic::{AtomicU32, Ordering};
use super::lock::{Held, Pump};
use super::node::{Entry, Node, Task, Wakeup};
use super::panics::{Panics, contain};
use super::platform::{Inheritance, WAITERS};
use super::queue::Queue;
use super::serve::Server;
use super::uses::{AnyPlatform, Uses};
use super::word::{BACKLOG, IDLE, RIGHTS, TENDED, TURNS, pushed, tagged, tags, untagged};
use crate::controller::Controller;

/// Nodes in the queue: messages and turns.
const KINDS: usize = BACKLOG | TURNS;

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

/// A bus with inheritance, and its platform's locks.
pub(super) struct Inheriting<'b, C: ?Sized, U: Uses = AnyPlatform> {
    bus: &'b Bus<C, U>,
    locks: &'b dyn Inheritance,
}

impl<C: ?Sized, U: Uses> Bus<C, U> {
    /// The bus with its platform's locks, if it has inheritance.
    pub(super) fn inheriting(&self) -> Option<Inheriting<'_, C, U>> {
        if !U::CONTEXTS {
            return None;
        }
        self.locks.map(|locks| Inheriting { bus: self, locks })
    }

    /// Makes the wire's owner look at the queue when it releases the wire. Returns whether the wire
    /// is free (Ordering 1).
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

impl<C: ?Sized, U: Uses> Inheriting<'_, C, U> {
    /// Whether the caller owns the wire.
    pub(super) fn owns_wire(&self) -> bool {
        self.bus.wire_owner.load(Ordering::Relaxed) & !WAITERS == self.locks.id()
    }

    fn own_wire(&self) {
        own(&self.bus.wire_owner, self.locks);
    }

    /// Releases the wire, without looking at the queue.
    fn disown_wire(&self) {
        disown(&self.bus.wire_owner, self.locks);
    }

    /// Whether something was pushed, or the queue may have nodes of these kinds.
    fn may_have(&self, kinds: usize) -> bool {
        let word = self.bus.word.load(Ordering::Acquire);
        !pushed(word).is_null() || tags(word) & kinds != 0
    }

    /// Whether nothing was pushed and the queue is empty.
    fn is_empty(&self) -> bool {
        !self.may_have(KINDS)
    }
}

impl<'b, C: Controller + ?Sized, U: Uses> Inheriting<'b, C, U> {
    /// Gives `f` the queue, after gathering pushed nodes, and the kinds of nodes that it may have,
    /// [`BACKLOG`] and [`TURNS`]. `f` also returns the kinds of which it found no node.
    fn with_queue<R>(&self, f: impl FnOnce(&mut Queue, usize) -> (R, usize)) -> R {
        own(&self.bus.queue_owner, self.locks);
        // Other threads read the word meanwhile (Ordering 4).
        let keep = |seen| Some(tagged(IDLE, tags(seen) & RIGHTS | KINDS));
        let (Ok(seen) | Err(seen)) =
            self.bus.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, keep);
        // SAFETY: module, Safety.
        let mut tended = unsafe { self.bus.tended() };
        let (value, left) = tended.queue(|queue| {
            // SAFETY: the exchange made the list ours, and nodes in it are queued.
            let oldest = unsafe { queue.add_pushed(pushed(seen)) };
            let came = |is_it: fn(&Task) -> bool, kind| match Queue::any_from(oldest, is_it) {
                true => kind,
                false => 0,
            };
            let kinds = tags(seen) | came(Task::is_turn, TURNS) | came(Task::is_message, BACKLOG);
            let (value, none) = f(queue, kinds);
            (value, if queue.is_empty() { 0 } else { kinds & !none })
        });
        let tell = |seen| Some(untagged(seen, KINDS & !left));
        let _ = self.bus.word.fetch_update(Ordering::Release, Ordering::Relaxed, tell);
        disown(&self.bus.queue_owner, self.locks);
        value
    }

    /// Takes the oldest node for which `is_it` returns true out of the queue.
    fn take_if(&self, is_it: impl Fn(&Node, &Task) -> bool) -> Option<Entry> {
        self.with_queue(|queue, _| (queue.take_if(is_it), 0))
    }

    fn acquire_wire(&self) -> Held<'b, C, U> {
        self.own_wire();
        // SAFETY: module, Safety.
        unsafe { self.bus.held() }
    }

    fn try_acquire_wire(&self) -> Option<Held<'b, C, U>> {
        // SAFETY: module, Safety.
        try_own(&self.bus.wire_owner, self.locks).then(|| unsafe { self.bus.held() })
    }

    /// Acquires the bus if it is free and nothing is queued, not even by the caller. A failure has
    /// nothing to release, and so nobody to serve. A signal handler that interrupted its thread's work on
    /// the queue fails: it could not lock the queue when it releases the bus.
    pub(super) fn try_acquire(&self) -> Option<Held<'b, C, U>> {
        let tended_here =
            self.bus.queue_owner.load(Ordering::Relaxed) & !WAITERS == self.locks.id();
        if tended_here || !self.is_empty() { None } else { self.try_acquire_wire() }
    }

    /// Acquires the bus and runs what the caller's context submitted earlier.
    pub(super) fn acquire(&self, panics: &mut Panics) -> Held<'b, C, U> {
        self.run_own(self.acquire_wire(), panics)
    }

    /// [`Inheriting::acquire`] if the wire is free; for a future.
    pub(super) fn poll_acquire(&self, panics: &mut Panics) -> Option<Held<'b, C, U>> {
        self.try_acquire_wire().map(|held| self.run_own(held, panics))
    }

    fn run_own(&self, mut held: Held<'b, C, U>, panics: &mut Panics) -> Held<'b, C, U> {
        if self.is_empty() {
            return held;
        }
        let context = self.bus.context();
        let is_own = |task: &Task| task.context == context && task.is_message();
        // Counted now: a message that its callback queues again runs after the caller's own.
        let count = self.with_queue(|queue, _| (queue.count(is_own), 0));
        for _ in 0..count {
            let Some(entry) = self.take_if(|_, task| is_own(task)) else { break };
            if let Some(waker) = run_one(held, entry, panics) {
                self.disown_wire();
                panics.contain(|| waker.wake());
                self.own_wire();
            }
            // SAFETY: the wire is still ours, or ours again.
            held = unsafe { self.bus.held() };
        }
        held
    }

    /// Removes a cancelled node from the queue, if it is there.
    pub(super) fn take_out(&self, node: &Node) {
        if let Some(entry) = self.take_if(|queued, _| core::ptr::eq(queued, node)) {
            // The owner is the caller, and the waker its own.
            let _ = entry.settle_removed();
        }
    }

    /// Serves the queue, each message in a turn of its own, unless another thread is serving.
    /// Returns how many messages ran (Ordering 3).
    pub(super) fn serve(&self, panics: &mut Panics) -> usize {
        let begin = |seen| {
            let left = !pushed(seen).is_null() || tags(seen) & BACKLOG != 0;
            (left && tags(seen) & TENDED == 0).then(|| tagged(seen, TENDED))
        };
        let end = |seen| Some(untagged(seen, TENDED));
        let mut served = 0;
        while self.bus.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, begin).is_ok() {
            let ran = contain(|| self.serve_one(panics));
            // Cleared before a waker is called: a task polled inside it may have to serve.
            let _ = self.bus.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, end);
            match ran {
                Ok(None) => {}
                Ok(Some(waker)) => {
                    served += 1;
                    panics.contain(|| waker.map(Waker::wake));
                    self.wake_turns(panics);
                }
                Err(payload) => {
                    // A panic of the platform: the queue is left to the next caller.
                    panics.add(payload);
                    return served;
                }
            }
        }
        served
    }

    /// Runs the next message, if any. Returns its waker.
    fn serve_one(&self, panics: &mut Panics) -> Option<Option<Waker>> {
        let some = |queue: &mut Queue, _| {
            let some = queue.any(Task::is_message);
            (some, if some { 0 } else { BACKLOG })
        };
        if !self.with_queue(some) {
            return None;
        }
        let held = self.acquire_wire();
        let waker = match self.with_queue(|queue, _| (take_next_message(queue), 0)) {
            Some(entry) => run_one(held, entry, panics),
            None => {
                held.pass_on();
                None
            }
        };
        self.disown_wire();
        Some(waker)
    }

    /// Wakes the futures that are queued now, each while no lock is held.
    fn wake_turns(&self, panics: &mut Panics) {
        if !self.may_have(TURNS) {
            return;
        }
        let count = |queue: &mut Queue, kinds| {
            let turns = if kinds & TURNS == 0 { 0 } else { queue.count(Task::is_turn) };
            (turns, if turns == 0 { TURNS } else { 0 })
        };
        for _ in 0..self.with_queue(count) {
            let Some(entry) = self.take_if(|_, task| task.is_turn()) else { break };
            let Some(Wakeup { sleeper, waker }) = entry.settle_removed() else { continue };
            self.bus.wake_sleeper(sleeper, panics);
            panics.contain(|| waker.map(Waker::wake));
        }
    }

    /// Releases the bus and serves what was submitted meanwhile. Never unwinds.
    pub(super) fn release(&self, held: Held<'b, C, U>, panics: &mut Panics) {
        held.pass_on();
        let released = contain(|| {
            self.disown_wire();
            self.wake_turns(panics);
            if self.may_have(BACKLOG) {
                match self.bus.pump {
                    Pump::Worker => self.bus.ring_quietly(panics),
                    _ => drop(self.serve(panics)),
                }
            }
        });
        released.unwrap_or_else(|payload| panics.add(payload));
    }
}

/// Runs one message and keeps the wire. Returns the waker to call after releasing it.
fn run_one<C: Controller + ?Sized, U: Uses>(
    held: Held<'_, C, U>,
    entry: Entry,
    panics: &mut Panics,
) -> Option<Waker> {
    let mut server = Server::new(held, 0, None, panics);
    let attend = |server: &mut Server<'_, '_, C, U>| match entry.is_cancelled() {
        true => server.wake(entry.settle_removed()),
        false => server.run(entry),
    };
    if let Err(payload) = contain(|| attend(&mut server)) {
        server.panics.add(payload);
        server.settle_left();
    }
    server.waker
}

/// Removes the next message from the queue; turns stay.
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
