//! The chip as a node: chooses the message to send, handles the result, and stores received frames.

use super::core::{Core, LoopedFrame, Mode};
use super::filter::identifier;
use super::options::PartKind;
use super::regs::{con, fifocon, int, object, sta, tscon};
use crate::chip::Ps;
use crate::model::can::{
    BusError, CanFrame, CanNode, Counters, ErrorKind, ErrorState, FdSupport, Link, Role, Span,
};

/// The counters in C1BDIAG0, by their first bit.
const NRERRCNT: u32 = 0;
const NTERRCNT: u32 = 8;
const DRERRCNT: u32 = 16;
const DTERRCNT: u32 = 24;
/// C1BDIAG1.
const DLCMM: u32 = 1 << 31;
const TXBOERR: u32 = 1 << 23;

/// C1BDIAG1's flag for an error at the nominal bit rate. Those for the data bit rate are 8 bits
/// higher.
fn diagnosis(kind: ErrorKind) -> u32 {
    match kind {
        ErrorKind::Bit0 => 1 << 16,
        ErrorKind::Bit1 => 1 << 17,
        ErrorKind::Ack => 1 << 18,
        ErrorKind::Form => 1 << 19,
        ErrorKind::Stuff => 1 << 20,
        ErrorKind::Crc => 1 << 21,
    }
}

/// A message: FIFO and index.
type Source = (usize, u8);

impl Core {
    /// The time from which it wants to send; never if there is no request.
    pub(super) fn wants_at(&self) -> Ps {
        let ready = self.fifos.iter().filter(|fifo| fifo.txreq && !fifo.is_empty());
        let at = ready.map(|fifo| fifo.ready_at).min().unwrap_or(Ps::MAX);
        if at == Ps::MAX { Ps::MAX } else { at.max(self.bandwidth_until) }
    }

    /// The message to send: the highest TXPRI and, in the queue, the lowest identifier.
    fn choose(&self, at: Ps) -> Option<Source> {
        let asked = |index: &usize| {
            let fifo = &self.fifos[*index];
            fifo.txreq && !fifo.is_empty() && fifo.ready_at <= at
        };
        let priority = |index: &usize| self.fifos[*index].con >> fifocon::TXPRI & 0x1f;
        let best = (0..self.fifos.len()).filter(asked).rev().max_by_key(priority)?;
        let fifo = &self.fifos[best];
        if best != 0 {
            return Some((best, fifo.tail));
        }
        let key = |place: &u8| self.frame_at(0, *place).arbitration();
        let place = *fifo.queued.iter().min_by_key(|place| key(place))?;
        Some((0, place))
    }

    /// The place of the next attempt, for FIFOCI.
    pub(super) fn next_attempt(&self, index: usize) -> u8 {
        let fifo = &self.fifos[index];
        if index != 0 {
            return if fifo.sends() { fifo.tail } else { fifo.head };
        }
        let key = |place: &&u8| self.frame_at(0, **place).arbitration();
        fifo.queued.iter().min_by_key(key).copied().unwrap_or(fifo.head)
    }

    /// The frame in a message object.
    fn frame_at(&self, index: usize, place: u8) -> CanFrame {
        let fifo = &self.fifos[index];
        let offset = fifo.place(place);
        let (id, control) = (self.peek_ram(offset), self.peek_ram(offset + 4));
        let (sid, eid) = (id & 0x7ff, id >> object::EID & 0x3_ffff);
        let extended = control & object::IDE != 0;
        let full = if extended { sid << 18 | eid } else { sid };
        let fd = control & object::FDF != 0 && self.opmod != Mode::Normal20;
        let passive = self.counters.state() == ErrorState::Passive;
        let gateway = self.con & con::ESIGM != 0 && control & object::ESI != 0;
        let mut bytes = [0; 64];
        let (start, length) = (usize::from(offset) + 8, usize::from(fifo.payload()));
        for (place, byte) in bytes[..length].iter_mut().enumerate() {
            *byte = self.ram[(start + place) % self.ram.len()];
        }
        let mut frame = CanFrame::new(full, &[]);
        frame.extended = extended;
        frame.remote = !fd && control & object::RTR != 0;
        frame.fd = fd;
        frame.brs = fd && control & object::BRS != 0 && self.con & con::BRSDIS == 0;
        frame.esi = fd && (passive || gateway);
        frame.with_dlc((control & 0xf) as u8, &bytes)
    }

