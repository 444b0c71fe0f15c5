//! Messages that the controller's interrupt handler goes on with.
//!
//! # How it works
//! On a bus with [`Pump::Interrupt`](super::Pump::Interrupt) the holder begins a queued message
//! ([`Controller::start`]) and, if that does not finish in the call, leaves it *flying*: the bus
//! stays taken, and nobody attends to it until the interrupt comes. [`Bus::interrupt`] then goes
//! on with it, and with the queue.
//!
//! A lost interrupt loses no message: whoever waits for the bus looks after the flight as well,
//! and finds its deadline passed in the end.
//!
//! # Ordering
//! 1. The flight is published, with a release, after everything else; the controller's interrupt
//!    is unmasked in the same critical section ([`Platform::masked`]), so that on one processor
//!    the handler cannot come in between. A level-triggered interrupt that another processor
//!    takes in between finds nothing to attend to and comes again.
//! 2. Whoever attends to it takes it with an acquire; there is one at a time.
//!
//! # Safety
//! Whoever takes the flight is the holder of the bus: who left it flying gave that up.
#![allow(unsafe_code, reason = "the flight's taker is made the holder of the bus")]

#[cfg(doc)]
use super::Platform;
use core::task::Poll;

use super::Bus;
use super::atomic::Ordering;
use super::lock::{Held, Pump};
use super::node::{Kind, Node};
use super::pump::{Job, job, with_task};
use crate::controller::{Controller, Unfinished};

/// Nothing flies, or somebody attends to it.
const ATTENDED: u32 = 0;
/// A message is on the wire and waits for its interrupt.
const FLYING: u32 = 1;

impl<C: Controller + ?Sized> Held<'_, C> {
    /// Begins a queued message. The bus is no longer ours if it flies.
    pub(super) fn start_node(mut self, node: *const Node) -> Option<Self> {
        // SAFETY: the node is out of the queue and not settled.
        let Job { program, message, .. } = unsafe { job(node) };
        // SAFETY: likewise.
        let kind = unsafe { with_task(node, |task| task.kind) };
        if kind == Kind::Unplanned
            && let Err(refused) = self.controller().plan(program, message)
        {
            self.finish_refused(node, refused);
            return Some(self);
        }
        let polled = self.controller_mut().start(program, message);
        self.land(node, polled)
    }

    /// Finishes the message, or lets it fly.
    fn land(mut self, node: *const Node, polled: Poll<Result<usize, Unfinished>>) -> Option<Self> {
        let bus = self.bus();
        // SAFETY: the node is out of the queue and not settled.
        let Job { program, message, path } = unsafe { job(node) };
        if let Poll::Ready(ran) = polled {
            self.count(program, message, path, ran);
            self.finish(node, ran);
            return Some(self);
        }
        bus.flying.with_mut(|flying| {
            // SAFETY: the flight is the holder's.
            unsafe { *flying = node }
        });
        let platform = bus.platform;
        let mut held = Some(self);
        platform.masked(&mut || {
            if let Some(mut held) = held.take() {
                held.controller_mut().arm();
                held.pass_on();
                // 1.
                bus.flight.store(FLYING, Ordering::Release);
            }
        });
        None
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
        // 2.
        if self
            .flight
            .compare_exchange(FLYING, ATTENDED, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            return false;
        }
        // SAFETY: module, Safety.
        let mut held = unsafe { self.held() };
        let node = self.flying.with(|flying| {
            // SAFETY: the flight is the holder's.
            unsafe { *flying }
        });
        // SAFETY: a flying node is not settled.
        let Job { program, message, .. } = unsafe { job(node) };
        let polled = held.controller_mut().resume(program, message);
        if let Some(held) = held.land(node, polled) {
            held.pump();
        }
        true
    }

    /// What somebody who waits for the bus does between two looks; whether it may sleep then.
    pub(super) fn attend_flight(&self) -> bool {
        if self.pump == Pump::Interrupt {
            self.interrupt();
            return false;
        }
        true
    }
}
