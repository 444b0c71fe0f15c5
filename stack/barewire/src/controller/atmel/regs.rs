//! Registers and bits of the SPI, by the manual's names.
//!
//! Read first: SAMA5D3 Series datasheet, chapter "Serial Peripheral Interface (SPI)", user
//! interface.

/// Control.
pub(super) const CR: u32 = 0x00;
/// Mode.
pub(super) const MR: u32 = 0x04;
/// Receive data.
pub(super) const RDR: u32 = 0x08;
/// Transmit data.
pub(super) const TDR: u32 = 0x0c;
/// Status. Reading it clears OVRES.
pub(super) const SR: u32 = 0x10;
/// Interrupt enable, at the positions of SR's bits.
pub(super) const IER: u32 = 0x14;
/// Interrupt disable, at the positions of SR's bits.
pub(super) const IDR: u32 = 0x18;

/// Chip select register of NPCS`channel`.
pub(super) const fn csr_of(channel: usize) -> u32 {
    0x30 + 4 * channel as u32
}
/// The number of NPCS lines.
pub(super) const CHANNELS: u8 = 4;

/// CR: enable.
pub(super) const SPIEN: u32 = 1 << 0;
/// CR: disable.
pub(super) const SPIDIS: u32 = 1 << 1;
/// CR: reset everything.
pub(super) const SWRST: u32 = 1 << 7;
/// CR: NPCS rises after the last word.
pub(super) const LASTXFER: u32 = 1 << 24;

/// MR: the block drives the clock.
pub(super) const MSTR: u32 = 1 << 0;
/// MR: variable peripheral select: PCS is in TDR, not in MR.
pub(super) const PS: u32 = 1 << 1;
/// MR: no mode fault detection, which would disable the block when NPCS0 is pulled low.
pub(super) const MODFDIS: u32 = 1 << 4;
/// MR: a word starts only when RDR has been read.
pub(super) const WDRBT: u32 = 1 << 5;
/// MR: loopback: the block receives what it sends.
pub(super) const LLB: u32 = 1 << 7;

/// MR and TDR: selects NPCS`channel`: its bit is low, the others are high.
pub(super) const fn pcs(channel: usize) -> u32 {
    (!(1 << (channel as u32 & 3)) & 0xf) << 16
}

/// MR: `periods` of the peripheral clock from the end of one NPCS to the begin of the next.
pub(super) const fn dlybcs(periods: u32) -> u32 {
    periods << 24
}
/// MR: the periods of [`dlybcs`].
pub(super) const fn dlybcs_of(mr: u32) -> u32 {
    mr >> 24
}
/// The shortest such delay in periods, whatever DLYBCS holds.
pub(super) const DLYBCS_MIN: u32 = 6;

/// SR: RDR holds a word.
pub(super) const RDRF: u32 = 1 << 0;
/// SR: TDR is free.
pub(super) const TDRE: u32 = 1 << 1;
/// SR: a word was received while RDR held another.
pub(super) const OVRES: u32 = 1 << 3;
/// SR: TDR and the shift register are free, and DLYBCT is over.
pub(super) const TXEMPTY: u32 = 1 << 9;

/// CSR: the clock idles high.
pub(super) const CPOL: u32 = 1 << 0;
/// CSR: bits are captured on the clock's leading edge: the inverse of CPHA.
pub(super) const NCPHA: u32 = 1 << 1;
/// CSR: NPCS stays active after the last word.
pub(super) const CSAAT: u32 = 1 << 3;
/// CSR: words of 16 bits, not 8.
pub(super) const BITS_16: u32 = 8 << 4;
/// CSR: the bits of [`scbr`].
pub(super) const SCBR: u32 = 0xff << SCBR_SHIFT;
pub(super) const SCBR_SHIFT: u32 = 8;
/// CSR: the bits of [`dlybct`].
pub(super) const DLYBCT: u32 = 0xff << 24;
/// The largest value of a delay field.
pub(super) const DELAY_MAX: u32 = 0xff;

/// CSR: the clock is the peripheral clock divided by `divisor` (1 to 255).
pub(super) const fn scbr(divisor: u32) -> u32 {
    divisor << 8
}
/// CSR: the divisor of [`scbr`].
pub(super) const fn scbr_of(csr: u32) -> u32 {
    csr >> 8 & 0xff
}
/// CSR: `periods` of the peripheral clock from NPCS to the first edge; 0 means half a clock.
pub(super) const fn dlybs(periods: u32) -> u32 {
    periods << 16
}
/// CSR: `steps` of [`DLYBCT_PERIODS`] between two words.
pub(super) const fn dlybct(steps: u32) -> u32 {
    steps << 24
}
/// CSR: the steps of [`dlybct`].
pub(super) const fn dlybct_of(csr: u32) -> u32 {
    csr >> 24
}
/// Periods of the peripheral clock in a step of DLYBCT.
pub(super) const DLYBCT_PERIODS: u32 = 32;