    /// Begins an attempt.
    fn attempt(&mut self, at: Ps) -> Option<CanFrame> {
        let source = self.choose(at)?;
        let (index, place) = source;
        let fifo = self.fifos[index].clone();
        if self.sending != Some(source) {
            self.attempts_left = self.attempts(&fifo).unwrap_or(0);
        }
        self.in_ram(&fifo, place);
        let frame = self.frame_at(index, place);
        if frame.data().len() > usize::from(fifo.payload()) {
            self.bdiag[1] |= DLCMM;
            self.int_flags |= int::IVMIF;
            self.complain(|| "a message to send is longer than its FIFO's objects".into());
        }
        self.sending = Some(source);
        self.current = Some(frame);
        Some(frame)
    }

    /// The value of C1TBC for a frame's time stamp, as C1TSCON selects it.
    fn stamp(&self, fd: bool, sof: Ps, fdf_ps: Ps, eof: Ps) -> u32 {
        let at = if self.tscon & tscon::TSEOF != 0 {
            eof
        } else if fd && self.tscon & tscon::TSRES != 0 {
            sof + fdf_ps + self.sample_ps()
        } else {
            sof + self.sample_ps()
        };
        self.tbc_at(at)
    }

    /// The message on the bus was sent completely.
    fn message_sent(&mut self, at: Ps, sof: Ps, fdf_ps: Ps, eof: Ps) {
        let Some((index, place)) = self.sending.take() else { return };
        let Some(frame) = self.current.take() else { return };
        let offset = self.fifos[index].place(place);
        let control = self.peek_ram(offset + 4);
        if self.con & con::STEF != 0 {
            self.store_event(offset, control, &frame, self.stamp(frame.fd, sof, fdf_ps, eof));
        }
        let fifo = &mut self.fifos[index];
        if index == 0 {
            fifo.take(place);
        } else if !fifo.is_empty() {
            fifo.pop();
        }
        if fifo.is_empty() || fifo.aborting {
            fifo.txreq = false;
        }
        fifo.aborting = false;
        let share = self.con >> 28;
        self.bandwidth_until = match share {
            0 => 0,
            _ => eof + (1 << share.min(12)) * self.nominal_ps(),
        };
        self.last_sent = Some(frame);
        self.count_error_free();
        self.finish_abort_all();
        self.update(at);
    }

    fn store_event(&mut self, offset: u16, control: u32, frame: &CanFrame, stamp: u32) {
        if self.tef.is_full() {
            self.tef.flags |= sta::OVIF;
            return;
        }
        let tef = self.tef.clone();
        if self.in_ram(&tef, tef.head) {
            let place = tef.place(tef.head);
            let esi = if frame.esi { object::ESI } else { 0 };
            let id = self.peek_ram(offset);
            let control = match self.options.part {
                // Its sequence numbers have 7 bits.
                PartKind::Mcp2517Fd => control & 0xffff,
                PartKind::Mcp2518Fd => control,
            };
            self.write_ram(place, id);
            self.write_ram(place + 4, control & !object::ESI | esi);
            if tef.stamps() {
                self.write_ram(place + 8, stamp);
            }
        }
        self.tef.push();
    }

    fn count_error_free(&mut self) {
        let count = self.bdiag[1] as u16;
        self.bdiag[1] = self.bdiag[1] & 0xffff_0000 | u32::from(count.wrapping_add(1));
    }

