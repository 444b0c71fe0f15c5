//! Events of transmission: which frame was sent, and when.

use super::frame::{HEADER_BYTES, STAMP_BYTES, sequence_of, word};
use super::regs::{C1TEFUA, FRAME_BYTES};
use super::{CanError, Mcp251xfd, OUT_OF_STEP};
use crate::regmap::Frames;
use crate::time::Timer;

const UINC_BYTE: u16 = 0x041;
const UINC: u8 = 1;

/// A frame was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Transmitted {
    /// The sequence number that [`Mcp251xfd::transmit`] returned.
    pub sequence: u8,
    /// The time of its start, in ticks of the time stamps.
    pub timestamp: u64,
}

impl<F: Frames<FRAME_BYTES>, T: Timer> Mcp251xfd<F, T> {
    /// Reads the TEF's next object, which C1INT has announced, and releases it.
    pub(super) fn take_event(&mut self) -> Result<Transmitted, CanError> {
        let Self { link, layout, rx_buffer, .. } = self;
        let read = link.read_bytes(layout.tef.address(), HEADER_BYTES + STAMP_BYTES, rx_buffer);
        let event = read.map(|event| (sequence_of(event), word(event, HEADER_BYTES)));
        let done = event.and_then(|event| link.write_bytes(UINC_BYTE, &[UINC]).map(|()| event));
        if done.is_err() {
            self.owed |= OUT_OF_STEP;
        }
        let (sequence, stamp) = done?;
        self.layout.tef.advance();
        Ok(Transmitted { sequence, timestamp: self.times.widen(stamp) })
    }

    /// Asks the chip for the TEF's next object.
    pub(super) fn find_tef(&mut self) -> Result<(), CanError> {
        if self.config.transmit_events {
            let address = self.link.read(&C1TEFUA)?;
            self.layout.tef.stand_at(address);
        }
        Ok(())
    }
}
