//! Block protection: what is protected, and how that is cleared.
//!
//! # Two kinds
//! - Lasting protection was set by a user. It is cleared when [`SpiNor::unprotect`] asks for it.
//! - The protection that a part sets at each power-up is opened before the first change, and noted
//!   ([`Note::LockOpened`](super::Note::LockOpened)).

mod write;

use core::ops::Range;

use super::layout::Layout;
use super::opcode::{RBPR, RDSR2, ULBPR};
use super::{NorError, Note, SpiNor, read_register};
use crate::chip::Port;
use crate::spi::Transfer;
use crate::time::Timer;

/// The bytes of the largest block protection register of the SST26 family (SST26VF064B).
const BPR_MAX: usize = 18;
/// The blocks of 8 KiB at each end, each with a read lock and a write lock.
const ENDS: usize = 4;
/// The longest time that ULBPR takes: none is given, so that of a status write.
const ULBPR_MAX_NS: u64 = 25_000_000;

/// The block protection, as the chip reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Protection {
    /// Status register 1.
    pub status: u8,
    /// Status register 2, if the layout needs it; otherwise 0.
    pub status_2: u8,
    /// The first protected address.
    pub start: u64,
    /// The address after the last protected one; equal to `start` if nothing is protected.
    pub end: u64,
    /// It is as the chip sets it at power-up, and gone with its power: the next change opens it.
    pub power_up: bool,
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
    pub(super) fn check(self, range: &Range<u64>) -> Result<(), NorError> {
        if self.covers_any(range) {
            let Self { status, start, end, .. } = self;
            return Err(NorError::Protected { start, end, status });
        }
        Ok(())
    }
}

/// The write-locked blocks of an SST26 part.
struct LockedBlocks {
    /// From the first to the last.
    range: Range<u64>,
    /// Whether all blocks are locked, as at power-up. If only some are, a user chose them.
    all: bool,
}

impl<P: Port, T: Timer> SpiNor<P, T> {
    /// The protected range.
    ///
    /// # Errors
    /// [`NorError::Occupied`], or an error of the bus.
    pub fn protection(&mut self) -> Result<Protection, NorError> {
        self.operation(Self::protection_now)
    }

    pub(super) fn protection_now(&mut self) -> Result<Protection, NorError> {
        let status = self.status_now()?;
        if self.geometry.protection == Layout::SstBlocks {
            // If the chip does not answer, assume the state after power-up, unless this driver has
            // unlocked it.
            let whole = if self.unlocked { 0..0 } else { 0..self.geometry.size };
            let LockedBlocks { range, all } =
                self.locked_blocks()?.unwrap_or(LockedBlocks { range: whole, all: true });
            let Range { start, end } = range;
            return Ok(Protection { status, status_2: 0, start, end, power_up: all });
        }
        let needed = self.geometry.protection.needs_status_2();
        let status_2 = if needed { read_register(&mut self.port, RDSR2)? } else { 0 };
        Ok(self.protection_of(status, status_2))
    }

    pub(super) fn protection_of(&self, status: u8, status_2: u8) -> Protection {
        let layout = self.geometry.protection;
        // All ones is no answer: the part has no such register.
        let status_2 = if status_2 == 0xff { 0 } else { status_2 };
        let Range { start, end } = layout.protected(status, status_2, self.geometry.size);
        let all = status & layout.bits() == layout.bits();
        let power_up = self.geometry.volatile_protection && all;
        Protection { status, status_2, start, end, power_up }
    }

    /// Opens the protection that the chip sets at power-up, and refuses to change protection that a user set.
    pub(super) fn check_protection(&mut self, range: &Range<u64>) -> Result<(), NorError> {
        self.operation(|chip| {
            let mut protection = chip.protection_now()?;
            let locked = protection.power_up && protection.covers_any(range);
            // A register that reads as zeros may be one that does not answer.
            let unsure = chip.geometry.protection == Layout::SstBlocks
                && protection.is_none()
                && !chip.unlocked;
            if locked || unsure {
                protection = chip.open_lock()?;
            }
            if locked {
                chip.geometry.notes.add(Note::LockOpened);
            }
            protection.check(range)
        })
    }

    /// Clears the block protection bits only.
    ///
    /// # Errors
    /// [`NorError::ProtectionUnknown`] if it is not known which bits those are, and one may be set;
    /// [`NorError::ProtectionStays`] if hardware keeps them set; [`NorError::StatusChanged`] if the chip changed
    /// another bit of its status registers; [`NorError::StaysBusy`]; [`NorError::Occupied`];
    /// [`NorError::WriteEnableRefused`]; an error of the bus.
    pub fn unprotect(&mut self) -> Result<(), NorError> {
        self.operation(|chip| {
            let protection = chip.protection_now()?;
            if protection.is_none() {
                return Ok(());
            }
            let Protection { status, .. } = chip.open_lock()?;
            if chip.protection_now()?.is_none() {
                Ok(())
            } else {
                Err(NorError::ProtectionStays { status })
            }
        })
    }

