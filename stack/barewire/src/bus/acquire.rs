//! Acquiring a bus that is not idle: waiting in its queue, and leaving the queue.
//!
//! # How it works
//! A caller that finds the bus taken spins briefly for it to become idle. Then it pushes a
//! [node](super::node) and waits until the node is settled. While it waits it may be handed the
//! bus, to [serve](super::serve) the queue. A caller that pushes onto a free bus acquires the bus
//! in the same step and serves the queue itself.
//!
//! If a hook of the platform panics while a caller waits, the caller's node is removed from the
//! queue before the panic continues.
//!
//! # Safety
//! A node's preset and message belong to its owner. The owner keeps them alive and untouched until
//! the node is settled: every function here waits for that before it returns.
#![allow(unsafe_code, reason = "nodes lie with their owners, who wait here until they are settled")]

use core::ptr;

use super::Bus;
use super::atomic::Ordering;
use super::lock::{Held, Pump, QueueRight, WireRight};
use super::node::{Node, Stage, Task};
use super::panics::{Panics, abort, contain};
use super::platform::Platform;
use super::queue::SERVE_MAX;
use super::statistics::Path;
use super::uses::Uses;
use super::word::{
    HELD, HOLDER, IDLE, LOCK, SWEEP, TENDED, is_free, pushed, tagged, tags, tended, untagged,
};
use crate::controller::{Controller, Preset};
use crate::spi::{Error, MessageError, Transfer};

/// How many times a caller that found the bus held relaxes before it queues.
const SPINS_MAX: u32 = 63;

impl<C: ?Sized, U: Uses> Bus<C, U> {
    /// Pushes a node whose state is queued. With `acquire`, also acquires the bus if it is free.
    /// Returns whether the bus was free.
    ///
    /// # Safety
    /// The node stays where it is, and its message untouched, until it is settled.
    pub(super) unsafe fn push(&self, node: &Node, acquire: bool) -> bool {
        let pushed = self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |seen| {
            node.next.with_mut(|next| {
                // SAFETY: a node that is not pushed yet is its owner's.
                unsafe { *next = pushed(seen) }
            });
            let word = if acquire && is_free(seen) { tended(seen, HELD) } else { seen };
            Some(tagged(ptr::from_ref(node).cast_mut(), tags(word)))
        });
        pushed.is_ok_and(is_free)
    }
}

impl<C: Controller + ?Sized, U: Uses> Bus<C, U> {
    /// Pushes a node whose owner is present. Serves the queue if the bus was free.
    ///
    /// # Safety
    /// As [`Bus::push`].
    pub(super) unsafe fn push_and_serve(&self, node: &Node, panics: &mut Panics) {
        node.set_queued_present();
        // SAFETY: the caller's promise.
        if unsafe { self.push(node, true) } {
            // SAFETY: the push acquired the bus.
            unsafe { self.held() }.serve(SERVE_MAX, Some(node), panics);
        }
    }

    /// Serves the queue for an owner that was handed the bus ([`Stage::Serve`]).
    ///
    /// # Safety
    /// `node` is the caller's, and the bus was handed to the caller.
    pub(super) unsafe fn accept(&self, node: &Node, panics: &mut Panics) {
        node.accept_bus();
        // SAFETY: the caller's promise.
        unsafe { self.held() }.serve(SERVE_MAX, Some(node), panics);
    }

