//! What each flash chip is, as data: sizes, opcodes, times and protection, from its datasheet.
//!
//! Read first: the datasheets that each maker's file names: `winbond.rs`, `sst.rs`, `spansion.rs`.
//! Revisions number their tables differently, so names stand there.
//!
//! A [`Part`] says nothing about behaviour: the state machine in `../mod.rs` gives each [`Op`] its
//! meaning, so two parts differ only in their tables. This file has what a table may say.
//!
//! Not supported: the dual, quad, QPI and DTR instructions, security registers and OTP arrays,
//! suspend and resume, individual block locks and the advanced sector protection, the extended
//! address register of the W25Q256JV (3-byte addresses reach its first 16 MiB), writing status
//! registers 2 (31h) and 3 (11h) alone, volatile status register writes of the W25Q parts, the
//! S25FL512S's latency code, FREEZE, BPNV, AutoBoot, ECC and BRAC (B9h), the rest of its ID-CFI,
//! and the WP# and HOLD# pins (both held high).

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

/// How long one internal operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// What the datasheet calls typical: the time the model takes.
    pub typical_ps: Ps,
    /// The longest the datasheet allows.
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
    /// From a software reset until the next command is heard.
    pub reset: Span,
    /// From the release from power-down until the next command is heard.
    pub release_power_down: Span,
}

/// A flash chip's description.
#[derive(Clone, Debug)]
pub struct Part {
    /// The maker's name of the part.
    pub name: &'static str,
    /// Bytes in the array; a power of two.
    pub size: usize,
    /// Bytes one program command may carry, within an aligned page of that size.
    pub page_size: usize,
    /// What 9Fh reads: manufacturer, memory type, capacity.
    pub jedec_id: [u8; 3],
    /// What 90h and ABh read as the device id.
    pub device_id: u8,
    /// What 4Bh reads, where the part has it; on silicon every chip's is its own.
    pub unique_id: Option<[u8; 8]>,
    /// What the datasheet asks of the wire.
    pub limits: WireLimits,
    /// How long the internal operations take.
    pub times: Times,
    /// 9Fh starts over after its third byte, instead of leaving MISO undriven.
    pub(super) jedec_id_repeats: bool,
    /// What 9Fh reads after its third byte, before it leaves MISO undriven.
    pub(super) jedec_id_tail: &'static [u8],
    pub(super) commands: &'static [Command],
    pub(super) status: StatusLayout,
    pub(super) protection: Protection,
    pub(super) sfdp: Option<Sfdp>,
}

/// Which bits of the status registers are there to be written, and what they are at first.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatusLayout {
    /// Bits of register 1 that WRSR writes.
    pub(super) writable_1: u8,
    /// Bits of register 2 that the second byte of WRSR writes; 0 where WRSR takes one byte.
    pub(super) writable_2: u8,
    /// Bits of register 2 that can be set but never cleared again.
    pub(super) one_time_2: u8,
    /// Registers 1 to 3 as they leave the factory.
    pub(super) factory: [u8; 3],
    /// Register 1 forgets what was written when power goes.
    pub(super) volatile_1: bool,
    /// Register 1 shows AAI mode in this bit.
    pub(super) aai_mode: u8,
    /// Register 3 shows 4-byte mode in this bit.
    pub(super) four_byte_mode: u8,
    /// Bits of register 1 in which a failed operation stays, with BUSY, until it is cleared;
    /// `None` where a protected target just clears WEL.
    pub(super) errors: Option<ErrorBits>,
}

/// Bits of register 1 that say which operation failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct ErrorBits {
    pub(super) program: u8,
    pub(super) erase: u8,
}

/// How the protection bits choose what is protected.
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

/// Where an address's length comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressWidth {
    /// 3 bytes, or 4 in 4-byte mode.
    ByMode,
    /// Always 3 bytes.
    Three,
    /// Always 4 bytes.
    Four,
}

/// What an erase command erases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EraseUnit {
    Sector4K,
    Block32K,
    Block64K,
    Block256K,
    Chip,
}

/// Which status register a command reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusRegister {
    One,
    Two,
    Three,
}

/// What a command does.
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
    /// Three address bytes, then manufacturer and device id in turn.
    ReadId,
    /// Wakes the chip; three dummy bytes on, it reads the device id.
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
    /// The upper address bits of 3-byte commands, and 4-byte mode.
    ReadBank,
    WriteBank,
}

impl Op {
    /// The width of the address that follows, where the part has a choice.
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
    /// The command's own limit, where it is below the part's.
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
    /// The same part at the slowest its datasheet allows: every operation takes its maximum.
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

    /// The bytes that the given status registers protect from program and erase.
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
        // The complement of a range at one end is a range at the other.
        match (from_bottom, complement) {
            (false, false) => self.size - protected..self.size,
            (false, true) => 0..self.size - protected,
            (true, false) => 0..protected,
            (true, true) => protected..self.size,
        }
    }

    /// Bytes an erase command clears, and how long it takes.
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