    /// The attempt failed: arbitration was lost, or there was an error.
    fn attempt_failed(&mut self, lost: bool) {
        let Some((index, _)) = self.sending else { return };
        let limit = self.attempts(&self.fifos[index]);
        let one_shot = limit == Some(1);
        // Lost arbitration does not use up an attempt, unless it is the only one.
        let uses = !lost || one_shot;
        if uses {
            self.attempts_left = self.attempts_left.saturating_sub(1);
        }
        let exhausted = limit.is_some() && uses && self.attempts_left == 0;
        let fifo = &mut self.fifos[index];
        fifo.flags |= if lost { sta::TXLARB } else { sta::TXERR };
        if exhausted {
            fifo.txreq = false;
            fifo.flags |= sta::TXATIF;
        }
        if fifo.aborting {
            fifo.aborting = false;
            fifo.txreq = false;
            fifo.flags |= sta::TXABT;
        }
        if !fifo.txreq {
            self.sending = None;
        }
        self.current = None;
        self.finish_abort_all();
    }

    /// TXREQ was cleared, or ABAT set. Takes effect at once, unless the message is on the bus.
    pub(super) fn abort(&mut self, index: usize) {
        let on_bus = self.current.is_some()
            && self.in_frame
            && self.sending.is_some_and(|(sending, _)| sending == index);
        let fifo = &mut self.fifos[index];
        if !fifo.txreq {
            return;
        }
        if on_bus {
            fifo.aborting = true;
        } else {
            fifo.txreq = false;
            fifo.flags |= sta::TXABT;
        }
    }

    pub(super) fn finish_abort_all(&mut self) {
        if self.con & con::ABAT != 0 && self.fifos.iter().all(|fifo| !fifo.txreq) {
            self.con &= !con::ABAT;
        }
    }

    /// A frame was received completely.
    fn take_frame(&mut self, at: Ps, frame: &CanFrame, sof: Ps, fdf_ps: Ps, eof: Ps) {
        self.count_error_free();
        let dncnt = self.con & con::DNCNT;
        let hit = self.filters.iter().position(|filter| filter.matches(frame, dncnt));
        let Some(hit) = hit else { return };
        self.filhit = hit as u32;
        let index = self.filters[hit].fifo();
        if index == 0 {
            self.complain(|| format!("filter {hit} points to FIFO 0, the transmit queue"));
            return;
        }
        if self.fifos[index].sends() {
            let prepared_at = self.prepared_at(at);
            let fifo = &mut self.fifos[index];
            if frame.remote && fifo.con & fifocon::RTREN != 0 && !fifo.is_empty() {
                fifo.txreq = true;
                fifo.ready_at = prepared_at;
            }
            return;
        }
        if self.fifos[index].is_full() {
            self.fifos[index].flags |= sta::OVIF;
            self.dropped += 1;
            return;
        }
        let stamp = self.stamp(frame.fd, sof, fdf_ps, eof);
        let fifo = self.fifos[index].clone();
        if self.in_ram(&fifo, fifo.head) {
            self.store_frame(fifo.place(fifo.head), fifo.payload(), fifo.stamps(), frame, stamp);
        }
        self.fifos[index].push();
        self.fifos[index].filled_at = Some(at);
        self.taken += 1;
    }

    fn store_frame(
        &mut self,
        place: u16,
        payload: u16,
        stamps: bool,
        frame: &CanFrame,
        stamp: u32,
    ) {
        let flag = |on: bool, bit| if on { bit } else { 0 };
        let control = u32::from(frame.dlc())
            | flag(frame.extended, object::IDE)
            | flag(frame.remote, object::RTR)
            | flag(frame.brs, object::BRS)
            | flag(frame.fd, object::FDF)
            | flag(frame.esi, object::ESI)
            | self.filhit << object::FILHIT;
        self.write_ram(place, identifier(frame));
        self.write_ram(place + 4, control);
        let mut at = place + 8;
        if stamps {
            self.write_ram(at, stamp);
            at += 4;
        }
        let data = frame.data();
        if data.len() > usize::from(payload) {
            self.bdiag[1] |= DLCMM;
            self.int_flags |= int::IVMIF;
        }
        for word in data[..data.len().min(usize::from(payload))].chunks(4) {
            let mut bytes = [0; 4];
            bytes[..word.len()].copy_from_slice(word);
            self.write_ram(at, u32::from_le_bytes(bytes));
            at += 4;
        }
    }

