//! The chip as a node: chooses the buffer to send, handles the result, and stores received frames.

use super::core::{Core, Mode};
use super::filter::passes;
use super::regs::*;
use crate::chip::Ps;
use crate::model::can::{
    BitTimes, BusError, CanFrame, CanNode, Counters, FdSupport, Link, Role, Span,
};

/// The identifier: the standard one's bits are in SIDH and SIDL, the extended one's other 18 in the
/// following bytes.
fn identifier(buffer: &[u8; BUFFER]) -> (u32, bool) {
    let [sidh, sidl, eid8, eid0] = [buffer[0], buffer[1], buffer[2], buffer[3]].map(u32::from);
    let sid = sidh << 3 | sidl >> 5;
    let eid = (sidl & 3) << 16 | eid8 << 8 | eid0;
    let is_extended = buffer[1] & sidl::EXIDE != 0;
    (if is_extended { sid << 18 | eid } else { sid }, is_extended)
}

/// The frame in a transmit buffer.
fn frame_of(buffer: &[u8; BUFFER]) -> CanFrame {
    let (id, is_extended) = identifier(buffer);
    let mut frame = CanFrame::new(id, &[]);
    frame.extended = is_extended;
    frame.remote = buffer[DLC] & dlc::RTR != 0;
    frame.with_dlc(buffer[DLC] & 0xf, &buffer[DATA..])
}

/// Stores a frame in a receive buffer. Data bytes that the frame does not have are left unchanged.
fn store(frame: &CanFrame, buffer: &mut [u8; BUFFER]) {
    let (sid, eid) = match frame.extended {
        true => (frame.id >> 18, frame.id & 0x3_ffff),
        false => (frame.id, 0),
    };
    let flag = |on: bool, bit| if on { bit } else { 0 };
    buffer[0] = (sid >> 3) as u8;
    buffer[1] = (sid << 5) as u8
        | flag(frame.extended, sidl::EXIDE)
        | flag(frame.remote && !frame.extended, sidl::SRR)
        | (eid >> 16) as u8;
    buffer[2] = (eid >> 8) as u8;
    buffer[3] = eid as u8;
    buffer[DLC] = frame.dlc() | flag(frame.remote && frame.extended, dlc::RTR);
    let data = frame.data();
    buffer[DATA..DATA + data.len()].copy_from_slice(data);
}

impl Core {
    /// The time from which it wants to send.
    pub(super) fn wants_at(&self) -> Ps {
        let asked = self.tx.iter().filter(|buffer| buffer.ctrl & txctrl::TXREQ != 0);
        asked.map(|buffer| buffer.ready_at).min().unwrap_or(Ps::MAX)
    }

    /// The buffer to send: the one with the highest TXP, of equals the highest number.
    fn choose(&self, at: Ps) -> Option<usize> {
        let asked = |index: &usize| {
            let buffer = &self.tx[*index];
            buffer.ctrl & txctrl::TXREQ != 0 && buffer.ready_at <= at
        };
        (0..3).filter(asked).max_by_key(|&index| (self.tx[index].ctrl & txctrl::TXP, index))
    }

    /// Begins an attempt.
    pub(super) fn attempt(&mut self, at: Ps) -> Option<CanFrame> {
        let index = self.choose(at)?;
        self.sending = Some(index);
        Some(frame_of(&self.tx[index].bytes))
    }

    /// TXREQ is set, by RTS or in the register.
    pub(super) fn request(&mut self, index: usize) {
        let ready_at = self.prepared_at();
        let buffer = &mut self.tx[index];
        if buffer.ctrl & txctrl::TXREQ == 0 {
            buffer.ready_at = ready_at;
            buffer.aborting = None;
            buffer.ctrl &= txctrl::TXP;
            buffer.ctrl |= txctrl::TXREQ;
        }
        if self.canctrl & canctrl::ABAT != 0 {
            self.complain(|| "a message is requested while ABAT is set".into());
            self.abort(index, true);
        }
    }

    /// TXREQ is cleared, or ABAT set (`all`; only this sets ABTF). Takes effect at once, unless the
    /// frame is on the bus.
    pub(super) fn abort(&mut self, index: usize, all: bool) {
        let is_on_bus = self.in_frame && self.sending == Some(index);
        let buffer = &mut self.tx[index];
        if buffer.ctrl & txctrl::TXREQ == 0 {
            return;
        }
        if is_on_bus {
            buffer.aborting = Some(all);
            return;
        }
        buffer.ctrl &= !txctrl::TXREQ;
        if all {
            buffer.ctrl |= txctrl::ABTF;
        }
        if !self.in_frame {
            self.may_leave(self.now);
        }
    }

