//! Spansion's part: S25FL512S.
//!
//! Read first: S25FL512S datasheet (Spansion, S25FL512S_00; later Cypress and Infineon, 001-98284),
//! chapters *Registers*, *Data protection* (block protection), *Commands* (the command summary),
//! *Timing specifications* (SDR AC characteristics) and *Embedded algorithm performance*, and the
//! ID-CFI address map.
//!
//! A program or an erase of a protected sector sets P_ERR or E_ERR, and WIP stays set with it until
//! CLSR. So a driver that only polls WIP waits for ever. A bulk erase is ignored while any block
//! protection bit is set. There is no power-down and no SFDP. 3-byte commands address the 16 MiB
//! that the bank address register selects. With its bit EXTADD set, they have 4-byte addresses.

use super::*;

/// Command summary, serial commands only.
const S25FL512S_COMMANDS: &[Command] = &[
    command(0x06, Op::WriteEnable),
    command(0x04, Op::WriteDisable),
    command(0x05, Op::ReadStatus(StatusRegister::One)),
    command(0x07, Op::ReadStatus(StatusRegister::Three)),
    command(0x35, Op::ReadStatus(StatusRegister::Two)),
    command(0x01, Op::WriteStatus),
    command(0x30, Op::ClearStatus),
    command(0x9f, Op::ReadJedecId),
    command(0x90, Op::ReadId),
    command(0xab, Op::ReleasePowerDown),
    slow_read(0x03, AddressWidth::ByMode, 50_000_000),
    slow_read(0x13, AddressWidth::Four, 50_000_000),
    fast_read(0x0b, AddressWidth::ByMode),
    fast_read(0x0c, AddressWidth::Four),
    command(0x02, Op::PageProgram(AddressWidth::ByMode)),
    command(0x12, Op::PageProgram(AddressWidth::Four)),
    command(0xd8, Op::Erase(AddressWidth::ByMode, EraseUnit::Block(256 * KIB))),
    command(0xdc, Op::Erase(AddressWidth::Four, EraseUnit::Block(256 * KIB))),
    command(0x60, Op::ChipErase),
    command(0xc7, Op::ChipErase),
    command(0xf0, Op::SoftwareReset),
];

/// Status register 1: P_ERR, E_ERR.
pub(super) const P_ERR_E_ERR: ErrorBits = ErrorBits { program: 1 << 6, erase: 1 << 5 };

impl Part {
    /// Spansion S25FL512S: 64 MiB in uniform sectors of 256 KiB, 3- and 4-byte addresses, no SFDP.
    #[must_use]
    pub fn s25fl512s() -> Self {
        Self {
            name: "S25FL512S",
            size: 64 * MIB, // Features: 512 Mbit.
            page_size: 512, // Features: 512-byte page programming buffer.
            // ID-CFI address map, 00h to 02h; REMS and RES, the device id.
            jedec_id: [0x01, 0x02, 0x20],
            device_id: 0x19,
            unique_id: None,
            limits: WireLimits {
                modes: 0b1001,             // Features: modes 0 and 3.
                cs_setup_ns: 3,            // tCSS
                cs_hold_ns: 3,             // tCSH
                cs_inactive_ns: 50,        // tCS after program and erase; 10 after reads.
                max_clock_hz: 133_000_000, // FSCK,C: FAST_READ, 4FAST_READ and all but READ.
            },
            // Embedded algorithm performance.
            times: Times {
                program: Span::new(340 * PS_PER_US, 750 * PS_PER_US), // tPP, 512 bytes
                sector_erase: Span::ZERO,
                block32_erase: Span::ZERO,
                block64_erase: Span::ZERO,
                block256_erase: Span::new(520 * PS_PER_MS, 2_600 * PS_PER_MS), // tSE
                chip_erase: Span::new(103 * PS_PER_S, 460 * PS_PER_S),         // tBE
                // tW. Assumption: the longer of two figures known for the family (140 ms, 560 ms),
                // since a driver must wait for either. To be replaced by the part's own figure.
                write_status: Span::new(560 * PS_PER_MS, 2_000 * PS_PER_MS),
                reset: Span::new(35 * PS_PER_US, 35 * PS_PER_US), // tRPH, a maximum only
                release_power_down: Span::ZERO,                   // No such state.
            },
            jedec_id_repeats: false,
            // ID-CFI address map, 03h to 05h: length, uniform 256 KiB sectors, FL-S.
            jedec_id_tail: &[0x4d, 0x00, 0x80],
            source: "S25FL512S datasheet, 001-98284; no SFDP",
            beyond_sfdp: "error bits keep WIP set until 30h",
            commands: &[S25FL512S_COMMANDS, BANK],
            status: StatusLayout {
                // Status register 1: SRWD, BP2..BP0; configuration register: TBPROT, QUAD.
                writable: [0x9c, 0x22, 0],
                one_time_2: 0x20, // TBPROT.
                factory: [0, 0, 0],
                write_bytes: 2,
                one_byte_clears_2: false,
                volatile_1: false,
                busy: 1 << 0,
                aai_mode: 0,
                four_byte_mode: 0,
                refusal: Refusal::Errors(P_ERR_E_ERR),
            },
            protection: Protection::TBPROT,
            ..Self::plain("S25FL512S", [0x01, 0x02, 0x20], 64 * MIB)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s25fl512s_protection_follows_the_datasheet_table() {
        let part = Part::s25fl512s();
        const SIZE: usize = 64 << 20;
        // Upper and lower array start of protection: BP2..BP0 and the fraction.
        for (bp, fraction) in [(1, 64), (2, 32), (3, 16), (4, 8), (5, 4), (6, 2), (7, 1)] {
            assert_eq!(part.protected(bp << 2, 0), SIZE - SIZE / fraction..SIZE, "BP {bp:03b}");
            assert_eq!(part.protected(bp << 2, 0x20), 0..SIZE / fraction, "BP {bp:03b}");
        }
        assert!(part.protected(0, 0).is_empty());
        assert!(part.protected(0, 0x20).is_empty());
    }
}
