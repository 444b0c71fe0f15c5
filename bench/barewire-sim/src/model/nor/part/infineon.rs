//! Infineon's (Cypress's, Spansion's) later parts: S25FL064L, S25FS128S, S25FS512S, S25FS256T.
//!
//! Read first: S25FS-S datasheet (Cypress, 002-00368 and 002-00488): *Address space maps* (hybrid sectors),
//! configuration registers 1 to 3, RDAR, WRAR, P4E, SE; linux-mtd, *spi-nor: spansion: Add SMPT fixup for S25FS512S*
//! (M. Vasut, T. Ambarus, T. Kuwano, October 2025), which has the S25FS512S's sector map, its registers as read from a
//! chip and the dummy byte of 65h; U-Boot's fixes for the S25FS512S (T. Kuwano), for the page that wraps at 256.
//! S25FS256T: linux-mtd and U-Boot (T. Kuwano, 2022). S25FL064L: Zephyr issue 63390.
//!
//! P4E (20h) on a sector that is larger than 4 KiB is not executed and sets no error bit. SE (D8h) on a block
//! under 4 KiB sectors leaves these as they are.

use super::*;

/// S25FS-S: status register 2 (07h), the configuration register, CLSR by both opcodes, sectors and blocks of the map.
const FS_S_COMMANDS: &[Command] = &[
    command(0x07, Op::ReadStatus(StatusRegister::Three)),
    command(0x30, Op::ClearStatus),
    command(0x82, Op::ClearStatus),
    command(0x20, Op::Erase(AddressWidth::ByMode, EraseUnit::Parameter)),
    command(0x21, Op::Erase(AddressWidth::Four, EraseUnit::Parameter)),
    command(0xd8, Op::Erase(AddressWidth::ByMode, EraseUnit::OfMap)),
    command(0xdc, Op::Erase(AddressWidth::Four, EraseUnit::OfMap)),
];

/// S25FS256T: uniform blocks of 128 KiB as delivered, no 4 KiB sectors, no 0Ch.
const FS256T_COMMANDS: &[Command] = &[
    command(0x82, Op::ClearStatus),
    erase(0xd8, AddressWidth::ByMode, 128 * KIB),
    erase(0xdc, AddressWidth::Four, 128 * KIB),
];

impl Part {
    fn s25fs_s(name: &'static str, jedec_id: [u8; 3], size: usize, block: usize) -> Self {
        let plain = Self::plain(name, jedec_id, size);
        Self {
            limits: limits(133_000_000),
            commands: &[
                COMMON,
                READ_PROGRAM,
                CHIP_ERASE,
                READ_4B,
                FAST_READ_4B,
                PROGRAM_4B,
                ENTER_B7,
                READ_STATUS_2,
                ANY_REGISTER,
                RESET,
                FS_S_COMMANDS,
            ],
            times: Times {
                sector_erase: Span::new(240 * PS_PER_MS, 725 * PS_PER_MS),
                block256_erase: Span::new(930 * PS_PER_MS, 2_900 * PS_PER_MS),
                ..plain.times
            },
            status: StatusLayout {
                // Status register 1: SRWD, BP2..BP0; configuration register 1: TBPROT, TBPARM, QUAD.
                writable: [0x9c, 0x26, 0],
                one_time_2: 0x24,
                write_bytes: 2,
                refusal: Refusal::Errors(spansion::P_ERR_E_ERR),
                ..plain.status
            },
            protection: Protection::TBPROT,
            map: EraseMap::Parameters(block),
            ..plain
        }
    }

    /// Cypress S25FS512S: blocks of 256 KiB, eight 4 KiB sectors at one end. Its SFDP tells pages of 512 bytes, and
    /// they wrap at 256. Its configuration register 3 reads 0, as reported of newer chips: then none of the maps in its
    /// SFDP is selected, because each has bit 1 set.
    #[must_use]
    pub fn s25fs512s() -> Self {
        Self {
            source: "sector map: linux-mtd, October 2025 (M. Vasut); rest of the SFDP constructed from datasheet 002-00488",
            beyond_sfdp: "page wraps at 256, told 512; register 3 selects none of its maps; error bits keep WIP set",
            jedec_id_tail: &[0x4d, 0x00, 0x81],
            sfdp: SfdpBytes::Pieces(&[
                (0x00, "53464450060102ff 00060110201100ff 81000110601100ff 84000102c01100ff"),
                (
                    0x1120,
                    "e7fff3ff ffffff1f 44eb086b 083b80bb feffffff ffffffff ffff44eb 0c2010d8 \
                     12d800ff e11a1e01 912500e3 ffffffff ffffffff f7a2d55c 00f65dff e938f8a1",
                ),
                (
                    0x1160,
                    "fc65ff08 04000000 fc65ff04 02000000 fd65ff02 04000000 \
                     fe0102ff f17f0000 f47f0300 f4fffb03 \
                     fe0302ff f4fffb03 f47f0300 f17f0000 \
                     ff0500ff f4ffff03",
                ),
                (0x11c0, "6beef0ff 21dcdcff"),
            ]),
            ..Self::s25fs_s("S25FS512S", [0x01, 0x02, 0x20], 64 * MIB, 256 * KIB)
        }
    }

