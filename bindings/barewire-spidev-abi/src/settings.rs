//! A node's settings, and their meaning on the wire.

use barewire::controller::Limits;
use barewire::spi::{Mode, Settings};

/// The mode's bits that the kernel drops where the controller has no such lines: dual, quad, octal.
pub(crate) const LINES: u32 = 0x6f00;
/// The mode's bits that the controller, or this module, supports; others are refused.
pub(crate) const MADE: u32 = CPHA | CPOL | CS_HIGH | LSB_FIRST | LOOP | NO_CS;

const CPHA: u32 = 0x01;
const CPOL: u32 = 0x02;
pub(crate) const CS_HIGH: u32 = 0x04;
pub(crate) const LSB_FIRST: u32 = 0x08;
const LOOP: u32 = 0x20;
const NO_CS: u32 = 0x40;

/// A node's settings, as the program made them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSettings {
    /// The mode, as `SPI_IOC_RD_MODE32` tells it.
    pub mode: u32,
    /// Bits of a word.
    pub bits_per_word: u8,
    /// The clock, in hertz.
    pub speed_hz: u32,
}

/// A node's settings as a device's, whose clock the controller can make. `board` is what the board adds to the
/// mode.
pub(crate) fn on_the_wire(
    chip_select: u8,
    board: Mode,
    limits: &Limits,
    mode: u32,
    bits_per_word: u8,
    speed_hz: u32,
) -> Settings {
    let speed_hz = speed_hz.clamp(limits.min_speed_hz, limits.max_speed_hz);
    let known = [(CPHA, Mode::CPHA), (CPOL, Mode::CPOL), (LOOP, Mode::LOOP), (NO_CS, Mode::NO_CS)];
    let asked = known.into_iter().filter(|(bit, _)| mode & bit != 0);
    let flags = asked.fold(board, |flags, (_, flag)| flags | flag);
    Settings::new(chip_select, speed_hz).with_mode(flags).with_bits_per_word(bits_per_word)
}
