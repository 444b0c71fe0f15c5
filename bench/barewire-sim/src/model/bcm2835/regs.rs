//! SPI0's registers as the manual lays them out.
//!
//! *Read first*: BCM2835 ARM Peripherals, chapter 10.5, SPI register map. This file is written from
//! there only, not from a driver.

pub(super) const CS: u32 = 0x00;
pub(super) const FIFO: u32 = 0x04;
pub(super) const CLK: u32 = 0x08;
pub(super) const DLEN: u32 = 0x0c;
pub(super) const LTOH: u32 = 0x10;
pub(super) const DC: u32 = 0x14;

/// The bytes each FIFO holds.
pub(super) const FIFO_BYTES: usize = 64;
/// Three quarters of RX FIFO: RXR.
pub(super) const RXR_BYTES: usize = FIFO_BYTES / 4 * 3;

/// What a write to CS clears.
pub(super) const CLEAR_TX: u32 = 1 << 4;
pub(super) const CLEAR_RX: u32 = 1 << 5;

/// CS's read-only bits.
pub(super) mod stat {
    pub(in super::super) const DONE: u32 = 1 << 16;
    pub(in super::super) const RXD: u32 = 1 << 17;
    pub(in super::super) const TXD: u32 = 1 << 18;
    pub(in super::super) const RXR: u32 = 1 << 19;
    pub(in super::super) const RXF: u32 = 1 << 20;
}

/// CS as it was written, without the status bits, and without CLEAR, which reads as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cs(u32);

impl Cs {
    const WRITABLE: u32 = 0x03e0_ffcf;

    pub(super) fn new(written: u32) -> Self {
        Self(written & Self::WRITABLE)
    }

    /// Only REN is set at reset.
    pub(super) const fn reset() -> Self {
        Self(1 << 12)
    }

    pub(super) fn bits(self) -> u32 {
        self.0
    }

    fn bit(self, bit: u32) -> bool {
        self.0 >> bit & 1 != 0
    }

    /// The CE line that TA activates; 3 is none.
    pub(super) fn chip_select(self) -> u8 {
        (self.0 & 3) as u8
    }

    /// CPOL and CPHA as an SPI mode.
    pub(super) fn mode(self) -> u8 {
        (self.0 >> 2 & 3) as u8
    }

    /// SCLK's idle level.
    pub(super) fn cpol(self) -> bool {
        self.bit(3)
    }

    pub(super) fn ta(self) -> bool {
        self.bit(7)
    }

    pub(super) fn intd(self) -> bool {
        self.bit(9)
    }

    pub(super) fn intr(self) -> bool {
        self.bit(10)
    }

    /// Whether the model supports the settings: DMAEN and LEN are clear.
    pub(super) fn supported(self) -> bool {
        !self.bit(8) && !self.bit(13)
    }

    /// Whether CE line `line` is active high: by its own CSPOLn, or by CSPOL for all lines.
    pub(super) fn active_high(self, line: u8) -> bool {
        self.bit(6) || self.bit(21 + u32::from(line))
    }
}

/// The divisor for CLK's CDIV: odd numbers are rounded down, 0 is 65,536.
pub(super) fn divisor(cdiv: u32) -> u64 {
    match cdiv & 0xfffe {
        0 => 65_536,
        even => even.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_own_polarity_and_cspol_is_all_lines() {
        let high = |cs| [0, 1, 2].map(|line| Cs(cs).active_high(line));
        assert_eq!(high(1 << 21), [true, false, false]);
        assert_eq!(high(1 << 22), [false, true, false]);
        assert_eq!(high(1 << 23), [false, false, true]);
        assert_eq!(high(1 << 6), [true; 3]);
    }
}
