//! Boya's (BoHong's) part: BH25Q128AS.
//!
//! Read first: its SFDP, published with OpenWrt's support for it. flashrom lists the part as B.25Q128AS with Winbond's
//! small layout: BP2..BP0, TB, SEC and CMP.

use super::*;

impl Part {
    /// Boya BH25Q128AS: 16 MiB. Its SFDP is of the first edition, so it does not say how the second status register is
    /// written. Here 01h with one byte clears it, as the standard's requirement 001b has it: the reading that loses
    /// most.
    #[must_use]
    pub fn bh25q128as() -> Self {
        let plain = Self::plain("BH25Q128AS", [0x68, 0x40, 0x18], 16 * MIB);
        Self {
            source: "SFDP: OpenWrt; status registers: flashrom",
            beyond_sfdp: "CMP in status register 2, which 01h with one byte clears",
            commands: &[
                COMMON,
                READ_PROGRAM,
                ERASES,
                CHIP_ERASE,
                READ_STATUS_2,
                WRITE_STATUS_2,
                RESET,
                POWER_DOWN,
            ],
            status: StatusLayout {
                writable: [0x7c, 0x42, 0], // SEC, TB, BP2..BP0; CMP, QE.
                factory: [0, 0x02, 0],
                write_bytes: 2,
                one_byte_clears_2: true,
                refusal: Refusal::ClearsWel,
                ..plain.status
            },
            protection: Protection::SEC_TB_CMP,
            sfdp: SfdpBytes::Pieces(&[
                (0x00, "53464450000101ff 00000109300000ff 68000103600000ff"),
                (
                    0x30,
                    "e520f1ff ffffff07 44eb086b 083b42bb eeffffff ffff00ff ffff44eb 0c200f52 10d800ff",
                ),
            ]),
            ..plain
        }
    }
}
