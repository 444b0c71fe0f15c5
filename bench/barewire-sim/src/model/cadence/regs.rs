//! Cadence SPI's registers as the manual lays them out.
//!
//! *Read first*: Xilinx, *Zynq-7000 SoC Technical Reference Manual* (UG585), appendix B.30. This file is written
//! from there, not from a driver.

pub(super) const CONFIG: u32 = 0x00;
pub(super) const STATUS: u32 = 0x04;
pub(super) const INT_EN: u32 = 0x08;
pub(super) const INT_DIS: u32 = 0x0c;
pub(super) const INT_MASK: u32 = 0x10;
pub(super) const ENABLE: u32 = 0x14;
pub(super) const DELAYS: u32 = 0x18;
pub(super) const TXD: u32 = 0x1c;
pub(super) const RXD: u32 = 0x20;
pub(super) const SLAVE_IDLE: u32 = 0x24;
pub(super) const TX_LEVEL: u32 = 0x28;
pub(super) const RX_LEVEL: u32 = 0x2c;
pub(super) const MOD_ID: u32 = 0xfc;

/// CONFIG's bits that are kept; the manual start command is not.
pub(super) const KEPT: u32 = 0x0002_ff3f;
/// CONFIG: start what is in the transmit FIFO.
pub(super) const START: u32 = 1 << 16;

pub(super) const RX_LOST: u32 = 1 << 0;
pub(super) const TX_BELOW: u32 = 1 << 2;
pub(super) const TX_FULL: u32 = 1 << 3;
pub(super) const RX_REACHED: u32 = 1 << 4;
pub(super) const RX_FULL: u32 = 1 << 5;

/// The bytes each FIFO holds.
pub(super) const FIFO_BYTES: usize = 128;

/// CONFIG's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Config(pub(super) u32);

impl Config {
    /// MODE_SEL: not a target.
    pub(super) fn is_controller(self) -> bool {
        self.0 & 1 != 0
    }

    /// CLK_POL is bit 1, CLK_PH bit 2.
    pub(super) fn mode(self) -> u8 {
        (self.0 & 2 | self.0 >> 2 & 1) as u8
    }

    pub(super) fn pol(self) -> bool {
        self.0 & 2 != 0
    }

    /// BAUD_RATE_DIV, 0 to 7; 0 is not supported.
    pub(super) fn baud(self) -> u32 {
        self.0 >> 3 & 7
    }

    /// PERI_SEL: an external decoder.
    pub(super) fn decodes(self) -> bool {
        self.0 & 1 << 9 != 0
    }

    /// The line that CS names: that of its lowest 0, if it is one of the three.
    pub(super) fn line(self) -> Option<u8> {
        let line = (self.0 >> 10 & 0xf).trailing_ones();
        (line < 3).then_some(line as u8)
    }

    pub(super) fn manual_cs(self) -> bool {
        self.0 & 1 << 14 != 0
    }

    pub(super) fn manual_start(self) -> bool {
        self.0 & 1 << 15 != 0
    }
}
