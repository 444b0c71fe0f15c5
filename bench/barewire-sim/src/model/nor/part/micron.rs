//! Micron's parts: MT25QU256A and MT25QL02G.
//!
//! Read first: MT25Q datasheets (Micron, 256 Mbit and 2 Gbit): status register (BP3 is bit 6, above TB), flag status
//! register, non-volatile configuration register, *Program and erase operations*, DIE ERASE. linux-mtd (E. Farber) for
//! the SFDP; Linux micron-st.c for the flag status register and C4h.
//!
//! A change of a protected range is not executed: the flag status register reports it, and WEL stays set. B7h and E9h
//! need WEL. The flag status register must be read after each program and erase, once it says ready; until then the
//! next one is ignored.

use super::*;

const DIE_ERASE: &[Command] = &[erase(0xc4, AddressWidth::ByMode, 64 * MIB)];

/// All but the erase of the whole array.
macro_rules! mt25q {
    ($($more:ident),*) => {
        &[
            COMMON, READ_PROGRAM, ERASES, ALL_4B,
            ENTER_B7_WEL, EXIT_E9_WEL, EXTENDED_ADDRESS, NONVOLATILE, FLAG_STATUS, RESET, POWER_DOWN $(, $more)*
        ]
    };
}

const HEADERS: (usize, &str) = (0x00, "53464450060101ff 00060110300000ff 84000102800000ff");
const BASIC: (usize, &str) = (
    0x30,
    "e520fbff ffffff0f 29eb276b 273b27bb ffffffff ffff27bb ffff29eb 0c2010d8 \
     0f520000 244a9900 8b8e03d4 ac012738 7a757a75 fbbdd55c 4a0f82ff 81bd3d36",
);
const FOUR_BYTE: (usize, &str) = (0x80, "ffe7ffff 21dcffff");

impl Part {
    /// Micron MT25QU256A: 32 MiB at 1.8 V.
    #[must_use]
    pub fn mt25qu256a() -> Self {
        let plain = Self::plain("MT25QU256A", [0x20, 0xbb, 0x19], 32 * MIB);
        Self {
            source: "SFDP: linux-mtd (E. Farber); flag status register: Linux micron-st.c; MT25Q datasheet",
            beyond_sfdp: "70h must be read after each change; BP3 is bit 6",
            limits: limits(166_000_000),
            jedec_id_tail: &[0x10],
            commands: mt25q!(CHIP_ERASE),
            status: StatusLayout {
                writable: [0xfc, 0, 0], // SRWD, BP3, TB, BP2..BP0.
                refusal: Refusal::Flags,
                ..plain.status
            },
            protection: Protection::BP3_ABOVE_TB,
            nonvolatile: Some(0xffff),
            flag_status_must_be_read: true,
            sfdp: SfdpBytes::Pieces(&[HEADERS, BASIC, FOUR_BYTE]),
            ..plain
        }
    }

    /// Micron MT25QL02G: 256 MiB, a stack of four dies. C7h and 60h are no opcodes of it; C4h erases the die of its
    /// address.
    #[must_use]
    pub fn mt25ql02g() -> Self {
        let single = Self::mt25qu256a();
        Self {
            source: "MT25Q 2 Gbit datasheet; C4h: Linux micron-st.c; SFDP constructed: MT25QU256A's with another density",
            beyond_sfdp: "no C7h, C4h erases a die of 64 MiB; 70h must be read after each change; BP3 is bit 6",
            limits: single.limits,
            jedec_id_tail: &[0x10],
            commands: mt25q!(DIE_ERASE),
            status: single.status,
            protection: single.protection,
            nonvolatile: single.nonvolatile,
            flag_status_must_be_read: true,
            // From 4 Gbit on the density is a power of two; 2 Gbit is its number of bits less one.
            sfdp: SfdpBytes::Pieces(&[HEADERS, BASIC, (0x34, "ffffff7f"), FOUR_BYTE]),
            times: Times {
                // DIE ERASE.
                chip_erase: Span::new(153 * PS_PER_S, 460 * PS_PER_S),
                ..single.times
            },
            ..Self::plain("MT25QL02G", [0x20, 0xba, 0x22], 256 * MIB)
        }
    }
}
