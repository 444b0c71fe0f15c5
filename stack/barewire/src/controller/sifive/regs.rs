//! SPI registers and bits, by the manual's names.
//!
//! *Read first*: the sources that [`super`] names; the register descriptions there.

/// Serial clock divisor, 12 bits: SCK is the input clock divided by twice this plus one.
pub(super) const SCKDIV: u32 = 0x00;
/// Serial clock mode: phase in bit 0, polarity in bit 1.
pub(super) const SCKMODE: u32 = 0x04;
/// Chip select ID: the index of the line that a frame selects.
pub(super) const CSID: u32 = 0x10;
/// Chip select default: a bit for each line, its inactive level.
pub(super) const CSDEF: u32 = 0x14;
/// Chip select mode.
pub(super) const CSMODE: u32 = 0x18;
/// Delays between a chip select's edges and SCK, in clocks.
pub(super) const DELAY0: u32 = 0x28;
/// Delays between frames, in clocks.
pub(super) const DELAY1: u32 = 0x2c;
/// Frame format.
pub(super) const FMT: u32 = 0x40;
/// Transmit FIFO: a byte each write.
pub(super) const TXDATA: u32 = 0x48;
/// Receive FIFO: a read takes a byte out, or says [`EMPTY`].
pub(super) const RXDATA: u32 = 0x4c;
/// Receive watermark: [`RXWM`] is set while the receive FIFO holds more bytes than this.
pub(super) const RXMARK: u32 = 0x54;
/// Flash interface control: bit 0 maps a flash chip into memory.
pub(super) const FCTRL: u32 = 0x60;
/// Interrupt enable.
pub(super) const IE: u32 = 0x70;

/// SCKDIV: the largest value.
pub(super) const DIV_MAX: u32 = 0xfff;
/// SCKMODE: clock phase, CPHA.
pub(super) const PHA: u32 = 1 << 0;
/// SCKMODE: clock polarity, CPOL.
pub(super) const POL: u32 = 1 << 1;
/// CSMODE: the line is active during each frame alone.
pub(super) const AUTO: u32 = 0;
/// CSMODE: the line stays active after the first frame.
pub(super) const HOLD: u32 = 2;
/// CSMODE: no line moves, and the block stays selected after the first frame.
pub(super) const OFF: u32 = 3;
/// DELAY0: one clock before SCK's first edge and one after its last, as after a reset.
pub(super) const DELAY0_RESET: u32 = 0x0001_0001;
/// DELAY1: one clock between two selects and none between frames, as after a reset.
pub(super) const DELAY1_RESET: u32 = 0x0000_0001;
/// FMT: least significant bit first.
pub(super) const ENDIAN: u32 = 1 << 2;
/// FMT: frames of 8 bits on single lines, and what comes is received.
pub(super) const FMT_BYTES: u32 = 8 << 16;
/// RXDATA: the FIFO was empty, and this is no byte.
pub(super) const EMPTY: u32 = 1 << 31;
/// IE: the receive FIFO holds more bytes than RXMARK.
pub(super) const RXWM: u32 = 1 << 1;

/// Bytes that each FIFO holds.
pub(super) const DEPTH: usize = 8;
/// The lines that CSDEF has bits for.
pub(super) const LINES_MAX: u8 = 32;
