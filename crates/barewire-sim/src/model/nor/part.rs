//! What each flash chip is, as data: sizes, opcodes, times and protection, from its datasheet.
//!
//! Read first: W25Q256JV datasheet (Winbond, revision I), sections 7 (status registers), 8
//! (instructions) and 9.6 (AC characteristics); SST25VF016B datasheet (SST, S71271), the tables of
//! the software status register, its block protection, the device operation instructions and the
//! AC operating characteristics. Revisions number their tables differently, so names stand here.
//!
//! A [`Part`] says nothing about behaviour: the state machine in `mod.rs` gives each [`Op`] its
//! meaning, so two parts differ only in the tables here.
//!
//! Not supported: the dual, quad, QPI and DTR instructions, security registers, unique id,
//! suspend and resume, individual block locks, the extended address register (3-byte addresses
//! reach the first 16 MiB), writing status registers 2 (31h) and 3 (11h) alone, volatile status
//! register writes of the W25Q256JV, and the WP# and HOLD# pins (both held high).

use core::ops::Range;

use super::sfdp::{self, Sfdp};
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
    /// What the datasheet asks of the wire.
    pub limits: WireLimits,
    /// How long the internal operations take.
    pub times: Times,
    /// 9Fh starts over after its third byte, instead of leaving MISO undriven.
    pub(super) jedec_id_repeats: bool,
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
}

/// How the protection bits choose what is protected.
#[derive(Clone, Copy, Debug)]
pub(super) enum Protection {
    /// W25Q256JV sections 7.1.16 and 7.1.17: BP3..BP0, TB and CMP.
    TopBottom,
    /// SST25VF016B, software status register block protection: BP2..BP0 from the top, BP3 without
    /// effect.
    Top,
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
    PowerDown,
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

/// W25Q256JV sections 8.1.2 to 8.1.4 (instruction set tables 1 to 3), standard SPI only.
/// fR, the limit of 03h and 13h, is from section 9.6.
static W25Q256JV_COMMANDS: &[Command] = &[
    command(0x06, Op::WriteEnable),
    command(0x04, Op::WriteDisable),
    command(0x05, Op::ReadStatus(StatusRegister::One)),
    command(0x35, Op::ReadStatus(StatusRegister::Two)),
    command(0x15, Op::ReadStatus(StatusRegister::Three)),
    command(0x01, Op::WriteStatus),
    command(0x9f, Op::ReadJedecId),
    command(0x90, Op::ReadId),
    command(0xab, Op::ReleasePowerDown),
    command(0xb9, Op::PowerDown),
    command(0x5a, Op::ReadSfdp),
    slow_read(0x03, AddressWidth::ByMode, 50_000_000),
    slow_read(0x13, AddressWidth::Four, 50_000_000),
    fast_read(0x0b, AddressWidth::ByMode),
    fast_read(0x0c, AddressWidth::Four),
    command(0x02, Op::PageProgram(AddressWidth::ByMode)),
    command(0x12, Op::PageProgram(AddressWidth::Four)),
    command(0x20, Op::Erase(AddressWidth::ByMode, EraseUnit::Sector4K)),
    command(0x21, Op::Erase(AddressWidth::Four, EraseUnit::Sector4K)),
    command(0x52, Op::Erase(AddressWidth::ByMode, EraseUnit::Block32K)),
    command(0xd8, Op::Erase(AddressWidth::ByMode, EraseUnit::Block64K)),
    command(0xdc, Op::Erase(AddressWidth::Four, EraseUnit::Block64K)),
    command(0xc7, Op::ChipErase),
    command(0x60, Op::ChipErase),
    command(0xb7, Op::EnterFourByteMode),
    command(0xe9, Op::ExitFourByteMode),
    command(0x66, Op::EnableReset),
    command(0x99, Op::Reset),
];

/// SST25VF016B, device operation instructions, without the hardware busy output (70h,
/// 80h); the limit of READ is from the same table.
static SST25VF016B_COMMANDS: &[Command] = &[
    command(0x06, Op::WriteEnable),
    command(0x04, Op::WriteDisable),
    command(0x05, Op::ReadStatus(StatusRegister::One)),
    command(0x50, Op::EnableWriteStatus),
    command(0x01, Op::WriteStatus),
    command(0x9f, Op::ReadJedecId),
    command(0x90, Op::ReadId),
    command(0xab, Op::ReadId),
    slow_read(0x03, AddressWidth::Three, 25_000_000),
    fast_read(0x0b, AddressWidth::Three),
    command(0x02, Op::ByteProgram),
    command(0xad, Op::AaiWordProgram),
    command(0x20, Op::Erase(AddressWidth::Three, EraseUnit::Sector4K)),
    command(0x52, Op::Erase(AddressWidth::Three, EraseUnit::Block32K)),
    command(0xd8, Op::Erase(AddressWidth::Three, EraseUnit::Block64K)),
    command(0x60, Op::ChipErase),
    command(0xc7, Op::ChipErase),
];

impl Part {
    /// Winbond W25Q256JV: 32 MiB, 3- and 4-byte addresses, SFDP.
    #[must_use]
    pub fn w25q256jv() -> Self {
        let size = 32 * MIB; // Section 1: 256 Mbit.
        Self {
            name: "W25Q256JV",
            size,
            page_size: 256, // Section 1.
            // Section 8.1.1: MF7-MF0, ID15-ID0 of 9Fh; ID7-ID0 of 90h and ABh.
            jedec_id: [0xef, 0x40, 0x19],
            device_id: 0x18,
            limits: WireLimits {
                modes: 0b1001,             // Section 6.1.1: modes 0 and 3.
                cs_setup_ns: 5,            // Section 9.6, tSLCH.
                cs_hold_ns: 5,             // Section 9.6, tCHSH.
                cs_inactive_ns: 50,        // Section 9.6, tSHSL after erase, program or write.
                max_clock_hz: 133_000_000, // Section 9.6, FR (3.0 to 3.6 V).
            },
            // Section 9.6.
            times: Times {
                program: Span::new(400 * PS_PER_US, 3 * PS_PER_MS), // tPP
                sector_erase: Span::new(45 * PS_PER_MS, 400 * PS_PER_MS), // tSE
                block32_erase: Span::new(120 * PS_PER_MS, 1_600 * PS_PER_MS), // tBE1
                block64_erase: Span::new(150 * PS_PER_MS, 2_000 * PS_PER_MS), // tBE2
                chip_erase: Span::new(80 * PS_PER_S, 400 * PS_PER_S), // tCE
                write_status: Span::new(10 * PS_PER_MS, 15 * PS_PER_MS), // tW
                reset: Span::new(30 * PS_PER_US, 30 * PS_PER_US),   // tRST, a maximum only
                release_power_down: Span::new(3 * PS_PER_US, 3 * PS_PER_US), // tRES1, likewise
            },
            // Read JEDEC ID gives three bytes and does not say what follows them.
            jedec_id_repeats: false,
            commands: W25Q256JV_COMMANDS,
            status: StatusLayout {
                writable_1: 0x7c, // Section 7.1: TB, BP3..BP0.
                writable_2: 0x7a, // Section 7.1: CMP, LB3..LB1, QE.
                one_time_2: 0x38, // Section 7.1: LB3..LB1 are one-time programmable.
                // Nothing protected; QE set in the order codes ending in IQ; driver strength
                // bits DRV1, DRV0 set.
                factory: [0x00, 0x02, 0x60],
                volatile_1: false,
                aai_mode: 0,
            },
            protection: Protection::TopBottom,
            sfdp: Some(sfdp::w25q_jv(size)),
        }
    }

