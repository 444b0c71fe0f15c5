//! The `embedded-storage` traits.

use embedded_storage::nor_flash::{
    ErrorType, MultiwriteNorFlash, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};

use super::{NorError, SpiNor, no_observer};
use crate::chip::Port;
use crate::time::Timer;

/// A flash chip for `embedded-storage`. There the smallest block is a compile-time constant of
/// `ERASE` bytes; it is checked against all regions of the chip here.
///
/// Unlike [`SpiNor::write`], a write here only programs: the caller must erase.
#[derive(Debug)]
pub struct Storage<P: Port, T: Timer, const ERASE: usize = 4096> {
    chip: SpiNor<P, T>,
}

impl<P: Port, T: Timer, const ERASE: usize> Storage<P, T, ERASE> {
    /// Takes the chip.
    ///
    /// # Errors
    /// [`NorError::Misaligned`] if the chip does not erase blocks of `ERASE` bytes everywhere.
    pub fn new(chip: SpiNor<P, T>) -> Result<Self, NorError> {
        let geometry = chip.geometry();
        let known = geometry.erase_types().any(|erase| erase.size as usize == ERASE);
        if known && geometry.erases_multiples_of(ERASE as u64) {
            Ok(Self { chip })
        } else {
            let granularity = chip.geometry().erase_size();
            Err(NorError::Misaligned { address: ERASE as u64, granularity })
        }
    }

    /// Returns the chip.
    pub fn release(self) -> SpiNor<P, T> {
        self.chip
    }
}

impl NorFlashError for NorError {
    fn kind(&self) -> NorFlashErrorKind {
        match self {
            NorError::Misaligned { .. } => NorFlashErrorKind::NotAligned,
            NorError::OutOfRange { .. } => NorFlashErrorKind::OutOfBounds,
            _ => NorFlashErrorKind::Other,
        }
    }
}

impl<P: Port, T: Timer, const ERASE: usize> ErrorType for Storage<P, T, ERASE> {
    type Error = NorError;
}

impl<P: Port, T: Timer, const ERASE: usize> ReadNorFlash for Storage<P, T, ERASE> {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorError> {
        self.chip.read(offset.into(), bytes)
    }

    fn capacity(&self) -> usize {
        usize::try_from(self.chip.size()).unwrap_or(usize::MAX)
    }
}

impl<P: Port, T: Timer, const ERASE: usize> NorFlash for Storage<P, T, ERASE> {
    const WRITE_SIZE: usize = 1;
    const ERASE_SIZE: usize = ERASE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), NorError> {
        self.chip.erase(from.into()..to.into(), &mut no_observer)
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorError> {
        self.chip.program_only(offset.into(), bytes)
    }
}

/// Programming twice clears more bits. This holds for every NOR chip the driver knows.
impl<P: Port, T: Timer, const ERASE: usize> MultiwriteNorFlash for Storage<P, T, ERASE> {}
