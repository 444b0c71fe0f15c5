//! The flash chips as data: sizes, opcodes, times and protection, from their datasheets.
//!
//! Read first: the datasheets named in each vendor's file: `winbond.rs`, `sst.rs`, `spansion.rs`.
//! Revisions number their tables differently, so tables are cited by name.
//!
//! A [`Part`] has no behaviour: the state machine in `../mod.rs` implements each [`Op`], so two
//! parts differ only in their tables. This file defines the tables' types.
//!
//! Not supported:
//! - the dual, quad, QPI and DTR instructions;
//! - security registers and OTP arrays;
//! - suspend and resume;
//! - individual block locks and the advanced sector protection;
//! - the extended address register of the W25Q256JV (3-byte addresses reach its first 16 MiB);
//! - writing only status register 2 (31h) or 3 (11h), and volatile status register writes, of the
//!   W25Q parts;
//! - the S25FL512S's latency code, FREEZE, BPNV, AutoBoot, ECC and BRAC (B9h), and the rest of its
//!   ID-CFI;
//! - the WP# and HOLD# pins (both held high).

mod spansion;
mod sst;
mod winbond;

use core::ops::Range;

use super::sfdp::Sfdp;
use crate::chip::{PS_PER_NS, Ps, WireLimits};

const PS_PER_US: Ps = 1_000 * PS_PER_NS;
const PS_PER_MS: Ps = 1_000 * PS_PER_US;
const PS_PER_S: Ps = 1_000 * PS_PER_MS;

const MIB: usize = 1 << 20;

/// The duration of an internal operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The datasheet's typical time, which the model takes.
    pub typical_ps: Ps,
    /// The datasheet's maximum.
    pub max_ps: Ps,
}

impl Span {
    const ZERO: Self = Self::new(0, 0);

    const fn new(typical_ps: Ps, max_ps: Ps) -> Self {
        Self { typical_ps, max_ps }
    }
}

/// The times of a part's internal operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// One page, byte or word program.
    pub program: Span,
    /// One 4 KiB sector erase.
    pub sector_erase: Span,
    /// One 32 KiB block erase.
    pub block32_erase: Span,
    /// One 64 KiB block erase.
    pub block64_erase: Span,
    /// One 256 KiB block erase.
    pub block256_erase: Span,
    /// One erase of the whole array.
    pub chip_erase: Span,
    /// One write of the status register.
    pub write_status: Span,
    /// From a software reset until the chip accepts a command.
    pub reset: Span,
    /// From the release from power-down until the chip accepts a command.
    pub release_power_down: Span,
}

/// A flash chip's description.
#[derive(Clone, Debug)]
pub struct Part {
    /// The vendor's name of the part.
    pub name: &'static str,
    /// The size of the array in bytes; a power of two.
    pub size: usize,
    /// The largest number of bytes in a program command, within an aligned page of that size.
    pub page_size: usize,
    /// The answer to 9Fh: manufacturer, memory type, capacity.
    pub jedec_id: [u8; 3],
    /// The device id in the answers to 90h and ABh.
    pub device_id: u8,
    /// The answer to 4Bh, if the part has it. On silicon every chip has its own.
    pub unique_id: Option<[u8; 8]>,
    /// The datasheet's limits for the wire.
    pub limits: WireLimits,
    /// The durations of the internal operations.
    pub times: Times,
    /// The answer to 9Fh repeats after its third byte. Otherwise MISO is not driven after it.
    pub(super) jedec_id_repeats: bool,
    /// The bytes after the third in the answer to 9Fh, before MISO is no longer driven.
    pub(super) jedec_id_tail: &'static [u8],
    pub(super) commands: &'static [Command],
    pub(super) status: StatusLayout,
    pub(super) protection: Protection,
    pub(super) sfdp: Option<Sfdp>,
}

