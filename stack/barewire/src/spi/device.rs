//! A device's settings, as requested and as the hardware implements them.

use super::mode::{MODE_0, Mode};

/// A device's settings, under Linux's names. Delays are in nanoseconds and zero by default. They
/// are rounded up to the hardware's quantum; [`Effective`] reports the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Settings {
    /// The index in the controller's table of chip selects.
    pub chip_select: u8,
    /// Clock polarity, phase and flags.
    pub mode: Mode,
    /// The fastest clock that the chip supports, in hertz, above zero. The clock is never faster.
    pub speed_hz: u32,
    /// Bits of a word: 8, 16 or 32 on most blocks. In buffers, words of 16 and 32 bits have the
    /// CPU's byte order, as in Linux.
    pub bits_per_word: u8,
    /// From CS active to the first clock edge.
    pub cs_setup_ns: u32,
    /// From the last clock edge to CS inactive.
    pub cs_hold_ns: u32,
    /// The least time for which CS stays inactive after a message, and at `cs_change` within one.
    pub cs_inactive_ns: u32,
    /// Between two words of a transfer.
    pub word_delay_ns: u32,
    /// A transfer that takes longer on the wire, in nanoseconds, waits by interrupt; a shorter one is polled. `None` for the
    /// controller's limit, `Some(0)` for always by interrupt,
    /// [`ALWAYS_POLL`](crate::controller::ALWAYS_POLL) for never. Ignored where the controller has no interrupt or does not
    /// poll (spidev).
    pub poll_limit_ns: Option<u32>,
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
            poll_limit_ns: None,
        }
    }

    /// Sets the mode.
    #[must_use]
    pub const fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets up to which time on the wire, in nanoseconds, a transfer is polled.
    #[must_use]
    pub const fn with_poll_limit_ns(mut self, poll_limit_ns: u32) -> Self {
        self.poll_limit_ns = Some(poll_limit_ns);
        self
    }

    /// Sets the word length, in bits.
    #[must_use]
    pub const fn with_bits_per_word(mut self, bits: u8) -> Self {
        self.bits_per_word = bits;
        self
    }
}

/// A device's [`Settings`] as the hardware implements them: the clock never faster, delays never
/// shorter than asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Effective {
    /// The clock, in hertz, rounded down.
    pub speed_hz: u32,
    /// From CS active to the first clock edge, at least, in nanoseconds.
    pub cs_setup_ns: u64,
    /// From the last clock edge to CS inactive, at least, in nanoseconds.
    pub cs_hold_ns: u64,
    /// The least time for which CS stays inactive, in nanoseconds.
    pub cs_inactive_ns: u64,
    /// The least time between two words, in nanoseconds.
    pub word_delay_ns: u64,
    /// Clocks for which SCK rests after each word: 1 on BCM2835, else 0.
    pub word_rest_clocks: u8,
    /// The quantum of delays, in nanoseconds, rounded up.
    pub quantum_ns: u64,
}
