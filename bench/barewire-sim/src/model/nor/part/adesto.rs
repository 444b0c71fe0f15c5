//! Adesto's (Renesas's) part: ATXP032.
//!
//! Read first: the SFDP, decoded by a public script for the ATXP032. Its datasheet was not at hand: the part does what
//! its SFDP says, with one status register. Its sector protection (36h, 39h) is not modelled.

use super::*;

impl Part {
    /// Adesto ATXP032: 4 MiB, octal, 4-byte addresses only. 5Ah has three, as JESD216 demands of any part.
    #[must_use]
    pub fn atxp032() -> Self {
        Self {
            source: "SFDP: a public decoding script",
            beyond_sfdp: "",
            limits: limits(133_000_000),
            commands: &[COMMON, READ_PROGRAM, ERASES, CHIP_ERASE, POWER_DOWN],
            four_byte_at_power_up: true,
            sfdp: SfdpBytes::Pieces(&[(
                0x00,
                "53464450070103fc 00070114280000ff 05000105780000ff 8700011c8c0000ff 0a000104d40000ff \
                 fd208cff ffffff01 00000000 00000000 eeffffff ffff0000 ffff0000 0c200f52 10d800ff 904a4e01 \
                 80bf94e2 20610644 d0b0d0b0 f7a7d55c 000000ff 82000040 00000000 0000fc01 21001000",
            )]),
            ..Self::plain("ATXP032", [0x1f, 0xa7, 0x00], 4 * MIB)
        }
    }
}
