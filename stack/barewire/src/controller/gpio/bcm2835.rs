//! The BCM2835 GPIO block, in every Raspberry Pi up to the 4.
//!
//! Read first: BCM2835 ARM Peripherals, chapter 6 (GPFSELn, GPSETn, GPCLRn) and section 1.3
//! (accesses to two peripherals need not arrive in the order they were made).
//!
//! A write to GPSET or GPCLR changes the pins whose bits are one and leaves the other pins alone.
//! So an edge is one write and no read, whatever other programs drive in the bank, and there is no
//! ownership to declare. Only making a pin an output reads and writes a register that it shares
//! with the functions of nine other pins. That happens once, at bring-up, and not if the pin is an
//! output already.
//!
//! # Ordering
//! 1. A pin gets its level before it becomes an output. The block keeps the level meanwhile.
//! 2. The manual asks for a barrier wherever a program turns from one peripheral to another. An
//!    edge is such a turn, and so is going back to the SPI block: a barrier stands on both sides of
//!    it.
//!
//! # Not supported
//! GPIO 32 to 53, which are on no header. The functions of the SCK, MOSI and MISO pins: the board
//! must connect them to the SPI block.

use super::{GpioBank, in_order};
use crate::reg::Registers;

/// Function select of pins 0 to 9, three bits per pin; one further register for every ten pins.
const GPFSEL0: u32 = 0x00;
const GPSET0: u32 = 0x1c;
const GPCLR0: u32 = 0x28;

const PINS_PER_FSEL: u32 = 10;
const FUNCTION: u32 = 0b111;
const OUTPUT: u32 = 0b001;

/// GPIO 0 to 31 of the BCM2835 GPIO block.
#[derive(Debug)]
pub struct Bcm2835Gpio<R> {
    regs: R,
}

impl<R: Registers> Bcm2835Gpio<R> {
    /// Takes the block at `regs`.
    pub fn new(regs: R) -> Self {
        Self { regs }
    }
}

impl<R: Registers> GpioBank for Bcm2835Gpio<R> {
    #[inline(always)]
    fn drive(&mut self, mask: u32, high: bool) {
        // Ordering 2: a barrier on both sides of the edge.
        in_order(&mut self.regs, |regs| regs.write(if high { GPSET0 } else { GPCLR0 }, mask));
    }

    fn output(&mut self, mask: u32, high: bool) {
        // Ordering 1: the level before the direction.
        self.drive(mask, high);
        for pin in (0..u32::BITS).filter(|pin| mask >> pin & 1 != 0) {
            let fsel = GPFSEL0 + pin / PINS_PER_FSEL * 4;
            let shift = pin % PINS_PER_FSEL * 3;
            let before = self.regs.read(fsel);
            if before >> shift & FUNCTION != OUTPUT {
                self.regs.write(fsel, before & !(FUNCTION << shift) | OUTPUT << shift);
            }
        }
        // Ordering 2: the direction reaches the block before the controller is used.
        self.regs.barrier();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reg::Access::{self, Barrier, Read, Write};
    use crate::reg::Fake;

    fn held(script: &[Access], drive: impl FnOnce(&mut Bcm2835Gpio<&mut Fake<'_>>)) {
        let mut fake = Fake::new(script);
        drive(&mut Bcm2835Gpio::new(&mut fake));
        assert_eq!(fake.remaining(), 0);
    }

    #[test]
    fn an_edge_is_one_write_between_two_barriers() {
        let rise = [Barrier, Write(0x1c, 0x100), Barrier];
        held(&rise, |gpio| gpio.drive(1 << 8, true));
        let fall = [Barrier, Write(0x28, 0x100), Barrier];
        held(&fall, |gpio| gpio.drive(1 << 8, false));
    }

    #[test]
    fn a_pin_has_its_level_before_it_drives() {
        // Pin 8 was the SPI block's CE0 (function 0b100); its neighbours keep theirs.
        let script =
            [Write(0x1c, 0x100), Read(0x00, 0x2420_0001), Write(0x00, 0x2120_0001), Barrier];
        held(&script, |gpio| gpio.output(1 << 8, true));
    }

    #[test]
    fn a_pin_that_is_an_output_is_left_one() {
        held(&[Write(0x28, 0x100), Read(0x00, 0x2120_0001)], |gpio| gpio.output(1 << 8, false));
    }

    #[test]
    fn every_pin_of_the_bank_has_its_function() {
        let script = [
            Write(0x1c, 0x8000_0600),
            Read(0x00, 0),
            Write(0x00, 1 << 27),
            Read(0x04, 0xffff_ffff),
            Write(0x04, 0xffff_fff9),
            Read(0x0c, 0),
            Write(0x0c, 1 << 3),
        ];
        held(&script, |gpio| gpio.output(1 << 9 | 1 << 10 | 1 << 31, true));
    }
}
