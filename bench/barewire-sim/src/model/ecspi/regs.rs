//! The ECSPI's registers as the manual lays them out.
//!
//! *Read first*: i.MX 6Dual/Quad reference manual, chapter ECSPI, memory map and register
//! definition. This file is written from there only, not from a driver.

pub(super) const RXDATA: u32 = 0x00;
pub(super) const TXDATA: u32 = 0x04;
pub(super) const CONREG: u32 = 0x08;
pub(super) const CONFIGREG: u32 = 0x0c;
pub(super) const INTREG: u32 = 0x10;
pub(super) const DMAREG: u32 = 0x14;
pub(super) const STATREG: u32 = 0x18;
pub(super) const PERIODREG: u32 = 0x1c;
pub(super) const TESTREG: u32 = 0x20;
pub(super) const MSGDATA: u32 = 0x40;

/// The name of the register at `offset`, for reports; `None` if there is none.
pub(super) fn name(offset: u32) -> Option<&'static str> {
    Some(match offset {
        RXDATA => "RXDATA",
        TXDATA => "TXDATA",
        CONREG => "CONREG",
        CONFIGREG => "CONFIGREG",
        INTREG => "INTREG",
        DMAREG => "DMAREG",
        STATREG => "STATREG",
        PERIODREG => "PERIODREG",
        TESTREG => "TESTREG",
        MSGDATA => "MSGDATA",
        _ => return None,
    })
}

/// CONREG.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Conreg(pub(super) u32);

impl Conreg {
    pub(super) const XCH: u32 = 1 << 2;

    pub(super) fn en(self) -> bool {
        self.0 & 1 != 0
    }

    pub(super) fn ht(self) -> bool {
        self.0 >> 1 & 1 != 0
    }

    pub(super) fn smc(self) -> bool {
        self.0 >> 3 & 1 != 0
    }

    /// CHANNEL_MODE of the selected channel; 1 means that the block clocks.
    pub(super) fn clocks(self) -> bool {
        self.0 >> 4 >> self.channel_select() & 1 != 0
    }

    /// POST_DIVIDER and PRE_DIVIDER together.
    pub(super) fn divisor(self) -> u64 {
        let (post, pre) = (self.0 >> 8 & 0xf, self.0 >> 12 & 0xf);
        u64::from(pre + 1) << post
    }

    pub(super) fn drctl(self) -> u32 {
        self.0 >> 16 & 3
    }

    pub(super) fn channel_select(self) -> u32 {
        self.0 >> 18 & 3
    }

    /// BURST_LENGTH in bits, 1 to 4,096.
    pub(super) fn burst_bits(self) -> u32 {
        (self.0 >> 20) + 1
    }
}

/// CONFIGREG; each method is about one channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Configreg(pub(super) u32);

impl Configreg {
    fn bit(self, field: u32, channel: u32) -> bool {
        self.0 >> field >> channel & 1 != 0
    }

    /// SCLK_POL and SCLK_PHA as an SPI mode.
    pub(super) fn mode(self, channel: u32) -> u8 {
        u8::from(self.bit(4, channel)) << 1 | u8::from(self.bit(0, channel))
    }

    /// SS_CTL: a burst continues until TXFIFO is empty.
    pub(super) fn ss_ctl(self, channel: u32) -> bool {
        self.bit(8, channel)
    }

    /// SS_POL: SS is active high.
    pub(super) fn ss_pol(self, channel: u32) -> bool {
        self.bit(12, channel)
    }

    /// MOSI's idle level: DATA_CTL, where 0 is high.
    pub(super) fn data_rests(self, channel: u32) -> bool {
        !self.bit(16, channel)
    }

    /// SCLK's idle level: SCLK_CTL, where 1 is high.
    pub(super) fn sclk_rests(self, channel: u32) -> bool {
        self.bit(20, channel)
    }
}

/// PERIODREG.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Periodreg(pub(super) u32);

impl Periodreg {
    pub(super) fn sample_period(self) -> u64 {
        u64::from(self.0 & 0x7fff)
    }

    /// CSRC: wait states of the 32.768 kHz clock, not of SCLK.
    pub(super) fn slow_clock(self) -> bool {
        self.0 >> 15 & 1 != 0
    }

    pub(super) fn csd_ctl(self) -> u64 {
        u64::from(self.0 >> 16 & 0x3f)
    }
}

/// STATREG's bits.
pub(super) mod stat {
    pub(in super::super) const TE: u32 = 1 << 0;
    pub(in super::super) const TDR: u32 = 1 << 1;
    pub(in super::super) const TF: u32 = 1 << 2;
    pub(in super::super) const RR: u32 = 1 << 3;
    pub(in super::super) const RDR: u32 = 1 << 4;
    pub(in super::super) const RF: u32 = 1 << 5;
    pub(in super::super) const RO: u32 = 1 << 6;
    pub(in super::super) const TC: u32 = 1 << 7;
}

/// TESTREG's LBC.
pub(super) const LBC: u32 = 1 << 31;

/// The words each FIFO holds.
pub(super) const FIFO_WORDS: usize = 64;
