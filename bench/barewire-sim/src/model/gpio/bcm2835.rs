//! The GPIO block of the BCM2835: 54 pins, their functions and levels.
//!
//! *Read first*: BCM2835 ARM Peripherals, chapter 6, GPIO (register view; in the table of
//! alternative functions, the column of pulls).
//!
//! # How it works
//! A pin whose GPFSEL field says output drives its latch. Any other pin has the level its
//! surroundings give it, by default that of its pull at reset. GPSET and GPCLR change the latches
//! of pins of any function. So software can set the latch before the pin becomes an output;
//! otherwise the pin first drives the old latch. So an edge takes one write and no read.
//!
//! GPSET and GPCLR cannot be read, and GPLEV cannot be written: such an access is reported as one
//! to no register.
//!
//! # Not supported
//! - Event detection (GPEDS, GPREN, GPFEN, GPHEN, GPLEN, GPAREN, GPAFEN) and the control of pulls
//!   (GPPUD, GPPUDCLK): accesses to no register.
//! - What the alternative functions drive: their pins have the level the surroundings give them.

use super::{GpioBlock, GpioKind, NoRegister};

/// The GPIO block of BCM2835 and its successors up to BCM2837.
pub const KIND: GpioKind = GpioKind {
    name: "BCM2835 GPIO",
    bytes: 0xb4,
    registers: &[
        (0x00, "GPFSEL0"),
        (0x04, "GPFSEL1"),
        (0x08, "GPFSEL2"),
        (0x0c, "GPFSEL3"),
        (0x10, "GPFSEL4"),
        (0x14, "GPFSEL5"),
        (0x1c, "GPSET0"),
        (0x20, "GPSET1"),
        (0x28, "GPCLR0"),
        (0x2c, "GPCLR1"),
        (0x34, "GPLEV0"),
        (0x38, "GPLEV1"),
    ],
    model: |_| Box::new(Bcm2835Gpio::new()),
    drive: |write, pins, high| {
        write(0x1c, high);
        write(0x28, pins & !high);
        for register in 0..4 {
            let functions = (0..10).filter(|pin| u64::from(pins) >> (10 * register + pin) & 1 != 0);
            let functions: u32 = functions.map(|pin| 1 << (3 * pin)).sum();
            if functions != 0 {
                write(4 * register, functions);
            }
        }
    },
};

const GPFSEL0: u32 = 0x00;
const GPFSEL5: u32 = 0x14;
const GPSET0: u32 = 0x1c;
const GPSET1: u32 = 0x20;
const GPCLR0: u32 = 0x28;
const GPCLR1: u32 = 0x2c;
const GPLEV0: u32 = 0x34;
const GPLEV1: u32 = 0x38;

const PINS: u32 = 54;
const ALL: u64 = (1 << PINS) - 1;
const PINS_PER_GPFSEL: u32 = 10;
const OUTPUT: u32 = 0b001;

/// Pins 0 to 8, 34 to 36 and 46 to 53 are pulled up at reset. The four pins without a pull are low
/// in the model.
const PULLED_UP: u64 = 0x1ff | 0x7 << 34 | 0xff << 46;

/// One GPIO block.
#[derive(Clone, Debug)]
pub struct Bcm2835Gpio {
    gpfsel: [u32; 6],
    /// The pins whose function is output.
    outputs: u64,
    latch: u64,
    outside: u64,
}

impl Bcm2835Gpio {
    /// The block at reset: all pins inputs, with their pulls.
    #[must_use]
    pub fn new() -> Self {
        Self { gpfsel: [0; 6], outputs: 0, latch: 0, outside: PULLED_UP }
    }

    fn select(&mut self, register: usize, value: u32) {
        let first = register as u32 * PINS_PER_GPFSEL;
        let fields = PINS_PER_GPFSEL.min(PINS - first);
        let value = value & ((1 << (3 * fields)) - 1);
        self.gpfsel[register] = value;
        for field in 0..fields {
            let pin = 1 << (first + field);
            if value >> (3 * field) & 0b111 == OUTPUT {
                self.outputs |= pin;
            } else {
                self.outputs &= !pin;
            }
        }
    }
}

/// The index of the GPFSEL word at `offset`, if it is one.
fn gpfsel(offset: u32) -> Option<usize> {
    let register = (GPFSEL0..=GPFSEL5).contains(&offset) && offset.is_multiple_of(4);
    register.then_some(offset as usize / 4)
}

impl GpioBlock for Bcm2835Gpio {
    fn read(&self, offset: u32) -> Result<u32, NoRegister> {
        if let Some(register) = gpfsel(offset) {
            return Ok(self.gpfsel[register]);
        }
        match offset {
            GPLEV0 => Ok(self.pads() as u32),
            GPLEV1 => Ok((self.pads() >> 32) as u32),
            _ => Err(NoRegister),
        }
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), NoRegister> {
        if let Some(register) = gpfsel(offset) {
            self.select(register, value);
            return Ok(());
        }
        let value = u64::from(value);
        match offset {
            GPSET0 => self.latch |= value,
            GPSET1 => self.latch |= value << 32 & ALL,
            GPCLR0 => self.latch &= !value,
            GPCLR1 => self.latch &= !(value << 32),
            _ => return Err(NoRegister),
        }
        Ok(())
    }

