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
//!    types and where each of them holds, address width and times; for parts without SFDP a table does.
//!    Contradictions and gaps are [noted](Geometry::notes), and refused where they matter; [`Assume`] overrides it.
//! 2. Write enable is a guard: the driver checks that the latch was set, and clears it again in
//!    every case.
//! 3. Busy: the driver sleeps the typical time, then polls at intervals of an eighth of it, and
//!    gives up after the datasheet's maximum. If a part's times are unknown, it polls from the
//!    beginning. A status of all ones means that the chip no longer drives MISO ([`NorError::Gone`]).
//! 4. "Done" means seen: erased or programmed data is read back, unless that is [switched
//!    off](SpiNor::set_read_back). A command that the chip reports as failed, or ignores, is an error.
//! 5. Write: [`SpiNor::write`] reads first. It skips data that is already there, and programs without
//!    erasing where bits are only cleared.
//! 6. Addresses: chips above 16 MiB are addressed by their 4-byte opcodes or, if they have none, in
//!    4-byte mode, which the driver leaves when it is dropped (`mode.rs`).
//! 7. Protection: a lock that a part sets at each power-up is opened before the first change. A protection
//!    that a user has set makes the change fail, and is cleared only on request (`protection/`).
//! 8. Operations: commands that must not be interleaved with other users' are one
//!    [operation](Port::begin): a read; the erase of a block; the read, erase, programs and read
//!    back of a sector. On a shared chip each operation waits until the chip is ready, enters
//!    4-byte mode if needed, and leaves it.
//!
//! # Not supported
//! - A chip that another user has put into power-down, QPI or continuous read mode.
//! - Dual, quad and DTR reads.
//! - Security registers; per-block locks other than those of the SST26 family; suspend.
//! - The bulk erase of a stack's dies (C4h): stacks are erased block by block.
//! - A non-volatile configuration register as the way into 4-byte mode (B1h): it lasts, and was not asked for.

mod address;
mod assume;
#[cfg(feature = "embedded-storage-async")]
mod async_storage;
mod erase;
mod error;
mod fault;
mod geometry;
mod guard;
mod layout;
mod mode;
mod notes;
mod opcode;
mod open;
mod operation;
mod part;
mod protection;
pub mod sfdp;
mod status;
mod storage;
mod symptom;
#[cfg(test)]
mod tests;
mod wait;
mod write;

pub use address::{Addressing, Enter, Exit};
pub use assume::Assume;
#[cfg(feature = "embedded-storage-async")]
pub use async_storage::AsyncStorage;
pub use error::NorError;
pub use fault::{Operation, Report};
pub use geometry::{Block, EraseType, Geometry, JedecId, Programming, REGIONS_MAX, Region};
pub use layout::Layout;
pub use notes::{Note, Notes};
pub use protection::Protection;
pub use sfdp::SfdpError;
pub use status::StatusForm;
pub use storage::Storage;
pub use write::{Written, no_observer};

use core::ops::{ControlFlow, Range};

use super::{Port, Sharing, longest_data};
use crate::spi::Transfer;
use crate::time::Timer;
use opcode::{FAST_READ, FAST_READ_4B, RDSR, READ, READ_4B};

/// Status register: busy.
const BUSY: u8 = 1 << 0;
/// Status register: write enable latch.
const WEL: u8 = 1 << 1;

/// Called with the number of bytes done; decides whether to continue.
pub type Observer<'o> = &'o mut dyn FnMut(u64) -> ControlFlow<()>;

/// A flash chip whose identity was checked.
#[derive(Debug)]
pub struct SpiNor<P: Port, T: Timer> {
    port: P,
    timer: T,
    id: JedecId,
    geometry: Geometry,
    fast_read: bool,
    sharing: Sharing,
    read_back: bool,
    /// A change was begun and is not known to be over.
    unsettled: bool,
    /// The status of a change in this operation that left the latch set.
    ignored: Option<u8>,
    /// The content of the extended address register, if it is known.
    upper: Option<u8>,
    /// The lock that an SST26 part sets at power-up was opened.
    unlocked: bool,
}

impl<P: Port, T: Timer> SpiNor<P, T> {
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

    /// Sets whether erased or programmed data is read back and compared, which is on by default. If it is
    /// off, only the write enable latch shows that the chip ignored a change.
    pub fn set_read_back(&mut self, on: bool) {
        self.read_back = on;
    }

    /// Fills `into` from `offset`.
    ///
    /// # Errors
    /// [`NorError::OutOfRange`] and [`NorError::OutOfReach`], before anything is read,
    /// [`NorError::Occupied`], or an error of the bus.
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
        let (mut at, mut rest) = (offset, into);
        while !rest.is_empty() {
            let len = self.longest_read(at, rest.len());
            let (piece, after) = rest.split_at_mut(len);
            self.fetch_piece(at, piece)?;
            at += len as u64;
            rest = after;
        }
        Ok(())
    }

    /// How many of `len` bytes from `at` one message reads.
    fn longest_read(&self, at: u64, len: usize) -> usize {
        let until_end = usize::try_from(self.read_end(at) - at).unwrap_or(usize::MAX);
        len.min(longest_data(&self.port)).min(until_end)
    }

    fn fetch_piece(&mut self, offset: u64, into: &mut [u8]) -> Result<(), NorError> {
        self.reach(offset)?;
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

    /// The range of that many bytes, if it is within reach.
    fn check_range(&self, offset: u64, len: u64) -> Result<Range<u64>, NorError> {
        let Geometry { size, reach, .. } = self.geometry;
        match offset.checked_add(len) {
            Some(end) if end <= reach => Ok(offset..end),
            Some(end) if end <= size => Err(NorError::OutOfReach { offset, len, reach }),
            _ => Err(NorError::OutOfRange { offset, len, size }),
        }
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
            let _ = self.leave();
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

fn read_register(port: &mut impl Port, opcode: u8) -> Result<u8, NorError> {
    let mut both = [opcode, 0];
    port.run(&mut [Transfer::in_place(&mut both)])?;
    Ok(both[1])
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
