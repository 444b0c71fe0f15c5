//! The addresses that a part's protection bits protect.
//!
//! In doubt, an address counts as protected: a layout whose ranges are not computed protects the whole chip or
//! nothing.

use core::ops::Range;

/// The mapping from a part's protection bits to addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Layout {
    /// Unknown: any of bits 6 to 2 may protect. None of them is cleared.
    Unknown,
    /// BP3..BP0 (bits 5..2); bit 6 is QE. (Macronix MX25L3233F and ISSI IS25WP256 datasheets, status register.)
    Bp3AtBit5,
    /// BP3 (bit 6), TB (bit 5), BP2..BP0 (bits 4..2). (Micron MT25Q datasheet, status register.)
    Bp3AtBit6,
    /// BP2..BP0 (bits 4..2), TB (bit 5), SEC (bit 6), CMP (status register 2, bit 6). (Winbond W25Q32JV
    /// datasheet, section 7.1; GigaDevice's parts up to 128 Mbit alike.)
    Bp2Sec,
    /// Bits 6 to 2 (BP4..BP0, or TB and BP3..BP0), CMP (status register 2, bit 6): GigaDevice and others from
    /// 256 Mbit, where datasheets differ in the meaning of bit 6.
    Bp4,
    /// Winbond with BP3..BP0 (bits 5..2), TB (bit 6), CMP (status register 2, bit 6): blocks of 64
    /// KiB, doubled by each step of BP, from the top, or with TB from the bottom. CMP selects the
    /// complement. (W25Q256JV datasheet, status register memory protection.)
    WinbondBp4,
    /// SST with BP2..BP0 (bits 4..2): the upper 1/32 of the chip, doubled by each step, whole
    /// from 6. (SST25VF016B datasheet, software status register block protection.)
    SstBp3,
    /// Spansion with BP2..BP0 (bits 4..2) and TBPROT (configuration register, bit 5): the upper, or
    /// with TBPROT the lower, 1/64 of the chip, doubled by each step. Bits 5 and 6 are error bits.
    /// (S25FL512S datasheet, block protection.)
    SpansionBp3,
    /// A lock bit for each block, in the block protection register; none in the status register.
    /// (SST26VF064B datasheet, block protection.)
    SstBlocks,
    /// SWP (bits 3 and 2): what is protected by sector registers. Written as zeros, bits 5 to 2 open all
    /// sectors; bit 4 is the WP# pin, bit 5 an error. (AT25DF321A datasheet, global unprotect.)
    AdestoSectors,
    /// Nothing protects.
    None,
}

/// The status register's bits.
const BITS_4_2: u8 = 0x1c;
const BITS_5_2: u8 = 0x3c;
const BITS_6_2: u8 = 0x7c;
/// CMP in status register 2.
pub(super) const CMP: u8 = 1 << 6;
/// TBPROT in Spansion's configuration register.
const TBPROT: u8 = 1 << 5;
const TB: u8 = 1 << 6;

impl Layout {
    /// All that can be named on a command line, with their names.
    pub const NAMED: [(&'static str, Self); 10] = [
        ("bp3-bit5", Layout::Bp3AtBit5),
        ("bp3-bit6", Layout::Bp3AtBit6),
        ("bp2-sec", Layout::Bp2Sec),
        ("bp4", Layout::Bp4),
        ("winbond", Layout::WinbondBp4),
        ("sst25", Layout::SstBp3),
        ("spansion", Layout::SpansionBp3),
        ("sst26", Layout::SstBlocks),
        ("adesto", Layout::AdestoSectors),
        ("none", Layout::None),
    ];

    /// The layout of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, layout)| *layout)
    }

