//! SPI NOR flash: identify, read, erase, program, verify.
//!
//! # Read first
//! JESD216B (SFDP); the W25Q256JV and SST25VF016B datasheets, instruction tables and AC
//! characteristics.
//!
//! # How such a chip works
//! A read is one message: opcode, address, data. It wraps at the end of the array. A change takes
//! three steps: WREN sets a latch (WEL), the command takes effect when CS rises, and then the chip
//! is busy for microseconds to minutes, in which it answers only RDSR. Programming only clears
//! bits, within a page; erasing sets all bits of a block.
//!
//! # How this driver uses it
//! 1. Identity: [`SpiNor::new`] identifies the chip by its JEDEC id. SFDP gives size, page, erase
//!    types, address width and times; for parts without SFDP a table does.
//! 2. Write enable is a guard: the driver checks that the latch was set, and clears it again in
//!    every case.
//! 3. Busy: the driver sleeps the typical time, then polls at intervals of an eighth of it, and
//!    gives up after the datasheet's maximum. If a part's times are unknown, it polls from the
//!    beginning. If the status's protection bits have changed meanwhile, the chip no longer drives
//!    MISO ([`NorError::Gone`]).
//! 4. Write: [`SpiNor::write`] reads first. It skips data that is already there, programs without
//!    erasing where bits are only cleared, and reads back everything it wrote.
//! 5. Addresses: chips above 16 MiB are addressed by their 4-byte opcodes or, if they have none, in
//!    4-byte mode, which the driver leaves when it is dropped.
//! 6. Operations: commands that must not be interleaved with other users' are one
//!    [operation](Port::begin): a read; the erase of a block; the read, erase, programs and read
//!    back of a sector. On a shared chip each operation waits until the chip is ready, enters
//!    4-byte mode if needed, and leaves it.
//!
//! # Not supported
//! - A chip that another user has put into power-down, QPI or continuous read mode.
//! - Dual, quad and DTR reads.
//! - Sector maps of non-uniform parts.
//! - Security registers; per-block locks; suspend.

#[cfg(feature = "embedded-storage-async")]
mod async_storage;
mod error;
mod geometry;
mod guard;
mod opcode;
mod operation;
mod part;
mod protection;
pub mod sfdp;
mod storage;
mod symptom;
#[cfg(test)]
mod tests;
mod wait;
mod write;

#[cfg(feature = "embedded-storage-async")]
pub use async_storage::AsyncStorage;
pub use error::NorError;
pub use geometry::{Addressing, EraseType, Geometry, JedecId, Programming};
pub use protection::Layout;
pub use sfdp::SfdpError;
pub use storage::Storage;
pub use write::{Written, no_observer};

use core::ops::{ControlFlow, Range};

use super::{Port, Sharing, longest_data};
use crate::spi::Transfer;
use crate::time::Timer;
use opcode::{
    CE, EN4B, EX4B, FAST_READ, FAST_READ_4B, RDID, RDSFDP, RDSR, RDSR2, READ, READ_4B, WRDI, WREN,
    WRSR,
};
use operation::Begun;

/// Status register: busy.
const BUSY: u8 = 1 << 0;
/// Status register: write enable latch.
const WEL: u8 = 1 << 1;

/// Called with the number of bytes done; decides whether to continue.
pub type Observer<'o> = &'o mut dyn FnMut(u64) -> ControlFlow<()>;

/// The block protection, as the chip reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Protection {
    /// Status register 1.
    pub status: u8,
    /// The first protected address.
    pub start: u64,
    /// The address after the last protected one; equal to `start` if nothing is protected.
    pub end: u64,
}

impl Protection {
    /// Whether nothing is protected.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.start >= self.end
    }

    /// Whether any address of `range` is protected.
    #[must_use]
    pub fn covers_any(&self, range: &Range<u64>) -> bool {
        !self.is_none() && range.start < self.end && self.start < range.end
    }

    /// # Errors
    /// [`NorError::Protected`] if any address of `range` is.
    fn check(self, range: &Range<u64>) -> Result<(), NorError> {
        if self.covers_any(range) {
            let Self { status, start, end } = self;
            return Err(NorError::Protected { start, end, status });
        }
        Ok(())
    }
}

