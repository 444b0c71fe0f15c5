//! The PrimeCell GPIO PL061, and its variant in Luminary's (now TI's) Stellaris.
//!
//! Read first: ARM DDI 0190, sections 3.3.1 (GPIODATA) and 3.3.2 (GPIODIR); LM3S6965 data sheet,
//! chapter GPIO, whose data window and direction register are the same.
//!
//! A bank has eight pins. GPIODATA is a window of 256 words: bits 9 to 2 of the address are a mask,
//! and an access touches the pins of its mask alone. So an edge is one write without a read, and
//! whoever drives other pins of the bank meanwhile loses nothing: there is no ownership to declare.
//!
//! # Ordering
//! 1. A pin is given its level before it becomes an output, and again after it has: the manual
//!    speaks only of outputs taking a level, and there are blocks in which an input's is lost. In
//!    such a block the pin is low in between; have it an output, or pulled up, before.
//! 2. GPIODIR has no mask. It is read once a pin, while the controller is made, and written if the pin
//!    is not an output yet. Another program's change of a direction between the two would be lost; on
//!    Linux the kernel makes the pin an output before, so that nothing is written here.
//!
//! # Not supported
//! GPIOAFSEL, and the pads of Stellaris (GPIODEN): which
//! pin is a GPIO is set by whoever brings the board up.

use super::GpioBank;
use crate::reg::Registers;

/// Pins of a bank.
const PINS: u32 = 0xff;
const GPIODIR: u32 = 0x400;

/// GPIODATA's offset for an access that touches the pins of `mask` alone.
const fn gpiodata(mask: u32) -> u32 {
    // What lies beyond the pins would reach the registers behind the window.
    (mask & PINS) << 2
}

/// One bank of PL061.
#[derive(Debug)]
pub struct Pl061<R> {
    regs: R,
}

impl<R: Registers> Pl061<R> {
    /// Takes the bank at `regs`.
    pub const fn new(regs: R) -> Self {
        Self { regs }
    }
}

impl<R: Registers> GpioBank for Pl061<R> {
    #[inline]
    fn drive(&mut self, mask: u32, high: bool) {
        self.regs.write(gpiodata(mask), if high { mask } else { 0 });
    }

    /// # Panics
    /// If `mask` has a pin above 7.
    fn output(&mut self, mask: u32, high: bool) {
        assert_eq!(mask & !PINS, 0, "a bank of PL061 has pins 0 to 7");
        // 1.
        self.drive(mask, high);
        // 2.
        let direction = self.regs.read(GPIODIR);
        if direction & mask != mask {
            self.regs.write(GPIODIR, direction | mask);
            self.drive(mask, high);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reg::Access::{Read, Write};
    use crate::reg::Fake;

    #[test]
    fn an_edge_is_one_write_of_its_pin_alone() {
        let script = [Write(0x010, 0x04), Write(0x010, 0), Write(0x200, 0), Write(0x204, 0x81)];
        let mut gpio = Pl061::new(Fake::new(&script));
        gpio.drive(1 << 2, true);
        gpio.drive(1 << 2, false);
        gpio.drive(1 << 7, false);
        gpio.drive(1 << 7 | 1, true);
        assert_eq!(gpio.regs.remaining(), 0);
    }

    #[test]
    fn a_pin_has_its_level_before_it_drives_and_after() {
        let script =
            [Write(0x020, 0x08), Read(GPIODIR, 0x81), Write(GPIODIR, 0x89), Write(0x020, 0x08)];
        let mut gpio = Pl061::new(Fake::new(&script));
        gpio.output(1 << 3, true);
        assert_eq!(gpio.regs.remaining(), 0);
    }

    #[test]
    fn a_pin_that_is_an_output_is_left_one() {
        let script = [Write(0x020, 0x08), Read(GPIODIR, 0x08)];
        let mut gpio = Pl061::new(Fake::new(&script));
        gpio.output(1 << 3, true);
        assert_eq!(gpio.regs.remaining(), 0);
    }

    #[test]
    #[should_panic(expected = "pins 0 to 7")]
    fn a_pin_the_bank_has_not_is_refused_before_anything_is_written() {
        Pl061::new(Fake::new(&[])).output(1 << 8, true);
    }
}