    /// Its name on a command line; `unknown` for that.
    #[must_use]
    pub fn name(self) -> &'static str {
        let named = Self::NAMED.iter().find(|(_, layout)| *layout == self);
        named.map_or("unknown", |(name, _)| name)
    }

    /// The bits of status register 1 that protect if they are set.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Layout::Unknown | Layout::Bp4 => BITS_6_2,
            Layout::Bp3AtBit5 | Layout::WinbondBp4 => BITS_5_2,
            Layout::Bp3AtBit6 => 0x5c,
            Layout::Bp2Sec | Layout::SstBp3 | Layout::SpansionBp3 => BITS_4_2,
            Layout::AdestoSectors => 0x0c,
            Layout::SstBlocks | Layout::None => 0,
        }
    }

    /// The bits that are written as zeros to unprotect. TB alone protects nothing, and stays.
    pub(super) const fn cleared(self) -> u8 {
        match self {
            Layout::Unknown => 0,
            Layout::AdestoSectors => BITS_5_2,
            _ => self.bits(),
        }
    }

    /// Whether CMP of status register 2 protects.
    #[must_use]
    pub const fn has_cmp(self) -> bool {
        matches!(self, Layout::Bp2Sec | Layout::Bp4 | Layout::WinbondBp4)
    }

    /// Whether status register 2 is needed.
    #[must_use]
    pub const fn needs_status_2(self) -> bool {
        self.has_cmp() || matches!(self, Layout::SpansionBp3)
    }

    /// The protected addresses of a chip of `size` bytes; empty if there are none. With CMP it is
    /// the smallest range that contains all protected addresses. [`Layout::SstBlocks`] has them in another
    /// register.
    #[must_use]
    pub fn protected(self, status: u8, status_2: u8, size: u64) -> Range<u64> {
        let level = u32::from(status & self.bits()) >> 2;
        let set = level != 0 || self.has_cmp() && status_2 & CMP != 0;
        match self {
            _ if !set => 0..0,
            Layout::WinbondBp4 => {
                let len = match level {
                    0 => 0,
                    // Six doublings beyond the chip's size are none.
                    level => (64 << 10_u64 << (level - 1)).min(size),
                };
                match (status & TB != 0, status_2 & CMP != 0) {
                    (false, false) => size - len..size,
                    (true, false) => 0..len,
                    (false, true) => 0..size - len,
                    (true, true) => len..size,
                }
            }
            Layout::SstBp3 => size - ((size / 32) << (level - 1)).min(size)..size,
            Layout::SpansionBp3 => {
                let len = (size / 64) << (level - 1);
                if status_2 & TBPROT != 0 { 0..len } else { size - len..size }
            }
            _ => 0..size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn rows_of_the_w25q256jv_table() {
        let at = |status| Layout::WinbondBp4.protected(status, 0, 32 * MIB);
        assert!(at(0x00).is_empty());
        assert_eq!(at(0x01 << 2), 0x01ff_0000..0x0200_0000);
        assert_eq!(at(0x08 << 2), 24 * MIB..32 * MIB);
        assert_eq!(at(0x09 << 2), 16 * MIB..32 * MIB);
        assert_eq!(at(0x0a << 2), 0..32 * MIB);
        assert_eq!(at(0x0f << 2), 0..32 * MIB);
        assert_eq!(at(0x40 | 0x01 << 2), 0..64 << 10);
        assert!(at(0x40).is_empty());
        assert!(at(0x03).is_empty(), "WEL and BUSY protect nothing");
        assert_eq!(Layout::WinbondBp4.protected(0, 0x40, 32 * MIB), 0..32 * MIB, "CMP");
    }

    #[test]
    fn rows_of_the_sst25vf016b_table() {
        let at = |bp: u8| Layout::SstBp3.protected(bp << 2, 0, 2 * MIB);
        assert!(at(0).is_empty());
        assert_eq!(at(1), 0x1f_0000..0x20_0000);
        assert_eq!(at(5), 0x10_0000..0x20_0000);
        assert_eq!(at(6), 0..0x20_0000);
        assert_eq!(at(7), 0..0x20_0000);
    }

    #[test]
    fn rows_of_the_s25fl512s_table() {
        let at = |bp: u8, cr: u8| Layout::SpansionBp3.protected(bp << 2, cr, 64 * MIB);
        assert!(at(0, 0).is_empty() && at(0, 0x20).is_empty());
        assert_eq!(at(1, 0), 63 * MIB..64 * MIB);
        assert_eq!(at(6, 0), 32 * MIB..64 * MIB);
        assert_eq!(at(7, 0), 0..64 * MIB);
        assert_eq!(at(3, 0x20), 0..4 * MIB, "TBPROT");
    }

    #[test]
    fn where_ranges_are_not_computed_any_bit_that_may_protect_protects_all() {
        // Each layout, the bits of registers 1 and 2 that protect by themselves, and some that do not.
        let rows: [(Layout, &[u8], &[u8], u8); 6] = [
            (Layout::Unknown, &[2, 3, 4, 5, 6], &[0, 1, 7], 0),
            (Layout::Bp3AtBit5, &[2, 3, 4, 5], &[0, 1, 6, 7], 0),
            (Layout::Bp3AtBit6, &[2, 3, 4, 6], &[0, 1, 5, 7], 0),
            (Layout::Bp2Sec, &[2, 3, 4], &[0, 1, 5, 6, 7], CMP),
            (Layout::Bp4, &[2, 3, 4, 5, 6], &[0, 1, 7], CMP),
            (Layout::AdestoSectors, &[2, 3], &[0, 1, 4, 5, 6, 7], 0),
        ];
        for (layout, protect, others, second) in rows {
            for &bit in protect {
                assert_eq!(layout.protected(1 << bit, 0, MIB), 0..MIB, "{layout:?} {bit}");
            }
            for &bit in others {
                assert!(layout.protected(1 << bit, !CMP, MIB).is_empty(), "{layout:?} {bit}");
            }
            assert_eq!(layout.protected(0, second, MIB).is_empty(), second == 0, "{layout:?}");
            assert_eq!(layout.has_cmp(), second == CMP);
        }
        assert!(Layout::None.protected(0xff, 0xff, MIB).is_empty());
    }

    #[test]
    fn each_layout_has_a_name_that_finds_it() {
        for (name, layout) in Layout::NAMED {
            assert_eq!((layout.name(), Layout::named(name)), (name, Some(layout)));
        }
        assert_eq!((Layout::Unknown.name(), Layout::named("unknown")), ("unknown", None));
    }
}
