//! The layout of the chip's memory: TEF, TXQ, FIFO 1, FIFO 2, one after the other (DS20005678,
//! chapter "Message memory organization").
//!
//! The user address registers give the address of the next object, for an access each. Objects that
//! are used in turn have addresses that follow from the layout, so only the TXQ, which frees its
//! places out of turn, needs that access.

use super::frame::{HEADER_BYTES, STAMP_BYTES};
use super::regs::{RAM, RAM_BYTES};
use super::{CanError, Config, TxOrder};

/// A ring of objects, and the index of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ring {
    pub start: u16,
    pub object_bytes: u16,
    pub objects: u8,
    /// The next object's index.
    pub next: u8,
}

impl Ring {
    pub(super) fn address(&self) -> u16 {
        self.start + u16::from(self.next) * self.object_bytes
    }

    /// Sets the next object from the address that the chip reported, relative to the start of the
    /// memory. An address that is no object's is ignored; the next read from the ring then shows
    /// the error.
    pub(super) fn stand_at(&mut self, user_address: u32) {
        let offset = user_address.wrapping_sub(u32::from(self.start - RAM));
        let object_bytes = u32::from(self.object_bytes);
        if offset < u32::from(self.objects) * object_bytes {
            self.next = (offset / object_bytes) as u8;
        }
    }

    pub(super) fn advance(&mut self) {
        self.next = if self.next + 1 == self.objects { 0 } else { self.next + 1 };
    }
}

/// The places of all rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Empty if events are not configured.
    pub tef: Ring,
    /// The TXQ or FIFO 2.
    pub tx: Ring,
    pub rx: Ring,
}

impl Layout {
    pub(super) fn new(config: &Config) -> Result<Self, CanError> {
        let payload = u16::from(config.payload.bytes());
        let header = HEADER_BYTES as u16;
        let stamped = header + STAMP_BYTES as u16;
        let tef_objects = if config.transmit_events { config.tx_objects } else { 0 };
        for objects in [config.tx_objects, config.rx_objects] {
            if !(1..=32).contains(&objects) {
                return Err(CanError::Depth { objects });
            }
        }
        let mut end = RAM;
        let mut ring = |objects: u8, object_bytes: u16| {
            let start = end;
            end += u16::from(objects) * object_bytes;
            Ring { start, object_bytes, objects, next: 0 }
        };
        let tef = ring(tef_objects, stamped);
        // FIFO 2 is behind FIFO 1, the TXQ before it.
        let (tx, rx) = match config.tx_order {
            TxOrder::Identifier => {
                let tx = ring(config.tx_objects, header + payload);
                (tx, ring(config.rx_objects, stamped + payload))
            }
            TxOrder::Fifo => {
                let rx = ring(config.rx_objects, stamped + payload);
                (ring(config.tx_objects, header + payload), rx)
            }
        };
        if end > RAM + RAM_BYTES {
            let (bytes, max_bytes) = ((end - RAM).into(), RAM_BYTES.into());
            return Err(CanError::Ram { bytes, max_bytes });
        }
        Ok(Self { tef, tx, rx })
    }
}
