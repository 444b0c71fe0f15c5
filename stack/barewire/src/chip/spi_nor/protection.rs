//! Block protection: the addresses that the status register protects.

use core::ops::Range;

/// The mapping from a part's protection bits to addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Layout {
    /// Unknown: any of BP2..BP0 (bits 4..2) counts as protecting everything.
    Unknown,
    /// Winbond with BP3..BP0 (bits 5..2), TB (bit 6), CMP (status register 2, bit 6): blocks of 64
    /// KiB, doubled by each step of BP, from the top, or with TB from the bottom. CMP selects the
    /// complement. (W25Q256JV datasheet, status register memory protection.)
    WinbondBp4,
    /// SST with BP2..BP0 (bits 4..2): the upper 1/32 of the chip, doubled by each step, whole
    /// from 6. (SST25VF016B datasheet, software status register block protection.)
    SstBp3,
    /// Spansion with BP2..BP0 (bits 4..2) and TBPROT (configuration register, bit 5): the upper, or
    /// with TBPROT the lower, 1/64 of the chip, doubled by each step. (S25FL512S datasheet, block
    /// protection.)
    SpansionBp3,
}

impl Layout {
    /// The status register's protection bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Layout::Unknown | Layout::SstBp3 | Layout::SpansionBp3 => 0b0001_1100,
            Layout::WinbondBp4 => 0b0111_1100,
        }
    }

    /// Whether status register 2 is needed.
    #[must_use]
    pub const fn needs_status_2(self) -> bool {
        matches!(self, Layout::WinbondBp4 | Layout::SpansionBp3)
    }

    /// The protected addresses of a chip of `size` bytes; empty if there are none. With CMP it is
    /// the smallest range that contains all protected addresses.
    #[must_use]
    pub fn protected(self, status: u8, status_2: u8, size: u64) -> Range<u64> {
        match self {
            Layout::Unknown if status & self.bits() == 0 => 0..0,
            Layout::Unknown => 0..size,
            Layout::WinbondBp4 => {
                let bp = u32::from(status >> 2 & 0xf);
                let len = if bp == 0 { 0 } else { (64 << 10_u64 << (bp - 1)).min(size) };
                let bottom = status & 0x40 != 0;
                match (bottom, status_2 & 0x40 != 0) {
                    (false, false) => size - len..size,
                    (true, false) => 0..len,
                    (false, true) => 0..size - len,
                    (true, true) => len..size,
                }
            }
            Layout::SstBp3 => {
                let bp = u32::from(status >> 2 & 7);
                let len = if bp == 0 { 0 } else { ((size / 32) << (bp - 1)).min(size) };
                size - len..size
            }
            Layout::SpansionBp3 => {
                let bp = u32::from(status >> 2 & 7);
                let len = if bp == 0 { 0 } else { (size / 64) << (bp - 1) };
                if status_2 & 0x20 != 0 { 0..len } else { size - len..size }
            }
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
    fn an_unknown_part_is_protected_whole_or_not_at_all() {
        assert!(Layout::Unknown.protected(0x43, 0, MIB).is_empty());
        assert_eq!(Layout::Unknown.protected(0x04, 0, MIB), 0..MIB);
    }
}
