//! A jumper: a wire from MOSI to MISO in place of a chip.
//!
//! *Read first*: nothing.
//!
//! Each bit returns in its own cell, as in a controller's loopback mode; it serves controllers that
//! have no such mode. It has no limits and never complains, so every violation in a run is the
//! controller's.
//!
//! *Not supported*: a jumper without a chip select. [`crate::wire`] connects MISO to the selected
//! chip, while a real jumper is always connected.

use crate::chip::{Chip, Clocking, Ps, WireLimits};
use crate::model::echo::NO_LIMITS;

/// The jumper wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jumper;

impl Chip for Jumper {
    fn name(&self) -> &'static str {
        "jumper"
    }

    fn limits(&self) -> WireLimits {
        NO_LIMITS
    }

    fn select(&mut self, _at: Ps) {}

    fn deselect(&mut self, _at: Ps) {}

    fn exchange(&mut self, _clocking: Clocking, mosi: u32, bits: u32) -> u32 {
        mosi & (u32::MAX >> (32 - bits))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::check::Faults;
    use crate::wire::{Driver, Run, Wire};

    #[test]
    fn every_bit_is_back_at_once_in_every_mode_and_width() {
        let mut wire = Wire::new(Faults::default());
        let cs = wire.add_line(Driver::Native(0), false);
        assert!(wire.attach(cs, Rc::new(RefCell::new(Jumper))));
        let mut at = 1_000;
        for mode in 0..4 {
            for bits in [1, 7, 8, 31, 32] {
                let mosi = 0xa5c3_0ff1 & (u32::MAX >> (32 - bits));
                wire.set_sck(mode & 2 != 0, at);
                wire.set_line(cs, false, at);
                let clocking = Clocking { at, period: 1_000 };
                wire.begin_run(Run { clocking, mode, bits, mosi, loopback: false });
                assert_eq!(wire.end_run(), mosi, "mode {mode}, {bits} bits");
                at += 40_000;
                wire.set_line(cs, true, at);
            }
        }
        assert_eq!(wire.violations(at).total(), 0);
    }
}
