//! Serving: the holder runs what others queued, then releases the bus or hands it over.
//!
//! # How it works
//! The holder, done with its own message, fails to release the bus because something was pushed,
//! gathers that into its queue and runs it: a waiting caller gets its result without the bus ever
//! changing hands. After [`SERVE_MAX`] messages the holder hands the bus to a thread that is present
//! in the queue, or leaves it to the worker: nobody serves others for ever. Between two messages it
//! looks for what was pushed meanwhile, so that a message of high priority waits at most for the one
//! on the wire.
//!
//! # User code
//! | what is called | when |
//! |---|---|
//! | the controller | the node is out of the queue; the [`Server`] has its entry |
//! | the callback | the same, and the message has its outcome |
//! | [`Platform::wake`] | the node is settled |
//! | a waker | the node is settled and the bus is released, so that a task that is polled there and then finds it free; the holder acquires it again afterwards if nobody else has |
//!
//! A panic in any of them is kept until the queue is served; whatever entry is left is settled with
//! the outcome it has, which is [`Error::Aborted`] until its message has run.
#![allow(unsafe_code, reason = "a server has the wire, the queue and an entry in turn")]

use core::task::Waker;

use super::Bus;
use super::atomic::{AtomicU32, Ordering};
use super::callback::{Callback, Completed, Then};
use super::lock::{Held, Pump, Tended, Wire};
use super::node::{Entry, Job, Node, Wakeup};
use super::panics::{Panics, contain};
use super::queue::{Queue, SERVE_MAX};
use super::word::{
    BACKLOG, HELD, HOLDER, IDLE, INHERITS, RIGHTS, SWEEP, TENDED, TURNS, pushed, tagged, tags,
    untagged,
};
use crate::controller::{Controller, Unfinished};
#[cfg(doc)]
use crate::{bus::Platform, spi::Error};

impl<'b, C: Controller + ?Sized> Tended<'b, C> {
    /// Takes what was pushed into the queue, and out of it what its owners want out. Returns the
    /// word as it was, whose node is to be compared only.
    #[cold]
    pub(super) fn gather(&mut self, panics: &mut Panics) -> *mut Node {
        let keep = |seen| {
            // With inheritance others look at the word meanwhile: what may be queued is said.
            let said = if tags(seen) & INHERITS != 0 { BACKLOG | TURNS } else { 0 };
            Some(tagged(IDLE, tags(seen) & RIGHTS | said))
        };
        let (Ok(seen) | Err(seen)) =
            self.bus.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, keep);
        self.queue(|queue| {
            // SAFETY: the list is ours by the exchange, and nodes in it are queued.
            unsafe { queue.add_pushed(pushed(seen)) };
        });
        if tags(seen) & SWEEP != 0 {
            self.sweep(panics);
        }
        seen
    }

    /// Takes out of the queue what its owners want out.
    pub(super) fn sweep(&mut self, panics: &mut Panics) {
        while let Some(entry) = self.queue(|queue| queue.take_if(|node, _| node.is_cancelled())) {
            let Some(Wakeup { sleeper, waker }) = entry.settle_removed() else { continue };
            self.bus.wake_sleeper(sleeper, panics);
            // The owner is here and waits: nobody is to be woken by it.
            panics.contain(|| drop(waker));
        }
    }

    /// Whether something is in the word for whoever tends the queue.
    #[inline]
    fn is_called(&self) -> bool {
        let word = self.bus.word.load(Ordering::Relaxed);
        !pushed(word).is_null() || tags(word) & SWEEP != 0
    }

    /// Leaves the bus to nobody, with what is queued. Whether that went: not if something was pushed
    /// since the queue was gathered. Then the bus is not the holder's any more.
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

    /// Lets go of the queue beside a lock, once nobody wants a node out of it. `Some` if the lock was
    /// dropped meanwhile, which leaves the bus to the tender.
    pub(super) fn release(mut self, panics: &mut Panics) -> Option<Held<'b, C>> {
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
                // SAFETY: the lock is gone, and its wire is ours by this.
                Ok(seen) if tags(seen) & HELD == 0 => return Some(unsafe { self.bus.held() }),
                Ok(_) => return None,
                Err(_) => drop(self.gather(panics)),
            }
        }
    }
}

