//! Macronix's parts: MX25L3233F, MX25R6435F, MX25UW6345G.
//!
//! Read first: the datasheets of these names (Macronix): status register, configuration register, WRSR, *Protected area
//! sizes*. BP3 is bit 5 and QE bit 6 of the status register, TB bit 3 of the configuration register, which 15h reads and
//! the second byte of 01h writes; flashrom prints these locks the same way.
//!
//! Whether WEL is cleared when a protected target is refused is not known here: it stays set.
//!
//! Not supported: the second byte that 15h reads on the MX25R6435F; the octal mode of the MX25UW6345G, and its
//! configuration register 2 (71h, 72h).

use super::*;

const WRITABLE: [u8; 3] = [0xfc, 0x0f, 0]; // SRWD, QE, BP3..BP0; TB, drive strength.
const TB: u8 = 1 << 3; // One-time programmable.

impl Part {
    fn macronix(name: &'static str, jedec_id: [u8; 3], size: usize) -> Self {
        let plain = Self::plain(name, jedec_id, size);
        Self {
            beyond_sfdp: "BP3 is bit 5, QE bit 6",
            commands: &[COMMON, READ_PROGRAM, ERASES, CHIP_ERASE, CONFIGURATION, RESET, POWER_DOWN],
            status: StatusLayout {
                writable: WRITABLE,
                one_time_2: TB,
                write_bytes: 2,
                ..plain.status
            },
            protection: Protection::TB_IN_CONFIGURATION,
            ..plain
        }
    }

    /// Macronix MX25L3233F: 4 MiB.
    #[must_use]
    pub fn mx25l3233f() -> Self {
        Self {
            source: "SFDP: linux-mtd; BP3: flashrom; MX25L3233F datasheet",
            device_id: 0x15,
            sfdp: SfdpBytes::Pieces(&[
                (0x00, "53464450000101ff 00000109300000ff c2000104600000ff"),
                (
                    0x30,
                    "e520f1ff ffffff01 44eb086b 083b04bb eeffffff ffff00ff ffff00ff 0c200f52 10d800ff",
                ),
            ]),
            ..Self::macronix("MX25L3233F", [0xc2, 0x20, 0x16], 4 * MIB)
        }
    }

    /// Macronix MX25R6435F: 8 MiB. Its SFDP claims every opcode of the 4-byte table and every way into 4-byte mode
    /// (all ones). The part has none of them.
    #[must_use]
    pub fn mx25r6435f() -> Self {
        let macronix = Self::macronix("MX25R6435F", [0xc2, 0x28, 0x17], 8 * MIB);
        Self {
            source: "SFDP: linux-mtd; MX25R6435F datasheet",
            beyond_sfdp: "no 4-byte mode or opcode, though FFh grants all; BP3 is bit 5",
            limits: limits(80_000_000),
            status: StatusLayout {
                // The third byte of 01h is configuration register 2: the high performance mode.
                writable: [0xfc, 0x08, 0x02],
                write_bytes: 3,
                ..macronix.status
            },
            sfdp: SfdpBytes::Pieces(&[
                (0x00, "53464450060102ff 00060110300000ff c2000104100100ff 84000102c00000ff"),
                (
                    0x30,
                    "e520f1ff ffffff03 44eb086b 083b04bb eeffffff ffff00ff ffff00ff 0c200f52 \
                     10d800ff 2372f500 82ed04cc 44836844 30b030b0 f7c4d55c 00be29ff f0d0ffff",
                ),
            ]),
            ..macronix
        }
    }

    /// Macronix MX25UW6345G: 8 MiB, octal. In SPI mode it has 3-byte opcodes and dedicated 4-byte ones, and no
    /// 4-byte mode: so its SFDP says, and no other source is known.
    #[must_use]
    pub fn mx25uw6345g() -> Self {
        Self {
            source: "SFDP: linux-mtd; opcodes as it says",
            beyond_sfdp: "BP3 is bit 5",
            limits: limits(133_000_000),
            commands: &[
                COMMON,
                READ_PROGRAM,
                CHIP_ERASE,
                OCTAL_ERASES,
                READ_4B,
                FAST_READ_4B,
                PROGRAM_4B,
                ERASE_4K_4B,
                ERASE_64K_4B,
                CONFIGURATION,
                RESET,
                POWER_DOWN,
            ],
            sfdp: SfdpBytes::Pieces(&[
                (
                    0x00,
                    "53464450080104fd 00070114400000ff 8701011c900000ff 0a000108000100ff 05000105200100ff \
                     84000102340100ff 0000000000000000",
                ),
                (
                    0x40,
                    "e5208aff ffffff03 00ff00ff 00ff00ff eeffffff ffff00ff ffff00ff 0c2010d8 00ff00ff 8b790100 \
                     8f1200c4 cc046746 30b030b0 f4bdd55c 000000ff 10100020 00000000",
                ),
                (0x134, "43060f00 21dcffff"),
            ]),
            ..Self::macronix("MX25UW6345G", [0xc2, 0x84, 0x37], 8 * MIB)
        }
    }
}

/// No 32 KiB blocks.
const OCTAL_ERASES: &[Command] =
    &[erase(0x20, AddressWidth::ByMode, 4 * KIB), erase(0xd8, AddressWidth::ByMode, 64 * KIB)];
