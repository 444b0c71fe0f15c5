//! The bus's next event, and its effect on the nodes.
//!
//! # How it works
//! The bus is idle, in a frame, in an error frame, or held dominant. The next event follows from
//! that state and from the nodes' wishes. [`Bus::advance`] processes events up to a time:
//!
//! 1. A frame: the bit in which its receivers accept it, and its end.
//! 2. A node joins: its 11th recessive bit (after bus off: the 128th time).
//! 3. A frame begins: of all nodes that want to send by then, the smallest arbitration field wins.
//!    The fate of the frame is decided here, with the times of a possible error frame.
//!
//! Of events at the same time the one first in this list comes first.
//!
//! # Lengths of error frames
//! The flag has six bits if all nodes see the error in the same bit. It has 7 after a missing
//! acknowledge, since the receivers' flags come one bit later. It has 12 within a frame, where the
//! other nodes see their sixth equal bit first. An error passive sender without receivers sends six
//! recessive bits. Eight bits of delimiter and three of intermission follow. After a CRC error the
//! acknowledge is missing too, and its flag ends the frame.

use std::cell::RefCell;
use std::rc::Rc;

use super::BitTimes;
use super::bits::{ACK_TO_END_BITS, INTERMISSION_BITS};
use super::confine::{Counters, ErrorState};
use super::fault::Fault;
use super::flight::{Fate, Flight, first_difference, near};
use super::frame::CanFrame;
use super::node::{BusError, CanNode, ErrorKind, FdSupport, Link, NodeId, Role, Span};
use super::record::{Outcome, Record};
use crate::chip::Ps;

/// The recessive bits after which a node takes part.
const JOIN_BITS: u64 = 11;
/// The number of such sequences after bus off.
const RECOVERY_SEQUENCES: u64 = 128;
/// The additional wait of an error passive sender after intermission.
const SUSPEND_BITS: u64 = 8;
/// The delimiter of an error frame.
const DELIMITER_BITS: u64 = 8;
/// Equal bits that are an error.
const STUFF_ERROR_BITS: u32 = 6;
/// While the bus is held dominant: the bits until the counters first count again, and between later
/// counts.
const HELD_FIRST_BITS: u64 = 14;
const HELD_EVERY_BITS: u64 = 8;
/// After this many counts every node is passive or bus off.
const HELD_COUNTS: u64 = 40;

/// A node's progress in joining the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Membership {
    Out,
    /// Counts sequences of 11 recessive bits.
    Waits {
        left: u64,
        from: Ps,
        /// After bus off.
        recovers: bool,
    },
    In,
}

struct Slot {
    node: Rc<RefCell<dyn CanNode>>,
    membership: Membership,
    suspended_until: Ps,
}

/// The state of the bus.
enum Phase {
    Idle,
    Frame(Flight),
    /// Held dominant; the number of counts so far.
    Held {
        next: Ps,
        counts: u64,
        until: Ps,
    },
}

/// The implementation of a [`CanBus`](super::CanBus).
pub(super) struct Bus {
    pub(super) times: BitTimes,
    slots: Vec<Slot>,
    pub(super) now: Ps,
    phase: Phase,
    /// The time since which the bus is recessive; `None` inside a frame.
    recessive_since: Option<Ps>,
    /// The earliest time at which a frame may begin.
    free_at: Ps,
    pub(super) faults: Vec<Fault>,
    holds: Vec<(Ps, Ps)>,
    pub(super) frames: u64,
    pub(super) records: Vec<Record>,
    pub(super) recording: bool,
}

/// The next event.
#[derive(Clone, Copy)]
enum Next {
    /// The receivers accept the frame.
    Taken,
    /// The frame ends, or its error frame begins.
    FrameEnds,
    /// A count while the bus is held dominant.
    Held,
    Joins(usize),
    HoldBegins,
    Sof,
}

impl Bus {
    /// Without nodes, recessive since power-up.
    pub(super) fn new(times: BitTimes) -> Self {
        Self {
            times,
            slots: Vec::new(),
            now: 0,
            phase: Phase::Idle,
            recessive_since: Some(0),
            free_at: 0,
            faults: Vec::new(),
            holds: Vec::new(),
            frames: 0,
            records: Vec::new(),
            recording: true,
        }
    }

    pub(super) fn attach(&mut self, node: Rc<RefCell<dyn CanNode>>) -> NodeId {
        self.slots.push(Slot { node, membership: Membership::Out, suspended_until: 0 });
        NodeId(self.slots.len() - 1)
    }

