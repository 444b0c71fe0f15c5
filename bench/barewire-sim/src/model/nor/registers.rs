//! The commands that change a flash chip's registers, its extended address and its block locks.
//!
//! Read first: `mod.rs`; JESD216, quad enable requirements and 4-byte address modes; W25Q256JV datasheet, section 8.2
//! (write status register, write extended address register); MT25Q datasheet (flag status register, non-volatile
//! configuration register); S25FS-S datasheet (RDAR, WRAR); SST26VF064B datasheet, *Block protection register*.
//!
//! A register write with a wrong number of bytes, or without WEL where the part demands it, changes nothing: WEL stays
//! as it is.

use core::ops::Range;

use super::Nor;
use super::part::{Command, EraseMap, Op, StatusRegister};
use crate::chip::Ps;

/// Bit 7 of the bank register: 4-byte mode.
const EXTADD: u8 = 1 << 7;

/// The flag status register, Micron: ready, failed, protected, 4-byte mode.
const READY: u8 = 1 << 7;
pub(super) const ERASE_FAILED: u8 = 1 << 5;
pub(super) const PROGRAM_FAILED: u8 = 1 << 4;
pub(super) const PROTECTED: u8 = 1 << 1;
const FOUR_BYTE_MODE: u8 = 1 << 0;

/// Registers of 65h and 71h from this address on are volatile. Below it are the non-volatile ones of the same
/// names. The model keeps one value for both.
pub(super) const VOLATILE: usize = 0x80_0000;
/// Configuration register 2 of these parts: the address length. The S25FS-S and the S25FS256T agree on it.
const ADDRESS_LENGTH: u8 = 1 << 7;

impl Nor {
    pub(super) fn write_register(&mut self, command: Command, at: Ps) {
        let Command { opcode, op, .. } = command;
        let needs = match op {
            Op::WriteStatus => 1..=self.part.status.write_bytes,
            Op::UnlockBlocks => 0..=0,
            Op::WriteNonvolatile => 2..=2,
            Op::WriteBlockProtection => self.locks.len()..=self.locks.len(),
            _ => 1..=1,
        };
        let count = self.data_count;
        if !needs.contains(&count) {
            let most = needs.end();
            return self.complain(format_args!(
                "register write ({opcode:02X}h) with {count} data bytes, {} to {most} are taken",
                needs.start()
            ));
        }
        let armed = op == Op::WriteStatus && self.status_write_armed;
        if op != Op::WriteBank && !self.write_enabled && !armed {
            return self
                .complain(format_args!("register write ({opcode:02X}h) without write enable"));
        }
        match op {
            Op::WriteStatus => {
                for register in 0..count {
                    self.set_register(register, self.data[register]);
                }
                if count == 1 && self.part.status.one_byte_clears_2 {
                    self.set_register(1, 0);
                }
            }
            Op::WriteOneStatus(StatusRegister::One) => self.set_register(0, self.data[0]),
            Op::WriteOneStatus(StatusRegister::Two) => self.set_register(1, self.data[0]),
            Op::WriteOneStatus(StatusRegister::Three) => self.set_register(2, self.data[0]),
            Op::WriteBank => {
                self.four_byte_mode = self.data[0] & EXTADD != 0;
                self.bank = self.data[0] & self.bank_mask();
                return;
            }
            // Takes effect at once. According to the datasheets it does not clear WEL.
            Op::WriteExtendedAddress => {
                self.bank = self.data[0] & self.bank_mask();
                return;
            }
            Op::WriteNonvolatile => {
                self.nonvolatile = u16::from_le_bytes([self.data[0], self.data[1]])
            }
            Op::WriteAnyRegister => self.write_any_register(),
            Op::WriteBlockProtection => self.locks.copy_from_slice(&self.data[..count]),
            Op::UnlockBlocks => self.locks.fill(0),
            _ => {}
        }
        let volatile = matches!(op, Op::WriteBlockProtection | Op::UnlockBlocks);
        let time_ps = if volatile { 0 } else { self.part.times.write_status.typical_ps };
        self.busy_until = Some(at.saturating_add(time_ps));
        self.end_disables_write = true;
        self.settle(at);
    }

