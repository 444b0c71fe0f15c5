//! ECSPI registers and bits, by the manual's names.
//!
//! Read first: i.MX 6Dual/6Quad Applications Processor Reference Manual, chapter "Enhanced
//! Configurable SPI (ECSPI)", memory map and register definitions. The block is the same in
//! i.MX 7 and i.MX 8M.

/// Top of the receive FIFO; undefined while STATREG.RR is clear.
pub(super) const RXDATA: u32 = 0x00;
/// Bottom of the transmit FIFO.
pub(super) const TXDATA: u32 = 0x04;
/// Control.
pub(super) const CONREG: u32 = 0x08;
/// Config: polarity, phase, select wave form, per channel.
pub(super) const CONFIGREG: u32 = 0x0c;
/// Interrupt enables, at the positions of STATREG's bits.
pub(super) const INTREG: u32 = 0x10;
/// FIFO thresholds, which also apply to interrupts, and DMA enables.
pub(super) const DMAREG: u32 = 0x14;
/// Status.
pub(super) const STATREG: u32 = 0x18;
/// Wait states between bursts; clocks from select to the first edge.
pub(super) const PERIODREG: u32 = 0x1c;
/// Loopback, and the FIFOs' counters, which this driver does not read.
pub(super) const TESTREG: u32 = 0x20;

/// Words each FIFO holds.
pub(super) const FIFO_WORDS: usize = 64;
/// The longest burst: 4,096 bits.
pub(super) const BURST_BYTES_MAX: usize = 512;

/// CONREG: block enable.
pub(super) const EN: u32 = 1 << 0;
/// CONREG: start a burst, and busy while one runs.
pub(super) const XCH: u32 = 1 << 2;
/// CONREG: a burst starts when TXDATA is written.
pub(super) const SMC: u32 = 1 << 3;
/// CONREG: all four channels are controllers, not targets.
pub(super) const CHANNEL_MODE_ALL: u32 = 0xf << 4;

/// CONREG: dividers of the reference clock, `pre` (1 to 16) times 2 to the `post` (0 to 15).
pub(super) const fn dividers(pre: u32, post: u32) -> u32 {
    (pre - 1) << 12 | post << 8
}

/// CONREG: the bits of [`dividers`].
pub(super) const DIVIDERS: u32 = 0xff << 8;

/// CONREG: the product of the dividers.
pub(super) const fn divisor(conreg: u32) -> u32 {
    ((conreg >> 12 & 0xf) + 1) << (conreg >> 8 & 0xf)
}

/// CONREG: which native select line.
pub(super) const fn channel_select(channel: u8) -> u32 {
    (channel as u32 & 3) << 18
}

/// CONREG: a burst of `bytes` (1 to 512).
pub(super) const fn burst_length(bytes: usize) -> u32 {
    (bytes as u32 * 8 - 1) << 20
}

/// CONREG: the bits of [`burst_length`].
pub(super) const BURST_LENGTH: u32 = 0xfff << 20;

/// CONFIGREG: clock phase 1, on every channel.
pub(super) const SCLK_PHA_ALL: u32 = 0xf;
/// CONFIGREG: clock polarity 1 and so idle high, on every channel.
pub(super) const SCLK_POL_ALL: u32 = 0xf << 4 | 0xf << 20;

/// CONFIGREG: channels whose select is active high.
pub(super) const fn ss_pol(channels: u8) -> u32 {
    (channels as u32 & 0xf) << 12
}

// STATREG. INTREG has each bit's interrupt enable at the same position: it interrupts while set.

/// The transmit FIFO is empty.
pub(super) const TE: u32 = 1 << 0;
/// The receive FIFO has a word.
pub(super) const RR: u32 = 1 << 3;
/// The receive FIFO has at least the words that [`rx_threshold`] was given.
pub(super) const RDR: u32 = 1 << 4;
/// The receive FIFO is full.
pub(super) const RF: u32 = 1 << 5;
/// A burst has ended; stays set until 1 is written to it.
pub(super) const TC: u32 = 1 << 7;

/// DMAREG: RX_THRESHOLD so that [`RDR`] is set from `words` (1 to 64) received words on; DMA off.
pub(super) const fn rx_threshold(words: usize) -> u32 {
    // "Greater than": INTREG.RDREN, STATREG.RDR and DMAREG agree.
    ((words as u32 - 1) & 0x3f) << 16
}

/// PERIODREG: clocks (0 to 63) from select to the first edge.
pub(super) const fn csd_ctl(clocks: u32) -> u32 {
    clocks << 16
}
/// The largest value of [`csd_ctl`].
pub(super) const CSD_CTL_MAX: u32 = 63;

/// TESTREG: loopback: the block receives what it sends.
pub(super) const LBC: u32 = 1 << 31;
