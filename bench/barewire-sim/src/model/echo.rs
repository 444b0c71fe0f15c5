//! A test chip: a plain shift register, eight bits long.
//!
//! *Read first*: nothing; it is the simplest chip that answers on four wires.
//!
//! Bits received on MOSI are sent on MISO eight bits later, even across selections. So a test can
//! check which bits were on the wire and in which order, whatever the word size.
//!
//! *Not supported*: anything else. It never complains.

pub use crate::chip::NO_LIMITS;
use crate::chip::{Chip, Clocking, Ps, WireLimits};

/// The shift register.
#[derive(Clone, Debug)]
pub struct Echo {
    limits: WireLimits,
    shift: u8,
    received: Vec<u8>,
    partial: (u32, u32),
    selections: u64,
}

impl Echo {
    /// Creates an echo with `limits` for the wire. Its register is zero at power-up.
    #[must_use]
    pub fn new(limits: WireLimits) -> Self {
        Self { limits, shift: 0, received: Vec::new(), partial: (0, 0), selections: 0 }
    }

    /// The whole bytes received since power-up. A selection begins a new byte.
    #[must_use]
    pub fn received(&self) -> &[u8] {
        &self.received
    }

    /// The number of selections.
    #[must_use]
    pub fn selections(&self) -> u64 {
        self.selections
    }
}

impl Default for Echo {
    fn default() -> Self {
        Self::new(NO_LIMITS)
    }
}

impl Chip for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn limits(&self) -> WireLimits {
        self.limits
    }

    fn select(&mut self, _at: Ps) {
        self.partial = (0, 0);
        self.selections += 1;
    }

    fn deselect(&mut self, _at: Ps) {}

    fn exchange(&mut self, _clocking: Clocking, mosi: u32, bits: u32) -> u32 {
        let mask = (1_u64 << bits) - 1;
        let through = u64::from(self.shift) << bits | u64::from(mosi) & mask;
        self.shift = through as u8;
        for bit in (0..bits).rev() {
            let (byte, filled) = &mut self.partial;
            *byte = *byte << 1 | mosi >> bit & 1;
            *filled += 1;
            if *filled == 8 {
                self.received.push(*byte as u8);
                self.partial = (0, 0);
            }
        }
        (through >> 8 & mask) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_eight_later() {
        let clocking = Clocking { at: 0, period: 1 };
        let mut echo = Echo::default();
        assert_eq!(echo.exchange(clocking, 0xa5, 8), 0);
        assert_eq!(echo.exchange(clocking, 0x1234_5678, 32), 0xa512_3456);
        assert_eq!(echo.exchange(clocking, 0, 3), 0x78 >> 5);
        assert_eq!(echo.received(), [0xa5, 0x12, 0x34, 0x56, 0x78]);
    }
}
