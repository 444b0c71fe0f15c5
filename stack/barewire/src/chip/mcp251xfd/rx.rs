//! Receives from FIFO 1.

use super::access::Link;
use super::frame::{HEADER_BYTES, STAMP_BYTES, word};
use super::regs::{C1FIFOUA, FRAME_BYTES};
use super::{CanError, Mcp251xfd, OUT_OF_STEP, Payload, Received};
use crate::regmap::Frames;
use crate::spi::Transfer;
use crate::time::Timer;

/// The byte of FIFO 1's control register with UINC, and the value that sets it.
const UINC_BYTE: u16 = 0x05d;
const UINC: u8 = 1;
/// The whole access, as a constant.
const DONE: [u8; 3] = [0x20, UINC_BYTE as u8, UINC];
/// The data read with every header: all of a classic frame's.
const SHORT_BYTES: usize = 8;
const FIRST_BYTES: usize = HEADER_BYTES + STAMP_BYTES + SHORT_BYTES;

impl<F: Frames<FRAME_BYTES>, T: Timer> Mcp251xfd<F, T> {
    /// Reads FIFO 1's next object, which C1INT has announced, and releases it.
    ///
    /// 1. Header: the object, up to 8 bytes of data.
    /// 2. Rest: the rest of the data, if the header says there is more.
    /// 3. Release: UINC, in one message with the last read. With CRC it is a separate message,
    ///    after the check.
    #[inline]
    pub(super) fn take_frame(&mut self, received: &mut Received) -> Result<(), CanError> {
        let taken = self.take_object(received);
        match taken {
            Ok(()) => self.layout.rx.advance(),
            Err(_) => self.owed |= OUT_OF_STEP,
        }
        taken
    }

    fn take_object(&mut self, received: &mut Received) -> Result<(), CanError> {
        let Self { link, layout, rx_buffer, .. } = self;
        let address = layout.rx.address();
        let at = link.data_at();
        // Steps 1 and 3 together, for a frame that cannot be longer.
        let alone = self.config.payload == Payload::Bytes8;
        read_part(link, address, FIRST_BYTES, rx_buffer, alone)?;
        let first = &rx_buffer[at..at + FIRST_BYTES];
        received.filter = received.frame.decode_header(first);
        let stamp = word(first, HEADER_BYTES);
        let data = received.frame.data_mut();
        // A sender's DLC may exceed the object; the chip cuts the data.
        let room = data.len().min(self.config.payload.bytes().into());
        let (data, beyond) = data.split_at_mut(room);
        beyond.fill(0);
        let (short, rest) = data.split_at_mut(room.min(SHORT_BYTES));
        short.copy_from_slice(&first[HEADER_BYTES + STAMP_BYTES..][..short.len()]);
        if !rest.is_empty() {
            // Step 2, rest.
            let words = rest.len().next_multiple_of(4);
            read_part(link, address + FIRST_BYTES as u16, words, rx_buffer, true)?;
            rest.copy_from_slice(&rx_buffer[at..at + rest.len()]);
        } else if !alone {
            link.write_bytes(UINC_BYTE, &[UINC])?;
        }
        received.timestamp = self.times.widen(stamp);
        Ok(())
    }

    /// Asks the chip for FIFO 1's next object.
    pub(super) fn find_rx(&mut self) -> Result<(), CanError> {
        let address = self.link.read(C1FIFOUA.nth(0))?;
        self.layout.rx.stand_at(address);
        Ok(())
    }
}

/// Reads part of an object into `buffer`. The last part also releases the object.
fn read_part<F: Frames<FRAME_BYTES>>(
    link: &mut Link<F>,
    address: u16,
    len: usize,
    buffer: &mut [u8],
    last: bool,
) -> Result<(), CanError> {
    if link.crc || !last {
        link.read_bytes(address, len, buffer)?;
        return if last { link.write_bytes(UINC_BYTE, &[UINC]) } else { Ok(()) };
    }
    let whole = link.compose_read(address, len, buffer);
    let object = Transfer::in_place(&mut buffer[..whole]);
    link.run(&mut [object.with_cs_change(), Transfer::write(&DONE)])
}
