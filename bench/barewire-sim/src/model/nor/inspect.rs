//! State of a flash chip that a test can inspect and a driver cannot, and chips in the state that
//! an earlier user left.
//!
//! Every answer is what the chip does, never what its SFDP says.

use core::ops::Range;

use super::part::{EraseUnit, Op};
use super::{Nor, WEL};
use crate::chip::Ps;

/// A state in which an earlier user left a chip. Fields that are `None` or 0 change nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// 4-byte mode entered or left.
    pub four_byte_mode: Option<bool>,
    /// Address bits 24 and up, in the extended address or the bank register.
    pub extended_address: Option<u8>,
    /// Status registers 1 to 3: their writable bits. One-time bits that are set stay set.
    pub status: [Option<u8>; 3],
    /// Configuration registers 2 and 3 of parts that read registers by address (65h).
    pub configuration: [Option<u8>; 2],
    /// WEL set or cleared.
    pub write_enabled: Option<bool>,
    /// Busy with an erase for this time from the chip's last edge, in picoseconds; 0: not busy.
    pub busy_for_ps: Ps,
    /// Error bits of status register 1, on parts that keep BUSY set with them.
    pub failed: u8,
    /// A change was made, and the flag status register (70h) was not read since, on parts that want it read.
    pub flag_status_unread: bool,
    /// The block protection register open (`false`) or as after power-up (`true`).
    pub locked: Option<bool>,
}

impl Nor {
    /// Leaves the chip as another user would have.
    pub fn leave(&mut self, left: &Left) {
        self.four_byte_mode = left.four_byte_mode.unwrap_or(self.four_byte_mode);
        self.bank = left.extended_address.unwrap_or(self.bank) & self.bank_mask();
        for (register, value) in left.status.into_iter().enumerate() {
            if let Some(value) = value {
                self.set_register(register, value);
            }
        }
        for (register, value) in self.configuration.iter_mut().zip(left.configuration) {
            *register = value.unwrap_or(*register);
        }
        self.write_enabled = left.write_enabled.unwrap_or(self.write_enabled);
        if left.busy_for_ps > 0 {
            self.write_enabled = true;
            self.start(self.now, left.busy_for_ps);
        }
        self.failed |= left.failed;
        self.flag_status_unread |= left.flag_status_unread && self.part.flag_status_must_be_read;
        match left.locked {
            Some(true) => self.locks = self.part.locks.to_vec(),
            Some(false) => self.locks.fill(0),
            None => {}
        }
    }

    /// Status register 1 as RDSR would read it, at the chip's last edge or bit.
    #[must_use]
    pub fn status(&self) -> u8 {
        let busy = if self.busy() { self.part.status.busy } else { 0 };
        let wel = if self.write_enabled { WEL } else { 0 };
        let aai = if self.aai_next.is_some() { self.part.status.aai_mode } else { 0 };
        self.status[0] | self.failed | busy | wel | aai
    }

    /// Status registers 1 to 3 as commands would read them. What a part calls them is in its datasheet: the second is
    /// the configuration register of Macronix's and Spansion's parts.
    #[must_use]
    pub fn status_registers(&self) -> [u8; 3] {
        [self.status(), self.status[1], self.status_3()]
    }

    /// Writes the writable bits of status register 1, as an earlier WRSR would have. If they are
    /// volatile (SST25VF016B), the next power cycle undoes it.
    pub fn set_status(&mut self, sr1: u8) {
        self.status[0] = sr1 & self.part.status.writable[0];
    }

    /// WEL, at the chip's last edge or bit.
    #[must_use]
    pub fn write_enabled(&self) -> bool {
        self.write_enabled
    }

    /// CS is active.
    #[must_use]
    pub fn selected(&self) -> bool {
        self.selected
    }

    /// The chip takes 4 address bytes for opcodes that follow the mode.
    #[must_use]
    pub fn four_byte_mode(&self) -> bool {
        self.four_byte_mode
    }

    /// Address bits 24 and up of 3-byte addresses: the extended address or bank register, without its mode bit.
    #[must_use]
    pub fn extended_address(&self) -> u8 {
        self.bank
    }

    /// The range that the status registers protect now.
    #[must_use]
    pub fn protected(&self) -> Range<usize> {
        self.part.protected(self.status[0], self.status[1])
    }

    /// The byte at `address` is locked beside the status registers (SST26).
    #[must_use]
    pub fn locked(&self, address: usize) -> bool {
        self.locks_any(&(address..address + 1))
    }

    /// Each erase opcode with an address that the chip obeys at `address` now, and the range that it erases.
    ///
    /// # Panics
    /// If `address` is not in the array.
    #[must_use]
    pub fn blocks_at(&self, address: usize) -> Vec<(u8, Range<usize>)> {
        assert!(address < self.content.len(), "{address:#x} is not in the array");
        let commands = self.part.commands();
        commands
            .filter_map(|command| match command.op {
                Op::Erase(_, unit) if unit != EraseUnit::Chip => {
                    Some((command.opcode, self.erased_by(unit, address)?))
                }
                _ => None,
            })
            .collect()
    }

    /// The smallest range that can be erased at `address` now.
    ///
    /// # Panics
    /// If `address` is not in the array.
    #[must_use]
    pub fn block_at(&self, address: usize) -> Range<usize> {
        let blocks = self.blocks_at(address).into_iter().map(|(_, range)| range);
        blocks.min_by_key(ExactSizeIterator::len).unwrap_or(0..self.content.len())
    }
}