    pub(super) fn inject(&mut self, fault: Fault) {
        match fault {
            Fault::Dominant { from, until } => self.holds.push((from, until)),
            fault => self.faults.push(fault),
        }
    }

    pub(super) fn clear_faults(&mut self) {
        self.faults.clear();
        self.holds.clear();
    }

    pub(super) fn takes_part(&self, node: NodeId) -> bool {
        self.slots[node.0].membership == Membership::In
    }

    pub(super) fn counters(&self, node: NodeId) -> Counters {
        *self.slots[node.0].node.borrow_mut().counters()
    }

    pub(super) fn nodes(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn bits(&self, bits: u64) -> Ps {
        bits * self.times.nominal_ps
    }

    /// Processes everything that is due by `now`. Returns the time of the next event.
    pub(super) fn advance(&mut self, now: Ps) -> Ps {
        loop {
            self.look_at_links();
            let (at, next) = self.next();
            if at > now {
                self.now = self.now.max(now);
                return at;
            }
            self.now = self.now.max(at);
            self.carry_out(next, self.now);
        }
    }

    /// Handles nodes that joined or left since.
    fn look_at_links(&mut self) {
        let now = self.now;
        for slot in &mut self.slots {
            let mut node = slot.node.borrow_mut();
            let off = node.link().role == Role::Off;
            let bus_off = node.counters().state() == ErrorState::BusOff;
            slot.membership = match slot.membership {
                _ if off => Membership::Out,
                Membership::Out => Membership::Waits { left: 1, from: now, recovers: false },
                Membership::In if bus_off => {
                    Membership::Waits { left: RECOVERY_SEQUENCES, from: now, recovers: true }
                }
                same => same,
            };
        }
    }

    fn next(&self) -> (Ps, Next) {
        let mut next = match &self.phase {
            Phase::Frame(flight) => match flight.error {
                Some(fate) => (fate.at, Next::FrameEnds),
                None if flight.taken => (flight.span.eof, Next::FrameEnds),
                None => (flight.span.eof - self.times.nominal_ps, Next::Taken),
            },
            Phase::Held { next, .. } => (*next, Next::Held),
            Phase::Idle => (Ps::MAX, Next::Sof),
        };
        if let Some(since) = self.recessive_since {
            for (index, slot) in self.slots.iter().enumerate() {
                let Membership::Waits { left, from, .. } = slot.membership else { continue };
                let at = from.max(since) + self.bits(left * JOIN_BITS);
                if at < next.0 {
                    next = (at, Next::Joins(index));
                }
            }
        }
        let hold = self.holds.iter().map(|&(from, _)| from).min();
        if let Some(from) = hold
            && from < next.0
            && !matches!(self.phase, Phase::Held { .. })
        {
            next = (from, Next::HoldBegins);
        }
        if matches!(self.phase, Phase::Idle) {
            let wishes = (0..self.slots.len()).map(|index| self.may_send_from(index));
            let at = wishes.min().unwrap_or(Ps::MAX);
            if at < next.0 {
                next = (at, Next::Sof);
            }
        }
        next
    }

    /// The time at which node `index` would begin a frame if the bus stayed idle.
    fn may_send_from(&self, index: usize) -> Ps {
        let slot = &self.slots[index];
        if slot.membership != Membership::In {
            return Ps::MAX;
        }
        let node = slot.node.borrow();
        match node.link().role {
            Role::Active | Role::Loopback => {
                let wants = node.wants();
                if wants == Ps::MAX {
                    return Ps::MAX;
                }
                wants.max(self.free_at).max(slot.suspended_until).max(self.now)
            }
            _ => Ps::MAX,
        }
    }

    fn carry_out(&mut self, next: Next, at: Ps) {
        match next {
            Next::Taken => self.receivers_take(at),
            Next::FrameEnds => self.frame_ends(at),
            Next::Held => self.held(at),
            Next::HoldBegins => self.hold_begins(at),
            Next::Joins(index) => self.join(index, at),
            Next::Sof => self.begin(at),
        }
    }

    fn join(&mut self, index: usize, at: Ps) {
        let slot = &mut self.slots[index];
        let Membership::Waits { recovers, .. } = slot.membership else { return };
        slot.membership = Membership::In;
        let mut node = slot.node.borrow_mut();
        if recovers {
            *node.counters() = Counters::default();
            node.recovered(at);
        } else {
            node.joined(at);
        }
    }

    /// The bus becomes dominant: sequences of recessive bits end here.
    fn becomes_dominant(&mut self, at: Ps) {
        let sequence = self.bits(JOIN_BITS);
        if let Some(since) = self.recessive_since.take() {
            for slot in &mut self.slots {
                if let Membership::Waits { left, from, .. } = &mut slot.membership {
                    let heard = at.saturating_sub((*from).max(since)) / sequence;
                    *left = left.saturating_sub(heard).max(1);
                    *from = at;
                }
            }
        }
    }

    /// SOF: determines sender, receivers, and the fate of the frame.
    fn begin(&mut self, at: Ps) {
        let mut offers: Vec<(u32, usize, CanFrame)> = Vec::new();
        for index in 0..self.slots.len() {
            if self.may_send_from(index) > at {
                continue;
            }
            if let Some(frame) = self.slots[index].node.borrow_mut().offer(at) {
                offers.push((frame.arbitration(), index, frame));
            }
        }
        let Some(&(lowest, sender, frame)) =
            offers.iter().min_by_key(|(key, index, _)| (*key, *index))
        else {
            unreachable!("a node that wants to send by now offers a frame");
        };
        self.becomes_dominant(at);
        let shape = frame.shape();
        let times = self.times;
        let span = Span {
            sof: at,
            fdf_ps: shape.until(shape.fdf_end, times),
            eof: at + shape.duration(times),
        };
        let mut flight = Flight {
            frame,
            span,
            sender,
            others: Vec::new(),
            receivers: Vec::new(),
            taken: false,
            error: None,
        };
        let mut collision = None;
        for &(key, index, ref other) in &offers {
            if key != lowest {
                self.slots[index].node.borrow_mut().lost_arbitration(at);
            } else if index != sender {
                flight.others.push(index);
                if *other != frame {
                    let bit = first_difference(&frame, other);
                    collision = Some(collision.map_or(bit, |first: u32| first.min(bit)));
                }
            }
        }
        for (index, slot) in self.slots.iter().enumerate() {
            let sends = index == sender || flight.others.contains(&index);
            if slot.membership == Membership::In && !sends {
                flight.receivers.push(index);
            }
        }
        flight.error = self.fate(&flight, &shape, collision);
        self.frames += 1;
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.membership == Membership::In {
                let sends = index == sender || flight.others.contains(&index);
                slot.node.borrow_mut().begun(at, sends);
            }
        }
        self.phase = Phase::Frame(flight);
    }

