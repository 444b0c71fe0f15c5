//! Erasing: by the largest blocks that fit, each seen to be blank.

use core::ops::Range;

use super::opcode::CE;
use super::{BUSY, Block, NorError, Observer, Region, SpiNor, WEL, go_on};
use crate::chip::Port;
use crate::spi::Transfer;
use crate::time::Timer;

/// The erased state.
pub(super) const ERASED: u8 = 0xff;
/// The bytes read back at once where there is no buffer of the caller's.
pub(super) const PIECE: usize = 512;

impl<P: Port, T: Timer> SpiNor<P, T> {
    /// Erases `range` by the largest blocks that fit, and reads back that it is blank. The whole chip is erased
    /// by its own command, and then block by block where it is not blank: some parts ignore that command.
    ///
    /// # Errors
    /// Before anything is erased: [`NorError::OutOfRange`], [`NorError::OutOfReach`], [`NorError::NoErase`],
    /// [`NorError::Misaligned`] and [`NorError::Protected`]. Then [`NorError::Failed`], [`NorError::Ignored`],
    /// [`NorError::Verify`], [`NorError::StaysBusy`], [`NorError::Gone`], [`NorError::Interrupted`], or an error of
    /// the bus.
    pub fn erase(&mut self, range: Range<u64>, observer: Observer<'_>) -> Result<(), NorError> {
        if self.check_erase(&range)? == 0 {
            return Ok(());
        }
        self.check_protection(&range)?;
        let whole = range == (0..self.geometry.size) && self.geometry.chip_erase;
        if whole {
            self.operation(Self::erase_chip)?;
            if !self.read_back {
                return go_on(observer, self.geometry.size);
            }
        }
        let mut at = range.start;
        while at < range.end {
            let block = self.block_from(at, range.end)?;
            self.operation(|chip| {
                if whole && chip.blank(&block)?.is_none() {
                    Ok(())
                } else {
                    chip.erase_block(&block)
                }
            })?;
            at = block.end();
            go_on(observer, at - range.start)?;
        }
        Ok(())
    }

    /// The length of a range that can be erased.
    pub(super) fn check_erase(&self, range: &Range<u64>) -> Result<u64, NorError> {
        let len = range.end.saturating_sub(range.start);
        let range = self.check_range(range.start, len)?;
        if len == 0 {
            return Ok(0);
        }
        let outside = |region: &Region| region.end <= range.start || range.end <= region.start;
        let mut within = self.geometry.regions().filter(|region| !outside(region));
        if let Some(region) = within.find(|region| region.erase_types == 0) {
            return Err(NorError::NoErase { address: region.start.max(range.start) });
        }
        for address in [range.start, range.end] {
            if !self.geometry.is_boundary(address) {
                let sector = self.geometry.sector_at(address);
                let granularity = sector.map_or(u32::MAX, |sector| sector.erase.size);
                return Err(NorError::Misaligned { address, granularity });
            }
        }
        Ok(len)
    }

    /// The largest block that begins at `at` and ends by `end`.
    pub(super) fn block_from(&self, at: u64, end: u64) -> Result<Block, NorError> {
        self.geometry.largest_from(at, end - at).ok_or(NorError::NoErase { address: at })
    }

    /// Erases a block, within an operation, and reads back that it is blank.
    pub(super) fn erase_block(&mut self, block: &Block) -> Result<(), NorError> {
        self.erase_block_unseen(block)?;
        if self.read_back { self.check_blank(block) } else { Ok(()) }
    }

    pub(super) fn erase_block_unseen(&mut self, block: &Block) -> Result<(), NorError> {
        let Block { start, erase, .. } = *block;
        self.reach(start)?;
        let command = self.command(erase.opcode, start);
        let mut enabled = self.write_enable(start)?;
        enabled.chip().port.run(&mut [Transfer::write(command.as_slice())])?;
        enabled.finish(erase.typical_ns, erase.max_ns, start)
    }

    /// # Errors
    /// [`NorError::Ignored`] or [`NorError::Verify`] at the first byte that is not blank.
    pub(super) fn check_blank(&mut self, block: &Block) -> Result<(), NorError> {
        match self.blank(block)? {
            None => Ok(()),
            Some((address, actual)) => Err(self.differs(address, ERASED, actual)),
        }
    }

    /// The first byte of a block that is not blank, and its place.
    fn blank(&mut self, block: &Block) -> Result<Option<(u64, u8)>, NorError> {
        let mut piece = [0; PIECE];
        let mut at = block.start;
        while at < block.end() {
            let len = (block.end() - at).min(PIECE as u64) as usize;
            let piece = &mut piece[..len];
            self.fetch(at, piece)?;
            if let Some(place) = first_set(piece) {
                return Ok(Some((at + place as u64, piece[place])));
            }
            at += len as u64;
        }
        Ok(None)
    }

    /// The error for a byte that is not what a change should have made it.
    pub(super) fn differs(&self, address: u64, expected: u8, actual: u8) -> NorError {
        match self.ignored {
            Some(status) => NorError::Ignored { address, status },
            None => NorError::Verify { address, expected, actual },
        }
    }

    fn erase_chip(&mut self) -> Result<(), NorError> {
        let (typical_ns, max_ns) =
            (self.geometry.chip_erase_typical_ns, self.geometry.chip_erase_max_ns);
        let mut enabled = self.write_enable(0)?;
        enabled.chip().port.run(&mut [Transfer::write(&[CE])])?;
        // A chip that ignores the command need not be waited for.
        let ignored = enabled.chip().status_now()? & (BUSY | WEL) == WEL;
        let typical_ns = if ignored { 0 } else { typical_ns };
        enabled.finish(typical_ns, max_ns, 0)
    }
}

/// The place of the first byte with a programmed bit.
fn first_set(bytes: &[u8]) -> Option<usize> {
    // Most buffers are blank, and a fold over all bytes is many times faster than a search.
    let all = bytes.iter().fold(ERASED, |all, byte| all & byte);
    if all == ERASED { None } else { bytes.iter().position(|&byte| byte != ERASED) }
}
