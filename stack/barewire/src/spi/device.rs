//! What one chip on the bus asks for, and what it gets.

use super::mode::{MODE_0, Mode};

/// A device's settings, by Linux's names. Delays are zero by default and in nanoseconds; the
/// hardware's quantum rounds them up, and [`Effective`] reports what became of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Settings {
    /// Which line of the controller's table of chip selects.
    pub chip_select: u8,
    /// Clock polarity, phase and flags.
    pub mode: Mode,
    /// The fastest clock the chip takes, in hertz, above zero. The clock is never faster.
    pub speed_hz: u32,
    /// Bits of a word: 8, 16 or 32 on most blocks. Words of 16 and 32 bits lie in buffers in the
    /// CPU's byte order, as in Linux.
    pub bits_per_word: u8,
    /// From CS active to the first clock edge.
    pub cs_setup_ns: u32,
    /// From the last clock edge to CS inactive.
    pub cs_hold_ns: u32,
    /// CS stays inactive at least this long after a message, and inside one at `cs_change`.
    pub cs_inactive_ns: u32,
    /// Between two words of a transfer.
    pub word_delay_ns: u32,
}

impl Settings {
    /// Settings for line `chip_select` at `speed_hz` hertz: MODE_0, 8-bit words, no delays.
    #[must_use]
    pub const fn new(chip_select: u8, speed_hz: u32) -> Self {
        Self {
            chip_select,
            mode: MODE_0,
            speed_hz,
            bits_per_word: 8,
            cs_setup_ns: 0,
            cs_hold_ns: 0,
            cs_inactive_ns: 0,
            word_delay_ns: 0,
        }
    }

    /// The same with another mode.
    #[must_use]
    pub const fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The same with words of `bits`.
    #[must_use]
    pub const fn with_bits_per_word(mut self, bits: u8) -> Self {
        self.bits_per_word = bits;
        self
    }
}

/// What the hardware makes of a device's [`Settings`]: never faster, never shorter than asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Effective {
    /// The clock, in hertz, rounded down.
    pub speed_hz: u32,
    /// From CS active to the first clock edge, at least, in nanoseconds.
    pub cs_setup_ns: u64,
    /// From the last clock edge to CS inactive, at least, in nanoseconds.
    pub cs_hold_ns: u64,
    /// CS inactive at least, in nanoseconds.
    pub cs_inactive_ns: u64,
    /// Between two words at least, in nanoseconds.
    pub word_delay_ns: u64,
    /// Clocks for which the controller rests after each word, SCK idle: 1 on BCM2835, else 0.
    pub word_rest_clocks: u8,
    /// The step in which delays are made, in nanoseconds, rounded up.
    pub quantum_ns: u64,
}
