//! The interface between a node and the bus.

use std::collections::VecDeque;
use std::fmt;

use super::BitTimes;
use super::confine::Counters;
use super::frame::CanFrame;
use crate::chip::Ps;

/// A node's index on its bus, in the order of attaching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(super) usize);

/// How a node takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Takes no part.
    Off,
    /// Receives, and never sends a dominant bit.
    Listen,
    /// Receives and acknowledges, but sends neither frames nor error flags.
    Restricted,
    /// Takes part fully.
    Active,
    /// Takes part, acknowledges its own frames and receives them too.
    Loopback,
}

/// How a node treats a frame of CAN FD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FdSupport {
    /// Accepts it.
    Full,
    /// Destroys it by an error flag, like a node of CAN 2.0.
    ErrorFlag,
    /// Waits until it is over: the protocol exception of ISO 11898-1.
    Ignores,
}

/// A node's present connection to the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The role.
    pub role: Role,
    /// The node's bit times; `None` means those of the bus.
    pub times: Option<BitTimes>,
    /// How it treats frames of CAN FD.
    pub fd: FdSupport,
}

impl Link {
    /// A node that takes part in everything.
    pub const ACTIVE: Self = Self { role: Role::Active, times: None, fd: FdSupport::Full };
}

/// The kind of an error, as one node saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A recessive bit was sent and a dominant one seen.
    Bit1,
    /// A dominant bit was sent and a recessive one seen.
    Bit0,
    /// Six equal bits.
    Stuff,
    /// A fixed bit was wrong.
    Form,
    /// The CRC was wrong.
    Crc,
    /// No node acknowledged.
    Ack,
}

/// An error in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusError {
    /// The kind, as this node saw it.
    pub kind: ErrorKind,
    /// The node was sending.
    pub sending: bool,
    /// The error was in a data phase at the data bit rate.
    pub data_phase: bool,
}

/// The time of a frame on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The start of SOF.
    pub sof: Ps,
    /// The duration of SOF and all bits up to FDF.
    pub fdf_ps: Ps,
    /// The end of EOF's last bit.
    pub eof: Ps,
}

/// A node.
///
/// Only the bus may call the methods that report events. Their times never decrease.
pub trait CanNode {
    /// The name, for reports.
    fn name(&self) -> &str;

    /// The connection to the bus. Code that changes it, or what the node wants to send, must call
    /// [`CanBus::changed`](super::CanBus::changed).
    fn link(&self) -> Link {
        Link::ACTIVE
    }

    /// Its error counters.
    fn counters(&mut self) -> &mut Counters;

    /// The time from which it wants to send; [`Ps::MAX`] for never.
    fn wants(&self) -> Ps;

    /// The bus is free at `at`, and the node wants to send since then. Returns the frame to begin.
    /// The same frame is offered again until it is [sent](CanNode::sent) or no longer wanted.
    fn offer(&mut self, at: Ps) -> Option<CanFrame>;

    /// The node has heard the bus idle long enough to take part.
    fn joined(&mut self, at: Ps) {
        let _ = at;
    }

    /// A frame begins, the node's own or another's.
    fn begun(&mut self, at: Ps, sending: bool) {
        let _ = (at, sending);
    }

    /// The frame it offered lost arbitration.
    fn lost_arbitration(&mut self, at: Ps) {
        let _ = at;
    }

    /// The node's frame was sent completely.
    fn sent(&mut self, at: Ps, span: Span);

    /// A frame of another node arrived.
    fn received(&mut self, at: Ps, frame: &CanFrame, span: Span) {
        let _ = (at, frame, span);
    }

    /// A frame was destroyed. The counters are updated already.
    fn error(&mut self, at: Ps, error: BusError) {
        let _ = (at, error);
    }

    /// The node was bus off, and takes part again.
    fn recovered(&mut self, at: Ps) {
        let _ = at;
    }
}

/// A node that sends a list of frames, each from a given time on, and acknowledges all others.
#[derive(Clone)]
pub struct Script {
    name: &'static str,
    link: Link,
    counters: Counters,
    frames: VecDeque<(Ps, CanFrame)>,
    received: Vec<(Ps, CanFrame)>,
}

impl Script {
    /// Creates a node that sends `frames`, one after the other.
    pub fn new(name: &'static str, frames: impl IntoIterator<Item = (Ps, CanFrame)>) -> Self {
        Self {
            name,
            link: Link::ACTIVE,
            counters: Counters::default(),
            frames: frames.into_iter().collect(),
            received: Vec::new(),
        }
    }

    /// Sets the connection to the bus.
    #[must_use]
    pub fn with_link(self, link: Link) -> Self {
        Self { link, ..self }
    }

    /// Sets the error counters.
    #[must_use]
    pub fn with_counters(self, counters: Counters) -> Self {
        Self { counters, ..self }
    }

    /// Adds a frame, to be sent from `at` on. Call [`CanBus::changed`](super::CanBus::changed)
    /// afterwards.
    pub fn push(&mut self, at: Ps, frame: CanFrame) {
        self.frames.push_back((at, frame));
    }

    /// Changes the connection to the bus. Call `changed` afterwards.
    pub fn set_link(&mut self, link: Link) {
        self.link = link;
    }

    /// The error counters.
    #[must_use]
    pub fn error_counters(&self) -> Counters {
        self.counters
    }

    /// The received frames and when they were accepted: a bit before EOF's end.
    #[must_use]
    pub fn received_frames(&self) -> &[(Ps, CanFrame)] {
        &self.received
    }

    /// The number of frames still to send.
    #[must_use]
    pub fn left(&self) -> usize {
        self.frames.len()
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("name", &self.name).finish_non_exhaustive()
    }
}

impl CanNode for Script {
    fn name(&self) -> &str {
        self.name
    }

    fn link(&self) -> Link {
        self.link
    }

    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    fn wants(&self) -> Ps {
        self.frames.front().map_or(Ps::MAX, |&(at, _)| at)
    }

    fn offer(&mut self, _at: Ps) -> Option<CanFrame> {
        self.frames.front().map(|&(_, frame)| frame)
    }

    fn sent(&mut self, _at: Ps, _span: Span) {
        self.frames.pop_front();
    }

    fn received(&mut self, at: Ps, frame: &CanFrame, _span: Span) {
        self.received.push((at, *frame));
    }
}