/// A flash chip whose identity was checked.
#[derive(Debug)]
pub struct SpiNor<P: Port, T: Timer> {
    port: P,
    timer: T,
    id: JedecId,
    geometry: Geometry,
    fast_read: bool,
    sharing: Sharing,
}

impl<P: Port, T: Timer> SpiNor<P, T> {
    /// Identifies the chip behind `port`; `timer` times its busy periods.
    ///
    /// # Errors
    /// [`NorError::NoChip`], [`NorError::StuckLow`], [`NorError::Shifted`], [`NorError::Unstable`],
    /// [`NorError::UnknownChip`], [`NorError::TooFast`], [`NorError::Occupied`], or an error of the bus.
    pub fn new(mut port: P, mut timer: T) -> Result<Self, NorError> {
        let begun = Begun::new(&mut port, &mut timer)?;
        let sharing = begun.sharing;
        let id = read_id(begun.port)?;
        let geometry = match part::without_sfdp(id) {
            Some(geometry) => geometry,
            None => match sfdp::parse(|address, into| read_sfdp(begun.port, address, into))? {
                Ok(geometry) => part::refine(id, geometry),
                Err(sfdp) => return Err(symptom::of(id, read_id(begun.port)?, sfdp)),
            },
        };
        drop(begun);
        let speed_hz = port.speed_hz();
        if let Some(max_hz) = geometry.max_hz
            && speed_hz > max_hz
        {
            return Err(NorError::TooFast { speed_hz, max_hz });
        }
        let fast_read = speed_hz > geometry.read_max_hz;
        let mut this = Self { port, timer, id, geometry, fast_read, sharing };
        if sharing == Sharing::Alone {
            this.four_byte_mode(EN4B)?;
        }
        Ok(this)
    }

    /// The chip's id.
    pub fn jedec_id(&self) -> JedecId {
        self.id
    }

    /// The chip's description.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Whether reads use FAST_READ because the clock is above READ's maximum.
    pub fn uses_fast_read(&self) -> bool {
        self.fast_read
    }

    /// The size in bytes.
    pub fn size(&self) -> u64 {
        self.geometry.size
    }

