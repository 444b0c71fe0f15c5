//! Serving the queue: the holder runs what others queued, then releases the bus or hands it over.
//!
//! # How it works
//! When the holder is done with its own message and something was pushed, it cannot simply release
//! the bus. It gathers the pushed nodes into the queue and runs them: a waiting caller gets its
//! result without the bus changing hands. After [`SERVE_MAX`] messages the holder hands the bus to
//! a thread that is present in the queue, or leaves it to the worker, so that no thread serves
//! others for ever. Between two messages it looks for new nodes: a message of high priority waits
//! at most for the message on the wire.
//!
//! # User code
//! | what is called | when |
//! |---|---|
//! | the controller | the node is out of the queue; the [`Server`] has its entry |
//! | the callback | as for the controller, and the message has its outcome |
//! | [`Platform::wake`] | the node is settled |
//! | a waker | the node is settled and the bus is released, so that a task polled inside the waker finds it free; afterwards the holder acquires the bus again if it is free |
//!
//! A panic in any of them is kept until the queue is served. The entry it interrupted is settled
//! with the outcome it has: [`Error::Aborted`] until its message has run.
#![allow(unsafe_code, reason = "a server owns the wire, the queue and an entry in turn")]

use core::task::Waker;

use super::Bus;
use super::atomic::{AtomicU32, Ordering};
use super::callback::{Callback, Completed, Then};
use super::lock::{Held, Pump, QueueRight, User, WireRight};
use super::node::{Entry, Job, Node, Wakeup};
use super::panics::{Panics, contain};
use super::platform::Platform;
use super::queue::{Queue, SERVE_MAX};
use super::uses::{AnyPlatform, Uses};
use super::word::{
    BACKLOG, HELD, HOLDER, IDLE, RIGHTS, SWEEP, TENDED, pushed, tagged, tags, untagged,
};
use crate::controller::{Controller, Unfinished};
#[cfg(doc)]
use crate::spi::Error;

impl<'b, C: Controller + ?Sized, U: Uses> QueueRight<'b, C, U> {
    /// Takes pushed nodes into the queue and removes cancelled ones. Returns the previous word; its
    /// node may be compared, not used.
    #[cold]
    pub(super) fn gather(&mut self, panics: &mut Panics) -> *mut Node {
        let keep = |seen| Some(tagged(IDLE, tags(seen) & RIGHTS));
        let (Ok(seen) | Err(seen)) =
            self.bus.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, keep);
        self.queue(|queue| {
            // SAFETY: the exchange made the list ours, and nodes in it are queued.
            let _ = unsafe { queue.add_pushed(pushed(seen)) };
        });
        if tags(seen) & SWEEP != 0 {
            self.sweep(panics);
        }
        seen
    }

    /// Removes cancelled nodes from the queue.
    pub(super) fn sweep(&mut self, panics: &mut Panics) {
        while let Some(entry) = self.queue(|queue| queue.take_if(|node, _| node.is_cancelled())) {
            // The thread that cancelled the node took its waker.
            if let Some(Wakeup { sleeper, .. }) = entry.settle_removed() {
                self.bus.wake_sleeper(sleeper, panics);
            }
        }
    }

    /// Notes in the word that something is queued, if so: the holder may not look at the queue itself.
    pub(super) fn tell_backlog(&mut self) {
        if !self.queue(|queue| queue.is_empty()) {
            let tell = |seen| Some(tagged(seen, BACKLOG));
            let _ = self.bus.word.fetch_update(Ordering::Release, Ordering::Relaxed, tell);
        }
    }

    /// Whether the word asks the tender to look: something was pushed or cancelled.
    #[inline]
    fn is_called(&self) -> bool {
        untagged(self.bus.word.load(Ordering::Relaxed), RIGHTS | BACKLOG) != IDLE
    }

    /// Releases the bus with what is queued. Returns false if something was pushed since the queue
    /// was gathered; then the bus stays the holder's.
    pub(super) fn try_leave(&mut self, panics: &mut Panics) -> bool {
        let empty = self.queue(|queue| queue.is_empty());
        let left = if empty { IDLE } else { tagged(IDLE, BACKLOG) };
        let (release, relaxed) = (Ordering::Release, Ordering::Relaxed);
        let went = self.bus.word.compare_exchange(HOLDER, left, release, relaxed).is_ok();
        if went && !empty && self.bus.pump == Pump::Worker {
            self.bus.ring_quietly(panics);
        }
        went
    }

    /// Releases the queue beside a lock, after removing cancelled nodes. Returns `Some` if the lock
    /// was dropped meanwhile: the tender then holds the bus.
    pub(super) fn release(mut self, panics: &mut Panics) -> Option<Held<'b, C, U>> {
        loop {
            let backlog = if self.queue(|queue| queue.is_empty()) { 0 } else { BACKLOG };
            let order = Ordering::AcqRel;
            let seen = self.bus.word.fetch_update(order, Ordering::Relaxed, |seen| {
                let released = match tags(seen) & HELD {
                    0 => tagged(seen, HELD),
                    _ => tagged(untagged(seen, TENDED | BACKLOG), backlog),
                };
                (tags(seen) & SWEEP == 0).then_some(released)
            });
            match seen {
                // SAFETY: the lock was dropped, and this exchange acquired its wire.
                Ok(seen) if tags(seen) & HELD == 0 => return Some(unsafe { self.bus.held() }),
                Ok(_) => return None,
                Err(_) => drop(self.gather(panics)),
            }
        }
    }
}