    /// Cypress S25FS128S: blocks of 64 KiB, eight 4 KiB sectors at one end.
    #[must_use]
    pub fn s25fs128s() -> Self {
        Self {
            source: "datasheet 002-00368, from which the SFDP is constructed",
            beyond_sfdp: "page wraps at 256, told 512; error bits keep WIP set until 30h",
            jedec_id_tail: &[0x4d, 0x01, 0x81],
            sfdp: SfdpBytes::Pieces(&[
                (0x00, "53464450060102ff 00060110201100ff 8100011a601100ff 84000102e01100ff"),
                (
                    0x1120,
                    "e7fff3ff ffffff07 44eb086b 083b80bb feffffff ffffffff ffff44eb 0c2010d8 \
                     12d800ff e1721d01 912500e0 ffffffff ffffffff f7a2d55c 00f65dff e938f8a1",
                ),
                (
                    0x1160,
                    "fc65ff08 04000000 fc65ff04 02000000 fd65ff02 04000000 \
                     fe0002ff f17f0000 f27f0000 f2fffe00 \
                     fe0202ff f2fffe00 f27f0000 f17f0000 \
                     fe0400ff f2ffff00 \
                     fe0102ff f17f0000 f47f0300 f4fffb00 \
                     fe0302ff f4fffb00 f47f0300 f17f0000 \
                     ff0500ff f4ffff00",
                ),
                (0x11e0, "6beef0ff 21dcdcff"),
            ]),
            ..Self::s25fs_s("S25FS128S", [0x01, 0x20, 0x18], 16 * MIB, 64 * KIB)
        }
    }

    /// Infineon S25FS256T: 4-byte addresses at power-up, blocks of 128 KiB. Its SFDP names no way out of 4-byte
    /// mode; B8h is one.
    #[must_use]
    pub fn s25fs256t() -> Self {
        let plain = Self::plain("S25FS256T", [0x34, 0x2b, 0x19], 32 * MIB);
        Self {
            source: "SFDP, blocks and address mode: linux-mtd and U-Boot (T. Kuwano, 2022); B8h: Linux spansion.c",
            beyond_sfdp: "blocks of 128 KiB only; 4-byte mode at power-up; error bits keep WIP set until 82h",
            jedec_id_tail: &[0x0f, 0x08, 0x90],
            commands: &[
                COMMON,
                READ_PROGRAM,
                CHIP_ERASE,
                READ_4B,
                PROGRAM_4B,
                ENTER_B7,
                EXIT_B8,
                READ_STATUS_2,
                ANY_REGISTER,
                RESET,
                POWER_DOWN,
                FS256T_COMMANDS,
            ],
            status: StatusLayout {
                // Status register 1: STCFWR, LBPROT2..LBPROT0; configuration register 1: TBPROT, QUADIT.
                writable: [0x9c, 0x22, 0],
                one_time_2: 0x20,
                factory: [0, 0x02, 0], // Quad mode is on as delivered.
                write_bytes: 2,
                refusal: Refusal::Errors(spansion::P_ERR_E_ERR),
                ..plain.status
            },
            protection: Protection::TBPROT,
            four_byte_at_power_up: true,
            any_register_dummy: 0,
            sfdp: SfdpBytes::Pieces(&[
                (0x00, "53464450080101ff 00000114000100ff 84000102500100ff"),
                (
                    0x100,
                    "e7ffe2ff ffffff0f 48eb086b ffffffff eeffffff ffff00ff ffff00ff 11d810d8 00ff00ff 321cfeff \
                     71e9ffe1 ec031c60 7a757a75 f766805c 00d65dff f938c0a1 00000000 00000000 00000000 ffffffff",
                ),
                (0x150, "710600fe dcdcffff"),
            ]),
            ..plain
        }
    }

    /// Infineon S25FL064L: 8 MiB with 4-byte mode, in which 5Ah has four address bytes too. Its bits P_ERR and E_ERR
    /// (07h) are not modelled: a refused change leaves WEL set and nothing else.
    #[must_use]
    pub fn s25fl064l() -> Self {
        let plain = Self::plain("S25FL064L", [0x01, 0x60, 0x17], 8 * MIB);
        Self {
            source: "Zephyr issue 63390 (5Ah); datasheet 002-12878, from which the SFDP is constructed",
            beyond_sfdp: "5Ah takes 4 address bytes in 4-byte mode",
            commands: &[
                COMMON_SFDP_BY_MODE,
                READ_PROGRAM,
                ERASES,
                CHIP_ERASE,
                ALL_4B,
                ENTER_B7,
                EXIT_E9,
                READ_STATUS_2,
                RESET,
                POWER_DOWN,
            ],
            status: StatusLayout { writable: [0xfc, 0x42, 0], write_bytes: 2, ..plain.status },
            protection: Protection::SEC_TB_CMP,
            sfdp: SfdpBytes::Pieces(&[
                (0x00, "53464450060101ff 00060110300000ff 84000102700000ff"),
                (
                    0x30,
                    "e520fbff ffffff03 44eb086b 083b88bb feffffff ffffffff ffff44eb 0c200f52 \
                     10d800ff 330a0a01 822400c3 ffffffff ffffffff f7a2d55c 00f65dff e970f8a1",
                ),
                (0x70, "ff0ff0ff 215cdcff"),
            ]),
            ..plain
        }
    }
}