/// Whether a server has the bus.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Right {
    /// It is the holder.
    Holds,
    /// It released the bus to call a waker, and is to come back.
    Aside,
    /// The bus is not its any more.
    Gone,
}

/// A holder that serves.
pub(super) struct Server<'b, 'p, C: Controller + ?Sized> {
    pub(super) bus: &'b Bus<C>,
    pub(super) right: Right,
    /// The message on the wire, or one whose running panicked.
    pub(super) entry: Option<Entry>,
    served: usize,
    budget: usize,
    /// The server's own node in the queue.
    own: Option<&'p Node>,
    /// With inheritance: who is to be woken.
    pub(super) waker: Option<Waker>,
    pub(super) panics: &'p mut Panics,
}

impl<'b, C: Controller + ?Sized> Held<'b, C> {
    /// Serves the queue, then releases the bus or hands it over; after `budget` messages rather
    /// that. `own` is the caller's node, if it is in the queue. Returns how many nodes had their
    /// turn. Never unwinds.
    #[cold]
    pub(super) fn serve(self, budget: usize, own: Option<&Node>, panics: &mut Panics) -> usize {
        let mut server = Server::new(self, budget, own, panics);
        server.serve();
        server.served
    }

    /// Releases a bus in whose word something else stands.
    #[cold]
    #[inline(never)]
    pub(super) fn release_contended(self, budget: usize) {
        let mut panics = Panics::none();
        self.release_quietly(budget, &mut panics);
        panics.raise();
    }

    /// What a panic of the holder's own message does.
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

impl<'b, 'p, C: Controller + ?Sized> Server<'b, 'p, C> {
    pub(super) fn new(
        held: Held<'b, C>,
        budget: usize,
        own: Option<&'p Node>,
        panics: &'p mut Panics,
    ) -> Self {
        let bus = held.wire.bus;
        held.pass_on();
        let (right, entry, waker) = (Right::Holds, None, None);
        Self { bus, right, entry, served: 0, budget, own, waker, panics }
    }

    pub(super) fn wire(&mut self) -> Wire<'b, C> {
        // SAFETY: a server that calls this is the holder, and has no other.
        unsafe { self.bus.wire() }
    }

