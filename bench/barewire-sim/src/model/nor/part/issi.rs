//! ISSI's part: IS25WP256.
//!
//! Read first: IS25LP256D/IS25WP256D datasheet (ISSI, revision A6): status register, function register, bank address
//! register, EN4B, EX4B. linux-mtd; OpenBIC PR 1377 and OpenWrt PR 9465 for the way out of 4-byte mode.

use super::*;

impl Part {
    /// ISSI IS25WP256: 32 MiB at 1.8 V. 29h or a write of the bank register leaves 4-byte mode. The part does
    /// not have E9h. BP3 is bit 5, and bit 6 is QE.
    ///
    /// The bank register needs no WEL, as JESD216 describes it. What WEL does after a protected target is not known:
    /// it stays set.
    #[must_use]
    pub fn is25wp256() -> Self {
        let plain = Self::plain("IS25WP256", [0x9d, 0x70, 0x19], 32 * MIB);
        Self {
            source: "SFDP: linux-mtd; 29h and bank register: OpenBIC PR 1377, OpenWrt PR 9465",
            beyond_sfdp: "E9h is ignored; BP3 is bit 5",
            commands: &[
                COMMON,
                READ_PROGRAM,
                ERASES,
                CHIP_ERASE,
                ALL_4B,
                ENTER_B7,
                EXIT_29,
                BANK,
                RESET,
                POWER_DOWN,
            ],
            status: StatusLayout {
                writable: [0xfc, 0, 0], // Status register: SRWD, QE, BP3..BP0.
                ..plain.status
            },
            // TBS, in the function register, is not modelled: the range is at the top.
            protection: Protection::new(&[2, 3, 4, 5], Scale::Blocks),
            sfdp: SfdpBytes::Pieces(&[
                (0x00, "53464450060101ff 00060110300000ff 9d05010380000002"),
                (
                    0x30,
                    "e520f9ff ffffff0f 44eb086b 083b80bb feffffff ffff00ff ffff44eb 0c200f52 \
                     10d800ff 234ac900 82d811ce cccd6846 7a757a75 f7aed55c 4a422cff f030faa9",
                ),
                (0x80, "50195016 9ff9c064 8fefffff"),
            ]),
            ..plain
        }
    }
}
