//! The GPIO block of TI's OMAP4 and later: AM335x, AM437x.
//!
//! Read first: TI, *AM335x and AMIC110 Sitara Processors Technical Reference Manual* (SPRUH73), chapter 25,
//! "General-Purpose Input/Output": GPIO_OE, GPIO_CLEARDATAOUT, GPIO_SETDATAOUT.
//!
//! A bank has 32 pins. It sets pins by GPIO_SETDATAOUT and clears pins by GPIO_CLEARDATAOUT; both leave every other
//! pin alone. So an edge is one write and no read, and other writers of the bank do not matter.
//!
//! # Ordering
//! A pin gets its level before it becomes an output. GPIO_OE has no set and clear registers: it is read at
//! bring-up, and written if the pin is not an output yet. A direction that another program changes between the two is lost.
//!
//! # Not supported
//! The GPIO of AM62x and AM64x (`ti,am64-gpio`), which is another block; the pads' functions: the board must make
//! the pin a GPIO.

use super::{GpioBank, in_order};
use crate::reg::Registers;

/// Output enable: a pin whose bit is 0 is an output.
const OE: u32 = 0x134;
const CLEARDATAOUT: u32 = 0x190;
const SETDATAOUT: u32 = 0x194;

/// One bank: GPIO0, GPIO1, …
#[derive(Debug)]
pub struct OmapGpio<R> {
    regs: R,
}

impl<R: Registers> OmapGpio<R> {
    /// Takes the bank at `regs`.
    pub fn new(regs: R) -> Self {
        Self { regs }
    }
}

impl<R: Registers> GpioBank for OmapGpio<R> {
    #[inline(always)]
    fn drive(&mut self, mask: u32, high: bool) {
        let register = if high { SETDATAOUT } else { CLEARDATAOUT };
        in_order(&mut self.regs, |regs| regs.write(register, mask));
    }

    fn output(&mut self, mask: u32, high: bool) {
        self.drive(mask, high);
        let inputs = self.regs.read(OE);
        if inputs & mask != 0 {
            self.regs.write(OE, inputs & !mask);
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
    fn an_edge_is_one_write_between_two_barriers() {
        let script =
            [Barrier, Write(0x190, 1 << 28), Barrier, Barrier, Write(0x194, 1 << 28), Barrier];
        let mut gpio = OmapGpio::new(Fake::new(&script));
        gpio.drive(1 << 28, false);
        gpio.drive(1 << 28, true);
        assert_eq!(gpio.regs.remaining(), 0);
    }

    #[test]
    fn a_pin_has_its_level_before_it_drives_and_an_output_is_left_one() {
        let script = [
            Write(0x194, 4),
            Read(0x134, u32::MAX),
            Write(0x134, u32::MAX - 4),
            Barrier,
            Write(0x190, 4),
            Read(0x134, u32::MAX - 4),
        ];
        let mut gpio = OmapGpio::new(Fake::new(&script));
        gpio.output(4, true);
        gpio.output(4, false);
        assert_eq!(gpio.regs.remaining(), 0);
    }
}
