//! FIFOs: the transmit event FIFO, the transmit queue, and FIFO 1 to 31.
//!
//! *Read first*: DS20005678, chapters 4 (message memory) and 5 to 7.
//!
//! # How it works
//! A FIFO is a ring of objects in RAM. In a transmit FIFO software moves the head and the chip
//! moves the tail; in a receive FIFO it is the other way round. The transmit queue is not a ring:
//! the chip sends its messages in the order of their identifiers. So the model keeps the list of
//! places in use, in the order of filling, which decides among equal identifiers.

use super::regs::{fifocon, sta};
use crate::chip::Ps;

/// The number of data bytes for each PLSIZE.
const PAYLOADS: [u16; 8] = [8, 12, 16, 20, 24, 32, 48, 64];

/// The kind of a FIFO.
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
    /// The control register without its command bits.
    pub(super) con: u32,
    /// The status register's flags that stay until software clears them.
    pub(super) flags: u32,
    pub(super) head: u8,
    pub(super) tail: u8,
    pub(super) count: u8,
    /// The places in use, oldest first; only for the queue.
    pub(super) queued: Vec<u8>,
    pub(super) txreq: bool,
    /// The earliest time at which a requested message can be on the bus.
    pub(super) ready_at: Ps,
    /// TXREQ was cleared while a message is on the bus.
    pub(super) aborting: bool,
    /// The address of its first object in RAM.
    pub(super) offset: u16,
    /// The time it last stored a frame.
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

    /// FRESET, or Configuration mode: the settings are kept.
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

    /// The number of data bytes in an object.
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

    /// The size of all its objects in bytes.
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

    /// A free place of the queue.
    pub(super) fn free_place(&self) -> u8 {
        // Search from the place of the last message, as in a ring.
        let mut index = self.head;
        for _ in 0..self.size() {
            if !self.queued.contains(&index) {
                break;
            }
            index = self.next(index);
        }
        index
    }

    /// The object that software accesses next.
    pub(super) fn user_index(&self) -> u8 {
        match (self.kind, self.sends()) {
            (Kind::Txq, _) => self.free_place(),
            (_, true) => self.head,
            (_, false) => self.tail,
        }
    }

    /// Adds a message, from software or from the chip.
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

    /// Removes the oldest message.
    pub(super) fn pop(&mut self) {
        self.tail = self.next(self.tail);
        self.count -= 1;
    }

    /// Removes the message at `place` of the queue.
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

    /// Whether its flags request an enabled interrupt, for RXIF, TXIF and TEFIF.
    pub(super) fn asks(&self) -> bool {
        // Each enable bit has its flag's position. Overflow and attempts have flags of their own in
        // C1INT, except the overflow of the transmit event FIFO.
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