    /// Writes what is writable of status register 1, 2 or 3 (0, 1, 2).
    pub(super) fn set_register(&mut self, register: usize, value: u8) {
        let layout = self.part.status;
        let writable = layout.writable[register];
        let once = if register == 1 { layout.one_time_2 } else { 0 };
        let kept = self.status[register] & (!writable | once);
        self.status[register] = kept | value & writable;
    }

    /// The bits of the bank or extended address register that select a place in the array.
    pub(super) fn bank_mask(&self) -> u8 {
        ((self.content.len() - 1) >> 24) as u8
    }

    pub(super) fn bank_register(&self) -> u8 {
        self.bank | if self.four_byte_mode { EXTADD } else { 0 }
    }

    /// Status register 3 with its mode bit.
    pub(super) fn status_3(&self) -> u8 {
        let mode = if self.four_byte_mode { self.part.status.four_byte_mode } else { 0 };
        self.status[2] | mode
    }

    /// The flag status register. A read that says ready ends the operation before it.
    pub(super) fn read_flag_status(&mut self) -> u8 {
        let mode = if self.four_byte_mode { FOUR_BYTE_MODE } else { 0 };
        if self.busy() {
            return self.flags | mode;
        }
        self.flag_status_unread = false;
        READY | self.flags | mode
    }

    /// The register at `address` of 65h; `None` is not driven.
    pub(super) fn register(&self, address: usize) -> Option<u8> {
        match address & !VOLATILE {
            0 => Some(self.status()),
            1 => Some(self.status_3()),
            2 => Some(self.status[1]),
            3 => {
                let mode = if self.four_byte_mode { ADDRESS_LENGTH } else { 0 };
                Some(self.configuration[0] & !ADDRESS_LENGTH | mode)
            }
            4 => Some(self.configuration[1]),
            // The S25FS256T's architecture configuration register: uniform blocks.
            6 => Some(0),
            _ => None,
        }
    }

    fn write_any_register(&mut self) {
        let value = self.data[0];
        match self.at & !VOLATILE {
            0 => self.set_register(0, value),
            2 => self.set_register(1, value),
            3 => {
                self.configuration[0] = value;
                self.four_byte_mode = value & ADDRESS_LENGTH != 0;
            }
            4 => self.configuration[1] = value,
            _ => {}
        }
    }

    /// Whether a lock of the block protection register covers any byte of `range`.
    pub(super) fn locks_any(&self, range: &Range<usize>) -> bool {
        let mut at = range.start;
        while !self.locks.is_empty() && at < range.end {
            let block = self.part.map_block(at, [0; 2]);
            if self.lock_bit(block.start).is_some_and(|bit| self.lock_is_set(bit)) {
                return true;
            }
            at = block.end;
        }
        false
    }

    fn lock_is_set(&self, bit: usize) -> bool {
        let from_the_end = self.locks.len().checked_sub(1 + bit / 8);
        from_the_end.is_some_and(|byte| self.locks[byte] >> (bit % 8) & 1 != 0)
    }

    /// The write lock of the block that begins at `start`, SST26VF064B: bit 0 upwards for its 64 KiB blocks from the
    /// bottom, then the lower and the upper 32 KiB block, then the lower and the upper 8 KiB blocks, each with a read
    /// lock above it.
    fn lock_bit(&self, start: usize) -> Option<usize> {
        let EraseMap::Runs(runs) = self.part.map else {
            return None;
        };
        let &[(low, small), (1, half), (blocks, block), (1, _), _] = runs else {
            return None;
        };
        let middle = low * small + half;
        let top = middle + blocks * block;
        Some(match start {
            _ if start < low * small => blocks + 2 + 2 * (start / small),
            _ if start < middle => blocks,
            _ if start < top => (start - middle) / block,
            _ if start < top + half => blocks + 1,
            _ => blocks + 2 + 2 * low + 2 * ((start - top - half) / small),
        })
    }
}
