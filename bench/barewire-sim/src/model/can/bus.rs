//! The CAN bus, for code that attaches nodes and reads the results.
//!
//! *Read first*: [`super`]'s page; `carry.rs` for what happens on the bus.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use super::BitTimes;
use super::carry::Bus;
use super::confine::Counters;
use super::fault::Fault;
use super::feed::Feed;
use super::node::{CanNode, NodeId};
use super::record::Record;
use super::traffic::Traffic;
use crate::chip::Ps;

/// The functions to call after a change.
type Notify = Box<dyn Fn()>;

/// A CAN bus: a handle, all clones one bus.
#[derive(Clone)]
pub struct CanBus {
    inner: Rc<RefCell<Bus>>,
    /// The time of the next event, if nothing is changed before.
    due: Rc<Cell<Ps>>,
    /// The latest time asked for, before `due`.
    asked: Rc<Cell<Ps>>,
    notify: Rc<RefCell<Option<Notify>>>,
}

impl CanBus {
    /// Creates a bus without nodes, recessive since power-up.
    #[must_use]
    pub fn new(times: BitTimes) -> Self {
        Self {
            inner: Rc::new(RefCell::new(Bus::new(times))),
            due: Rc::new(Cell::new(0)),
            asked: Rc::default(),
            notify: Rc::default(),
        }
    }

    /// The bit times.
    #[must_use]
    pub fn times(&self) -> BitTimes {
        self.inner.borrow().times
    }

    /// Attaches a node. It takes part after 11 recessive bits if its link says so.
    pub fn attach(&self, node: Rc<RefCell<dyn CanNode>>) -> NodeId {
        let mut inner = self.inner.borrow_mut();
        let id = inner.attach(node);
        drop(inner);
        self.changed();
        id
    }

    /// Attaches a node that the caller does not need any more.
    pub fn add(&self, node: impl CanNode + 'static) -> NodeId {
        self.attach(Rc::new(RefCell::new(node)))
    }

    /// Attaches a node that generates traffic and acknowledges everything.
    pub fn add_traffic(&self, traffic: Traffic) -> NodeId {
        self.add(Feed::new("traffic", traffic.frames()))
    }

    /// Attaches a node that acknowledges everything and sends nothing.
    pub fn add_listener(&self) -> NodeId {
        self.add(Feed::new("listener", []))
    }

    /// Adds a future fault.
    pub fn inject(&self, fault: Fault) {
        self.inner.borrow_mut().inject(fault);
        self.changed();
    }

    /// Removes all future faults.
    pub fn clear_faults(&self) {
        self.inner.borrow_mut().clear_faults();
        self.changed();
    }

    /// Must be called after a node's link, wishes or counters were changed.
    pub fn changed(&self) {
        self.stir();
        if let Some(notify) = &*self.notify.borrow() {
            notify();
        }
    }

    /// [`CanBus::changed`] for changes that sleepers already know of.
    pub(crate) fn stir(&self) {
        self.due.set(0);
    }

    /// Calls `notify` after every change from outside, for sleepers that wait for the bus's next
    /// event.
    pub fn on_change(&self, notify: impl Fn() + 'static) {
        *self.notify.borrow_mut() = Some(Box::new(notify));
    }

    /// Processes everything that is due by `now`. Returns the time of the next event if nothing is
    /// changed before; [`Ps::MAX`] for never.
    #[inline]
    pub fn catch_up(&self, now: Ps) -> Ps {
        if now < self.due.get() {
            self.asked.set(now.max(self.asked.get()));
            return self.due.get();
        }
        self.advance(now)
    }

    fn advance(&self, now: Ps) -> Ps {
        let mut inner = self.inner.borrow_mut();
        // No event was due before that time, so a change of the state cannot have come earlier.
        inner.now = inner.now.max(self.asked.get());
        let due = inner.advance(now);
        self.due.set(due);
        due
    }

    /// The time up to which events were processed.
    #[must_use]
    pub fn now(&self) -> Ps {
        self.inner.borrow().now.max(self.asked.get())
    }

    /// The records of the bus since the last [`CanBus::take_records`], oldest first.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        self.inner.borrow().records.clone()
    }

    /// Returns the records and clears them.
    #[must_use]
    pub fn take_records(&self) -> Vec<Record> {
        std::mem::take(&mut self.inner.borrow_mut().records)
    }

    /// Turns recording on or off. It is on by default. Records take memory until they are taken.
    pub fn set_recording(&self, recording: bool) {
        self.inner.borrow_mut().recording = recording;
    }

    /// The number of frames begun, including destroyed ones.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.inner.borrow().frames
    }

    /// A node's error counters.
    #[must_use]
    pub fn counters(&self, node: NodeId) -> Counters {
        self.inner.borrow().counters(node)
    }

    /// Whether a node takes part: it has heard 11 recessive bits and is not bus off.
    #[must_use]
    pub fn takes_part(&self, node: NodeId) -> bool {
        self.inner.borrow().takes_part(node)
    }
}

impl fmt::Debug for CanBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner.borrow();
        f.debug_struct("CanBus")
            .field("times", &inner.times)
            .field("now", &inner.now)
            .field("nodes", &inner.nodes())
            .field("frames", &inner.frames)
            .finish_non_exhaustive()
    }
}