/// The writable bits of the status registers, and their initial values.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatusLayout {
    /// Bits of register 1 that WRSR writes.
    pub(super) writable_1: u8,
    /// Bits of register 2 that the second byte of WRSR writes; 0 where WRSR takes one byte.
    pub(super) writable_2: u8,
    /// Bits of register 2 that can be set but never cleared again.
    pub(super) one_time_2: u8,
    /// Registers 1 to 3 as delivered.
    pub(super) factory: [u8; 3],
    /// Register 1 is volatile.
    pub(super) volatile_1: bool,
    /// Register 1 shows AAI mode in this bit.
    pub(super) aai_mode: u8,
    /// Register 3 shows 4-byte mode in this bit.
    pub(super) four_byte_mode: u8,
    /// The bits of register 1 that report a failed operation. They stay set, with BUSY, until they
    /// are cleared. `None` if a protected target only clears WEL.
    pub(super) errors: Option<ErrorBits>,
}

/// The bits of register 1 for each kind of failed operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct ErrorBits {
    pub(super) program: u8,
    pub(super) erase: u8,
}

/// How the protection bits select the protected range.
#[derive(Clone, Copy, Debug)]
pub(super) enum Protection {
    /// W25Q256JV sections 7.1.16 and 7.1.17: BP3..BP0, TB and CMP.
    TopBottom,
    /// SST25VF016B, software status register block protection: BP2..BP0 from the top, BP3 without
    /// effect.
    Top,
    /// W25Q32JV section 7.1, memory protection tables: BP2..BP0 in 64ths of the array, or in 4 KiB sectors with
    /// SEC; TB and CMP.
    SectorTopBottom,
    /// S25FL512S, block protection: BP2..BP0 in 64ths of the array, TBPROT in the configuration
    /// register.
    Fraction,
}

/// The width of a command's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressWidth {
    /// 3 bytes, or 4 in 4-byte mode.
    ByMode,
    /// Always 3 bytes.
    Three,
    /// Always 4 bytes.
    Four,
}

/// The range that an erase command erases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EraseUnit {
    Sector4K,
    Block32K,
    Block64K,
    Block256K,
    Chip,
}

/// The status register that a command reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusRegister {
    One,
    Two,
    Three,
}

/// The function of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    WriteEnable,
    WriteDisable,
    EnableWriteStatus,
    WriteStatus,
    ReadStatus(StatusRegister),
    ReadJedecId,
    /// Four dummy bytes, five in 4-byte mode, then 64 bits.
    ReadUniqueId,
    /// Three address bytes, then manufacturer and device id alternately.
    ReadId,
    /// Wakes the chip. After three dummy bytes it reads the device id.
    ReleasePowerDown,
    ReadSfdp,
    Read {
        address: AddressWidth,
        dummy_bytes: u8,
    },
    PageProgram(AddressWidth),
    ByteProgram,
    AaiWordProgram,
    Erase(AddressWidth, EraseUnit),
    ChipErase,
    EnterFourByteMode,
    ExitFourByteMode,
    EnableReset,
    Reset,
    /// A reset in one byte.
    SoftwareReset,
    PowerDown,
    /// Clears the error bits, and BUSY with them.
    ClearStatus,
    /// Reads the bank register: the upper address bits for 3-byte commands, and 4-byte mode.
    ReadBank,
    WriteBank,
}

impl Op {
    /// The width of the address, if the part has a choice.
    pub(super) fn address(self) -> Option<AddressWidth> {
        match self {
            Self::Read { address, .. } | Self::PageProgram(address) | Self::Erase(address, _) => {
                Some(address)
            }
            _ => None,
        }
    }
}

/// One opcode of a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    pub(super) opcode: u8,
    pub(super) op: Op,
    /// The command's own limit, if it is below the part's.
    pub(super) max_clock_hz: Option<u32>,
}

const fn command(opcode: u8, op: Op) -> Command {
    Command { opcode, op, max_clock_hz: None }
}

const fn slow_read(opcode: u8, address: AddressWidth, max_clock_hz: u32) -> Command {
    Command { opcode, op: Op::Read { address, dummy_bytes: 0 }, max_clock_hz: Some(max_clock_hz) }
}