    /// The message on the bus was sent completely.
    pub(super) fn message_sent(&mut self) {
        let Some(index) = self.sending.take() else { return };
        let buffer = &mut self.tx[index];
        buffer.ctrl &= !txctrl::TXREQ;
        buffer.aborting = None;
        self.canintf |= int::TX0 << index;
    }

    /// The attempt failed: arbitration was lost, or there was an error.
    fn attempt_failed(&mut self, lost: bool) {
        let Some(index) = self.sending.take() else { return };
        let one_shot = self.canctrl & canctrl::OSM != 0;
        let buffer = &mut self.tx[index];
        buffer.ctrl |= if lost { txctrl::MLOA } else { txctrl::TXERR };
        let aborted = buffer.aborting.take();
        if one_shot || aborted.is_some() {
            buffer.ctrl &= !txctrl::TXREQ;
        }
        if aborted == Some(true) {
            buffer.ctrl |= txctrl::ABTF;
        }
    }

    /// The number of the receive buffer's filter that a frame passes; 0 if all frames pass.
    fn hit(&self, index: usize, assembled: &[u8; BUFFER]) -> Option<u8> {
        if self.rx[index].ctrl & rxctrl::RXM == rxctrl::RXM {
            return Some(if index == 0 { 0 } else { 2 });
        }
        let filters = if index == 0 { 0..2 } else { 2..6 };
        let mut filters =
            filters.filter(|&filter| passes(assembled, self.filters[filter], self.masks[index]));
        filters.next().map(|filter| filter as u8)
    }

    /// A frame was received completely. RXB0 comes first, then RXB1, into which RXB0 may roll over.
    pub(super) fn take_frame(&mut self, frame: &CanFrame) {
        let mut assembled = [0; BUFFER];
        store(frame, &mut assembled);
        let is_full = |core: &Self, index: usize| core.canintf & int::RX0 << index != 0;
        let (index, filter) = match (self.hit(0, &assembled), self.hit(1, &assembled)) {
            (Some(filter), _) => {
                let rolls = is_full(self, 0) && self.rx[0].ctrl & rxctrl::BUKT != 0;
                (usize::from(rolls), filter)
            }
            (None, Some(filter)) => (1, filter),
            (None, None) => return,
        };
        if is_full(self, index) {
            let flag = if index == 0 { eflg::RX0OVR } else { eflg::RX1OVR };
            self.overflows |= flag;
            self.canintf |= int::ERR;
            self.dropped += 1;
            return;
        }
        let buffer = &mut self.rx[index];
        store(frame, &mut buffer.bytes);
        let hit = if index == 0 { rxctrl::FILHIT0 } else { rxctrl::FILHIT };
        buffer.ctrl &= !(hit | rxctrl::RXRTR);
        buffer.ctrl |= filter & hit | if frame.remote { rxctrl::RXRTR } else { 0 };
        self.canintf |= int::RX0 << index;
        self.taken += 1;
    }
}

impl CanNode for Core {
    fn name(&self) -> &str {
        "MCP2515"
    }

    fn link(&self) -> Link {
        let role = match self.bus_mode() {
            None => Role::Off,
            Some(Mode::ListenOnly) => Role::Listen,
            Some(_) => Role::Active,
        };
        let bit_ps = self.bit_ps();
        let times = BitTimes { nominal_ps: bit_ps, data_ps: bit_ps };
        Link { role, times: Some(times), fd: FdSupport::ErrorFlag }
    }

    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    fn wants(&self) -> Ps {
        if self.opmod == Mode::Normal { self.wants_at() } else { Ps::MAX }
    }

    fn offer(&mut self, at: Ps) -> Option<CanFrame> {
        self.catch_up(at);
        self.attempt(at)
    }

    fn joined(&mut self, at: Ps) {
        self.catch_up(at);
        self.joined_bus(at);
    }

    fn begun(&mut self, at: Ps, _sending: bool) {
        self.catch_up(at);
        self.in_frame = true;
    }

    fn lost_arbitration(&mut self, at: Ps) {
        self.catch_up(at);
        self.attempt_failed(true);
        self.update(at);
    }

    fn sent(&mut self, at: Ps, _span: Span) {
        self.catch_up(at);
        self.message_sent();
        self.frame_over(at);
        self.update(at);
    }

    fn received(&mut self, at: Ps, frame: &CanFrame, _span: Span) {
        self.catch_up(at);
        self.take_frame(frame);
        self.frame_over(at);
        self.update(at);
    }

    fn error(&mut self, at: Ps, error: BusError) {
        self.catch_up(at);
        self.canintf |= int::MERR;
        if error.sending {
            self.attempt_failed(false);
        }
        self.frame_over(at);
        self.update(at);
    }

    fn recovered(&mut self, at: Ps) {
        self.catch_up(at);
        self.in_frame = false;
        self.update(at);
    }
}
