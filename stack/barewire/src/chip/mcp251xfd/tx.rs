//! Transmits from FIFO 2 or the TXQ.

use super::frame::SEQUENCES;
use super::regs::{C1FIFOSTA, C1FIFOUA, C1TXQSTA, C1TXQUA, FRAME_BYTES, fifosta, txqsta};
use super::setup::FIFO_2;
use super::{CanError, Frame, Mcp251xfd, Mode, OUT_OF_STEP, TxOrder};
use crate::regmap::Frames;
use crate::spi::Transfer;
use crate::time::Timer;

/// The bytes of the control registers with UINC and TXREQ.
const FIFO_2_BYTE: u16 = 0x069;
const TXQ_BYTE: u16 = 0x051;
const UINC_AND_TXREQ: u8 = 3;

impl<F: Frames<FRAME_BYTES>, T: Timer> Mcp251xfd<F, T> {
    /// Gives a frame to the chip, which sends it as soon as possible and repeats it until it
    /// succeeds. Returns the sequence number, 0 to 127, of its [event](super::Found::transmitted).
    ///
    /// # Errors
    /// [`CanError::FrameTooLong`] and [`CanError::NoDataBitRate`], before anything is clocked;
    /// [`CanError::TxFull`], [`CanError::Message`], [`CanError::Crc`].
    pub fn transmit(&mut self, frame: &Frame) -> Result<u8, CanError> {
        self.check_frame(frame)?;
        self.get_in_step()?;
        if self.tx_free == 0 {
            self.tx_free = self.count_free()?;
        }
        if self.config.tx_order == TxOrder::Identifier {
            // Places are freed out of turn, so only the chip knows the next one.
            self.find_tx()?;
        }
        let sequence = self.sequence;
        let Self { link, layout, tx_buffer, tx_go: (go, go_len), .. } = self;
        let len = frame.encode(sequence, &mut tx_buffer[link.data_at()..]);
        let whole = link.compose_write_around(layout.tx.address(), len, tx_buffer);
        let object = Transfer::write(&tx_buffer[..whole]).with_cs_change();
        if let Err(error) = link.run(&mut [object, Transfer::write(&go[..*go_len])]) {
            self.owed |= OUT_OF_STEP;
            return Err(error);
        }
        layout.tx.advance();
        self.tx_free -= 1;
        self.sequence = (sequence + 1) % SEQUENCES;
        Ok(sequence)
    }

    fn check_frame(&self, frame: &Frame) -> Result<(), CanError> {
        // A classic frame has at most 8 bytes, which fit every object.
        if frame.is_fd() { self.check_fd_frame(frame) } else { Ok(()) }
    }

    fn check_fd_frame(&self, frame: &Frame) -> Result<(), CanError> {
        let fd = self.config.mode != Mode::Classic;
        let max_len = if fd { self.config.payload.bytes() } else { 8 };
        let len = frame.len() as u8;
        if len > max_len || !fd {
            return Err(CanError::FrameTooLong { len, max_len });
        }
        if frame.has_bit_rate_switch() && self.config.data.is_none() {
            return Err(CanError::NoDataBitRate);
        }
        Ok(())
    }

    /// The number of free places, as far as the status shows it: all, half, or one.
    fn count_free(&mut self) -> Result<u8, CanError> {
        let objects = self.layout.tx.objects;
        let (empty, half, one) = match self.config.tx_order {
            TxOrder::Fifo => {
                let status = self.link.read(C1FIFOSTA.nth(FIFO_2))?;
                let is = |field: crate::regmap::Field| status & field.mask() != 0;
                (is(fifosta::TFERFFIF), is(fifosta::TFHRFHIF), is(fifosta::TFNRFNIF))
            }
            TxOrder::Identifier => {
                let status = self.link.read(&C1TXQSTA)?;
                let is = |field: crate::regmap::Field| status & field.mask() != 0;
                (is(txqsta::TXQEIF), false, is(txqsta::TXQNIF))
            }
        };
        match () {
            () if empty => Ok(objects),
            () if half => Ok((objects / 2).max(1)),
            () if one => Ok(1),
            () => Err(CanError::TxFull),
        }
    }

    /// Asks the chip for the next object.
    pub(super) fn find_tx(&mut self) -> Result<(), CanError> {
        let address = match self.config.tx_order {
            TxOrder::Fifo => self.link.read(C1FIFOUA.nth(FIFO_2))?,
            TxOrder::Identifier => self.link.read(&C1TXQUA)?,
        };
        self.layout.tx.stand_at(address);
        Ok(())
    }

    /// The access that sends an object, composed once.
    pub(super) fn tx_go_bytes(&self) -> ([u8; 6], usize) {
        let address = match self.config.tx_order {
            TxOrder::Fifo => FIFO_2_BYTE,
            TxOrder::Identifier => TXQ_BYTE,
        };
        let mut bytes = [0; 6];
        let len = self.link.compose_write(address, &[UINC_AND_TXREQ], &mut bytes);
        (bytes, len)
    }
}