    fn pins(&self) -> u8 {
        PINS as u8
    }

    fn pads(&self) -> u64 {
        self.latch & self.outputs | self.outside & !self.outputs
    }

    fn set_outside(&mut self, bit: u8, level: bool) {
        let pin = 1_u64.checked_shl(u32::from(bit)).unwrap_or(0) & ALL;
        self.outside = if level { self.outside | pin } else { self.outside & !pin };
    }
}

super::default_is_new!(Bcm2835Gpio);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reset_values() {
        let gpio = Bcm2835Gpio::new();
        for offset in (GPFSEL0..=GPFSEL5).step_by(4) {
            assert_eq!(gpio.read(offset), Ok(0), "{offset:#x}");
        }
        assert_eq!(gpio.read(GPLEV0), Ok(0x1ff), "pins 0 to 8 are pulled up");
        assert_eq!(gpio.read(GPLEV1), Ok(0x003f_c01c), "pins 34 to 36 and 46 to 53");
    }

    #[test]
    fn set_and_clear_cannot_be_read_nor_levels_written() {
        let mut gpio = Bcm2835Gpio::new();
        for offset in [GPSET0, GPSET1, GPCLR0, GPCLR1, 0x18, 0x40, 0x94, 0x98, 1, 0x36] {
            assert_eq!(gpio.read(offset), Err(NoRegister), "{offset:#x}");
        }
        for offset in [GPLEV0, GPLEV1, 0x18, 0x24, 0x40, 0x94, 0x98, 2, 0x1d] {
            assert_eq!(gpio.write(offset, 1), Err(NoRegister), "{offset:#x}");
        }
    }

    #[test]
    fn a_pin_drives_its_latch_while_its_function_is_output() {
        let mut gpio = Bcm2835Gpio::new();
        gpio.write(GPSET0, 1 << 17 | 1 << 31).unwrap();
        assert_eq!(gpio.pads() as u32, 0x1ff, "stored, not driven");
        gpio.write(0x04, OUTPUT << 21).unwrap();
        assert_eq!(gpio.read(GPLEV0), Ok(0x1ff | 1 << 17), "it begins with what was set");
        gpio.write(GPCLR0, 1 << 17).unwrap();
        assert_eq!(gpio.read(GPLEV0), Ok(0x1ff));
        gpio.write(GPSET0, 0).unwrap();
        gpio.write(GPCLR0, 0).unwrap();
        assert_eq!(gpio.read(GPLEV0), Ok(0x1ff), "zeros change nothing");
        gpio.set_outside(17, true);
        assert_eq!(gpio.read(GPLEV0), Ok(0x1ff), "outside moves inputs only");
        for function in [0b000, 0b010, 0b100, 0b111] {
            gpio.write(0x04, function << 21).unwrap();
            assert_eq!(gpio.read(0x04), Ok(function << 21));
            assert_eq!(gpio.read(GPLEV0), Ok(0x1ff | 1 << 17), "function {function:#b}");
        }
    }

    #[test]
    fn every_pin_has_its_field_and_its_bits() {
        for pin in 0..PINS {
            let mut gpio = Bcm2835Gpio::new();
            for bit in 0..64 {
                gpio.set_outside(bit, true);
            }
            assert_eq!(gpio.pads(), ALL);
            gpio.write(pin / 10 * 4, OUTPUT << (3 * (pin % 10))).unwrap();
            assert_eq!(gpio.pads(), ALL & !(1 << pin), "pin {pin} drives its latch, which is 0");
            gpio.write(GPSET0 + pin / 32 * 4, 1 << (pin % 32)).unwrap();
            assert_eq!(gpio.pads(), ALL);
            gpio.write(GPCLR0 + pin / 32 * 4, 1 << (pin % 32)).unwrap();
            assert_eq!(gpio.read(GPLEV0 + pin / 32 * 4).unwrap() >> (pin % 32) & 1, 0);
        }
    }

    #[test]
    fn there_is_nothing_beyond_pin_53() {
        let mut gpio = Bcm2835Gpio::new();
        gpio.write(GPFSEL5, u32::MAX).unwrap();
        assert_eq!(gpio.read(GPFSEL5), Ok(0xfff));
        gpio.write(GPFSEL0, u32::MAX).unwrap();
        assert_eq!(gpio.read(GPFSEL0), Ok(0x3fff_ffff));
        gpio.write(GPSET1, u32::MAX).unwrap();
        for bit in [54, 63, 64, 255] {
            gpio.set_outside(bit, true);
        }
        assert_eq!(gpio.pads() & !ALL, 0);
        for offset in (GPFSEL0..=GPFSEL5).step_by(4) {
            gpio.write(offset, 0o1_111_111_111).unwrap();
        }
        assert_eq!(gpio.pads(), ALL & !0xffff_ffff, "all of GPSET1's pins, none of GPSET0's");
    }
}