    /// SST SST25VF016B: 2 MiB, byte and AAI word programming, protected at power-up, no SFDP.
    #[must_use]
    pub fn sst25vf016b() -> Self {
        // Features: 18 ms typical; AC operating characteristics: TSE, TBE.
        let erase = Span::new(18 * PS_PER_MS, 25 * PS_PER_MS);
        Self {
            name: "SST25VF016B",
            size: 2 * MIB, // Features: 16 Mbit.
            page_size: 1,  // Device operation instructions: 02h carries one byte.
            // JEDEC Read-ID data and Read-ID data: manufacturer, type, capacity; device id.
            jedec_id: [0xbf, 0x25, 0x41],
            device_id: 0x41,
            limits: WireLimits {
                modes: 0b1001,            // Features: modes 0 and 3.
                cs_setup_ns: 5,           // AC operating characteristics, 50 MHz: TCES.
                cs_hold_ns: 5,            // TCEH.
                cs_inactive_ns: 50,       // TCPH.
                max_clock_hz: 50_000_000, // FCLK.
            },
            times: Times {
                // Features: 7 us typical; AC operating characteristics: TBP.
                program: Span::new(7 * PS_PER_US, 10 * PS_PER_US),
                sector_erase: erase,
                block32_erase: erase,
                block64_erase: erase,
                // Features: 35 ms typical; AC operating characteristics: TSCE.
                chip_erase: Span::new(35 * PS_PER_MS, 50 * PS_PER_MS),
                // WRSR: in effect when CE# rises, with no busy time given.
                write_status: Span::ZERO,
                // No such commands.
                reset: Span::ZERO,
                release_power_down: Span::ZERO,
            },
            // Figure "JEDEC Read-ID sequence": the stream goes on until CE# rises.
            jedec_id_repeats: true,
            commands: SST25VF016B_COMMANDS,
            status: StatusLayout {
                writable_1: 0xbc, // Software status register: BPL, BP3..BP0.
                writable_2: 0,
                one_time_2: 0,
                // Its column "default at power-up": BP2, BP1 and BP0 set, BP3 and BPL clear.
                factory: [0x1c, 0, 0],
                volatile_1: true,
                aai_mode: 0x40, // Software status register: bit 6.
            },
            protection: Protection::Top,
            sfdp: None,
        }
    }

