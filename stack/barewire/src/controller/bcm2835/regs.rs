//! SPI0 registers and bits, by the manual's names.
//!
//! Read first: BCM2835 ARM Peripherals, section 10.5 (register map), and the errata that its users
//! keep at elinux.org: for CLK (p. 156) they say that the divisor is a multiple, not a power, of 2.

/// Control and status.
pub(super) const CS: u32 = 0x00;
/// Both FIFOs: one byte per access, while TA is set and DMAEN is not.
pub(super) const FIFO: u32 = 0x04;
/// Clock divider, CDIV.
pub(super) const CLK: u32 = 0x08;
/// Data length. The manual uses it for DMA only; users report that above 1 bytes lose their ninth
/// clock.
pub(super) const DLEN: u32 = 0x0c;

/// Bytes each FIFO holds: 16 words of 32 bits.
pub(super) const FIFO_BYTES: usize = 64;
/// Bytes in the receive FIFO when [`RXR`] is set: three quarters.
pub(super) const RXR_BYTES: usize = 48;
/// Clocks of a byte in which SCK rests.
pub(super) const BYTE_REST_CLOCKS: u8 = 1;
/// Clocks of a byte, including the rest.
pub(super) const BYTE_CLOCKS: u64 = 8 + BYTE_REST_CLOCKS as u64;
/// The largest divisor, which CDIV holds as 0.
pub(super) const DIVISOR_MAX: u32 = 1 << 16;

/// CS: the block's own line that is active while [`TA`] is set.
pub(super) const fn chip_select(channel: u8) -> u32 {
    (channel & 3) as u32
}
/// CS: clock phase.
pub(super) const CPHA: u32 = 1 << 2;
/// CS: clock polarity: the level at which SCK rests.
pub(super) const CPOL: u32 = 1 << 3;
/// CS: empties both FIFOs, once.
pub(super) const CLEAR: u32 = 0b11 << 4;
/// CS: transfer active: the named line is active, and bytes written to FIFO are sent.
pub(super) const TA: u32 = 1 << 7;
/// CS: interrupt while [`DONE`] is set.
pub(super) const INTD: u32 = 1 << 9;
/// CS: interrupt while [`RXR`] is set.
pub(super) const INTR: u32 = 1 << 10;
/// CS: with [`TA`], nothing is left to be sent and the last clock is over.
pub(super) const DONE: u32 = 1 << 16;
/// CS: the receive FIFO has a byte.
pub(super) const RXD: u32 = 1 << 17;
/// CS: the receive FIFO is three quarters full or more.
pub(super) const RXR: u32 = 1 << 19;
/// CS: the receive FIFO is full, and the block waits.
pub(super) const RXF: u32 = 1 << 20;
/// CS: line `channel` is active high.
pub(super) const fn cspol(channel: u8) -> u32 {
    1 << (21 + (channel & 3))
}
/// CS: the bits that this driver writes and that stay.
pub(super) const WRITTEN: u32 = cspol(0) | cspol(1) | TA | CPOL | CPHA | chip_select(3);

/// The divisor that `cdiv` stands for.
pub(super) const fn divisor(cdiv: u32) -> u32 {
    if cdiv == 0 { DIVISOR_MAX } else { cdiv }
}