    fn count_error(&mut self, kind: ErrorKind, sending: bool, data_phase: bool) {
        let place = match (sending, data_phase) {
            (false, false) => NRERRCNT,
            (true, false) => NTERRCNT,
            (false, true) => DRERRCNT,
            (true, true) => DTERRCNT,
        };
        if self.bdiag[0] >> place & 0xff != 0xff {
            self.bdiag[0] += 1 << place;
        }
        let flag = diagnosis(kind) << if data_phase { 8 } else { 0 };
        self.bdiag[1] |= flag;
        if self.counters.state() == ErrorState::BusOff {
            self.bdiag[1] |= TXBOERR;
        }
        self.int_flags |= int::IVMIF;
    }

    // Internal loopback: a bus of its own.

    pub(super) fn loop_begins(&mut self, at: Ps) {
        let Some(frame) = self.attempt(at) else { return };
        let shape = frame.shape();
        let times = self.times();
        self.in_frame = true;
        let eof = at + shape.duration(times);
        let fdf_ps = u64::from(shape.fdf_end) * times.nominal_ps;
        self.looped = Some(LoopedFrame { frame, sof: at, fdf_ps, eof });
    }

    pub(super) fn loop_ends(&mut self, at: Ps, looped: LoopedFrame) {
        let LoopedFrame { frame, sof, fdf_ps, eof } = looped;
        self.take_frame(at, &frame, sof, fdf_ps, eof);
        self.message_sent(at, sof, fdf_ps, eof);
        self.frame_over(at);
    }
}

impl CanNode for Core {
    fn name(&self) -> &str {
        self.options.part.name()
    }

    fn link(&self) -> Link {
        let role = match self.bus_mode() {
            _ if self.options.faults.absent => Role::Off,
            None => Role::Off,
            Some(Mode::ListenOnly) => Role::Listen,
            Some(Mode::Restricted) => Role::Restricted,
            Some(Mode::ExternalLoopback) => Role::Loopback,
            Some(_) => Role::Active,
        };
        let fd = match self.bus_mode() {
            Some(Mode::Normal20) if self.con & con::PXEDIS != 0 => FdSupport::ErrorFlag,
            Some(Mode::Normal20) => FdSupport::Ignores,
            _ => FdSupport::Full,
        };
        Link { role, times: Some(self.times()), fd }
    }

    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    fn wants(&self) -> Ps {
        if self.opmod.runs() && self.change.is_none() { self.wants_at() } else { Ps::MAX }
    }

    fn offer(&mut self, at: Ps) -> Option<CanFrame> {
        self.catch_up(at);
        self.attempt(at)
    }

    fn joined(&mut self, at: Ps) {
        self.catch_up(at);
        self.in_frame = false;
        if let Some((mode, _)) = self.change
            && !self.opmod.runs()
        {
            self.enter(mode, at);
        }
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

    fn sent(&mut self, at: Ps, span: Span) {
        self.catch_up(at);
        self.message_sent(at, span.sof, span.fdf_ps, span.eof);
        self.frame_over(at);
    }

    fn received(&mut self, at: Ps, frame: &CanFrame, span: Span) {
        self.catch_up(at);
        self.take_frame(at, frame, span.sof, span.fdf_ps, at);
        self.update(at);
        // In external loopback the end of its own frame is still to come.
        if self.current.is_none() {
            self.frame_over(at);
        }
    }

    fn error(&mut self, at: Ps, error: BusError) {
        self.catch_up(at);
        self.count_error(error.kind, error.sending, error.data_phase);
        if error.sending {
            self.attempt_failed(false);
        }
        self.update(at);
        self.frame_over(at);
    }

    fn recovered(&mut self, at: Ps) {
        self.catch_up(at);
        self.in_frame = false;
        self.update(at);
    }
}
