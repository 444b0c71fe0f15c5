//! The PL022's registers as the manual lays them out.
//!
//! *Read first*: ARM DDI 0194, chapter 3, Programmers Model. This file is written from there only,
//! not from a driver.

pub(super) const SSPCR0: u32 = 0x00;
pub(super) const SSPCR1: u32 = 0x04;
pub(super) const SSPDR: u32 = 0x08;
pub(super) const SSPSR: u32 = 0x0c;
pub(super) const SSPCPSR: u32 = 0x10;
pub(super) const SSPIMSC: u32 = 0x14;
pub(super) const SSPRIS: u32 = 0x18;
pub(super) const SSPMIS: u32 = 0x1c;
pub(super) const SSPICR: u32 = 0x20;
pub(super) const SSPDMACR: u32 = 0x24;
/// SSPPeriphID0; the other three and SSPPCellID0 to 3 follow.
pub(super) const SSP_PERIPH_ID0: u32 = 0xfe0;
pub(super) const SSP_PCELL_ID3: u32 = 0xffc;

/// SSPPeriphID0 to 3 (part 022, designer ARM, revision 3, configuration 0), SSPPCellID0 to 3.
pub(super) const IDS: [u32; 8] = [0x22, 0x10, 0x34, 0x00, 0x0d, 0xf0, 0x05, 0xb1];

/// SSPCR0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sspcr0(pub(super) u32);

impl Sspcr0 {
    /// DSS: the bits of a word, 4 to 16; `None` for the reserved values.
    pub(super) fn word_bits(self) -> Option<u32> {
        let dss = self.0 & 0xf;
        (dss >= 3).then_some(dss + 1)
    }

    /// FRF: 0 is Motorola's SPI.
    pub(super) fn frf(self) -> u32 {
        self.0 >> 4 & 3
    }

    /// SPO: SSPCLKOUT idles high.
    pub(super) fn spo(self) -> bool {
        self.0 >> 6 & 1 != 0
    }

    /// SPH: data is captured on the second edge.
    pub(super) fn sph(self) -> bool {
        self.0 >> 7 & 1 != 0
    }

    pub(super) fn scr(self) -> u64 {
        u64::from(self.0 >> 8 & 0xff)
    }

    /// SPO and SPH as an SPI mode.
    pub(super) fn mode(self) -> u8 {
        u8::from(self.spo()) << 1 | u8::from(self.sph())
    }
}

/// SSPCR1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sspcr1(pub(super) u32);

impl Sspcr1 {
    pub(super) const MS: u32 = 1 << 2;

    pub(super) fn lbm(self) -> bool {
        self.0 & 1 != 0
    }

    pub(super) fn sse(self) -> bool {
        self.0 >> 1 & 1 != 0
    }

    /// MS: another controller clocks.
    pub(super) fn ms(self) -> bool {
        self.0 & Self::MS != 0
    }
}

/// SSPSR's bits.
pub(super) mod sr {
    pub(in super::super) const TFE: u32 = 1 << 0;
    pub(in super::super) const TNF: u32 = 1 << 1;
    pub(in super::super) const RNE: u32 = 1 << 2;
    pub(in super::super) const RFF: u32 = 1 << 3;
    pub(in super::super) const BSY: u32 = 1 << 4;
}

/// The bits of SSPIMSC, SSPRIS, SSPMIS and SSPICR.
pub(super) mod int {
    pub(in super::super) const ROR: u32 = 1 << 0;
    pub(in super::super) const RT: u32 = 1 << 1;
    pub(in super::super) const RX: u32 = 1 << 2;
    pub(in super::super) const TX: u32 = 1 << 3;
}

/// The words each FIFO holds.
pub(super) const FIFO_WORDS: usize = 8;

/// With this many words or more SSPRXINTR is asserted, with this many or fewer SSPTXINTR.
pub(super) const HALF_FIFO_WORDS: usize = 4;