/// Whether a server owns the bus.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Right {
    /// It is the holder.
    Holds,
    /// It released the bus to call a waker, and tries to acquire it again.
    Aside,
    /// The bus is no longer its own.
    Gone,
}

/// A holder that serves.
pub(super) struct Server<'b, 'p, C: Controller + ?Sized, U: Uses = AnyPlatform> {
    pub(super) bus: &'b Bus<C, U>,
    pub(super) right: Right,
    /// The message on the wire, or the message whose run panicked.
    pub(super) entry: Option<Entry>,
    served: usize,
    budget: usize,
    /// The server's own node in the queue.
    own: Option<&'p Node>,
    /// With inheritance: the waker to call when the wire is released.
    pub(super) waker: Option<Waker>,
    pub(super) panics: &'p mut Panics,
}

impl<'b, C: Controller + ?Sized, U: Uses> Held<'b, C, U> {
    /// Serves the queue, then releases the bus or hands it over; hands it over after `budget`
    /// messages at the latest, if it can. `own` is the caller's node, if that is in the queue.
    /// Returns how many nodes had their turn. Never unwinds.
    #[cold]
    pub(super) fn serve(self, budget: usize, own: Option<&Node>, panics: &mut Panics) -> usize {
        let mut server = Server::new(self, budget, own, panics);
        server.serve();
        server.served
    }

    /// Releases a bus whose word says more than that it is held.
    #[cold]
    #[inline(never)]
    pub(super) fn release_contended(self, budget: usize) {
        let mut panics = Panics::none();
        self.release_quietly(budget, &mut panics);
        panics.raise();
    }

    /// Releases the bus after a panic in the holder's own message.
    #[cold]
    pub(super) fn abandon(self) {
        let mut panics = Panics::none();
        self.release_quietly(0, &mut panics);
        panics.discard();
    }

    pub(super) fn release_quietly(self, budget: usize, panics: &mut Panics) {
        match self.wire.bus.inheriting() {
            Some(inheriting) => inheriting.release(self, panics),
            None => drop(self.serve(budget, None, panics)),
        }
    }
}

impl<'b, 'p, C: Controller + ?Sized, U: Uses> Server<'b, 'p, C, U> {
    pub(super) fn new(
        held: Held<'b, C, U>,
        budget: usize,
        own: Option<&'p Node>,
        panics: &'p mut Panics,
    ) -> Self {
        let bus = held.wire.bus;
        held.pass_on();
        let (right, entry, waker) = (Right::Holds, None, None);
        Self { bus, right, entry, served: 0, budget, own, waker, panics }
    }

