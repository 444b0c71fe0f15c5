//! Winbond's parts: W25Q256JV and W25Q32JV, W25Q256FV, W25Q01NW.
//!
//! Read first: W25Q256JV datasheet (Winbond, revision I) and W25Q32JV datasheet (Winbond, revision
//! F), of each sections 7 (status registers), 8 (instructions) and 9.6 (AC characteristics).
//! Sections cited below are the W25Q256JV's unless they say otherwise.

use super::*;

/// W25Q256JV sections 8.1.2 to 8.1.4 (instruction set tables 1 to 3), standard SPI only.
/// fR, the limit of 03h and 13h, is from section 9.6.
const W25Q256JV_COMMANDS: &[&[Command]] =
    &[W25Q256JV_OWN, ENTER_B7, EXIT_E9, EXTENDED_ADDRESS, WRITE_STATUS_2];
const W25Q256JV_OWN: &[Command] = &[
    command(0x06, Op::WriteEnable),
    command(0x04, Op::WriteDisable),
    command(0x05, Op::ReadStatus(StatusRegister::One)),
    command(0x35, Op::ReadStatus(StatusRegister::Two)),
    command(0x15, Op::ReadStatus(StatusRegister::Three)),
    command(0x01, Op::WriteStatus),
    command(0x9f, Op::ReadJedecId),
    command(0x90, Op::ReadId),
    command(0x4b, Op::ReadUniqueId),
    command(0xab, Op::ReleasePowerDown),
    command(0xb9, Op::PowerDown),
    command(0x5a, Op::ReadSfdp(AddressWidth::Three)),
    slow_read(0x03, AddressWidth::ByMode, 50_000_000),
    slow_read(0x13, AddressWidth::Four, 50_000_000),
    fast_read(0x0b, AddressWidth::ByMode),
    fast_read(0x0c, AddressWidth::Four),
    command(0x02, Op::PageProgram(AddressWidth::ByMode)),
    command(0x12, Op::PageProgram(AddressWidth::Four)),
    command(0x20, Op::Erase(AddressWidth::ByMode, EraseUnit::Block(4 * KIB))),
    command(0x21, Op::Erase(AddressWidth::Four, EraseUnit::Block(4 * KIB))),
    command(0x52, Op::Erase(AddressWidth::ByMode, EraseUnit::Block(32 * KIB))),
    command(0xd8, Op::Erase(AddressWidth::ByMode, EraseUnit::Block(64 * KIB))),
    command(0xdc, Op::Erase(AddressWidth::Four, EraseUnit::Block(64 * KIB))),
    command(0xc7, Op::ChipErase),
    command(0x60, Op::ChipErase),
    command(0x66, Op::EnableReset),
    command(0x99, Op::Reset),
];

/// W25Q32JV section 8.1.2 (instruction set table 1), standard SPI only.
const W25Q32JV_COMMANDS: &[Command] = &[
    command(0x06, Op::WriteEnable),
    command(0x04, Op::WriteDisable),
    command(0x05, Op::ReadStatus(StatusRegister::One)),
    command(0x35, Op::ReadStatus(StatusRegister::Two)),
    command(0x15, Op::ReadStatus(StatusRegister::Three)),
    command(0x01, Op::WriteStatus),
    command(0x9f, Op::ReadJedecId),
    command(0x90, Op::ReadId),
    command(0x4b, Op::ReadUniqueId),
    command(0xab, Op::ReleasePowerDown),
    command(0xb9, Op::PowerDown),
    command(0x5a, Op::ReadSfdp(AddressWidth::Three)),
    slow_read(0x03, AddressWidth::Three, 50_000_000),
    fast_read(0x0b, AddressWidth::Three),
    command(0x02, Op::PageProgram(AddressWidth::Three)),
    command(0x20, Op::Erase(AddressWidth::Three, EraseUnit::Block(4 * KIB))),
    command(0x52, Op::Erase(AddressWidth::Three, EraseUnit::Block(32 * KIB))),
    command(0xd8, Op::Erase(AddressWidth::Three, EraseUnit::Block(64 * KIB))),
    command(0xc7, Op::ChipErase),
    command(0x60, Op::ChipErase),
    command(0x66, Op::EnableReset),
    command(0x99, Op::Reset),
];