    /// Acquires the bus if it is free and nothing is queued.
    #[inline]
    pub(super) fn try_acquire(&self) -> Option<Held<'_, C, U>> {
        self.try_acquire_idle().or_else(|| self.inheriting()?.try_acquire())
    }

    /// Acquires the bus; waits for it if necessary.
    ///
    /// # Errors
    /// [`Error::WouldDeadlock`] if the caller's context has it.
    #[inline]
    pub(super) fn acquire(&self) -> Result<Held<'_, C, U>, Error> {
        match self.try_acquire_idle() {
            Some(held) => Ok(held),
            None => self.acquire_contended(0),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn acquire_contended(&self, priority: u8) -> Result<Held<'_, C, U>, Error> {
        if !U::QUEUE {
            return Err(Error::Busy);
        }
        if self.is_ours() {
            return Err(Error::WouldDeadlock);
        }
        let mut panics = Panics::none();
        let held = if let Some(inheriting) = self.inheriting() {
            Some(inheriting.acquire(&mut panics))
        } else {
            let node = Node::new(Task { priority, ..Task::turn(self.context()) });
            let mut stage = Stage::Removed;
            // The turn may come while we are absent, inside a waker of a message we serve: then try
            // again.
            while stage == Stage::Removed && panics.are_none() {
                stage = self.push_and_wait(&node, &mut panics);
            }
            // SAFETY: granted, so we are the holder.
            (stage == Stage::Granted).then(|| unsafe { self.held() })
        };
        if panics.are_none() {
            return held.ok_or(Error::Aborted);
        }
        // Raising a panic may drop another's payload, which is user code: not under the right.
        drop(held);
        panics.raise();
        // The thread unwinds already, and the call is a destructor's.
        self.acquire_contended(priority)
    }

    /// Waits for the bus and runs a message: through the queue if it is planned, else as a turn.
    #[cold]
    #[inline(never)]
    pub(super) fn run_waiting(
        &self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
        planned: bool,
        priority: u8,
    ) -> Result<usize, MessageError> {
        if !U::QUEUE {
            return Err(MessageError::refused(Error::Busy, 0));
        }
        let inherits = self.inherits();
        let idle = if inherits || priority > 0 { None } else { self.spin_for_idle() };
        let path = if inherits || idle.is_some() { Path::Immediate } else { Path::Waited };
        let mut held = match idle {
            Some(held) => held,
            None if planned && !inherits => return self.run_queued(preset, message, priority),
            None => {
                self.acquire_contended(priority).map_err(|error| MessageError::refused(error, 0))?
            }
        };
        // The interrupt handler expects messages in flight only: leave the block's interrupt off.
        let wire = &mut held.wire;
        let ran = match self.is_interrupted() {
            true => wire.plan_and_run::<true>(preset, message, planned, path),
            false => wire.plan_and_run::<false>(preset, message, planned, path),
        };
        held.release_for(|| priority);
        ran
    }

    fn run_queued(
        &self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
        priority: u8,
    ) -> Result<usize, MessageError> {
        if self.is_ours() {
            return Err(MessageError::refused(Error::WouldDeadlock, 0));
        }
        // A raw pointer without a lifetime: we wait below until the queue is done with it.
        let erased = ptr::slice_from_raw_parts_mut(message.as_mut_ptr().cast(), message.len());
        let (turn, path) = (Task::turn(self.context()), Path::Waited);
        let node = Node::new(Task { preset, message: erased, path, priority, ..turn });
        let mut panics = Panics::none();
        let stage = self.push_and_wait(&node, &mut panics);
        panics.raise();
        if stage != Stage::Done {
            return Err(MessageError::refused(Error::Aborted, 0));
        }
        // SAFETY: the node is settled, so the task is ours again.
        node.task.with(|task| unsafe { (*task).outcome() })
    }

    /// Spins, with growing pauses, while the bus is held and nothing is queued. If the bus becomes
    /// idle soon, this costs both sides less than a place in the queue. It overtakes no queued
    /// message.
    fn spin_for_idle(&self) -> Option<Held<'_, C, U>> {
        let mut spins = self.platform().spins().min(SPINS_MAX);
        let mut pause = 1;
        while pause <= spins {
            (0..pause).for_each(|_| self.platform().relax());
            spins -= pause;
            pause *= 2;
            match self.word.load(Ordering::Relaxed) {
                IDLE => {
                    if let Some(held) = self.try_acquire_idle() {
                        return Some(held);
                    }
                }
                HOLDER | LOCK => {}
                _ => return None,
            }
        }
        None
    }

    /// Pushes a waiting thread's node, and waits until it is settled.
    fn push_and_wait(&self, node: &Node, panics: &mut Panics) -> Stage {
        // SAFETY: the next line waits until the node is settled.
        unsafe { self.push_and_serve(node, panics) };
        self.wait_settled(node, panics)
    }

    /// Waits until the node of a present owner is settled. If a hook of the platform panics,
    /// removes the node before the panic continues.
    pub(super) fn wait_settled(&self, node: &Node, panics: &mut Panics) -> Stage {
        loop {
            match contain(|| self.wait(node, panics)) {
                Ok(stage) => return stage,
                Err(payload) => panics.add(payload),
            }
            if node.set_cancelled().0 == Stage::Queued {
                self.tend(node, panics);
            }
        }
    }

    fn wait(&self, node: &Node, panics: &mut Panics) -> Stage {
        let mut spins = self.platform().spins();
        loop {
            match node.stage() {
                Stage::Queued => {}
                Stage::Serve => {
                    // SAFETY: `Serve` says that we were handed the bus.
                    unsafe { self.accept(node, panics) };
                    continue;
                }
                settled => return settled,
            }
            if self.attend_flight(Some(node), panics) {
                self.platform().relax();
            } else if spins > 0 {
                spins -= 1;
                self.platform().relax();
            } else if self.is_interrupted() {
                self.sleep_on_flight(node);
            } else if let Some((word, asleep)) = node.set_asleep() {
                self.platform().wait(word.into(), asleep);
            }
        }
    }

    /// Waits until a submitted message is settled; serves the queue if no other thread does.
    ///
    /// # Errors
    /// [`Error::WouldDeadlock`] if the caller's context has the bus.
    pub(super) fn wait_for(&self, node: &Node) -> Result<(), Error> {
        if self.is_ours() {
            return Err(Error::WouldDeadlock);
        }
        if node.set_present() != Stage::Queued {
            return Ok(());
        }
        let mut panics = Panics::none();
        let worker = self.worker.load(Ordering::Relaxed);
        // The worker itself may wait here, in a task that one of its wakers polls.
        if self.pump == Pump::Worker && (worker == 0 || worker != self.context()) {
            self.ring_quietly(&mut panics);
        } else {
            self.pump_quietly(Some(node), &mut panics);
        }
        if let Err(payload) = contain(|| self.wait(node, &mut panics)) {
            panics.add(payload);
            // The message stays submitted. If its owner was handed the bus meanwhile, serve the
            // queue.
            while node.set_absent() == Stage::Serve {
                // SAFETY: `Serve` says that we were handed the bus.
                unsafe { self.accept(node, &mut panics) };
            }
        }
        panics.raise();
        Ok(())
    }

    /// Gets a pushed node back: removes it from the queue if its turn has not come, else waits
    /// until it is settled. Waits at most for the message on the wire.
    ///
    /// Ends the program if that is the node's own message, and the caller's context runs it: its bytes
    /// are in use further up the stack.
    pub(super) fn take_out(&self, node: &Node, is_message: bool, panics: &mut Panics) -> Stage {
        let (stage, waker) = node.set_cancelled();
        if stage == Stage::Queued {
            let runs_here = match self.user_tends() {
                true => {
                    self.tend_own(panics);
                    true
                }
                false => {
                    self.tend(node, panics);
                    self.inherits() && self.is_ours()
                }
            };
            if runs_here && is_message && node.stage() == Stage::Queued {
                abort("a queued message is cancelled or dropped in its own callback");
            }
        }
        let settled = self.wait_settled(node, panics);
        panics.contain(|| drop(waker));
        settled
    }

    /// Removes cancelled nodes from the queue that the caller's own context has, further up its stack.
    fn tend_own(&self, panics: &mut Panics) {
        // An interrupt handler leaves the queue alone meanwhile.
        self.set_user(false);
        // SAFETY: the queue is this context's, which runs user code and so uses no `QueueRight`.
        let mut tended = unsafe { self.tended() };
        let _ = tended.gather(panics);
        tended.sweep(panics);
        tended.tell_backlog();
        self.set_user(true);
    }

    /// Removes a cancelled node from the queue, or has the queue's owner remove it.
    fn tend(&self, node: &Node, panics: &mut Panics) {
        if let Some(inheriting) = self.inheriting() {
            return inheriting.take_out(node);
        }
        let tend = |seen| {
            Some(match tags(seen) & (HELD | TENDED) {
                0 => tended(seen, HELD),
                HELD => tended(seen, 0),
                _ => tagged(seen, SWEEP),
            })
        };
        let Ok(seen) = self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, tend) else {
            return;
        };
        if is_free(seen) {
            // SAFETY: the bus was free, and we acquired it.
            let mut held = unsafe { self.held() };
            // Nodes pushed since, and cancels since, found a held bus and rely on its holder: us.
            let now = held.tended().gather(panics);
            let called = pushed(now) != pushed(seen) || tags(now) & SWEEP != 0;
            held.tended().sweep(panics);
            if called || !held.tended().try_leave(panics) {
                held.serve(SERVE_MAX, Some(node), panics);
            } else {
                held.pass_on();
            }
        } else if tags(seen) & TENDED == 0 {
            // SAFETY: the queue was free, and we acquired it.
            let mut tended = unsafe { self.tended() };
            let _ = tended.gather(panics);
            tended.sweep(panics);
            if let Some(held) = tended.release(panics) {
                held.serve(SERVE_MAX, Some(node), panics);
            }
        }
    }

    /// Acquires a free bus that has something queued. `None` if nothing is queued or the bus is
    /// taken. A holder or tender is told to look again, so that it does not leave the queue
    /// unserved; a lock serves the queue when it is dropped.
    pub(super) fn acquire_left(&self) -> Option<Held<'_, C, U>> {
        let left = |seen| match tags(seen) & (HELD | TENDED) {
            0 if seen == IDLE => None,
            0 => Some(tended(seen, HELD)),
            HELD => None,
            _ => Some(tagged(seen, SWEEP)),
        };
        let seen = self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, left).ok()?;
        // SAFETY: the bus was free, and we acquired it.
        is_free(seen).then(|| unsafe { self.held() })
    }

    /// Runs what is queued, if the bus is free. Returns how many messages had their turn.
    pub fn pump(&self) -> usize {
        let mut panics = Panics::none();
        let served = self.pump_quietly(None, &mut panics);
        panics.raise();
        served
    }

    /// [`Bus::pump`]; panics are kept in `panics` for the caller to raise.
    fn pump_quietly(&self, own: Option<&Node>, panics: &mut Panics) -> usize {
        if let Some(inheriting) = self.inheriting() {
            return inheriting.serve(panics);
        }
        self.acquire_left().map_or(0, |held| held.serve(SERVE_MAX, own, panics))
    }
}

