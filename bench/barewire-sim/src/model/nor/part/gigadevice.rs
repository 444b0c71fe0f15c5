//! GigaDevice's part: GD25LB512ME.
//!
//! Read first: GD25LB512ME datasheet (GigaDevice): status registers, *Protected area size*, extended address register.
//! SFDP: linux-mtd.

use super::*;

impl Part {
    /// GigaDevice GD25LB512ME: 64 MiB at 1.8 V, all dedicated 4-byte opcodes. Its SFDP has the reserved value 111b as the
    /// quad enable requirement, so it does not say how status registers are written: each by itself, 01h and 31h.
    #[must_use]
    pub fn gd25lb512me() -> Self {
        let plain = Self::plain("GD25LB512ME", [0xc8, 0x67, 0x1a], 64 * MIB);
        Self {
            source: "SFDP: linux-mtd; registers and CMP: GD25LB512ME datasheet",
            beyond_sfdp: "CMP in status register 2; extended address register",
            limits: limits(133_000_000),
            commands: &[
                COMMON,
                READ_PROGRAM,
                ERASES,
                CHIP_ERASE,
                ALL_4B,
                ENTER_B7,
                EXIT_E9,
                EXTENDED_ADDRESS,
                READ_STATUS_2,
                WRITE_STATUS_2,
                STATUS_3,
                RESET,
                POWER_DOWN,
            ],
            status: StatusLayout {
                writable: [0x7c, 0x42, 0], // BP4..BP0 (BP4 selects the bottom); CMP, QE.
                factory: [0, 0x02, 0],
                refusal: Refusal::ClearsWel,
                ..plain.status
            },
            protection: Protection::TB_CMP,
            sfdp: SfdpBytes::Pieces(&[
                (0x00, "53464450060102ff 00060110300000ff c8000103900000ff 84000102c00000ff"),
                (
                    0x30,
                    "e520eaff ffffff1f 44eb086b 003b00bb feffffff ffff00ff ffff44eb 0c200f52 \
                     10d800ff d531b1fe 83d61458 ec600633 7a757a75 04bdd55c 29067400 08500001",
                ),
                (0x90, "00205016 9df98156 d9c8ffff"),
                (0xc0, "f38ff0ff 215cdcff"),
            ]),
            ..plain
        }
    }
}
