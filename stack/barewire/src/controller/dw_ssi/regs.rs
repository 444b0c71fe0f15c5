//! DW_apb_ssi registers and bits, by the databook's names.
//!
//! *Read first*: the sources that [`super`] names; the register descriptions there.

/// Control register 0: frame size, mode. Writable while the block is disabled.
pub(super) const CTRLR0: u32 = 0x00;
/// Enable. Clearing it stops the block at once and empties both FIFOs.
pub(super) const SSIENR: u32 = 0x08;
/// Slave enable: one bit per native select line. While it is 0 nothing is sent.
pub(super) const SER: u32 = 0x10;
/// Clock divisor, SCKDV: even, and 0 for no clock. Writable while the block is disabled.
pub(super) const BAUDR: u32 = 0x14;
/// Transmit FIFO threshold: holds values below the FIFO's depth only.
pub(super) const TXFTLR: u32 = 0x18;
/// Receive FIFO threshold: [`RXF`] is set while the FIFO holds more words than this.
pub(super) const RXFTLR: u32 = 0x1c;
/// Words in the receive FIFO.
pub(super) const RXFLR: u32 = 0x24;
/// Status.
pub(super) const SR: u32 = 0x28;
/// Interrupt mask: a set bit enables the interrupt. All are set after a reset.
pub(super) const IMR: u32 = 0x2c;
/// Raw interrupt status.
pub(super) const RISR: u32 = 0x34;
/// Interrupt clear: reading it clears [`RXO`] and the other overflow and underflow bits.
pub(super) const ICR: u32 = 0x48;
/// DMA control.
pub(super) const DMACR: u32 = 0x4c;
/// Both FIFOs: one word per access.
pub(super) const DR: u32 = 0x60;

/// CTRLR0: clock phase, CPHA.
pub(super) const SCPH: u32 = 1 << 6;
/// CTRLR0: clock polarity, CPOL.
pub(super) const SCPOL: u32 = 1 << 7;
/// CTRLR0: shift register loop: the block receives what it sends.
pub(super) const SRL: u32 = 1 << 11;
/// CTRLR0: the mode, frame format and transfer mode: all but the frame size.
pub(super) const MODE: u32 = 0xfff0;
/// CTRLR0: the frame size of blocks with frames of up to 32 bits, DFS_32; the others keep 0 there.
pub(super) const DFS_32: u32 = 0x1f << DFS_32_SHIFT;
const DFS_32_SHIFT: u32 = 16;
/// CTRLR0: the frame size of blocks with frames of up to 16 bits.
const DFS: u32 = 0xf;

/// CTRLR0: frames of `bytes` bytes, in DFS_32 if the block is `wide` (1 to 4), else in DFS (1 or 2).
pub(super) const fn frame_size(bytes: u8, wide: bool) -> u32 {
    let size = 8 * bytes as u32 - 1;
    if wide { size << DFS_32_SHIFT } else { size }
}

/// Bits of a frame under `ctrlr0`.
pub(super) const fn frame_bits(ctrlr0: u32, wide: bool) -> u32 {
    1 + if wide { (ctrlr0 & DFS_32) >> DFS_32_SHIFT } else { ctrlr0 & DFS }
}

/// SR: a frame is on the wire. It sets only some clocks after the first word was written.
pub(super) const BUSY: u32 = 1 << 0;
/// SR: the receive FIFO has a word.
pub(super) const RFNE: u32 = 1 << 3;

/// IMR, RISR: a word was received while the receive FIFO was full, and lost.
pub(super) const RXO: u32 = 1 << 3;
/// IMR, RISR: the receive FIFO holds more words than RXFTLR.
pub(super) const RXF: u32 = 1 << 4;

/// The largest divisor: SCKDV has 16 bits, of which the lowest is 0.
pub(super) const DIVISOR_MAX: u32 = 65_534;
/// The most select lines that a block can have.
pub(super) const LINES_MAX: u8 = 16;
/// The most words that a FIFO can have.
pub(super) const DEPTH_MAX: u32 = 256;
