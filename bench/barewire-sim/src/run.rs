//! A run of bits: what a controller puts on the wire at one go. The public path is
//! [`wire::Run`](crate::wire::Run).

use crate::chip::{Clocking, Ps};

/// How a run of bits leaves the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// When the first bit's cell begins, and the SCK period.
    pub clocking: Clocking,
    /// The SPI mode, 0 to 3: bit 1 is CPOL, bit 0 CPHA.
    pub mode: u8,
    /// How many bits, 1 to 32.
    pub bits: u32,
    /// The bits, in the least significant part, the most significant of them first on the wire.
    pub mosi: u32,
    /// The controller does not listen to MISO: clocks without a chip select are meant.
    pub loopback: bool,
}

impl Run {
    /// From a cell's beginning to its sampling edge.
    #[must_use]
    pub fn half(&self) -> Ps {
        self.clocking.period / 2
    }

    /// When the last bit's cell ends.
    #[must_use]
    pub fn end(&self) -> Ps {
        self.clocking.at + u64::from(self.bits) * self.clocking.period
    }

    /// When a controller samples the last bit: at that cell's edge, half a period before its end.
    pub(crate) fn sampled(&self) -> Ps {
        self.end() - (self.clocking.period - self.half())
    }

    /// Whether data is sampled at the trailing edge.
    pub(crate) fn cpha(&self) -> bool {
        self.mode & 1 != 0
    }
}
