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
//! 3. Whoever finds another at the queue says so in the same atomic, and that one looks once more.
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

/// Nobody runs the queue.
const IDLE_PUMP: u32 = 0;
/// Somebody does.
const PUMPING: u32 = 1;
/// Somebody does, and somebody else wanted to meanwhile.
const ASKED_AGAIN: u32 = 2;

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
    /// Says in the word that there are messages in the queue. Turns do not count: whose it is comes
    /// by itself.
    fn tag_backlog(&mut self) {
        if self.queue(|queue| queue.any(|task| task.kind != Kind::Offer)) {
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

    /// Takes a node back that was just pushed by whoever holds the bus now.
    pub(super) fn take_back_inherited<'b>(
        &'b self,
        mut held: Held<'b, C>,
        node: &Node,
    ) -> Held<'b, C> {
        held.gather();
        held.queue(|queue| queue.take_if(|queued, _| core::ptr::eq(queued, node)));
        node.set_free();
        held.tag_backlog();
        self.run_own(held)
    }

    fn run_own<'b>(&'b self, mut held: Held<'b, C>) -> Held<'b, C> {
        if !self.nothing_left() {
            let context = self.context();
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
        let ran = held.run_kind(program, message, kind, Path::Immediate);
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

    /// One that was to try again does not: the next may.
    pub(super) fn pass_turn_inherited(&self) {
        if let Some(inheritance) = self.platform.inheritance() {
            self.own(inheritance).release_inherited();
        }
    }

    /// Runs what is queued, each message in a turn of its own, unless somebody does already. One at
    /// a time: several would take the bus from each other, and from those they want to serve, just
    /// to look at the queue. (3.)
    pub(super) fn pump_inherited(&self) -> usize {
        let Some(inheritance) = self.platform.inheritance() else { return 0 };
        let mut seen = IDLE_PUMP;
        while let Err(now) = self.pumping.compare_exchange_weak(
            seen,
            if seen == IDLE_PUMP { PUMPING } else { ASKED_AGAIN },
            Ordering::AcqRel,
            Ordering::Relaxed,
        ) {
            seen = now;
        }
        if seen != IDLE_PUMP {
            return 0;
        }
        let mut ran = 0;
        loop {
            while !self.nothing_left() {
                let mut held = self.own(inheritance);
                held.gather();
                if let Some(node) = held.take_next_message() {
                    held.run_or_remove(node);
                    ran += 1;
                }
                held.give_back_inherited(inheritance);
            }
            let done = self.pumping.compare_exchange(
                PUMPING,
                IDLE_PUMP,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if done.is_ok() {
                return ran;
            }
            self.pumping.swap(PUMPING, Ordering::AcqRel);
        }
    }
}

impl<C: Controller + ?Sized> Held<'_, C> {
    /// Whose turn it is that cannot be handed the lock, since it has no thread, tries again.
    fn run_or_remove(&mut self, node: *const Node) {
        // SAFETY: the node is out of the queue and not settled.
        let cancelled = unsafe { &*node }.is_cancelled();
        // SAFETY: likewise.
        if cancelled || unsafe { with_task(node, |task| task.kind) } == Kind::Offer {
            // SAFETY: it is out of the queue.
            unsafe { Node::settle_removed(node, self.bus().platform) };
        } else {
            self.run_node(node);
        }
    }

    /// Takes the next message out of the queue; turns stay.
    fn take_next_message(&mut self) -> Option<*const Node> {
        self.queue(|queue| {
            let mut turns = Queue::new();
            let message = loop {
                match queue.take_next() {
                    Some(node) if is_turn(node) => {
                        // SAFETY: it is queued, and in no list.
                        unsafe { turns.add(node) };
                    }
                    message => break message,
                }
            };
            while let Some(turn) = turns.take_next() {
                // SAFETY: likewise.
                unsafe { queue.add(turn) };
            }
            message
        })
    }

    /// Gives the bus back, and has the first whose turn it is try again: one, and not before the
    /// bus is free, or all would find it taken for the sake of the others, and come back for ever.
    /// Who tries again gives the bus back too, and so each comes to its turn.
    fn give_back_inherited(mut self, inheritance: &dyn Inheritance) {
        let bus = self.bus();
        let turn = self.queue(|queue| queue.take_if(|_, task| task.kind == Kind::Offer));
        self.tag_backlog();
        self.pass_on();
        bus.disown(inheritance);
        if let Some(node) = turn {
            // SAFETY: it is out of the queue.
            unsafe { Node::settle_removed(node, bus.platform) };
        }
    }

    /// Gives the bus back, and sees to what was submitted meanwhile.
    pub(super) fn release_inherited(self) {
        let bus = self.bus();
        let Some(inheritance) = bus.platform.inheritance() else { return };
        self.give_back_inherited(inheritance);
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

/// Whether a queued node is a turn.
fn is_turn(node: *const Node) -> bool {
    // SAFETY: the caller holds the bus, and took the node out of its queue.
    unsafe { with_task(node, |task| task.kind) == Kind::Offer }
}
