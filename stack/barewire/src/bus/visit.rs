//! Messages in flight that borrow their buffers from a future.
//!
//! # How it works
//! A future can be forgotten, and what it borrowed be used again, while its message is in flight. So nobody but the future's
//! own polls moves the message's bytes. The handler silences the block, leaves the message in flight, and wakes the task; the
//! next poll continues the message, as a [visit](Visit) of the owner.
//!
//! Such a flight has the wire without the queue, as a [lock](super::Locked) has: while its task is
//! not polled, others remove their messages from the queue. A thread that waits may sleep
//! meanwhile. The thread that attends to an [overdue](Controller::is_overdue) one, or to one whose
//! future is being dropped, takes it down.
//!
//! # Ordering
//! A future that visits its flight stores its waker first. If another attends to the flight at that
//! moment, the future leaves a call in the flight word. The other had taken the waker before; when
//! it publishes the flight it looks for the call, and then attends again. If a third has the flight
//! by then, it leaves the call to the third. So no wake is lost, and none waits for the other.

use core::ptr;
use core::task::{Poll, Waker};

use super::lock::WireRight;
use super::node::{Entry, Job, Node};
use super::panics::{Panics, contain};
use super::uses::Uses;
use crate::controller::{Controller, Preset, Unfinished};
use crate::spi::Transfer;

/// The visit of its owner to a flight.
pub(super) struct Visit {
    pub(super) node: *const Node,
    /// The message, for as long as the visit.
    pub(super) message: *mut [Transfer<'static>],
    /// A waker that is not needed any more: the owner drops it.
    pub(super) spare: Option<Waker>,
}

/// What became of a flight.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Attendance {
    /// There is none, or only its owner can do anything for it.
    No,
    Yes,
    /// Meanwhile a caller that wants the owner woken found it taken.
    Called,
}

/// A message that is not in flight at this moment, because somebody attends to it; and the wire.
pub(super) struct Borrowed<'b, C: Controller + ?Sized, U: Uses> {
    wire: WireRight<'b, C, U>,
    /// `None` if it is in flight again.
    entry: Option<Entry>,
    /// The owner's waker, called when the message is in flight again.
    waker: Option<Waker>,
}

impl<'b, C: Controller + ?Sized, U: Uses> Borrowed<'b, C, U> {
    pub(super) fn new(wire: WireRight<'b, C, U>, entry: Entry) -> Self {
        Self { wire, entry: Some(entry), waker: None }
    }

    /// Starts the message, in a poll of its owner.
    pub(super) fn start(mut self, panics: &mut Panics) {
        let bus = self.wire.bus;
        let started = contain(|| {
            if self.run(C::start).is_pending() {
                bus.once_masked(|| self.fly());
            }
        });
        let failed = started.is_err();
        if let Err(payload) = started {
            panics.add(payload);
        }
        if self.entry.is_none() {
            bus.wake_for_flight(panics);
        }
        self.end(failed, panics);
    }

    /// Attends to the message, with the interrupt masked.
    pub(super) fn attend(&mut self, visit: Option<&mut Visit>, rouses: bool) -> Attendance {
        let node = self.entry.as_ref().map_or(ptr::null(), |entry| ptr::from_ref(entry.node()));
        match visit.filter(|visit| ptr::eq(visit.node, node)) {
            Some(visit) if !self.is_cancelled() => self.visited(visit),
            _ if self.is_cancelled() || self.wire.drive(C::is_overdue) => {
                // Its bytes may be somebody else's by now.
                let none = ptr::slice_from_raw_parts_mut(ptr::dangling_mut(), 0);
                self.entry.iter_mut().for_each(|entry| entry.set_message(none));
                self.take_down();
                Attendance::Yes
            }
            _ => self.leave(rouses),
        }
    }

    fn visited(&mut self, visit: &mut Visit) -> Attendance {
        self.entry.iter_mut().for_each(|entry| entry.set_message(visit.message));
        if self.run(C::resume).is_pending() {
            self.fly();
        }
        // It need not be woken for what it did itself.
        visit.spare = self.entry.as_mut().and_then(Entry::take_waker);
        Attendance::Yes
    }

    /// Whether its future is being dropped.
    fn is_cancelled(&self) -> bool {
        self.entry.as_ref().is_some_and(Entry::is_cancelled)
    }

    /// Leaves the message to its owner. If `rouses`, the block is silent then, and the owner will be woken.
    fn leave(&mut self, rouses: bool) -> Attendance {
        if rouses {
            self.wire.drive(C::silence);
            self.waker = self.entry.as_mut().and_then(Entry::take_waker);
        }
        match self.leave_to_owner() {
            true => Attendance::Called,
            false if rouses => Attendance::Yes,
            false => Attendance::No,
        }
    }

    /// Starts or continues the message.
    fn run(
        &mut self,
        how: impl FnOnce(&mut C, &Preset, &mut [Transfer<'_>]) -> Poll<Result<usize, Unfinished>>,
    ) -> Poll<()> {
        let Some(entry) = &mut self.entry else { return Poll::Ready(()) };
        let Job { preset, message, .. } = entry.job();
        let polled = self.wire.drive(|controller| how(controller, preset, message));
        polled.map(|ran| self.land(ran))
    }

    /// The message has its outcome.
    fn land(&mut self, ran: Result<usize, Unfinished>) {
        let Some(entry) = &mut self.entry else { return };
        entry.with_task(|task| task.ran = ran);
        let Job { preset, message, path } = entry.job();
        self.wire.count(preset, message, path, ran);
    }

    /// Ends the message before its end.
    fn take_down(&mut self) {
        self.wire.drive(C::reclaim);
        self.land(Err(Unfinished::ABORTED));
    }

    /// Leaves the message in flight, and has its interrupt come. The caller has masked it.
    fn fly(&mut self) {
        self.wire.drive(C::arm);
        self.leave_to_owner();
    }

    fn leave_to_owner(&mut self) -> bool {
        self.entry.take().is_some_and(|entry| self.wire.leave_to_owner(entry.into_node()))
    }

    /// Wakes the owner of a message that is in flight again, or settles one that has ended and releases the wire. If it
    /// `failed`, user code panicked meanwhile.
    pub(super) fn end(mut self, failed: bool, panics: &mut Panics) {
        let Some(entry) = self.entry.take() else {
            if let Some(waker) = self.waker {
                panics.contain(|| waker.wake());
            }
            return;
        };
        if failed {
            panics.contain(|| self.wire.drive(C::reclaim));
        }
        let bus = self.wire.bus;
        let (sleeper, waker) =
            entry.settle_done().map_or((None, None), |woken| (woken.sleeper, woken.waker));
        // A thread that drops the future, if it sleeps.
        bus.wake_sleeper(sleeper, panics);
        self.wire.release_quietly(panics);
        for waker in waker.into_iter().chain(self.waker) {
            panics.contain(|| waker.wake());
        }
    }
}
