//! Priority inheritance: the bus's lock is a word of the platform's own.
//!
//! # How it works
//! The bus word keeps its tag [`INHERITS`](super::lock::INHERITS), so that the way in for an idle
//! bus always fails and leads here; it is only the place where submitted messages are pushed. The
//! lock is [`Bus::owner`](super::Bus), taken by a compare-and-swap from 0 to the caller's id and
//! given back by one from the id to 0. A thread that waits does so in
//! [`Inheritance::lock`](super::platform::Inheritance::lock) and lends the owner its priority.
//!
//! The holder runs its own message, and before it what its context submitted earlier, and no
//! other: running others' messages under a borrowed priority would defeat inheritance. Submitted
//! messages are run one at a time, by the worker or, without one, by whoever gives the bus back
//! next, after it gave it back.
//!
//! # Ordering
//! 1. A submitter pushes (release), then sets [`WAITERS`] on a lock that is taken: its owner
//!    cannot give it back quickly, and looks at the queue afterwards. If it finds the lock free it
//!    takes it, and runs the queue itself. So no submitted message is missed.
//! 2. Taking the lock is an acquire, giving it back a release.
//!
//! # Safety
//! The owner of the lock is the holder of the bus.
#![allow(unsafe_code, reason = "the owner of the lock is made the holder of the bus")]

use super::Bus;
use super::atomic::Ordering;
use super::lock::{BACKLOG, Held, IDLE, INHERITS, Pump, tagged};
use super::node::{Kind, Node};
use super::platform::{Inheritance, WAITERS};
use super::pump::with_task;
use super::queue::Queue;
use super::statistics::Path;
use crate::controller::{Controller, Program};
use crate::spi::{MessageError, Transfer};

impl<C: ?Sized> Bus<C> {
    fn own_quickly(&self, inheritance: &dyn Inheritance) -> bool {
        self.owner
            .compare_exchange(0, inheritance.id(), Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    fn own(&self, inheritance: &dyn Inheritance) -> Held<'_, C> {
        if !self.own_quickly(inheritance) {
            inheritance.lock(&self.owner);
        }
        // SAFETY: module, Safety.
        unsafe { self.held() }
    }

    /// Gives the lock back.
    fn disown(&self, inheritance: &dyn Inheritance) {
        let given = self
            .owner
            .compare_exchange(inheritance.id(), 0, Ordering::Release, Ordering::Relaxed)
            .is_ok();
        if !given {
            inheritance.unlock(&self.owner);
        }
    }

    /// Whether nothing was pushed and the queue is empty.
    fn nothing_left(&self) -> bool {
        self.word.load(Ordering::Acquire) == tagged(IDLE, INHERITS)
    }

    /// Has the lock's owner look at the queue when it gives the lock back. Returns the bus if
    /// nobody owns it. (1.)
    pub(super) fn force(&self, inheritance: &dyn Inheritance) -> Option<Held<'_, C>> {
        loop {
            let seen = self.owner.load(Ordering::Relaxed);
            if seen == 0 {
                if self.own_quickly(inheritance) {
                    // SAFETY: module, Safety.
                    return Some(unsafe { self.held() });
                }
            } else if seen & WAITERS != 0
                || self
                    .owner
                    .compare_exchange(seen, seen | WAITERS, Ordering::Release, Ordering::Relaxed)
                    .is_ok()
            {
                return None;
            }
        }
    }

    /// Gives back what a panic held; the queue is for whoever comes next.
    pub(super) fn abandon_inherited(&self) {
        if let Some(inheritance) = self.platform.inheritance() {
            self.disown(inheritance);
            self.ring();
        }
    }
}

impl<C: ?Sized> Held<'_, C> {
    /// Says in the word that the queue is not empty.
    fn tag_backlog(&mut self) {
        if !self.queue(|queue| queue.is_empty()) {
            let bus = self.bus();
            let mut seen = bus.word.load(Ordering::Relaxed);
            while let Err(now) = bus.word.compare_exchange_weak(
                seen,
                tagged(seen, BACKLOG),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                seen = now;
            }
        }
    }
}

