//! Messages that the controller's interrupt handler continues.
//!
//! # How it works
//! On a bus with [`Pump::Interrupt`](super::Pump::Interrupt) the holder starts a queued message
//! ([`Controller::start`]). If the message does not finish in that call, the holder leaves it *in
//! flight*: the bus stays held, and no thread attends to it until the interrupt comes.
//! [`Bus::interrupt`] then continues the message, and after it the queue.
//!
//! A lost interrupt loses no message: a thread that waits for the bus attends to the flight instead
//! of sleeping, until the message's deadline passes.
//!
//! A message that borrows its buffers from a future is the future's alone: see [`super::visit`].
//!
//! The flight word says whether a message is in flight and whether threads sleep on it, and counts
//! its changes. All threads that wait on such a bus sleep on this word, so that both a flight and
//! the end of their own message wake them.
//!
//! # Ordering
//! 1. The flight is published last, with a release, and taken with an acquire. One thread or
//!    handler at a time attends to it.
//! 2. Arming the block and publishing the flight are one critical section ([`Platform::masked`]).
//!    So are taking the flight and the controller's [`resume`](Controller::resume), which silences
//!    the block. Without this, the handler could interrupt the code that just took the flight on
//!    the same processor: it would find nothing to attend to, and a level-triggered line would
//!    raise it again for ever. A handler on another processor may find nothing; the line goes down
//!    soon after.
//!
//! # Safety
//! Taking the flight makes its taker the holder of the bus: the previous holder gave that up.
#![allow(unsafe_code, reason = "taking the flight makes the taker the holder of the bus")]

use core::ptr;
use core::task::Poll;

use super::Bus;
use super::atomic::Ordering;
use super::lock::WireRight;
use super::node::{Entry, Job, Node};
use super::panics::{Panics, contain};
use super::platform::Platform;
use super::queue::SERVE_MAX;
use super::serve::{Right, Server};
use super::uses::Uses;
use super::visit::{Attendance, Borrowed, Visit};
use crate::controller::{Controller, Unfinished};

/// A message is in flight: on the wire, waiting for its interrupt.
const FLYING: u32 = 1;
/// Threads sleep on the flight word.
const SLEEPERS: u32 = 2;
/// Somebody came to continue the flight, or to have its owner woken, while another attended to it.
const CALL: u32 = 4;
/// Only its owner continues the flight: others may sleep meanwhile, and its holder has the wire without the queue.
const OWNERS: u32 = 8;
/// One change of the word; this bit and those above count them.
const CHANGE: u32 = 16;

impl<C: ?Sized, U: Uses> Bus<C, U> {
    /// Wakes the threads that sleep on the flight word: a message was settled or is in flight.
    #[cold]
    pub(super) fn wake_for_flight(&self, panics: &mut Panics) {
        let stir = |seen: u32| Some(seen.wrapping_add(CHANGE) & !SLEEPERS);
        let seen = self.flight.fetch_update(Ordering::Release, Ordering::Relaxed, stir);
        if seen.is_ok_and(|seen| seen & SLEEPERS != 0) {
            panics.insist(|| self.platform().wake(&self.flight));
        }
    }

    /// Calls `f` with the controller's interrupt masked: once, even if the platform calls it twice or not at all.
    pub(super) fn once_masked(&self, f: impl FnOnce()) {
        let mut f = Some(f);
        let mut once = || {
            if let Some(f) = f.take() {
                f();
            }
        };
        self.platform().masked(&mut once);
        once();
    }

    /// Sleeps until the word changes, unless a message is in flight or the node is settled.
    pub(super) fn sleep_on_flight(&self, node: &Node) {
        let seen = self.flight.load(Ordering::Acquire);
        // Once `set_asleep` succeeded, settling the node changes the word.
        if seen & (FLYING | OWNERS) == FLYING || node.set_asleep().is_none() {
            return;
        }
        let asleep = seen | SLEEPERS;
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        if seen == asleep || self.flight.compare_exchange(seen, asleep, success, failure).is_ok() {
            self.platform().wait((&self.flight).into(), asleep);
        }
    }
}

impl<C: Controller + ?Sized, U: Uses> Server<'_, '_, C, U> {
    /// Starts a message. If it is left in flight, the server no longer has the bus.
    pub(super) fn start(&mut self, entry: Entry) {
        let mut wire = self.wire();
        let entry = self.entry.insert(entry);
        let Job { preset, message, .. } = entry.job();
        let polled = wire.drive(|controller| controller.start(preset, message));
        if self.land(polled).is_ready() {
            return self.end();
        }
        let bus = self.bus;
        bus.once_masked(|| self.fly());
        bus.wake_for_flight(self.panics);
    }

    /// Continues the message that was in flight.
    fn resume(&mut self, entry: Entry) {
        let mut wire = self.wire();
        let entry = self.entry.insert(entry);
        let Job { preset, message, .. } = entry.job();
        let polled = wire.drive(|controller| controller.resume(preset, message));
        if self.land(polled).is_pending() {
            self.fly();
        }
    }

    /// Records the outcome of a message, if it ended.
    fn land(&mut self, polled: Poll<Result<usize, Unfinished>>) -> Poll<()> {
        polled.map(|ran| {
            if let Some(entry) = &mut self.entry {
                entry.with_task(|task| task.ran = ran);
                if self.bus.is_counting() {
                    self.count();
                }
            }
        })
    }

