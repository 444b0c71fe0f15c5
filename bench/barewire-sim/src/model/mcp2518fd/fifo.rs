//! FIFOs: the transmit event FIFO, the transmit queue, and FIFO 1 to 31.
//!
//! *Read first*: DS20005678, chapters 4 (message memory) and 5 to 7.
//!
//! # How it works
//! A FIFO is a ring of objects in RAM. What software fills has a head that software moves and a tail that
//! the chip moves; what it empties, the other way round. The transmit queue is no ring: the chip
//! takes its messages by identifier, so it keeps which of its places are in use, in the order of
//! filling where identifiers are equal.

use super::regs::{fifocon, sta};
use crate::chip::Ps;

/// How many bytes of data each PLSIZE leaves room for.
const PAYLOADS: [u16; 8] = [8, 12, 16, 20, 24, 32, 48, 64];

/// What a FIFO is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Tef,
    Txq,
    Plain,
}

/// A FIFO's registers and state.
#[derive(Clone, Debug)]
pub(super) struct Fifo {
    pub(super) kind: Kind,
    /// The control register without its bits that act.
    pub(super) con: u32,
    /// The status register's flags that stay until somebody clears them.
    pub(super) flags: u32,
    pub(super) head: u8,
    pub(super) tail: u8,
    pub(super) count: u8,
    /// The places in use, oldest first: the queue alone.
    pub(super) queued: Vec<u8>,
    pub(super) txreq: bool,
    /// From when on what is requested can be on the bus.
    pub(super) ready_at: Ps,
    /// TXREQ was cleared with a message on the bus.
    pub(super) aborting: bool,
    /// Its first object's place in RAM.
    pub(super) offset: u16,
    /// When it last took a frame.
    pub(super) filled_at: Option<Ps>,
}

impl Fifo {
    pub(super) fn new(kind: Kind) -> Self {
        let con = match kind {
            Kind::Tef => 0,
            Kind::Txq => fifocon::RESET | fifocon::TXEN,
            Kind::Plain => fifocon::RESET,
        };
        Self {
            kind,
            con,
            flags: 0,
            head: 0,
            tail: 0,
            count: 0,
            queued: Vec::new(),
            txreq: false,
            ready_at: 0,
            aborting: false,
            offset: 0,
            filled_at: None,
        }
    }

    /// FRESET, or Configuration mode: the settings stay.
    pub(super) fn reset(&mut self) {
        let offset = self.offset;
        *self = Self { con: self.con, offset, ..Self::new(self.kind) };
    }

    pub(super) fn sends(&self) -> bool {
        self.kind != Kind::Tef && self.con & fifocon::TXEN != 0
    }

    pub(super) fn size(&self) -> u8 {
        (self.con >> fifocon::FSIZE & 0x1f) as u8 + 1
    }

    /// Bytes of data that an object has room for.
    pub(super) fn payload(&self) -> u16 {
        match self.kind {
            Kind::Tef => 0,
            _ => PAYLOADS[(self.con >> fifocon::PLSIZE) as usize],
        }
    }

    pub(super) fn stamps(&self) -> bool {
        self.con & fifocon::TSEN != 0 && !self.sends()
    }

    pub(super) fn object_bytes(&self) -> u16 {
        8 + self.payload() + if self.stamps() { 4 } else { 0 }
    }

    /// All its objects.
    pub(super) fn bytes(&self) -> u16 {
        u16::from(self.size()) * self.object_bytes()
    }

    pub(super) fn place(&self, index: u8) -> u16 {
        self.offset + u16::from(index) * self.object_bytes()
    }

    pub(super) fn is_full(&self) -> bool {
        self.count >= self.size()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn next(&self, index: u8) -> u8 {
        (index + 1) % self.size()
    }

    /// A place of the queue that is free.
    pub(super) fn free_place(&self) -> u8 {
        // From where the last message went, as a ring would.
        let mut index = self.head;
        for _ in 0..self.size() {
            if !self.queued.contains(&index) {
                break;
            }
            index = self.next(index);
        }
        index
    }

    /// The object that software writes or reads next.
    pub(super) fn user_index(&self) -> u8 {
        match (self.kind, self.sends()) {
            (Kind::Txq, _) => self.free_place(),
            (_, true) => self.head,
            (_, false) => self.tail,
        }
    }

    /// One more message, put in by software or by the chip.
    pub(super) fn push(&mut self) {
        if self.kind == Kind::Txq {
            let place = self.free_place();
            self.queued.push(place);
            self.head = self.next(place);
        } else {
            self.head = self.next(self.head);
        }
        self.count += 1;
    }

    /// The oldest message is gone.
    pub(super) fn pop(&mut self) {
        self.tail = self.next(self.tail);
        self.count -= 1;
    }

    /// The message at `place` of the queue is gone.
    pub(super) fn take(&mut self, place: u8) {
        self.queued.retain(|&queued| queued != place);
        self.count -= 1;
    }

    /// The status register without FIFOCI.
    pub(super) fn status(&self) -> u32 {
        let (size, count) = (u32::from(self.size()), u32::from(self.count));
        let (not, half, end) = if self.sends() {
            (count < size, 2 * count <= size, count == 0)
        } else {
            (count > 0, 2 * count >= size, count == size)
        };
        let level = |on: bool, bit| if on { bit } else { 0 };
        let half = self.kind != Kind::Txq && half;
        self.flags | level(not, sta::NRFNIF) | level(half, sta::HRFHIF) | level(end, sta::ERFFIF)
    }

    /// Whether its flags ask for an interrupt that it allows; for RXIF, TXIF and TEFIF.
    pub(super) fn asks(&self) -> bool {
        // Each enable has its flag's place. Overflow and attempts have flags of their own in C1INT;
        // the transmit event FIFO's overflow has not.
        let levels = sta::NRFNIF | sta::HRFHIF | sta::ERFFIF;
        let mask = if self.kind == Kind::Tef { levels | sta::OVIF } else { levels };
        self.status() & self.con & mask != 0
    }

    pub(super) fn overflow_asks(&self) -> bool {
        self.flags & self.con & sta::OVIF != 0
    }

    pub(super) fn attempts_ask(&self) -> bool {
        self.flags & self.con & sta::TXATIF != 0
    }
}