    pub(super) fn wire(&mut self) -> WireRight<'b, C, U> {
        // SAFETY: the server is the holder here and has no other `WireRight`.
        unsafe { self.bus.wire() }
    }

    fn tended(&mut self) -> QueueRight<'b, C, U> {
        // SAFETY: the server is the holder here and has no other `QueueRight`.
        unsafe { self.bus.tended() }
    }

    /// Serves the queue to its end, through panics.
    pub(super) fn serve(&mut self) {
        while let Err(payload) = contain(|| self.serve_on()) {
            self.panics.add(payload);
        }
        self.own.map(Node::set_present);
    }

    fn serve_on(&mut self) {
        self.settle_left();
        while self.has_bus() {
            if self.tended().is_called() {
                self.tended().gather(self.panics);
            }
            if self.served >= self.budget && self.hand_over_in_time() {
                return;
            }
            if let Some(entry) = self.tended().queue(Queue::take_next) {
                self.served += 1;
                self.attend(entry);
            } else if self.bus.release_idle() {
                self.right = Right::Gone;
            } else {
                self.tended().gather(self.panics);
            }
        }
    }

    /// Whether the server is the holder, or could acquire the bus again.
    fn has_bus(&mut self) -> bool {
        if self.right == Right::Holds {
            return true;
        }
        let again = match self.right {
            Right::Aside => {
                self.own.map(Node::set_present);
                self.bus.acquire_left().map(Held::pass_on)
            }
            _ => None,
        };
        self.right = if again.is_some() { Right::Holds } else { Right::Gone };
        again.is_some()
    }

    /// Hands the bus to a thread that is present in the queue, or leaves it to the worker. If there
    /// is neither, returns false: the server continues.
    #[cold]
    fn hand_over_in_time(&mut self) -> bool {
        let (empty, urgent) = self.tended().queue(|queue| (queue.is_empty(), queue.is_urgent()));
        // An urgent message does not wait for the next holder to wake up.
        if empty || (urgent && self.served < self.budget + SERVE_MAX) {
            return false;
        }
        if self.hand_over() {
            return true;
        }
        if self.bus.pump == Pump::Worker {
            self.step_aside();
            self.right = Right::Gone;
            return true;
        }
        self.budget = self.served + SERVE_MAX;
        false
    }

    /// Hands the bus to an owner that is present in the queue, if there is one.
    fn hand_over(&mut self) -> bool {
        while let Some(node) = self.tended().queue(|queue| queue.first_present()) {
            // SAFETY: the node is queued, and after success we touch nothing of the bus.
            if let Some(sleeper) = unsafe { Node::hand_over(node) } {
                self.right = Right::Gone;
                self.bus.wake_sleeper(sleeper, self.panics);
                return true;
            }
        }
        false
    }

    /// Releases the bus with what is queued, or hands it to a waiting thread. The server's own node
    /// is set absent, so that a nested server inside a waker cannot hand the bus to it.
    fn step_aside(&mut self) {
        self.own.map(Node::set_absent);
        while self.right == Right::Holds && !self.hand_over() {
            if self.tended().try_leave(self.panics) {
                self.right = Right::Aside;
            } else {
                self.tended().gather(self.panics);
            }
        }
    }

    /// Handles one node that was taken out of the queue.
    fn attend(&mut self, entry: Entry) {
        if entry.is_cancelled() {
            self.wake(entry.settle_removed());
            return;
        }
        if entry.is_turn() {
            self.pass_turn(entry);
        } else if self.bus.is_interrupted() {
            self.start(entry);
        } else {
            self.run(entry);
        }
    }

    /// Grants the bus to the owner of a turn if it is present. Otherwise its task is woken to try
    /// again, after the bus is released: else the task would find the bus held on its own account,
    /// queue again, and be woken in vain again.
    fn pass_turn(&mut self, entry: Entry) {
        if !entry.is_present() {
            self.step_aside();
            self.wake(entry.settle_removed());
            return;
        }
        // The new holder must not release the bus before the rest of the queue is served.
        self.tended().tell_backlog();
        let (granted, wakeup) = entry.settle_turn();
        if granted {
            self.right = Right::Gone;
        }
        self.wake(wakeup);
    }

    /// Runs a message.
    // Always: a call costs a tenth of a message in a batch.
    #[inline(always)]
    pub(super) fn run(&mut self, entry: Entry) {
        let mut wire = self.wire();
        let entry = self.entry.insert(entry);
        let Job { preset, message, .. } = entry.job();
        let ran = wire.run_uncounted(preset, message);
        entry.with_task(|task| task.ran = ran);
        if self.bus.is_counting() {
            self.count();
        }
        self.end();
    }

    /// Counts the message that ran.
    #[cold]
    #[inline(never)]
    pub(super) fn count(&mut self) {
        if let Some(entry) = &mut self.entry {
            let ran = entry.with_task(|task| task.ran);
            let Job { preset, message, path } = entry.job();
            self.bus.counters.count(path, preset, message, ran);
        }
    }

    /// The message has its outcome: runs the callback, then settles the node or queues it again.
    #[inline]
    pub(super) fn end(&mut self) {
        let Some(mut entry) = self.entry.take() else { return };
        if let Some(callback) = entry.with_task(|task| task.callback) {
            if self.call_back(&mut entry, callback) {
                // SAFETY: type `Entry`: the node is queued, hence alive, and in no list.
                let node = unsafe { &*entry.into_node() };
                // SAFETY: the owner keeps the node and its message until it is settled.
                unsafe { self.bus.push(node, false) };
                return;
            }
        }
        let wakeup = entry.settle_done();
        self.wake(wakeup);
    }

    /// Runs the callback. Returns whether to queue the message again.
    #[inline(never)]
    fn call_back(&mut self, entry: &mut Entry, callback: Callback) -> bool {
        let outcome = entry.with_task(|task| task.outcome());
        let then = self.panics.contain(|| {
            let _user = User::new(self.bus);
            callback(&mut Completed::new(outcome, entry.job().message))
        });
        if then != Some(Then::Again) || entry.is_cancelled() {
            return false;
        }
        entry.with_task(|task| task.ran = Err(Unfinished::ABORTED));
        true
    }

    /// Settles the message whose run panicked.
    pub(super) fn settle_left(&mut self) {
        if let Some(entry) = self.entry.take() {
            if self.bus.is_interrupted() {
                // The message may have been started: take the controller back.
                let mut wire = self.wire();
                self.panics.contain(|| wire.drive(C::reclaim));
            }
            self.wake(entry.settle_done());
        }
    }

    #[inline]
    pub(super) fn wake(&mut self, wakeup: Option<Wakeup>) {
        if let Some(wakeup) = wakeup {
            self.wake_somebody(wakeup);
        }
    }

    #[cold]
    fn wake_somebody(&mut self, Wakeup { sleeper, waker }: Wakeup) {
        self.bus.wake_sleeper(sleeper, self.panics);
        if self.bus.inherits() {
            // The caller calls it after releasing the wire.
            self.waker = waker;
        } else if let Some(waker) = waker {
            self.step_aside();
            self.panics.contain(|| waker.wake());
        }
    }
}

impl<C: ?Sized, U: Uses> Bus<C, U> {
    /// Wakes the thread that sleeps on `word`, if any.
    #[inline]
    pub(super) fn wake_sleeper(&self, word: Option<*const AtomicU32>, panics: &mut Panics) {
        let Some(word) = word else { return };
        if self.is_interrupted() {
            self.wake_for_flight(panics);
        } else {
            panics.insist(|| self.platform().wake(word));
        }
    }
}
