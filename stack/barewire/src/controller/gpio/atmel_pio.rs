//! The PIO controller of SAMA5D3 and of the AT91 and SAM9 before it.
//!
//! Read first: SAMA5D3 Series datasheet, chapter "Parallel Input/Output Controller (PIO)", sections
//! "Output Control" and "Set and Clear Output Data".
//!
//! A bank sets pins by PIO_SODR and clears pins by PIO_CODR; both leave every other pin alone. So
//! an edge is one write and no read, and other writers of the bank do not matter.
//!
//! # Not supported
//! The PIO of SAMA5D2 and later (PIO4), whose registers are at other offsets. Open drain (PIO_MDER)
//! and pull-ups stay as the board configured them.

use super::{GpioBank, in_order};
use crate::reg::Registers;

/// PIO Enable Register: gives the pins to the PIO controller instead of a peripheral.
const PER: u32 = 0x00;
/// Output Enable Register.
const OER: u32 = 0x10;
/// Set Output Data Register.
const SODR: u32 = 0x30;
/// Clear Output Data Register.
const CODR: u32 = 0x34;

/// One bank of the PIO controller: PIOA, PIOB, …
#[derive(Debug)]
pub struct AtmelPio<R> {
    regs: R,
}

impl<R: Registers> AtmelPio<R> {
    /// Takes the bank at `regs`.
    pub fn new(regs: R) -> Self {
        Self { regs }
    }
}

impl<R: Registers> GpioBank for AtmelPio<R> {
    #[inline(always)]
    fn drive(&mut self, mask: u32, high: bool) {
        in_order(&mut self.regs, |regs| regs.write(if high { SODR } else { CODR }, mask));
    }

    fn output(&mut self, mask: u32, high: bool) {
        // The level and the direction first; the controller accepts both while a peripheral has the
        // pin. A pin that became an output at the wrong level would select its chip.
        self.drive(mask, high);
        self.regs.write(OER, mask);
        self.regs.write(PER, mask);
        self.regs.barrier();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reg::Access::{Barrier, Write};
    use crate::reg::Fake;

    #[test]
    fn an_edge_is_one_write_between_two_barriers() {
        let (fall, rise) = (Write(CODR, 0x8000), Write(SODR, 0x8000));
        let script = [Barrier, fall, Barrier, Barrier, rise, Barrier];
        let mut gpio = AtmelPio::new(Fake::new(&script));
        gpio.drive(0x8000, false);
        gpio.drive(0x8000, true);
        assert_eq!(gpio.regs.remaining(), 0);
    }

    #[test]
    fn a_pin_has_its_level_before_it_drives_and_drives_before_it_is_ours() {
        let script = [Write(SODR, 4), Write(OER, 4), Write(PER, 4), Barrier];
        let mut gpio = AtmelPio::new(Fake::new(&script));
        gpio.output(4, true);
        assert_eq!(gpio.regs.remaining(), 0);
    }
}
