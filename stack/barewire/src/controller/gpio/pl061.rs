//! The PrimeCell GPIO PL061, and its variant in Luminary's (now TI's) Stellaris.
//!
//! Read first: ARM DDI 0190, sections 3.3.1 (GPIODATA) and 3.3.2 (GPIODIR); LM3S6965 data sheet,
//! chapter GPIO, whose data window and direction register are the same.
//!
//! A bank has eight pins. GPIODATA is a window of 256 words: bits 9 to 2 of the address are a mask,
//! and an access touches only the pins of its mask. So an edge is one write and no read. Programs
//! that drive other pins of the bank are not disturbed, and there is no ownership to declare.
//!
//! # Ordering
//! 1. A pin gets its level before it becomes an output, and again afterwards. The manual says that
//!    GPIODATA's value is transferred to pins that are outputs; it does not say whether the value
//!    of an input is kept. Linux's gpio-pl061 sets it again because it is not ("pl061 doesn't allow
//!    to set value of a gpio pin before configuring it in OUT mode"), and QEMU's model drops it
//!    too.
//! 2. If the value is dropped, a pin that becomes an output is low until it is set again. No order
//!    of accesses avoids that: an active-low chip sees a selection of about 100 ns without a clock.
//!    The driver waits `cs_inactive` after it. Boot code that leaves the pin an output at its
//!    inactive level avoids it.
//! 3. A pin that is an output already keeps its direction: GPIODIR is not written, and the level
//!    only once.
//! 4. GPIODIR has no mask. It is read once per pin, at bring-up, and written if the pin is not an
//!    output yet. A change of another direction by another program between the two would be lost.
//!    Under Linux the kernel makes the pin an output first, so that nothing is written here.
//!
//! # Not supported
//! GPIOAFSEL, and the pads of Stellaris (GPIODEN): the board's bring-up code must make the pin a
//! GPIO.

use super::{GpioBank, in_order};
use crate::reg::Registers;

/// Pins of a bank.
const PINS: u32 = 0xff;
const GPIODIR: u32 = 0x400;

/// GPIODATA's offset for an access that touches only the pins of `mask`.
const fn gpiodata(mask: u32) -> u32 {
    // Other bits would address the registers behind the window.
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
    #[inline(always)]
    fn drive(&mut self, mask: u32, high: bool) {
        let value = if high { mask } else { 0 };
        in_order(&mut self.regs, |regs| regs.write(gpiodata(mask), value));
    }

    /// # Panics
    /// If `mask` has a pin above 7.
    fn output(&mut self, mask: u32, high: bool) {
        assert_eq!(mask & !PINS, 0, "a bank of PL061 has pins 0 to 7");
        // Step 1: the level before the direction.
        self.drive(mask, high);
        // Step 3: an output keeps its direction.
        let direction = self.regs.read(GPIODIR);
        if direction & mask != mask {
            // Step 4: GPIODIR is read and written back.
            self.regs.write(GPIODIR, direction | mask);
            // No barrier between: both writes go to this block, and the pin may be at the wrong
            // level now.
            self.regs.write(gpiodata(mask), if high { mask } else { 0 });
            self.regs.barrier();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reg::Access::{Barrier, Read, Write};
    use crate::reg::Fake;

    #[test]
    fn an_edge_is_one_write_of_its_pin_alone_between_two_barriers() {
        let edges = [Write(0x010, 0x04), Write(0x010, 0), Write(0x200, 0), Write(0x204, 0x81)];
        let script = edges.map(|edge| [Barrier, edge, Barrier]);
        let script = script.as_flattened();
        let mut gpio = Pl061::new(Fake::new(script));
        gpio.drive(1 << 2, true);
        gpio.drive(1 << 2, false);
        gpio.drive(1 << 7, false);
        gpio.drive(1 << 7 | 1, true);
        assert_eq!(gpio.regs.remaining(), 0);
    }

    #[test]
    fn a_pin_has_its_level_before_it_drives_and_after() {
        let (level, output) = (Write(0x020, 0x08), Write(GPIODIR, 0x89));
        let script = [Barrier, level, Barrier, Read(GPIODIR, 0x81), output, level, Barrier];
        let mut gpio = Pl061::new(Fake::new(&script));
        gpio.output(1 << 3, true);
        assert_eq!(gpio.regs.remaining(), 0);
    }

    #[test]
    fn a_pin_that_is_an_output_is_left_one() {
        let script = [Write(0x020, 0), Barrier, Read(GPIODIR, 0x89)];
        let mut gpio = Pl061::new(Fake::new(&script));
        gpio.output(1 << 3, false);
        assert_eq!(gpio.regs.remaining(), 0);
    }

    #[test]
    #[should_panic(expected = "pins 0 to 7")]
    fn a_pin_the_bank_has_not_is_refused_before_anything_is_written() {
        Pl061::new(Fake::new(&[])).output(1 << 8, true);
    }
}
