//! Zetta's part: ZD25Q128C.
//!
//! Read first: linux-mtd (M. Walle), which has its SFDP and tells that the density in it is wrong. Its registers are
//! taken to be those of the Winbond part whose id it answers; no source was at hand.

use super::*;

const PAGE_ERASE: &[Command] = &[erase(0x81, AddressWidth::Three, 256)];

impl Part {
    /// Zetta ZD25Q128C: 16 MiB, as its id byte 18h says; its SFDP says 2 MiB.
    #[must_use]
    pub fn zd25q128c() -> Self {
        let plain = Self::plain("ZD25Q128C", [0xef, 0x40, 0x18], 16 * MIB);
        Self {
            source: "SFDP and size: linux-mtd (M. Walle)",
            beyond_sfdp: "16 MiB, told 2 MiB; CMP in status register 2, which 01h with one byte clears",
            commands: &[
                COMMON,
                READ_PROGRAM,
                ERASES,
                PAGE_ERASE,
                CHIP_ERASE,
                READ_STATUS_2,
                WRITE_STATUS_2,
                RESET,
                POWER_DOWN,
            ],
            status: StatusLayout { factory: [0; 3], ..Self::bh25q128as().status },
            protection: Protection::SEC_TB_CMP,
            sfdp: SfdpBytes::Pieces(&[
                (0x00, "53464450000101ff 00000109300000ff b3000103600000ff"),
                (
                    0x30,
                    "e520f9ff ffffff00 44eb086b 083b80bb eeffffff ffff00ff ffff00ff 0c200f52 10d80881",
                ),
            ]),
            ..plain
        }
    }
}
