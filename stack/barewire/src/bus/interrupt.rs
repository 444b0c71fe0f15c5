//! Messages that the controller's interrupt handler goes on with.
//!
//! # How it works
//! On a bus with [`Pump::Interrupt`](super::Pump::Interrupt) the holder begins a queued message
//! ([`Controller::start`]) and, if that does not finish in the call, leaves it *flying*: the bus
//! stays held, and nobody attends to it until the interrupt comes. [`Bus::interrupt`] then goes on
//! with it, and with the queue.
//!
//! A lost interrupt loses no message: a thread that waits for the bus attends to the flight
//! instead of sleeping, and finds its deadline passed in the end.
//!
//! The flight's word says whether a message flies and whether threads sleep on it, and counts its
//! changes. Threads that wait on such a bus all sleep on it, so that they wake up for a flight as
//! well as for their own message.
//!
//! # Ordering
//! 1. The flight is published, with a release, after everything else, and taken with an acquire.
//!    One at a time attends to it.
//! 2. Arming the block and publishing are one critical section ([`Platform::masked`]), and so are
//!    taking the flight and the controller's [`resume`](Controller::resume), which silences the
//!    block. So on one processor the handler never finds its interrupt raised and the flight taken
//!    by the code it interrupted: a level-triggered line would bring it back for ever. A handler
//!    of another processor may find that; the line goes down while it comes back.
//!
//! # Safety
//! Who takes the flight is the holder of the bus: who left it flying gave that up.
#![allow(unsafe_code, reason = "the flight's taker is made the holder of the bus")]

use core::ptr;
use core::task::Poll;

use super::Bus;
use super::atomic::Ordering;
use super::lock::Pump;
use super::node::{Entry, Job, Node};
use super::panics::{Panics, contain};
#[cfg(doc)]
use super::platform::Platform;
use super::queue::SERVE_MAX;
use super::serve::{Right, Server};
use crate::controller::{Controller, Unfinished};

/// A message is on the wire and waits for its interrupt.
const FLYING: u32 = 1;
/// Threads sleep on the flight's word.
const SLEEPERS: u32 = 2;
/// One change of the word; the bits above count them.
const CHANGE: u32 = 4;

impl<C: ?Sized> Bus<C> {
    /// Wakes the threads that sleep on the flight's word: a message was settled, or flies.
    #[cold]
    pub(super) fn wake_for_flight(&self, panics: &mut Panics) {
        let stir = |seen: u32| Some(seen.wrapping_add(CHANGE) & !SLEEPERS);
        let seen = self.flight.fetch_update(Ordering::Release, Ordering::Relaxed, stir);
        if seen.is_ok_and(|seen| seen & SLEEPERS != 0) {
            panics.insist(|| self.platform.wake(&self.flight));
        }
    }

    /// Sleeps until something changes, unless there is something to attend to.
    pub(super) fn sleep_on_flight(&self, node: &Node) {
        let seen = self.flight.load(Ordering::Acquire);
        // From `set_asleep` on whoever settles the node changes the word.
        if seen & FLYING != 0 || node.set_asleep().is_none() {
            return;
        }
        let asleep = seen | SLEEPERS;
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        if seen == asleep || self.flight.compare_exchange(seen, asleep, success, failure).is_ok() {
            self.platform.wait(&self.flight, asleep);
        }
    }
}

impl<C: Controller + ?Sized> Server<'_, '_, C> {
    /// Begins a message. The bus is no longer the server's if it flies.
    pub(super) fn start(&mut self, entry: Entry) {
        let mut wire = self.wire();
        let entry = self.entry.insert(entry);
        let Job { program, message, .. } = entry.job();
        let polled = wire.controller_mut().start(program, message);
        if self.land(polled).is_ready() {
            return self.end();
        }
        let bus = self.bus;
        bus.platform.masked(&mut || self.fly());
        bus.wake_for_flight(self.panics);
    }

    /// Goes on with the message that flew.
    fn resume(&mut self, entry: Entry) {
        let mut wire = self.wire();
        let entry = self.entry.insert(entry);
        let Job { program, message, .. } = entry.job();
        let polled = wire.controller_mut().resume(program, message);
        if self.land(polled).is_pending() {
            self.fly();
        }
    }

    /// Takes note of how a message ended, if it has.
    fn land(&mut self, polled: Poll<Result<usize, Unfinished>>) -> Poll<()> {
        let wire = self.wire();
        polled.map(|ran| {
            if let Some(entry) = &mut self.entry {
                let Job { program, message, path } = entry.job();
                wire.count(program, message, path, ran);
                entry.with_task(|task| task.ran = ran);
            }
        })
    }

    /// Lets the message fly. The interrupt is masked. (Ordering 2.)
    fn fly(&mut self) {
        self.wire().controller_mut().arm();
        let node = self.entry.take().map_or(ptr::null(), Entry::into_node);
        self.bus.flying.with_mut(|flying| {
            // SAFETY: the flight is the holder's.
            unsafe { *flying = node }
        });
        self.right = Right::Gone;
        let publish = |seen: u32| Some(seen.wrapping_add(CHANGE) | FLYING);
        let _ = self.bus.flight.fetch_update(Ordering::Release, Ordering::Relaxed, publish);
    }
}

impl<C: Controller + ?Sized> Bus<C> {
    /// Goes on with the message whose interrupt came: to be called from the controller's interrupt
    /// handler. Runs no message to its end that needs further interrupts; begins the next ones of
    /// the queue. Returns whether there was something to attend to.
    ///
    /// May be called at any time and by anybody, a timer for instance, who wants a message whose
    /// interrupt was lost to end with its timeout.
    pub fn interrupt(&self) -> bool {
        let mut panics = Panics::none();
        let attended = self.attend_flight(None, &mut panics);
        panics.raise();
        attended
    }

    /// [`Bus::interrupt`], its panics kept for later; by a caller whose node is `own`.
    pub(super) fn attend_flight(&self, own: Option<&Node>, panics: &mut Panics) -> bool {
        if self.pump != Pump::Interrupt || self.flight.load(Ordering::Relaxed) & FLYING == 0 {
            return false;
        }
        let mut server = None;
        let mut kept = Some(panics);
        let masked = contain(|| {
            self.platform.masked(&mut || {
                let take =
                    |seen: u32| (seen & FLYING != 0).then(|| seen.wrapping_add(CHANGE) & !FLYING);
                if self.flight.fetch_update(Ordering::Acquire, Ordering::Relaxed, take).is_err() {
                    return;
                }
                let Some(panics) = kept.take() else { return };
                // SAFETY: module, Safety.
                let held = unsafe { self.held() };
                let node = self.flying.with(|flying| {
                    // SAFETY: the flight is the holder's.
                    unsafe { *flying }
                });
                // SAFETY: a flying node is queued and in no list.
                let entry = unsafe { Entry::new(node) };
                server.insert(Server::new(held, SERVE_MAX, own, panics)).resume(entry);
            });
        });
        let Some(mut server) = server else {
            if let (Err(payload), Some(panics)) = (masked, kept) {
                panics.add(payload);
            }
            return false;
        };
        match masked {
            // It has ended, or flies again.
            Ok(()) => server.end(),
            Err(payload) => server.panics.add(payload),
        }
        server.serve();
        true
    }
}