    /// Fills `into` from `offset`.
    ///
    /// # Errors
    /// [`NorError::OutOfRange`], before anything is read, [`NorError::Occupied`], or an error of
    /// the bus.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), NorError> {
        self.check_range(offset, into.len() as u64)?;
        if into.is_empty() {
            return Ok(());
        }
        self.operation(|chip| chip.fetch(offset, into))
    }

    /// Reads within an operation, from addresses inside the chip, in as many messages as the port
    /// needs.
    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), NorError> {
        let mut at = offset;
        for piece in into.chunks_mut(longest_data(&self.port)) {
            let len = piece.len() as u64;
            self.fetch_piece(at, piece)?;
            at += len;
        }
        Ok(())
    }

    fn fetch_piece(&mut self, offset: u64, into: &mut [u8]) -> Result<(), NorError> {
        let command = self.read_command(offset);
        self.port.run(&mut [Transfer::write(command.as_slice()), Transfer::read(into)])?;
        Ok(())
    }

    fn read_command(&self, offset: u64) -> Command {
        let opcode = match (self.geometry.addressing, self.fast_read) {
            (Addressing::FourByteOpcodes, false) => READ_4B,
            (Addressing::FourByteOpcodes, true) => FAST_READ_4B,
            (_, false) => READ,
            (_, true) => FAST_READ,
        };
        let mut command = self.command(opcode, offset);
        // FAST_READ's dummy clocks are one more byte of the command.
        command.len += usize::from(self.fast_read);
        command
    }

    /// Compares the chip's content from `offset` with `expected`, through `scratch` (of any length
    /// above 0).
    ///
    /// # Errors
    /// [`NorError::Verify`] at the first difference; those of [`SpiNor::read`];
    /// [`NorError::Interrupted`].
    pub fn verify(
        &mut self,
        offset: u64,
        expected: &[u8],
        scratch: &mut [u8],
        observer: Observer<'_>,
    ) -> Result<(), NorError> {
        if scratch.is_empty() {
            return Err(NorError::ScratchTooSmall { len: 0, needed: 1 });
        }
        self.check_range(offset, expected.len() as u64)?;
        let mut done = 0;
        for piece in expected.chunks(scratch.len()) {
            let actual = &mut scratch[..piece.len()];
            self.read(offset + done, actual)?;
            if let Some(at) = first_difference(piece, actual) {
                return Err(NorError::Verify {
                    address: offset + done + at as u64,
                    expected: piece[at],
                    actual: actual[at],
                });
            }
            done += piece.len() as u64;
            go_on(observer, done)?;
        }
        Ok(())
    }

    /// Status register 1.
    ///
    /// # Errors
    /// [`NorError::Occupied`], or an error of the bus.
    pub fn status(&mut self) -> Result<u8, NorError> {
        self.operation(Self::status_now)
    }

    fn status_now(&mut self) -> Result<u8, NorError> {
        read_register(&mut self.port, RDSR)
    }

    /// The protected range.
    ///
    /// # Errors
    /// [`NorError::Occupied`], or an error of the bus.
    pub fn protection(&mut self) -> Result<Protection, NorError> {
        self.operation(Self::protection_now)
    }

    fn protection_now(&mut self) -> Result<Protection, NorError> {
        let status = self.status_now()?;
        let layout = self.geometry.protection;
        let needed = layout.needs_status_2();
        let status_2 = if needed { read_register(&mut self.port, RDSR2)? } else { 0 };
        Ok(self.protection_of(status, status_2))
    }

    fn protection_of(&self, status: u8, status_2: u8) -> Protection {
        let layout = self.geometry.protection;
        let Range { start, end } = layout.protected(status, status_2, self.geometry.size);
        Protection { status, start, end }
    }

    /// Clears the block protection bits only.
    ///
    /// # Errors
    /// [`NorError::ProtectionStays`] if hardware keeps them set; [`NorError::StaysBusy`];
    /// [`NorError::Occupied`]; [`NorError::WriteEnableRefused`]; an error of the bus.
    pub fn unprotect(&mut self) -> Result<(), NorError> {
        self.operation(Self::unprotect_now)
    }

    fn unprotect_now(&mut self) -> Result<(), NorError> {
        if self.protection_now()?.is_none() {
            return Ok(());
        }
        let status = self.status_now()?;
        let keep = !(self.geometry.protection.bits() | BUSY | WEL);
        let limit_ns = self.geometry.status_write_max_ns;
        let mut enabled = self.write_enable(0)?;
        enabled.chip().port.run(&mut [Transfer::write(&[WRSR, status & keep])])?;
        enabled.finish(limit_ns / 4, limit_ns, 0)?;
        let protection = self.protection_now()?;
        if protection.is_none() {
            Ok(())
        } else {
            Err(NorError::ProtectionStays { status: protection.status })
        }
    }

    /// Erases `range` by the largest blocks that fit. The whole chip is erased by its own command.
    ///
    /// # Errors
    /// Before anything is erased: [`NorError::OutOfRange`], [`NorError::Misaligned`] and
    /// [`NorError::Protected`]. Then [`NorError::StaysBusy`], [`NorError::Gone`],
    /// [`NorError::Interrupted`], or an error of the bus.
    pub fn erase(&mut self, range: Range<u64>, observer: Observer<'_>) -> Result<(), NorError> {
        let len = self.check_erase(&range)?;
        if len == 0 {
            return Ok(());
        }
        self.check_protection(&range)?;
        if len == self.geometry.size {
            self.operation(Self::erase_chip)?;
            return go_on(observer, len);
        }
        let mut address = range.start;
        while address < range.end {
            let erase = self.largest_erase(address, range.end - address);
            self.operation(|chip| chip.erase_block(address, &erase))?;
            address += u64::from(erase.size);
            go_on(observer, address - range.start)?;
        }
        Ok(())
    }

    /// The length of a range that can be erased.
    fn check_erase(&self, range: &Range<u64>) -> Result<u64, NorError> {
        let len = range.end.saturating_sub(range.start);
        self.check_range(range.start, len)?;
        let granularity = self.geometry.erase_size();
        for address in [range.start, range.start + len] {
            if address % u64::from(granularity) != 0 {
                return Err(NorError::Misaligned { address, granularity });
            }
        }
        Ok(len)
    }

    fn largest_erase(&self, address: u64, len: u64) -> EraseType {
        let fits = |erase: &EraseType| {
            let size = u64::from(erase.size);
            address.is_multiple_of(size) && size <= len
        };
        let found = self.geometry.erase_types().rev().find(fits);
        found.expect("the range is a multiple of the smallest block")
    }

    fn erase_block(&mut self, address: u64, erase: &EraseType) -> Result<(), NorError> {
        let command = self.command(erase.opcode, address);
        let mut enabled = self.write_enable(address)?;
        enabled.chip().port.run(&mut [Transfer::write(command.as_slice())])?;
        enabled.finish(erase.typical_ns, erase.max_ns, address)
    }

    fn erase_chip(&mut self) -> Result<(), NorError> {
        let Geometry { chip_erase_typical_ns, chip_erase_max_ns, .. } = self.geometry;
        let mut enabled = self.write_enable(0)?;
        enabled.chip().port.run(&mut [Transfer::write(&[CE])])?;
        enabled.finish(chip_erase_typical_ns, chip_erase_max_ns, 0)
    }

    /// Enters or leaves 4-byte mode, if the part needs it.
    fn four_byte_mode(&mut self, opcode: u8) -> Result<(), NorError> {
        if let Addressing::FourByteMode { write_enable } = self.geometry.addressing {
            if !write_enable {
                self.port.run(&mut [Transfer::write(&[opcode])])?;
                return Ok(());
            }
            self.port.run(&mut [Transfer::write(&[WREN])])?;
            self.port.run(&mut [Transfer::write(&[opcode])])?;
            // Parts differ in whether the latch stays set after the command.
            self.port.run(&mut [Transfer::write(&[WRDI])])?;
        }
        Ok(())
    }

    fn check_range(&self, offset: u64, len: u64) -> Result<(), NorError> {
        let size = self.geometry.size;
        match offset.checked_add(len) {
            Some(end) if end <= size => Ok(()),
            _ => Err(NorError::OutOfRange { offset, len, size }),
        }
    }

    fn check_protection(&mut self, range: &Range<u64>) -> Result<(), NorError> {
        self.protection()?.check(range)
    }

    /// An opcode and its address, most significant byte first.
    fn command(&self, opcode: u8, address: u64) -> Command {
        let width = usize::from(self.geometry.addressing.bytes());
        let mut bytes = [0; COMMAND_MAX];
        bytes[0] = opcode;
        bytes[1..=width].copy_from_slice(&(address as u32).to_be_bytes()[4 - width..]);
        Command { bytes, len: 1 + width }
    }
}