const fn fast_read(opcode: u8, address: AddressWidth) -> Command {
    let dummy_bytes = 1;
    command(opcode, Op::Read { address, dummy_bytes })
}

impl Part {
    /// The part with the datasheet's maximum time for every operation.
    #[must_use]
    pub fn at_max_times(mut self) -> Self {
        let times = &mut self.times;
        for span in [
            &mut times.program,
            &mut times.sector_erase,
            &mut times.block32_erase,
            &mut times.block64_erase,
            &mut times.block256_erase,
            &mut times.chip_erase,
            &mut times.write_status,
            &mut times.reset,
            &mut times.release_power_down,
        ] {
            span.typical_ps = span.max_ps;
        }
        self
    }

    /// The bytes that these status registers protect from program and erase.
    pub(super) fn protected(&self, status_1: u8, status_2: u8) -> Range<usize> {
        const SECTOR: usize = 4 << 10;
        const SECTORS_MAX: usize = 32 << 10;
        const BLOCK: usize = 64 << 10;
        /// TB of the W25Q256JV; SEC of the W25Q32JV, whose TB is the bit below.
        const BIT_6: u8 = 1 << 6;
        const TB: u8 = 1 << 5;
        const CMP: u8 = 1 << 6;
        const TBPROT: u8 = 1 << 5;

        let bp_2_0 = status_1 >> 2 & 0x7;
        let fraction = match bp_2_0 {
            0 => 0,
            level => self.size >> (7 - level),
        };
        let protected = match (self.protection, bp_2_0) {
            (Protection::TopBottom, _) => match status_1 >> 2 & 0xf {
                0 => 0,
                level @ ..=9 => BLOCK << (level - 1),
                _ => self.size,
            },
            (Protection::Top, 0) => 0,
            (Protection::Top, level @ ..=5) => BLOCK << (level - 1),
            (Protection::Top, _) => self.size,
            (Protection::SectorTopBottom, level @ 1..=6) if status_1 & BIT_6 != 0 => {
                (SECTOR << (level - 1)).min(SECTORS_MAX)
            }
            (Protection::SectorTopBottom | Protection::Fraction, _) => fraction,
        };
        let (from_bottom, complement) = match self.protection {
            Protection::TopBottom => (status_1 & BIT_6 != 0, status_2 & CMP != 0),
            Protection::Top => (false, false),
            Protection::SectorTopBottom => (status_1 & TB != 0, status_2 & CMP != 0),
            Protection::Fraction => (status_2 & TBPROT != 0, false),
        };
        // The complement of a range at one end is a range at the other end.
        match (from_bottom, complement) {
            (false, false) => self.size - protected..self.size,
            (false, true) => 0..self.size - protected,
            (true, false) => 0..protected,
            (true, true) => protected..self.size,
        }
    }

    /// The number of bytes an erase command clears, and its duration.
    pub(super) fn erase(&self, unit: EraseUnit) -> (usize, Span) {
        match unit {
            EraseUnit::Sector4K => (4 << 10, self.times.sector_erase),
            EraseUnit::Block32K => (32 << 10, self.times.block32_erase),
            EraseUnit::Block64K => (64 << 10, self.times.block64_erase),
            EraseUnit::Block256K => (256 << 10, self.times.block256_erase),
            EraseUnit::Chip => (self.size, self.times.chip_erase),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_are_unique_and_sizes_powers_of_two() {
        let parts = [Part::w25q256jv(), Part::w25q32jv(), Part::sst25vf016b(), Part::s25fl512s()];
        for part in parts {
            assert!(part.size.is_power_of_two());
            assert!(part.page_size.is_power_of_two());
            let mut opcodes: Vec<u8> = part.commands.iter().map(|c| c.opcode).collect();
            opcodes.sort_unstable();
            opcodes.dedup();
            assert_eq!(opcodes.len(), part.commands.len(), "{}", part.name);
        }
    }
}