impl<'b, C: Controller + ?Sized, U: Uses> Held<'b, C, U> {
    /// The queue, which the holder owns too.
    #[inline]
    pub(super) fn tended(&mut self) -> QueueRight<'_, C, U> {
        // SAFETY: the queue is ours, and this borrows it.
        unsafe { self.wire.bus.tended() }
    }

    /// Keeps the wire and releases the queue.
    pub(super) fn park(mut self, panics: &mut Panics) -> WireRight<'b, C, U> {
        let bus = self.wire.bus;
        if !bus.inherits() {
            // The wire is ours, so releasing the queue cannot hand it to us.
            self.tended().release(panics).map(Held::pass_on).unwrap_or_default();
        }
        self.pass_on();
        // SAFETY: the wire was the holder's, and is ours.
        unsafe { bus.wire() }
    }
}

impl<C: Controller + ?Sized, U: Uses> WireRight<'_, C, U> {
    /// Releases the wire of a lock; see the diagram of the word.
    #[inline]
    pub(super) fn release(self) {
        if !U::QUEUE {
            self.bus.release_idle();
            return;
        }
        let (release, relaxed) = (Ordering::Release, Ordering::Relaxed);
        if self.bus.word.compare_exchange(LOCK, IDLE, release, relaxed).is_err() {
            self.release_contended();
        }
    }

    /// [`WireRight::release`]; if messages that are served meanwhile panic, `panics` keeps that.
    pub(super) fn release_quietly(self, panics: &mut Panics) {
        let (release, relaxed) = (Ordering::Release, Ordering::Relaxed);
        if self.bus.word.compare_exchange(LOCK, IDLE, release, relaxed).is_err() {
            if let Some(held) = self.unpark() {
                held.release_quietly(SERVE_MAX, panics);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn release_contended(self) {
        if let Some(held) = self.unpark() {
            held.release_contended(SERVE_MAX);
        }
    }
}

impl<'b, C: Controller + ?Sized, U: Uses> WireRight<'b, C, U> {
    /// Takes the queue too; `None` if a tender has it, which has the wire then.
    fn unpark(self) -> Option<Held<'b, C, U>> {
        let bus = self.bus;
        if !bus.inherits() {
            let unpark = |seen| {
                Some(match tags(seen) & TENDED {
                    0 => tended(seen, 0),
                    _ => untagged(seen, HELD),
                })
            };
            let seen = bus.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, unpark);
            if seen.is_ok_and(|seen| tags(seen) & TENDED != 0) {
                return None;
            }
        }
        // SAFETY: the wire was ours, and now the queue is too.
        Some(unsafe { bus.held() })
    }
}