    pub(super) fn link(&self, index: usize) -> Link {
        self.slots[index].node.borrow().link()
    }

    pub(super) fn state(&self, index: usize) -> ErrorState {
        self.slots[index].node.borrow_mut().counters().state()
    }

    /// The last bit but one of EOF is recessive, so the receivers accept the frame.
    fn receivers_take(&mut self, at: Ps) {
        let Phase::Frame(flight) = &mut self.phase else { return };
        flight.taken = true;
        let fd = flight.frame.fd;
        let loops = self.slots[flight.sender].node.borrow().link().role == Role::Loopback;
        let own = loops.then_some(flight.sender);
        for &index in flight.receivers.iter().chain(&own) {
            let slot = &mut self.slots[index];
            let mut node = slot.node.borrow_mut();
            let link = node.link();
            let times = link.times.unwrap_or(self.times);
            let understood = near(times.nominal_ps, self.times.nominal_ps)
                && (!flight.frame.brs || near(times.data_ps, self.times.data_ps));
            if !understood {
                node.error(
                    at,
                    BusError { kind: ErrorKind::Stuff, sending: false, data_phase: false },
                );
                continue;
            }
            if fd && link.fd != FdSupport::Full {
                drop(node);
                slot.membership = Membership::Waits { left: 1, from: at, recovers: false };
                continue;
            }
            node.counters().received();
            node.received(at, &flight.frame, flight.span);
        }
    }

    fn frame_ends(&mut self, at: Ps) {
        let Phase::Frame(flight) = std::mem::replace(&mut self.phase, Phase::Idle) else { return };
        if let Some(fate) = flight.error {
            self.error_frame(&flight, fate, at);
            return;
        }
        for &index in flight.others.iter().chain([&flight.sender]) {
            let mut node = self.slots[index].node.borrow_mut();
            node.counters().sent();
            node.sent(at, flight.span);
        }
        self.record(&flight, at, Outcome::Taken);
        self.recessive_since = Some(at - self.bits(ACK_TO_END_BITS));
        self.become_free(&flight, at);
    }

