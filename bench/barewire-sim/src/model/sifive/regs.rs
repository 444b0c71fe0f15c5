//! SiFive SPI's registers as the manual lays them out.
//!
//! *Read first*: SiFive, *SiFive FU540-C000 Manual*, chapter "Serial Peripheral Interface (SPI)". This
//! file is written from there, not from a driver.

pub(super) const SCKDIV: u32 = 0x00;
pub(super) const SCKMODE: u32 = 0x04;
pub(super) const CSID: u32 = 0x10;
pub(super) const CSDEF: u32 = 0x14;
pub(super) const CSMODE: u32 = 0x18;
pub(super) const DELAY0: u32 = 0x28;
pub(super) const DELAY1: u32 = 0x2c;
pub(super) const FMT: u32 = 0x40;
pub(super) const TXDATA: u32 = 0x48;
pub(super) const RXDATA: u32 = 0x4c;
pub(super) const TXMARK: u32 = 0x50;
pub(super) const RXMARK: u32 = 0x54;
pub(super) const FCTRL: u32 = 0x60;
pub(super) const FFMT: u32 = 0x64;
pub(super) const IE: u32 = 0x70;
pub(super) const IP: u32 = 0x74;

/// TXDATA's full flag and RXDATA's empty flag.
pub(super) const FLAG: u32 = 1 << 31;
/// IE and IP: the transmit watermark.
pub(super) const TXWM: u32 = 1 << 0;
/// IE and IP: the receive watermark.
pub(super) const RXWM: u32 = 1 << 1;

/// CSMODE: each frame is selected by itself.
pub(super) const AUTO: u32 = 0;
/// CSMODE: the block moves no line.
pub(super) const OFF: u32 = 3;

/// The bytes each FIFO holds.
pub(super) const FIFO_BYTES: usize = 8;

/// SCKMODE and SCKDIV as the block took them over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    pub(super) sckdiv: u32,
    pub(super) sckmode: u32,
}

impl Clock {
    /// Cycles of the input clock in one of SCK.
    pub(super) fn divisor(self) -> u64 {
        2 * (u64::from(self.sckdiv) + 1)
    }

    /// The SPI mode: POL is SCKMODE's bit 1, PHA its bit 0.
    pub(super) fn mode(self) -> u8 {
        (self.sckmode & 3) as u8
    }

    pub(super) fn pol(self) -> bool {
        self.sckmode & 2 != 0
    }
}

/// FMT as a frame took it over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fmt(pub(super) u32);

impl Fmt {
    /// Frames of 8 bits on single lines, which are all that is modelled.
    pub(super) fn is_bytes(self) -> bool {
        self.0 & 3 == 0 && self.0 >> 16 & 0xf == 8
    }

    pub(super) fn lsb_first(self) -> bool {
        self.0 & 1 << 2 != 0
    }

    /// DIR is Rx: received bytes go to the receive FIFO.
    pub(super) fn receives(self) -> bool {
        self.0 & 1 << 3 == 0
    }
}