    /// Clears all protection. Returns what is left.
    fn open_lock(&mut self) -> Result<Protection, NorError> {
        match self.geometry.protection {
            Layout::Unknown => {
                return Err(NorError::ProtectionUnknown { status: self.status_now()? });
            }
            Layout::SstBlocks => {
                let mut enabled = self.write_enable(0)?;
                enabled.chip().port.run(&mut [Transfer::write(&[ULBPR])])?;
                enabled.finish(0, ULBPR_MAX_NS, 0)?;
                self.unlocked = true;
                // If the register does not answer, reading back after a change decides.
                let none = LockedBlocks { range: 0..0, all: false };
                let Range { start, end } = self.locked_blocks()?.unwrap_or(none).range;
                let status = self.status_now()?;
                return Ok(Protection { status, status_2: 0, start, end, power_up: false });
            }
            _ => self.clear_protection_bits()?,
        }
        self.protection_now()
    }

    /// The range from the first to the last write-locked block; `None` if the register does not answer.
    ///
    /// SST26VF064B datasheet, *Block-Protection Register*: most significant bit first; a read lock and a write
    /// lock for each block of 8 KiB at the top and then at the bottom, each from its upper end; the 32 KiB below
    /// the top and above the bottom; then the blocks of 64 KiB from the top.
    fn locked_blocks(&mut self) -> Result<Option<LockedBlocks>, NorError> {
        let size = self.geometry.size;
        let mut register = [0; BPR_MAX];
        let blocks = (size / (64 * KIB)) as usize;
        let bits = blocks + LOCKS_OF_ENDS;
        // The family has 2 to 8 MiB. Of another size the register's form is not known.
        if size % (64 * KIB) != 0 || blocks < 2 || bits > 8 * BPR_MAX {
            return Ok(None);
        }
        let register = &mut register[..bits.div_ceil(8)];
        self.port.run(&mut [Transfer::write(&[RBPR]), Transfer::read(register)])?;
        if register.iter().all(|&byte| byte == 0xff) {
            return Ok(None);
        }
        // Of the pairs the second is the write lock.
        let locks = |bit: &usize| *bit >= LOCKS_OF_ENDS || bit % 2 == 1;
        let set = |bit: &usize| register[bit / 8] >> (7 - bit % 8) & 1 == 1;
        let locked = (0..bits).filter(locks).filter(set).map(|bit| locked_block(size, bit));
        let around = |a: Range<u64>, b: Range<u64>| a.start.min(b.start)..a.end.max(b.end);
        let range = locked.reduce(around).unwrap_or(0..0);
        Ok(Some(LockedBlocks { range, all: (0..bits).filter(locks).all(|bit| set(&bit)) }))
    }
}

const KIB: u64 = 1 << 10;
/// The locks of the blocks of 8 KiB, two for each.
const LOCKS_OF_ENDS: usize = 4 * ENDS;

/// The block of a chip of `size` bytes that lock `bit` of the register is for.
fn locked_block(size: u64, bit: usize) -> Range<u64> {
    let at = |start: u64, len: u64| start..start + len;
    match bit {
        _ if bit < LOCKS_OF_ENDS / 2 => at(size - 8 * KIB * (bit as u64 / 2 + 1), 8 * KIB),
        _ if bit < LOCKS_OF_ENDS => at(8 * KIB * ((LOCKS_OF_ENDS - 1 - bit) as u64 / 2), 8 * KIB),
        LOCKS_OF_ENDS => at(size - 64 * KIB, 32 * KIB),
        _ if bit == LOCKS_OF_ENDS + 1 => at(32 * KIB, 32 * KIB),
        _ => at(size - 64 * KIB * (bit - LOCKS_OF_ENDS) as u64, 64 * KIB),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SST26VF064B datasheet, table *Block-Protection Register*, its first and last bits of each kind.
    #[test]
    fn each_lock_is_that_of_the_datasheets_block() {
        for (bit, first, last) in [
            (0, 0x7f_e000, 0x7f_ffff),
            (1, 0x7f_e000, 0x7f_ffff),
            (7, 0x7f_8000, 0x7f_9fff),
            (8, 0x6000, 0x7fff),
            (15, 0x0000, 0x1fff),
            (16, 0x7f_0000, 0x7f_7fff),
            (17, 0x8000, 0xffff),
            (18, 0x7e_0000, 0x7e_ffff),
            (143, 0x1_0000, 0x1_ffff),
        ] {
            assert_eq!(locked_block(8 << 20, bit), first..last + 1, "{bit}");
        }
    }
}