    /// Leaves the message in flight. The caller has masked the interrupt (Ordering 2).
    fn fly(&mut self) {
        self.wire().drive(C::arm);
        let node = self.entry.take().map_or(ptr::null(), Entry::into_node);
        self.wire().leave_flying(node, FLYING);
        self.right = Right::Gone;
    }
}

impl<C: Controller + ?Sized, U: Uses> WireRight<'_, C, U> {
    /// Leaves the message of a node in flight. Returns the flight word before.
    fn leave_flying(&mut self, node: *const Node, how: u32) -> u32 {
        self.bus.flying.with_mut(|flying| {
            // SAFETY: the flight belongs to the holder.
            unsafe { *flying = node }
        });
        let publish = |seen: u32| Some(seen.wrapping_add(CHANGE) & !CALL | how);
        let order = Ordering::AcqRel;
        let (Ok(seen) | Err(seen)) =
            self.bus.flight.fetch_update(order, Ordering::Relaxed, publish);
        seen
    }

    /// Leaves the message of a node in flight for its owner alone, who waits for the queue no more than others. Returns
    /// whether the owner came since the flight was taken.
    pub(super) fn leave_to_owner(&mut self, node: *const Node) -> bool {
        self.leave_flying(node, FLYING | OWNERS) & CALL != 0
    }
}

impl<C: Controller + ?Sized, U: Uses> Bus<C, U> {
    /// Continues the message whose interrupt came. Call it from the controller's interrupt handler.
    /// It never polls a message that needs further interrupts to its end; it starts the next
    /// messages of the queue. Returns whether there was a flight to attend to.
    ///
    /// May be called at any time and from anywhere. A timer may call it so that a message whose
    /// interrupt was lost ends with its timeout.
    pub fn interrupt(&self) -> bool {
        const { assert!(U::INTERRUPT, "the bus's type says that no interrupt ends its messages") }
        let mut panics = Panics::none();
        let attended = self.attend_flight(None, &mut panics);
        panics.raise();
        attended
    }

    /// [`Bus::interrupt`]; panics are kept in `panics`. `own` is the node of a thread that waits: no interrupt came.
    pub(super) fn attend_flight(&self, own: Option<&Node>, panics: &mut Panics) -> bool {
        if !self.is_interrupted() || self.flight.load(Ordering::Relaxed) & FLYING == 0 {
            return false;
        }
        self.attend(own, None, panics)
    }

    /// Attends to the flight, if there is one: as its owner, or as any other caller.
    pub(super) fn attend(
        &self,
        own: Option<&Node>,
        mut visit: Option<&mut Visit>,
        panics: &mut Panics,
    ) -> bool {
        let mut rouses = own.is_none();
        loop {
            match self.attend_once(own, visit.as_deref_mut(), rouses, panics) {
                // The owner waits, with a waker that came after the one that was woken.
                Attendance::Called => rouses = true,
                attended => return attended == Attendance::Yes,
            }
        }
    }

    fn attend_once(
        &self,
        own: Option<&Node>,
        mut visit: Option<&mut Visit>,
        rouses: bool,
        panics: &mut Panics,
    ) -> Attendance {
        let (mut server, mut borrowed) = (None, None);
        let mut kept = Some(panics);
        let mut attended = Attendance::Yes;
        let masked = contain(|| {
            self.once_masked(|| {
                let take = |seen: u32| match seen & FLYING {
                    // The thread that attends to it at this moment has yet to wake the owner.
                    0 => rouses.then_some(seen | CALL),
                    _ => Some(seen.wrapping_add(CHANGE) & !(FLYING | OWNERS)),
                };
                let taken = self.flight.fetch_update(Ordering::AcqRel, Ordering::Relaxed, take);
                let taken = taken.unwrap_or_default();
                if taken & FLYING == 0 {
                    return;
                }
                let node = self.flying.with(|flying| {
                    // SAFETY: the flight belongs to the holder.
                    unsafe { *flying }
                });
                // SAFETY: a node in flight is queued and in no list.
                let entry = unsafe { Entry::new(node) };
                if taken & OWNERS != 0 {
                    // SAFETY: module, Safety; of such a flight, with the wire alone.
                    let flight = borrowed.insert(Borrowed::new(unsafe { self.wire() }, entry));
                    attended = flight.attend(visit.take(), rouses);
                    return;
                }
                let Some(panics) = kept.take() else { return };
                // SAFETY: module, Safety.
                let held = unsafe { self.held() };
                server.insert(Server::new(held, SERVE_MAX, own, panics)).resume(entry);
            });
        });
        if let Some(mut server) = server {
            match masked {
                // The message ended, or is in flight again.
                Ok(()) => server.end(),
                Err(payload) => server.panics.add(payload),
            }
            server.serve();
            return Attendance::Yes;
        }
        let panics = kept.expect("only a server has them");
        let flight = borrowed.map(|flight| (flight, masked.is_err()));
        if let Err(payload) = masked {
            panics.add(payload);
        }
        let Some((flight, failed)) = flight else { return Attendance::No };
        flight.end(failed, panics);
        attended
    }
}
