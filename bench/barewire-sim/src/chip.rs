//! A simulated chip as the wire sees it: edges of its chip select, bits, and the limits its
//! datasheet sets.
//!
//! Time here is virtual, in picoseconds since power-up, so that no SCK period is rounded.
//!
//! *Read first*: `docs/chip-models.md`, whose example is a whole chip.
//!
//! # How it works
//! The wire calls a [`Chip`]: edges of its chip select, bits, and edges at its input [pins](Pin). The
//! chip drives its output pins as a [`Source`], for instance an [`OutputPin`].
//! [`Board::attach_with_lines`](crate::Board::attach_with_lines) connects both kinds of pin to the
//! board. A chip that works in whole bytes may implement [`Bytewise`] and leave the bits to it; its
//! [`Complaints`] are kept until the wire takes them.

pub mod bytewise;
pub mod complaints;
pub mod pin;

pub use bytewise::{Bytewise, Partial};
pub use complaints::Complaints;
pub use pin::{OutputPin, Pin, Source};

/// Picoseconds of virtual time since power-up.
pub type Ps = u64;

/// Picoseconds in a nanosecond.
pub const PS_PER_NS: u64 = 1_000;
/// Picoseconds in a second.
pub(crate) const PS_PER_S: u64 = 1_000_000_000_000;

/// The limits a datasheet sets on the wire. The wire's checkers hold every selection to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireLimits {
    /// SPI modes the chip understands, as bits: bit `n` set means MODE_n.
    pub modes: u8,
    /// Shortest time from CS active to the first SCK edge, or whichever [`Chip::setup_edge`] says,
    /// in nanoseconds.
    pub cs_setup_ns: u64,
    /// Shortest time from the last SCK edge to CS inactive, in nanoseconds.
    pub cs_hold_ns: u64,
    /// Shortest time CS stays inactive between two selections, in nanoseconds.
    pub cs_inactive_ns: u64,
    /// Fastest SCK for any command, in hertz. A chip whose slowest read has a lower limit
    /// reports that itself.
    pub max_clock_hz: u32,
}

/// The edge of SCK up to which [`WireLimits::cs_setup_ns`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupEdge {
    /// The first edge, leading or trailing.
    First,
    /// The first one at which the chip samples: half a period later where CPHA is 1.
    Sampling,
}

/// How a run of bits is clocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocking {
    /// When the first bit's cell begins.
    pub at: Ps,
    /// One SCK period.
    pub period: Ps,
}

/// A chip on the bus.
///
/// MISO is pulled up: a bit that no chip drives reads as 1.
pub trait Chip {
    /// The part's name, as its maker writes it.
    fn name(&self) -> &'static str;

    /// The datasheet's limits for the wire.
    fn limits(&self) -> WireLimits;

    /// The edge up to which CS's set-up time counts.
    fn setup_edge(&self) -> SetupEdge {
        SetupEdge::First
    }

    /// The mode of the selection's clock, told before its first bit: for chips that act upon an
    /// edge between two bits. After a run SCK's last edge is behind in mode 0 and still to come in
    /// mode 3.
    fn clocked_in(&mut self, mode: u8) {
        let _ = mode;
    }

    /// CS becomes active.
    fn select(&mut self, at: Ps);

    /// CS becomes inactive. A flash chip, for example, starts an erase here.
    fn deselect(&mut self, at: Ps);

    /// Shifts the `bits` (1 to 32) least significant bits of `mosi` in, most significant first,
    /// and returns as many bits of MISO, aligned the same way. Only called while selected, and
    /// only in a mode of [`WireLimits::modes`].
    fn exchange(&mut self, clocking: Clocking, mosi: u32, bits: u32) -> u32;

    /// The chip's pins besides SCK, MOSI, MISO and CS: those that a board may
    /// [connect](crate::Board::attach_with_lines). None by default.
    fn pins(&self) -> Vec<Pin> {
        Vec::new()
    }

    /// Input pin `pin` has `level` since `at`. Called once when the pin is connected, then at every
    /// edge. The bits that were sampled before `at` have been exchanged by then.
    fn set_pin(&mut self, pin: &'static str, level: bool, at: Ps) {
        let _ = (pin, level, at);
    }

    /// Takes the oldest protocol rule that was broken since the last call (a command sent while
    /// busy, a clock above a command's own limit), in words.
    fn take_complaint(&mut self) -> Option<String> {
        None
    }
}

/// Limits that nothing breaks: every mode, any clock, no times.
pub const NO_LIMITS: WireLimits = WireLimits {
    modes: 0b1111,
    cs_setup_ns: 0,
    cs_hold_ns: 0,
    cs_inactive_ns: 0,
    max_clock_hz: u32::MAX,
};
