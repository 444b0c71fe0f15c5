//! A wire from MOSI to MISO, for loopback tests; and one that tells in which mode it was clocked.

use std::cell::RefCell;
use std::rc::Rc;

use barewire_sim::Board;
use barewire_sim::chip::{Chip, Clocking, NO_LIMITS, Ps, WireLimits};
use barewire_sim::model::jumper::Jumper;

use super::{FitError, FittedChip};

/// Sends back what it hears, in mode N with the lowest two bits of each byte's halves changed by N. A plain
/// wire takes any mode, so it does not notice a driver or a model that exchanges two of them.
#[derive(Clone, Copy, Debug, Default)]
struct ModeEcho {
    mode: u8,
}

impl Chip for ModeEcho {
    fn name(&self) -> &'static str {
        "echo that tells the mode"
    }

    fn limits(&self) -> WireLimits {
        NO_LIMITS
    }

    fn clocked_in(&mut self, mode: u8) {
        self.mode = mode;
    }

    fn select(&mut self, _at: Ps) {}

    fn deselect(&mut self, _at: Ps) {}

    fn exchange(&mut self, _clocking: Clocking, mosi: u32, bits: u32) -> u32 {
        (mosi ^ (u32::from(self.mode) * 0x1111_1111)) & (u32::MAX >> (32 - bits))
    }
}

/// For the kernel's spi-loopback-test.
pub(super) fn jumper(board: &Board, cs: u8, max_hz: Option<&str>) -> Result<FittedChip, FitError> {
    let max_hz = max_hz.unwrap_or("10000000");
    let max_hz =
        max_hz.parse().map_err(|_| FitError(format!("{max_hz:?} is not a clock in Hz")))?;
    board.attach(cs, Rc::new(RefCell::new(Jumper)));
    Ok(FittedChip::new(cs, "loopback", "linux,spi-loopback-test", max_hz))
}

/// For spidev, which binds to this part's name.
pub(super) fn spidev(board: &Board, cs: u8) -> FittedChip {
    board.attach(cs, Rc::new(RefCell::new(ModeEcho::default())));
    FittedChip::new(cs, "spidev", "rohm,dh2228fv", 20_000_000)
}
