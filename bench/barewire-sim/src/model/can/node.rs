//! What a node is to the bus.

use std::collections::VecDeque;
use std::fmt;

use super::BitTimes;
use super::confine::Counters;
use super::frame::CanFrame;
use crate::chip::Ps;

/// A node's place on its bus, by the order of attaching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(super) usize);

/// How a node takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Not at all.
    Off,
    /// Hears, and never sends a dominant bit.
    Listen,
    /// Hears and acknowledges; sends neither frames nor error flags.
    Restricted,
    /// Takes part.
    Active,
    /// Takes part, acknowledges what it sends and receives it too.
    Loopback,
}

/// What a node does about a frame of CAN FD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FdSupport {
    /// Takes it.
    Full,
    /// Destroys it by an error flag: a node of CAN 2.0.
    ErrorFlag,
    /// Waits until it is over: the protocol exception of ISO 11898-1.
    Ignores,
}

/// How a node is on the bus at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// How it takes part.
    pub role: Role,
    /// The bit times it is set to; `None` is those of the bus.
    pub times: Option<BitTimes>,
    /// What it does about frames of CAN FD.
    pub fd: FdSupport,
}

impl Link {
    /// A node that takes part in everything.
    pub const ACTIVE: Self = Self { role: Role::Active, times: None, fd: FdSupport::Full };
}

/// What was wrong, as one node saw it.
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
    /// Nobody acknowledged.
    Ack,
}

/// An error of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusError {
    /// What this node saw.
    pub kind: ErrorKind,
    /// The node was sending.
    pub sending: bool,
    /// It was in a data phase at the data bit rate.
    pub data_phase: bool,
}

/// When a frame was on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where SOF began.
    pub sof: Ps,
    /// How long SOF and all bits up to FDF took.
    pub fdf_ps: Ps,
    /// Where EOF's last bit ends.
    pub eof: Ps,
}

/// A node.
///
/// Nobody but the bus may call the methods that tell what happened; times never go back.
pub trait CanNode {
    /// What it is called, for reports.
    fn name(&self) -> &str;

    /// How it is on the bus. Whoever changes that, or what is wanted, tells the bus by
    /// [`CanBus::changed`](super::CanBus::changed).
    fn link(&self) -> Link {
        Link::ACTIVE
    }

    /// Its error counters.
    fn counters(&mut self) -> &mut Counters;

    /// From when on it wants to send; [`Ps::MAX`] for never.
    fn wants(&self) -> Ps;

    /// The bus is free at `at`, from which on it wants to send: the frame it begins, as many times as
    /// it takes until it is [sent](CanNode::sent) or no longer wanted.
    fn offer(&mut self, at: Ps) -> Option<CanFrame>;

    /// It has heard the bus idle long enough to take part.
    fn joined(&mut self, at: Ps) {
        let _ = at;
    }

    /// A frame begins, its own or another's.
    fn begun(&mut self, at: Ps, sending: bool) {
        let _ = (at, sending);
    }

    /// The frame it offered lost arbitration.
    fn lost_arbitration(&mut self, at: Ps) {
        let _ = at;
    }

    /// Its frame is on the bus as a whole.
    fn sent(&mut self, at: Ps, span: Span);

    /// Another's frame arrived.
    fn received(&mut self, at: Ps, frame: &CanFrame, span: Span) {
        let _ = (at, frame, span);
    }

    /// A frame was destroyed; the counters have counted it.
    fn error(&mut self, at: Ps, error: BusError) {
        let _ = (at, error);
    }

    /// It was off the bus, and is back.
    fn recovered(&mut self, at: Ps) {
        let _ = at;
    }
}

/// A node that sends given frames, each from a given time on, and acknowledges all others.
#[derive(Clone)]
pub struct Script {
    name: &'static str,
    link: Link,
    counters: Counters,
    frames: VecDeque<(Ps, CanFrame)>,
    received: Vec<(Ps, CanFrame)>,
}

impl Script {
    /// A node that sends `frames`, one after the other.
    pub fn new(name: &'static str, frames: impl IntoIterator<Item = (Ps, CanFrame)>) -> Self {
        Self {
            name,
            link: Link::ACTIVE,
            counters: Counters::default(),
            frames: frames.into_iter().collect(),
            received: Vec::new(),
        }
    }

    /// The same, on the bus as `link` says.
    #[must_use]
    pub fn with_link(self, link: Link) -> Self {
        Self { link, ..self }
    }

    /// The same, with error counters that are not zero.
    #[must_use]
    pub fn with_counters(self, counters: Counters) -> Self {
        Self { counters, ..self }
    }

    /// A further frame, from `at` on. The bus is to be told by
    /// [`CanBus::changed`](super::CanBus::changed).
    pub fn push(&mut self, at: Ps, frame: CanFrame) {
        self.frames.push_back((at, frame));
    }

    /// How it is on the bus from here on. The bus is to be told.
    pub fn set_link(&mut self, link: Link) {
        self.link = link;
    }

    /// Its counters.
    #[must_use]
    pub fn error_counters(&self) -> Counters {
        self.counters
    }

    /// What it received, and when: a bit before EOF's end.
    #[must_use]
    pub fn received_frames(&self) -> &[(Ps, CanFrame)] {
        &self.received
    }

    /// How many frames it has yet to send.
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
