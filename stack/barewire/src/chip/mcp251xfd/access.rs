//! Access to registers and memory, with or without CRC.

use super::CanError;
use super::crc::{INIT, crc16};
use super::regs::{FRAME_BYTES, RAM, READ, READ_CRC, WRITE, WRITE_CRC};
use crate::regmap::{Frames, Location, RegMap};
use crate::spi::Transfer;

/// The number of attempts to read data that does not match its CRC.
const CRC_ATTEMPTS: u32 = 3;
/// Bytes before the data: command and address, and with CRC a length.
pub(super) const COMMAND_BYTES: usize = 2;
pub(super) const COMMAND_CRC_BYTES: usize = 3;
pub(super) const CRC_BYTES: usize = 2;
/// The longest exchange for part of an object.
pub(super) const BUFFER_BYTES: usize = COMMAND_CRC_BYTES + 8 + 4 + 64 + CRC_BYTES;

/// The connection to the chip.
#[derive(Debug)]
pub(super) struct Link<F> {
    map: RegMap<F, FRAME_BYTES>,
    pub(super) crc: bool,
}

/// Command and address, most significant byte first.
pub(super) const fn command(command: u16, address: u16) -> [u8; COMMAND_BYTES] {
    (command | address).to_be_bytes()
}

/// The length byte: bytes of registers, words of memory.
const fn length(address: u16, bytes: usize) -> u8 {
    (if address >= RAM && address < 0xe00 { bytes / 4 } else { bytes }) as u8
}

impl<F: Frames<FRAME_BYTES>> Link<F> {
    pub(super) fn new(map: RegMap<F, FRAME_BYTES>) -> Self {
        Self { map, crc: false }
    }

    /// Runs a message unchanged.
    #[inline]
    pub(super) fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), CanError> {
        Ok(self.map.frames().run(message)?)
    }

    /// Reads a register: by one prepared exchange or, with CRC, by up to three exchanges of nine
    /// bytes.
    #[inline]
    pub(super) fn read<'m>(&mut self, at: impl Into<Location<'m>>) -> Result<u32, CanError> {
        let at = at.into();
        if !self.crc {
            return Ok(self.map.read(at)?);
        }
        let mut buffer = [0; COMMAND_CRC_BYTES + 4 + CRC_BYTES];
        let bytes = self.read_bytes(at.address() as u16, 4, &mut buffer)?;
        Ok(super::frame::word(bytes, 0))
    }

    /// Writes a whole register.
    pub(super) fn write<'m>(
        &mut self,
        at: impl Into<Location<'m>>,
        value: u32,
    ) -> Result<(), CanError> {
        let at = at.into();
        if !self.crc {
            return Ok(self.map.write(at, value)?);
        }
        self.write_bytes(at.address() as u16, &value.to_le_bytes())
    }

    /// Writes single bytes of a register; the other bytes do not change.
    pub(super) fn write_bytes(&mut self, address: u16, data: &[u8]) -> Result<(), CanError> {
        let mut buffer = [0; COMMAND_CRC_BYTES + 4 + CRC_BYTES];
        let len = self.compose_write(address, data, &mut buffer);
        self.run(&mut [Transfer::write(&buffer[..len])])
    }

    /// Composes the bytes that write `data`. Returns their number.
    pub(super) fn compose_write(&self, address: u16, data: &[u8], buffer: &mut [u8]) -> usize {
        let at = self.data_at();
        buffer[at..at + data.len()].copy_from_slice(data);
        self.compose_write_around(address, data.len(), buffer)
    }

    /// The offset of the data in an exchange.
    pub(super) fn data_at(&self) -> usize {
        if self.crc { COMMAND_CRC_BYTES } else { COMMAND_BYTES }
    }

    /// The same for data that is already at its place in the buffer.
    pub(super) fn compose_write_around(
        &self,
        address: u16,
        len: usize,
        buffer: &mut [u8],
    ) -> usize {
        let end = self.data_at() + len;
        if !self.crc {
            buffer[..COMMAND_BYTES].copy_from_slice(&command(WRITE, address));
            return end;
        }
        buffer[..COMMAND_BYTES].copy_from_slice(&command(WRITE_CRC, address));
        buffer[COMMAND_BYTES] = length(address, len);
        let crc = crc16(INIT, &buffer[..end]);
        buffer[end..end + CRC_BYTES].copy_from_slice(&crc.to_be_bytes());
        end + CRC_BYTES
    }

    /// Composes the bytes that read `len` bytes. Returns their number.
    pub(super) fn compose_read(&self, address: u16, len: usize, buffer: &mut [u8]) -> usize {
        // The chip ignores the bytes after the command.
        if !self.crc {
            buffer[..COMMAND_BYTES].copy_from_slice(&command(READ, address));
            return COMMAND_BYTES + len;
        }
        buffer[..COMMAND_BYTES].copy_from_slice(&command(READ_CRC, address));
        buffer[COMMAND_BYTES] = length(address, len);
        COMMAND_CRC_BYTES + len + CRC_BYTES
    }

    /// Reads `len` bytes through `buffer` and returns them.
    ///
    /// With CRC, data that does not match is read again: the chip sends a wrong CRC with good data
    /// if a register changes while it is read (errata DS80000792 and DS80000789, "Incorrect CRC for
    /// certain READ_CRC commands").
    pub(super) fn read_bytes<'b>(
        &mut self,
        address: u16,
        len: usize,
        buffer: &'b mut [u8],
    ) -> Result<&'b [u8], CanError> {
        let at = self.data_at();
        for _ in 0..if self.crc { CRC_ATTEMPTS } else { 1 } {
            let whole = self.compose_read(address, len, buffer);
            self.run(&mut [Transfer::in_place(&mut buffer[..whole])])?;
            if !self.crc {
                return Ok(&buffer[at..at + len]);
            }
            let crc = crc16(INIT, &command(READ_CRC, address));
            let crc = crc16(crc, &[length(address, len)]);
            if crc16(crc, &buffer[at..at + len]).to_be_bytes() == buffer[at + len..whole] {
                return Ok(&buffer[at..at + len]);
            }
        }
        Err(CanError::Crc { address })
    }
}
