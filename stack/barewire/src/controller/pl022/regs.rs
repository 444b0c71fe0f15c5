//! PL022 registers and bits, by the manual's names.
//!
//! Read first: ARM DDI 0194, "PrimeCell Synchronous Serial Port (PL022) Technical Reference
//! Manual", chapter 3.

/// Control 0: word length, frame format, polarity, phase, serial clock rate.
pub(super) const SSPCR0: u32 = 0x00;
/// Control 1: loopback, enable, role (controller or target).
pub(super) const SSPCR1: u32 = 0x04;
/// Data: writes go to the transmit FIFO, reads come from the receive FIFO.
pub(super) const SSPDR: u32 = 0x08;
/// Status.
pub(super) const SSPSR: u32 = 0x0c;
/// Clock prescaler.
pub(super) const SSPCPSR: u32 = 0x10;
/// Interrupt mask: a set bit enables its interrupt.
pub(super) const SSPIMSC: u32 = 0x14;
/// Raw interrupt status, before the mask.
pub(super) const SSPRIS: u32 = 0x18;
/// Interrupt clear.
pub(super) const SSPICR: u32 = 0x20;
/// DMA enables.
pub(super) const SSPDMACR: u32 = 0x24;

/// Words each FIFO holds.
pub(super) const FIFO_WORDS: usize = 8;
/// Words in the receive FIFO at which [`RX`] is raised.
pub(super) const HALF_WORDS: usize = FIFO_WORDS / 2;

/// SSPCR0: words of `bytes` (1 or 2).
pub(super) const fn dss(bytes: u8) -> u32 {
    bytes as u32 * 8 - 1
}

/// SSPCR0: the bits of [`dss`].
pub(super) const DSS: u32 = 0xf;
/// SSPCR0: polarity: the clock idles high.
pub(super) const SPO: u32 = 1 << 6;
/// SSPCR0: phase: the second edge of the clock captures.
pub(super) const SPH: u32 = 1 << 7;

/// SSPCR0: SCR, one less than the divisor `1 + SCR` (1 to 256).
pub(super) const fn scr(divisor: u32) -> u32 {
    (divisor - 1) << 8
}

/// The largest divisor of [`scr`].
pub(super) const SCR_DIVISOR_MAX: u32 = 256;
/// SSPCPSR: the largest prescaler; all are even.
pub(super) const CPSDVSR_MAX: u32 = 254;

/// SSPCR1: loopback: the block receives what it sends.
pub(super) const LBM: u32 = 1 << 0;
/// SSPCR1: the block is enabled.
pub(super) const SSE: u32 = 1 << 1;

/// SSPSR: the receive FIFO has a word.
pub(super) const RNE: u32 = 1 << 2;
/// SSPSR: a frame is on the wire, or a word waits in the transmit FIFO.
pub(super) const BSY: u32 = 1 << 4;

/// SSPIMSC, SSPRIS, SSPICR: a word came while the receive FIFO was full, and was lost.
pub(super) const ROR: u32 = 1 << 0;
/// SSPIMSC, SSPRIS, SSPICR: the receive FIFO has words and nothing has moved for 32 bits.
pub(super) const RT: u32 = 1 << 1;
/// SSPIMSC, SSPRIS: the receive FIFO holds [`HALF_WORDS`] or more.
pub(super) const RX: u32 = 1 << 2;
