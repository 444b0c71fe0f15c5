//! SPI registers and bits, by the names of UG585, appendix B.30, without their ending `_reg0`.
//!
//! *Read first*: the sources that [`super`] names.

/// Configuration.
pub(super) const CONFIG: u32 = 0x00;
/// Interrupt status: levels of the FIFOs, and latched events.
pub(super) const INTR_STATUS: u32 = 0x04;
/// Interrupt enable: ones enable.
pub(super) const INTRPT_EN: u32 = 0x08;
/// Interrupt disable: ones disable.
pub(super) const INTRPT_DIS: u32 = 0x0c;
/// Enable: bit 0.
pub(super) const EN: u32 = 0x14;
/// Delays around words, in cycles of the reference clock.
pub(super) const DELAY: u32 = 0x18;
/// Transmit FIFO: a byte each write.
pub(super) const TX_DATA: u32 = 0x1c;
/// Receive FIFO: a byte each read.
pub(super) const RX_DATA: u32 = 0x20;
/// [`TX_NOT_FULL`] is set while the transmit FIFO holds fewer bytes than this.
pub(super) const TX_THRES: u32 = 0x28;
/// [`RX_NOT_EMPTY`] is set while the receive FIFO holds as many bytes as this, or more.
pub(super) const RX_THRES: u32 = 0x2c;

/// CONFIG: a controller, not a target.
pub(super) const MODE_SEL: u32 = 1 << 0;
/// CONFIG: CPOL.
pub(super) const CLK_POL: u32 = 1 << 1;
/// CONFIG: CPHA.
pub(super) const CLK_PH: u32 = 1 << 2;
/// CONFIG: the divider is 2 to the power of one more than this field, 1 to 7.
pub(super) const BAUD_RATE_DIV: u32 = 7 << 3;
/// CONFIG: the select lines, a bit each: 0 selects. The lowest 0 counts.
pub(super) const CS: u32 = 0xf << 10;
/// CONFIG: the line that CS names is active now, not during words.
pub(super) const MANUAL_CS: u32 = 1 << 14;

/// INTR_STATUS: a byte was lost.
pub(super) const RX_OVERFLOW: u32 = 1 << 0;
/// INTR_STATUS: the transmit FIFO holds fewer bytes than TX_THRES.
pub(super) const TX_NOT_FULL: u32 = 1 << 2;
/// INTR_STATUS: the receive FIFO holds RX_THRES bytes or more.
pub(super) const RX_NOT_EMPTY: u32 = 1 << 4;
/// INTR_STATUS and the interrupt registers: every bit.
pub(super) const ALL: u32 = 0x7f;

/// Bytes that each FIFO holds.
pub(super) const DEPTH: usize = 128;
/// SS0, SS1 and SS2.
pub(super) const LINES: u8 = 3;

/// The value of CONFIG's divider field, in its place, for the exponent: 1 divides by 4, 7 by 256.
pub(super) const fn baud(field: u32) -> u32 {
    field << 3
}

/// Cycles of the reference clock in one of SCK, of a CONFIG.
#[inline(always)]
pub(super) const fn divisor(config: u32) -> u32 {
    2 << ((config & BAUD_RATE_DIV) >> 3)
}

/// CONFIG's CS bit that selects a line when it is 0.
pub(super) const fn cs_bit(channel: u8) -> u32 {
    1 << (10 + channel)
}