impl<P: Port, T: Timer> Drop for SpiNor<P, T> {
    fn drop(&mut self) {
        // On a shared chip each operation has left the mode itself; another user's operation may be
        // under way now.
        if self.sharing == Sharing::Alone {
            // A destructor cannot return the error.
            let _ = self.four_byte_mode(EX4B);
        }
    }
}

/// Opcode, four address bytes, one dummy byte.
const COMMAND_MAX: usize = 6;

struct Command {
    bytes: [u8; COMMAND_MAX],
    len: usize,
}

impl Command {
    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn read_id(port: &mut impl Port) -> Result<JedecId, NorError> {
    let mut both = [RDID, 0, 0, 0];
    port.run(&mut [Transfer::in_place(&mut both)])?;
    match both {
        [_, 0xff, 0xff, 0xff] => Err(NorError::NoChip),
        [_, 0, 0, 0] => Err(NorError::StuckLow),
        [_, id @ ..] => Ok(JedecId(id)),
    }
}

fn read_register(port: &mut impl Port, opcode: u8) -> Result<u8, NorError> {
    let mut both = [opcode, 0];
    port.run(&mut [Transfer::in_place(&mut both)])?;
    Ok(both[1])
}

fn read_sfdp(port: &mut impl Port, address: u32, into: &mut [u8]) -> Result<(), NorError> {
    let [_, a, b, c] = address.to_be_bytes();
    // Address, then 8 dummy clocks.
    port.run(&mut [Transfer::write(&[RDSFDP, a, b, c, 0]), Transfer::read(into)])?;
    Ok(())
}

fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    // Comparing whole slices first is many times faster, and most are equal.
    if one == other { None } else { one.iter().zip(other).position(|(a, b)| a != b) }
}

fn go_on(observer: Observer<'_>, done: u64) -> Result<(), NorError> {
    match observer(done) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(NorError::Interrupted { done }),
    }
}