    fn become_free(&mut self, flight: &Flight, at: Ps) {
        self.free_at = at + self.bits(INTERMISSION_BITS);
        for &index in flight.others.iter().chain([&flight.sender]) {
            if self.state(index) == ErrorState::Passive {
                self.slots[index].suspended_until = self.free_at + self.bits(SUSPEND_BITS);
            }
        }
    }

    fn record(&mut self, flight: &Flight, eof: Ps, outcome: Outcome) {
        if self.recording {
            self.records.push(Record {
                frame: flight.frame,
                sender: NodeId(flight.sender),
                sof: flight.span.sof,
                eof,
                outcome,
            });
        }
    }

    /// Reports an error to all nodes and updates their counters.
    fn tell_error(&mut self, flight: &Flight, fate: Fate, at: Ps) {
        let silent = flight.receivers.is_empty();
        for (index, slot) in self.slots.iter().enumerate() {
            let sending = index == flight.sender || flight.others.contains(&index);
            if !sending && !flight.receivers.contains(&index) {
                continue;
            }
            let mut node = slot.node.borrow_mut();
            let link = node.link();
            let counters = node.counters();
            if sending {
                // Rule c), exception 1: a passive sender that receives no dominant bit does not
                // count.
                let excepted = fate.sender == ErrorKind::Ack
                    && silent
                    && counters.state() == ErrorState::Passive;
                if !excepted {
                    counters.sender_error();
                }
            } else if link.role != Role::Listen {
                counters.receiver_error(1);
            }
            let kind = if sending { fate.sender } else { fate.receiver };
            node.error(at, BusError { kind, sending, data_phase: fate.data_phase });
        }
    }

    fn error_frame(&mut self, flight: &Flight, fate: Fate, at: Ps) {
        self.tell_error(flight, fate, at);
        let flag_end = at + self.bits(fate.flag_bits);
        let end = flag_end + self.bits(DELIMITER_BITS);
        self.record(flight, end, Outcome::Error(fate.sender));
        self.recessive_since = Some(flag_end);
        self.become_free(flight, end);
    }

    fn hold_begins(&mut self, at: Ps) {
        let Some(place) = self.holds.iter().position(|&(from, _)| from <= at) else { return };
        let (_, until) = self.holds.swap_remove(place);
        self.becomes_dominant(at);
        let next = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Frame(flight) => {
                let fate = Fate {
                    at,
                    sender: ErrorKind::Bit1,
                    receiver: ErrorKind::Stuff,
                    data_phase: false,
                    flag_bits: 0,
                };
                self.tell_error(&flight, fate, at);
                self.record(&flight, at, Outcome::Error(fate.sender));
                self.become_free(&flight, at);
                at + self.bits(HELD_FIRST_BITS)
            }
            _ => at + self.bits(u64::from(STUFF_ERROR_BITS)),
        };
        self.phase = Phase::Held { next: next.min(until), counts: 0, until };
    }

    /// The bus is held dominant. After the first six bits every eight further bits raise the error
    /// counters, as for dominant bits after an error flag.
    fn held(&mut self, at: Ps) {
        let Phase::Held { counts, until, .. } = self.phase else { return };
        if at >= until {
            let end = until + self.bits(DELIMITER_BITS);
            self.phase = Phase::Idle;
            self.recessive_since = Some(until);
            self.free_at = end + self.bits(INTERMISSION_BITS);
            return;
        }
        for slot in &self.slots {
            if slot.membership != Membership::In {
                continue;
            }
            let mut node = slot.node.borrow_mut();
            let sending = node.wants() <= at;
            match (sending, counts) {
                (true, _) => node.counters().sender_error(),
                (false, 0) => node.counters().receiver_error(1),
                (false, _) => node.counters().receiver_error(8),
            }
            let kind = if sending { ErrorKind::Bit1 } else { ErrorKind::Stuff };
            node.error(at, BusError { kind, sending, data_phase: false });
        }
        let after = if counts == 0 { HELD_FIRST_BITS } else { HELD_EVERY_BITS };
        let next = if counts >= HELD_COUNTS { until } else { at + self.bits(after) };
        self.phase = Phase::Held { next: next.min(until), counts: counts + 1, until };
    }
}