impl<C: Controller + ?Sized> Bus<C> {
    /// Takes the bus if it is free and nothing waits, which may be the caller's own.
    pub(super) fn try_take_inherited(&self, inheritance: &dyn Inheritance) -> Option<Held<'_, C>> {
        if !self.own_quickly(inheritance) {
            return None;
        }
        // SAFETY: module, Safety.
        let held = unsafe { self.held() };
        if self.nothing_left() {
            return Some(held);
        }
        held.release_inherited();
        None
    }

    /// Takes the bus, and runs what the caller's context submitted before.
    pub(super) fn take_inherited(&self, inheritance: &dyn Inheritance) -> Held<'_, C> {
        let held = self.own(inheritance);
        self.run_own(held)
    }

    /// The same if the bus is free: for a future whose turn nobody can keep for it. Futures that
    /// wait at the same time are in no order among each other here.
    pub(super) fn take_free_inherited(&self, inheritance: &dyn Inheritance) -> Option<Held<'_, C>> {
        if !self.own_quickly(inheritance) {
            return None;
        }
        // SAFETY: module, Safety.
        let held = unsafe { self.held() };
        Some(self.run_own(held))
    }

    fn run_own<'b>(&'b self, mut held: Held<'b, C>) -> Held<'b, C> {
        if !self.nothing_left() {
            let context = self.platform.context();
            held.gather();
            while let Some(node) =
                held.queue(|queue| queue.take_if(|_, task| task.context == context))
            {
                held.run_or_remove(node);
            }
            held.tag_backlog();
        }
        held
    }

    /// Runs a message in the caller's turn.
    pub(super) fn run_inherited(
        &self,
        inheritance: &dyn Inheritance,
        program: &Program,
        message: &mut [Transfer<'_>],
        kind: Kind,
    ) -> Result<usize, MessageError> {
        let mut held = self.take_inherited(inheritance);
        let planned = match kind {
            Kind::Unplanned => held.controller().plan(program, message),
            _ => Ok(()),
        };
        let ran = planned.and_then(|()| {
            let ran = held.run(program, message, Path::Immediate);
            ran.map_err(|unfinished| unfinished.explain(message))
        });
        held.release_inherited();
        ran
    }

    /// Takes out of the queue what is cancelled.
    pub(super) fn sweep_inherited(&self) {
        let Some(inheritance) = self.platform.inheritance() else { return };
        let mut held = self.own(inheritance);
        held.gather();
        held.sweep();
        held.tag_backlog();
        held.release_inherited();
    }

    /// Runs what is queued, each message in a turn of its own.
    pub(super) fn pump_inherited(&self) -> usize {
        let Some(inheritance) = self.platform.inheritance() else { return 0 };
        let mut ran = 0;
        while !self.nothing_left() {
            let mut held = self.own(inheritance);
            held.gather();
            if let Some(node) = held.queue(Queue::take_next) {
                held.run_or_remove(node);
                ran += 1;
            }
            held.tag_backlog();
            held.pass_on();
            self.disown(inheritance);
        }
        ran
    }
}

impl<C: Controller + ?Sized> Held<'_, C> {
    /// Whose turn it is that cannot be handed the lock, since it has no thread, tries again.
    fn run_or_remove(&mut self, node: *const Node) {
        // SAFETY: the node is out of the queue and not settled.
        let cancelled = unsafe { &*node }.is_cancelled();
        // SAFETY: likewise.
        if cancelled || unsafe { with_task(node, |task| task.kind) } == Kind::Turn {
            // SAFETY: it is out of the queue.
            unsafe { Node::settle_removed(node, self.bus().platform) };
        } else {
            self.run_node(node);
        }
    }

    /// Gives the bus back, and sees to what was submitted meanwhile.
    pub(super) fn release_inherited(self) {
        let bus = self.bus();
        self.pass_on();
        let Some(inheritance) = bus.platform.inheritance() else { return };
        bus.disown(inheritance);
        if !bus.nothing_left() {
            match bus.pump {
                Pump::Worker => bus.ring(),
                _ => {
                    bus.pump_inherited();
                }
            }
        }
    }
}