/// An arbitrary number. All bytes differ, so that a shifted answer is detected.
const UNIQUE_ID: [u8; 8] = [0xd1, 0x64, 0x38, 0x5b, 0x2c, 0x97, 0x0e, 0xa3];

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
            unique_id: Some(UNIQUE_ID),
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
                block256_erase: Span::ZERO,
                chip_erase: Span::new(80 * PS_PER_S, 400 * PS_PER_S), // tCE
                write_status: Span::new(10 * PS_PER_MS, 15 * PS_PER_MS), // tW
                reset: Span::new(30 * PS_PER_US, 30 * PS_PER_US),     // tRST, a maximum only
                release_power_down: Span::new(3 * PS_PER_US, 3 * PS_PER_US), // tRES1, likewise
            },
            source: "W25Q256JV datasheet, revision I; SFDP of a W25Q512JV with another density",
            beyond_sfdp: "extended address register, CMP",
            // Read JEDEC ID returns three bytes; the datasheet does not say what follows.
            jedec_id_repeats: false,
            jedec_id_tail: &[],
            commands: W25Q256JV_COMMANDS,
            status: StatusLayout {
                // Section 7.1: TB, BP3..BP0; CMP, LB3..LB1, QE; WPS, DRV1, DRV0 and ADP are not modelled.
                writable: [0x7c, 0x7a, 0],
                one_time_2: 0x38, // Section 7.1: LB3..LB1 are one-time programmable.
                write_bytes: 2,   // Section 8.2.5; one byte leaves register 2 as it is.
                one_byte_clears_2: false,
                busy: 1 << 0,
                // Nothing protected; QE set in the order codes ending in IQ; driver strength
                // bits DRV1, DRV0 set.
                factory: [0x00, 0x02, 0x60],
                volatile_1: false,
                aai_mode: 0,
                four_byte_mode: 1 << 0, // Section 7.1: ADS.
                refusal: Refusal::ClearsWel,
            },
            protection: Protection::TB_CMP, // Sections 7.1.16 and 7.1.17.
            sfdp: SfdpBytes::Built(Box::new(sfdp::w25q_jv(size))),
            ..Self::plain("W25Q256JV", [0xef, 0x40, 0x19], size)
        }
    }

    /// Winbond W25Q32JV: 4 MiB, 3-byte addresses, SFDP.
    #[must_use]
    pub fn w25q32jv() -> Self {
        let larger = Self::w25q256jv();
        let size = 4 * MIB; // Section 1: 32 Mbit.
        Self {
            name: "W25Q32JV",
            source: "W25Q32JV datasheet, revision F; SFDP as on the family's other small parts",
            beyond_sfdp: "CMP in status register 2",
            size,
            // Section 8.1.1, the order codes ending in IQ and JQ.
            jedec_id: [0xef, 0x40, 0x16],
            device_id: 0x15,
            // Section 9.6 of its datasheet has the W25Q256JV's times except for tCE.
            times: Times { chip_erase: Span::new(10 * PS_PER_S, 50 * PS_PER_S), ..larger.times },
            commands: &[W25Q32JV_COMMANDS, WRITE_STATUS_2],
            status: StatusLayout {
                four_byte_mode: 0, // No such mode. 7Ch is SEC, TB, BP2..BP0 here.
                ..larger.status
            },
            protection: Protection::SEC_TB_CMP, // Section 7.1, memory protection tables.
            sfdp: SfdpBytes::Built(Box::new(sfdp::w25q32jv(size))),
            ..larger
        }
    }

    /// Winbond W25Q256FV: the JV's older sister with the same id. Its SFDP is of the first edition, and of the
    /// dedicated 4-byte opcodes it has only the reads. After E9h its extended address register holds 1, so that
    /// 3-byte addresses reach the second 16 MiB.
    #[must_use]
    pub fn w25q256fv() -> Self {
        let later = Self::w25q256jv();
        Self {
            name: "W25Q256FV",
            source: "W25Q256FV datasheet, revision I; Linux winbond.c (EAR after E9h); SFDP constructed: header \
                     00h 01h and nine words as the family's",
            beyond_sfdp: "extended address register holds 1 after E9h; no 12h, 21h, DCh",
            limits: limits(104_000_000),
            commands: &[
                COMMON,
                READ_PROGRAM,
                ERASES,
                CHIP_ERASE,
                READ_4B,
                FAST_READ_4B,
                ENTER_B7,
                EXIT_E9_BANK_1,
                EXTENDED_ADDRESS,
                READ_STATUS_2,
                WRITE_STATUS_2,
                STATUS_3,
                RESET,
                POWER_DOWN,
                IDS,
            ],
            sfdp: SfdpBytes::Pieces(&[
                (0x00, "53464450000101ff 00000109800000ff"),
                (
                    0x80,
                    "e520f3ff ffffff0f 44eb086b 083b42bb feffffff ffff0000 ffff40eb 0c200f52 10d800ff",
                ),
            ]),
            ..later
        }
    }

    /// Winbond W25Q01NW: 128 MiB at 1.8 V, 3- and 4-byte addresses.
    #[must_use]
    pub fn w25q01nw() -> Self {
        let size = 128 * MIB;
        Self {
            source: "SFDP: linux-mtd; CMP and the registers: W25Q01NW datasheet",
            beyond_sfdp: "CMP in status register 2",
            commands: W25Q256JV_COMMANDS,
            status: Self::w25q256jv().status,
            protection: Protection::TB_CMP,
            limits: limits(133_000_000),
            sfdp: SfdpBytes::Pieces(&[
                (0x00, "53464450060101ff 00060110800000ff 84000102d00000ff"),
                (
                    0x80,
                    "e520fbff ffffff3f 44eb086b 083b42bb feffffff ffff0000 ffff40eb 0c200f52 \
                     10d80000 3652b500 82ea14e2 e9637633 7a757a75 f7bdd55c 19f75dff e970f9a5",
                ),
                (0xd0, "ff0af0ff 21ffdcff"),
            ]),
            ..Self::plain("W25Q01NW", [0xef, 0x80, 0x21], size)
        }
    }
}