    fn tended(&mut self) -> Tended<'b, C> {
        // SAFETY: likewise.
        unsafe { self.bus.tended() }
    }

    /// Serves to the end, whatever panics.
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

    /// Whether the server is the holder, or can be again.
    fn has_bus(&mut self) -> bool {
        if self.right == Right::Aside {
            self.own.map(Node::set_present);
            let again = self.bus.acquire_left().map(Held::pass_on);
            self.right = if again.is_some() { Right::Holds } else { Right::Gone };
        }
        self.right == Right::Holds
    }

    /// Hands the bus to a thread that is present in the queue, or leaves it to the worker. If there
    /// is neither, the server goes on.
    #[cold]
    fn hand_over_in_time(&mut self) -> bool {
        let (empty, urgent) = self.tended().queue(|queue| (queue.is_empty(), queue.is_urgent()));
        // An urgent message is not made to wait for the next holder to wake up.
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
            // SAFETY: it is queued, and from a success on we touch nothing of the bus.
            if let Some(sleeper) = unsafe { Node::hand_over(node) } {
                self.right = Right::Gone;
                self.bus.wake_sleeper(sleeper, self.panics);
                return true;
            }
        }
        false
    }

    /// Releases the bus for a moment, whatever is queued; but leaves no thread waiting for that.
    /// Nor can the bus be given to the server meanwhile, whoever gets it, nested in a waker.
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

    /// Sees to one node, which is out of the queue.
    fn attend(&mut self, entry: Entry) {
        if entry.is_cancelled() {
            self.wake(entry.settle_removed());
            return;
        }
        if entry.is_turn() {
            self.pass_turn(entry);
        } else if self.bus.pump == Pump::Interrupt {
            self.start(entry);
        } else {
            self.run(entry);
        }
    }

    /// Gives the bus to the owner of a turn if that is present. Else the owner tries again, and the
    /// bus is free before it can: or it would find the bus held for its own sake, queue again, and
    /// be sent away again.
    fn pass_turn(&mut self, entry: Entry) {
        if !entry.is_present() {
            self.step_aside();
            self.wake(entry.settle_removed());
            return;
        }
        // Whoever is granted the bus does not release it before the rest of the queue is seen to.
        if !self.tended().queue(|queue| queue.is_empty()) {
            let tell = |seen| Some(tagged(seen, BACKLOG));
            let _ = self.bus.word.fetch_update(Ordering::Release, Ordering::Relaxed, tell);
        }
        let (granted, wakeup) = entry.settle_turn();
        if granted {
            self.right = Right::Gone;
        }
        self.wake(wakeup);
    }

    /// Runs a message.
    #[inline]
    pub(super) fn run(&mut self, entry: Entry) {
        let mut wire = self.wire();
        let entry = self.entry.insert(entry);
        let Job { program, message, path } = entry.job();
        let ran = wire.run_prepared(program, message, path);
        entry.with_task(|task| task.ran = ran);
        self.end();
    }

    /// The message has its outcome: calls back, and settles it or queues it again.
    #[inline]
    pub(super) fn end(&mut self) {
        let Some(mut entry) = self.entry.take() else { return };
        if let Some(callback) = entry.with_task(|task| task.callback)
            && self.call_back(&mut entry, callback)
        {
            // SAFETY: of an entry: it is queued, hence alive, and in no list.
            let node = unsafe { &*entry.into_node() };
            // SAFETY: its owner keeps it and its message until it is settled.
            unsafe { self.bus.push(node, false) };
            return;
        }
        let wakeup = entry.settle_done();
        self.wake(wakeup);
    }

    /// Calls back; whether the message is to be queued again.
    #[inline(never)]
    fn call_back(&mut self, entry: &mut Entry, callback: Callback) -> bool {
        let outcome = entry.with_task(|task| task.outcome());
        let then = self.panics.contain(|| {
            self.bus.set_user();
            callback(&mut Completed::new(outcome, entry.job().message))
        });
        self.bus.clear_user();
        if then != Some(Then::Again) || entry.is_cancelled() {
            return false;
        }
        entry.with_task(|task| task.ran = Err(Unfinished::ABORTED));
        true
    }

    /// Settles the message whose running panicked.
    pub(super) fn settle_left(&mut self) {
        if let Some(entry) = self.entry.take() {
            if self.bus.pump == Pump::Interrupt {
                // Begun, perhaps, and not to be gone on with.
                let mut wire = self.wire();
                self.panics.contain(|| wire.controller_mut().reclaim());
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
        if self.bus.platform.inheritance().is_some() {
            // To be called by whoever releases the wire.
            self.waker = waker;
        } else if let Some(waker) = waker {
            self.step_aside();
            self.panics.contain(|| waker.wake());
        }
    }
}

impl<C: ?Sized> Bus<C> {
    /// Wakes the thread that sleeps on `word`, if any.
    #[inline]
    pub(super) fn wake_sleeper(&self, word: Option<*const AtomicU32>, panics: &mut Panics) {
        let Some(word) = word else { return };
        if self.pump == Pump::Interrupt {
            self.wake_for_flight(panics);
        } else {
            panics.insist(|| self.platform.wake(word));
        }
    }
}
