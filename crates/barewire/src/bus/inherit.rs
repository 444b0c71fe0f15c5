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

fn own_word(word: &AtomicU32, inheritance: &dyn Inheritance) {
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

impl<C: ?Sized> Bus<C> {
    /// Whether the caller owns the wire.
    pub(super) fn owns_wire(&self, inheritance: &dyn Inheritance) -> bool {
        self.wire_owner.load(Ordering::Relaxed) & !WAITERS == inheritance.id()
    }

    /// Releases the wire and looks at nothing else.
    pub(super) fn release_wire(&self, inheritance: &dyn Inheritance) {
        disown(&self.wire_owner, inheritance);
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

impl<C: Controller + ?Sized> Bus<C> {
    /// Lets `f` have the queue, with what was pushed in it.
    fn with_queue<R>(
        &self,
        inheritance: &dyn Inheritance,
        panics: &mut Panics,
        f: impl FnOnce(&mut Queue) -> R,
    ) -> R {
        own_word(&self.queue_owner, inheritance);
        // SAFETY: module, Safety.
        let mut tended = unsafe { self.tended() };
        let _ = tended.gather(panics);
        let (value, turns, messages) = tended.queue(|queue| {
            let value = f(queue);
            (value, queue.count(Task::is_turn), queue.count(|task| !task.is_turn()))
        });
        // Gathering said both. (Ordering 4.)
        let none = if turns == 0 { TURNS } else { 0 } | if messages == 0 { BACKLOG } else { 0 };
        let tell = |seen| Some(untagged(seen, none));
        let _ = self.word.fetch_update(Ordering::Release, Ordering::Relaxed, tell);
        disown(&self.queue_owner, inheritance);
        value
    }

    fn acquire_wire(&self, inheritance: &dyn Inheritance) -> Held<'_, C> {
        own_word(&self.wire_owner, inheritance);
        // SAFETY: module, Safety.
        unsafe { self.held() }
    }

    fn try_acquire_wire_inherited(&self, inheritance: &dyn Inheritance) -> Option<Held<'_, C>> {
        // SAFETY: module, Safety.
        try_own(&self.wire_owner, inheritance).then(|| unsafe { self.held() })
    }

    /// Whether nothing was pushed and the queue is empty.
    fn is_empty_inherited(&self) -> bool {
        let word = self.word.load(Ordering::Acquire);
        pushed(word).is_null() && tags(word) & (BACKLOG | TURNS) == 0
    }

    /// Acquires the bus if it is free and nothing waits, which may be the caller's own.
    pub(super) fn try_acquire_inherited(
        &self,
        inheritance: &dyn Inheritance,
    ) -> Option<Held<'_, C>> {
        let held = self.try_acquire_wire_inherited(inheritance)?;
        if self.is_empty_inherited() {
            return Some(held);
        }
        held.release();
        None
    }

    /// Acquires the bus, and runs what the caller's context submitted before.
    pub(super) fn acquire_inherited(
        &self,
        inheritance: &dyn Inheritance,
        panics: &mut Panics,
    ) -> Held<'_, C> {
        let held = self.acquire_wire(inheritance);
        self.run_own(inheritance, held, panics)
    }

    /// The same if the wire is free: for a future.
    pub(super) fn poll_acquire_inherited(
        &self,
        inheritance: &dyn Inheritance,
        panics: &mut Panics,
    ) -> Option<Held<'_, C>> {
        let held = self.try_acquire_wire_inherited(inheritance)?;
        Some(self.run_own(inheritance, held, panics))
    }

    fn run_own<'b>(
        &'b self,
        inheritance: &dyn Inheritance,
        mut held: Held<'b, C>,
        panics: &mut Panics,
    ) -> Held<'b, C> {
        if self.is_empty_inherited() {
            return held;
        }
        let context = self.context();
        let is_own = |task: &Task| task.context == context && !task.is_turn();
        // Those of now: one that is queued again comes after the caller's own.
        let count = self.with_queue(inheritance, panics, |queue| queue.count(is_own));
        for _ in 0..count {
            let own = |queue: &mut Queue| queue.take_if(|_, task| is_own(task));
            let Some(entry) = self.with_queue(inheritance, panics, own) else { break };
            if let Some(waker) = self.run_inherited(held, entry, panics) {
                self.release_wire(inheritance);
                panics.contain(|| waker.wake());
                own_word(&self.wire_owner, inheritance);
            }
            // SAFETY: it is still ours, or again.
            held = unsafe { self.held() };
        }
        held
    }

    /// Runs one message, and keeps the wire. Returns whom to wake when that is released.
    fn run_inherited(&self, held: Held<'_, C>, entry: Entry, panics: &mut Panics) -> Option<Waker> {
        let mut server = Server::new(held, 0, None, panics);
        if let Err(payload) = contain(|| server.run_or_remove(entry)) {
            server.panics.add(payload);
            server.settle_left();
        }
        server.waker
    }

    /// Takes a cancelled node out of the queue, if it is there.
    pub(super) fn take_out_inherited(
        &self,
        inheritance: &dyn Inheritance,
        node: &Node,
        panics: &mut Panics,
    ) {
        let is_it = |queued: &Node, _: &Task| core::ptr::eq(queued, node);
        if let Some(entry) = self.with_queue(inheritance, panics, |queue| queue.take_if(is_it)) {
            // Its owner is the caller: nobody is to be woken by it.
            let wakeup = entry.settle_removed();
            panics.contain(|| drop(wakeup));
        }
    }

    /// Serves what is queued, each message in a turn of its own, unless somebody does already.
    /// Returns how many ran. (Ordering 3.)
    pub(super) fn serve_inherited(
        &self,
        inheritance: &dyn Inheritance,
        panics: &mut Panics,
    ) -> usize {
        let begin = |seen| {
            let left = !pushed(seen).is_null() || tags(seen) & BACKLOG != 0;
            (left && tags(seen) & TENDED == 0).then(|| tagged(seen, TENDED))
        };
        let end = |seen| Some(untagged(seen, TENDED));
        let mut served = 0;
        while self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, begin).is_ok() {
            let ran = contain(|| self.serve_one(inheritance, panics));
            // Before a waker is called: a task that is polled there may have to serve.
            let _ = self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, end);
            match ran {
                Ok(None) => {}
                Ok(Some(waker)) => {
                    served += 1;
                    panics.contain(|| waker.map(Waker::wake));
                    self.wake_turns(inheritance, panics);
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
    fn serve_one(
        &self,
        inheritance: &dyn Inheritance,
        panics: &mut Panics,
    ) -> Option<Option<Waker>> {
        let messages = |queue: &mut Queue| queue.count(|task| !task.is_turn());
        if self.with_queue(inheritance, panics, messages) == 0 {
            return None;
        }
        let held = self.acquire_wire(inheritance);
        let waker = match self.with_queue(inheritance, panics, take_next_message) {
            Some(entry) => self.run_inherited(held, entry, panics),
            None => {
                held.pass_on();
                None
            }
        };
        self.release_wire(inheritance);
        Some(waker)
    }

    /// Wakes the futures that found the wire owned: all that are queued now, and each outside any
    /// lock. Returns how many messages are queued.
    fn wake_turns(&self, inheritance: &dyn Inheritance, panics: &mut Panics) -> usize {
        let both =
            |queue: &mut Queue| (queue.count(Task::is_turn), queue.count(|task| !task.is_turn()));
        let (turns, messages) = self.with_queue(inheritance, panics, both);
        for _ in 0..turns {
            let turn = |queue: &mut Queue| queue.take_if(|_, task| task.is_turn());
            let Some(entry) = self.with_queue(inheritance, panics, turn) else { break };
            let Some(Wakeup { sleeper, waker }) = entry.settle_removed() else { continue };
            self.wake_sleeper(sleeper, panics);
            panics.contain(|| waker.map(Waker::wake));
        }
        messages
    }
}

impl<C: Controller + ?Sized> Held<'_, C> {
    /// Releases the bus, and sees to what was submitted meanwhile. Never unwinds.
    pub(super) fn release_inherited(self, inheritance: &dyn Inheritance, panics: &mut Panics) {
        let bus = self.bus();
        self.pass_on();
        let released = contain(|| {
            bus.release_wire(inheritance);
            if !bus.is_empty_inherited() && bus.wake_turns(inheritance, panics) > 0 {
                match bus.pump {
                    Pump::Worker => bus.ring_quietly(panics),
                    _ => {
                        bus.serve_inherited(inheritance, panics);
                    }
                }
            }
        });
        released.unwrap_or_else(|payload| panics.add(payload));
    }
}

impl<C: Controller + ?Sized> Server<'_, '_, C> {
    fn run_or_remove(&mut self, entry: Entry) {
        if entry.is_cancelled() {
            self.wake(entry.settle_removed());
        } else {
            self.run(entry);
        }
    }
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