    /// The same part at the slowest its datasheet allows: every operation takes its maximum.
    #[must_use]
    pub fn at_max_times(mut self) -> Self {
        let times = &mut self.times;
        for span in [
            &mut times.program,
            &mut times.sector_erase,
            &mut times.block32_erase,
            &mut times.block64_erase,
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
        const BLOCK: usize = 64 << 10;
        const TB: u8 = 1 << 6;
        const CMP: u8 = 1 << 6;

        let (level, levels_of_blocks) = match self.protection {
            Protection::TopBottom => ((status_1 >> 2) & 0xf, 9),
            Protection::Top => ((status_1 >> 2) & 0x7, 5),
        };
        let protected = match level {
            0 => 0,
            level if level <= levels_of_blocks => BLOCK << (level - 1),
            _ => self.size,
        };
        let (from_bottom, complement) = match self.protection {
            Protection::TopBottom => (status_1 & TB != 0, status_2 & CMP != 0),
            Protection::Top => (false, false),
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
            EraseUnit::Chip => (self.size, self.times.chip_erase),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Range<usize> = 0..0x200_0000;

    #[test]
    fn w25q256jv_protection_follows_the_datasheet_table() {
        let part = Part::w25q256jv();
        // Rows of sections 7.1.16 and 7.1.17: (CMP, TB, BP3..BP0), first and last address.
        let rows = [
            (0, 0, 0b0001, 0x1ff_0000..0x200_0000),
            (0, 0, 0b0010, 0x1fe_0000..0x200_0000),
            (0, 0, 0b0011, 0x1fc_0000..0x200_0000),
            (0, 0, 0b0100, 0x1f8_0000..0x200_0000),
            (0, 0, 0b0101, 0x1f0_0000..0x200_0000),
            (0, 0, 0b0110, 0x1e0_0000..0x200_0000),
            (0, 0, 0b0111, 0x1c0_0000..0x200_0000),
            (0, 0, 0b1000, 0x180_0000..0x200_0000),
            (0, 0, 0b1001, 0x100_0000..0x200_0000),
            (0, 1, 0b0001, 0..0x1_0000),
            (0, 1, 0b0101, 0..0x10_0000),
            (0, 1, 0b1001, 0..0x100_0000),
            (0, 0, 0b1010, ALL),
            (0, 1, 0b1011, ALL),
            (0, 0, 0b1100, ALL),
            (0, 1, 0b1101, ALL),
            (0, 0, 0b1110, ALL),
            (0, 1, 0b1111, ALL),
            (1, 0, 0b0001, 0..0x1ff_0000),
            (1, 0, 0b1001, 0..0x100_0000),
            (1, 1, 0b0010, 0x2_0000..0x200_0000),
            (1, 1, 0b1000, 0x80_0000..0x200_0000),
        ];
        for (cmp, tb, bp, range) in rows {
            let got = part.protected(tb << 6 | bp << 2, cmp << 6);
            assert_eq!(got, range, "CMP {cmp} TB {tb} BP {bp:04b}");
        }
        assert!(part.protected(0x00, 0).is_empty());
        assert!(part.protected(0x40, 0).is_empty());
        assert_eq!(part.protected(0x00, 0x40), ALL);
        assert!(part.protected(0x3c, 0x40).is_empty());
    }

    #[test]
    fn sst25vf016b_protection_follows_the_datasheet_table() {
        let part = Part::sst25vf016b();
        // Block protection table: BP2..BP0 and the first protected address.
        let firsts = [0x20_0000, 0x1f_0000, 0x1e_0000, 0x1c_0000, 0x18_0000, 0x10_0000, 0, 0];
        for (bp, first) in firsts.into_iter().enumerate() {
            for bp3 in [0, 0x20] {
                let range = part.protected((bp as u8) << 2 | bp3, 0);
                assert_eq!(range, first..0x20_0000, "BP {bp:03b}");
            }
        }
    }

    #[test]
    fn opcodes_are_unique_and_sizes_powers_of_two() {
        for part in [Part::w25q256jv(), Part::sst25vf016b()] {
            assert!(part.size.is_power_of_two());
            assert!(part.page_size.is_power_of_two());
            let mut opcodes: Vec<u8> = part.commands.iter().map(|c| c.opcode).collect();
            opcodes.sort_unstable();
            opcodes.dedup();
            assert_eq!(opcodes.len(), part.commands.len(), "{}", part.name);
        }
    }
}
