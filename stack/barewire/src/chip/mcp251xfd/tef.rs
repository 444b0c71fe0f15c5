//! Events of transmission: what went out, and when.

use super::frame::{HEADER_BYTES, STAMP_BYTES, sequence_of, word};
use super::regs::{C1TEFUA, FRAME_BYTES};
use super::{CanError, Mcp251xfd, OUT_OF_STEP};
use crate::regmap::Frames;
use crate::time::Timer;

const UINC_BYTE: u16 = 0x041;
const UINC: u8 = 1;

/// A frame went out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmitted {
    /// What [`Mcp251xfd::transmit`] returned for it.
    pub sequence: u8,
    /// When it began, in ticks of the time stamps.
    pub timestamp: u64,
}

impl<F: Frames<FRAME_BYTES>, T: Timer> Mcp251xfd<F, T> {
    /// Reads the TEF's next object, of which C1INT said that there is one, and gives its place back.
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

    /// Asks where the TEF stands.
    pub(super) fn find_tef(&mut self) -> Result<(), CanError> {
        if self.config.transmit_events {
            let address = self.link.read(&C1TEFUA)?;
            self.layout.tef.stand_at(address);
        }
        Ok(())
    }
}