#[cfg(test)]
mod tests {
    use core::ops::Range;

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
    fn w25q32jv_protection_follows_the_datasheet_table() {
        let part = Part::w25q32jv();
        let all = 0..0x40_0000;
        // Rows of section 7.1, memory protection tables: (CMP, SEC, TB, BP2..BP0), first and last address.
        let rows = [
            (0, 0, 0, 0b001, 0x3f_0000..0x40_0000),
            (0, 0, 0, 0b010, 0x3e_0000..0x40_0000),
            (0, 0, 0, 0b011, 0x3c_0000..0x40_0000),
            (0, 0, 0, 0b100, 0x38_0000..0x40_0000),
            (0, 0, 0, 0b101, 0x30_0000..0x40_0000),
            (0, 0, 0, 0b110, 0x20_0000..0x40_0000),
            (0, 0, 1, 0b001, 0..0x1_0000),
            (0, 0, 1, 0b110, 0..0x20_0000),
            (0, 0, 0, 0b111, all.clone()),
            (0, 1, 1, 0b111, all.clone()),
            (0, 1, 0, 0b001, 0x3f_f000..0x40_0000),
            (0, 1, 0, 0b010, 0x3f_e000..0x40_0000),
            (0, 1, 0, 0b011, 0x3f_c000..0x40_0000),
            (0, 1, 0, 0b100, 0x3f_8000..0x40_0000),
            (0, 1, 0, 0b101, 0x3f_8000..0x40_0000),
            (0, 1, 1, 0b001, 0..0x1000),
            (0, 1, 1, 0b100, 0..0x8000),
            (1, 0, 0, 0b000, all),
            (1, 0, 0, 0b001, 0..0x3f_0000),
            (1, 0, 1, 0b110, 0x20_0000..0x40_0000),
            (1, 1, 0, 0b001, 0..0x3f_f000),
            (1, 1, 1, 0b101, 0x8000..0x40_0000),
        ];
        for (cmp, sec, tb, bp, range) in rows {
            let got = part.protected(sec << 6 | tb << 5 | bp << 2, cmp << 6);
            assert_eq!(got, range, "CMP {cmp} SEC {sec} TB {tb} BP {bp:03b}");
        }
        assert!(part.protected(0x60, 0).is_empty());
        assert!(part.protected(0x1c, 0x40).is_empty());
    }
}
