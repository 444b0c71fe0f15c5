//! SiFive's GPIO block: 16 pins, their levels.
//!
//! *Read first*: SiFive, *SiFive FU540-C000 Manual*, chapter "General Purpose Input/Output Controller
//! (GPIO)".
//!
//! # How it works
//! A pin whose `output_en` bit is set drives its `output_val` bit, inverted where `out_xor` is set. Any
//! other pin has the level its surroundings give it, by default the 1 of a pull-up. `input_val` reads
//! the pads of those pins whose `input_en` bit is set, and 0 of the others. All registers are 0 after a
//! reset.
//!
//! # Not supported
//! Interrupts: the registers of edges and levels (0x18 to 0x34) do not exist here. `pue` and `ds` are
//! stored.

use super::{GpioBlock, GpioKind, NoRegister};

/// SiFive's GPIO block.
pub const KIND: GpioKind = GpioKind {
    name: "SiFive GPIO",
    bytes: 0x1000,
    registers: &[
        (0x00, "input_val"),
        (0x04, "input_en"),
        (0x08, "output_en"),
        (0x0c, "output_val"),
        (0x10, "pue"),
        (0x14, "ds"),
        (0x40, "out_xor"),
    ],
    model: |_| Box::new(SiFiveGpio::new()),
    drive: |write, pins, high| {
        write(OUTPUT_VAL, high);
        write(OUTPUT_EN, pins);
    },
};

const INPUT_VAL: u32 = 0x00;
const INPUT_EN: u32 = 0x04;
const OUTPUT_EN: u32 = 0x08;
const OUTPUT_VAL: u32 = 0x0c;
const PUE: u32 = 0x10;
const DS: u32 = 0x14;
const OUT_XOR: u32 = 0x40;

const PINS: u32 = 0xffff;

/// One GPIO block.
#[derive(Clone, Debug)]
pub struct SiFiveGpio {
    input_en: u32,
    output_en: u32,
    output_val: u32,
    pue: u32,
    ds: u32,
    out_xor: u32,
    outside: u32,
}

impl SiFiveGpio {
    /// The block at reset: all pins inputs, pulled up.
    #[must_use]
    pub fn new() -> Self {
        Self { input_en: 0, output_en: 0, output_val: 0, pue: 0, ds: 0, out_xor: 0, outside: PINS }
    }

    /// The level of every pad.
    fn levels(&self) -> u32 {
        let driven = self.output_val ^ self.out_xor;
        driven & self.output_en | self.outside & !self.output_en
    }
}

impl GpioBlock for SiFiveGpio {
    fn read(&self, offset: u32) -> Result<u32, NoRegister> {
        Ok(match offset {
            INPUT_VAL => self.levels() & self.input_en,
            INPUT_EN => self.input_en,
            OUTPUT_EN => self.output_en,
            OUTPUT_VAL => self.output_val,
            PUE => self.pue,
            DS => self.ds,
            OUT_XOR => self.out_xor,
            _ => return Err(NoRegister),
        })
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), NoRegister> {
        let value = value & PINS;
        match offset {
            // Read-only.
            INPUT_VAL => {}
            INPUT_EN => self.input_en = value,
            OUTPUT_EN => self.output_en = value,
            OUTPUT_VAL => self.output_val = value,
            PUE => self.pue = value,
            DS => self.ds = value,
            OUT_XOR => self.out_xor = value,
            _ => return Err(NoRegister),
        }
        Ok(())
    }

    fn pins(&self) -> u8 {
        16
    }

    fn pads(&self) -> u64 {
        self.levels().into()
    }

    fn set_outside(&mut self, bit: u8, level: bool) {
        let pin = 1_u32.checked_shl(bit.into()).unwrap_or(0) & PINS;
        self.outside = if level { self.outside | pin } else { self.outside & !pin };
    }
}

super::default_is_new!(SiFiveGpio);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reset_values() {
        let gpio = SiFiveGpio::new();
        for offset in [INPUT_VAL, INPUT_EN, OUTPUT_EN, OUTPUT_VAL, PUE, DS, OUT_XOR] {
            assert_eq!(gpio.read(offset), Ok(0), "{offset:#x}");
        }
        assert_eq!((gpio.pads(), gpio.pins()), (0xffff, 16));
        for offset in [1, 0x18, 0x34, 0x44] {
            assert_eq!(gpio.read(offset), Err(NoRegister), "{offset:#x}");
            assert_eq!(gpio.clone().write(offset, 0), Err(NoRegister), "{offset:#x}");
        }
    }

    #[test]
    fn a_pin_drives_when_it_is_enabled_and_is_read_when_that_is() {
        let mut gpio = SiFiveGpio::new();
        gpio.write(OUTPUT_VAL, 0xffff_0100).unwrap();
        assert_eq!(gpio.pads(), 0xffff, "stored, not driven");
        gpio.write(OUTPUT_EN, 0x0300).unwrap();
        assert_eq!(gpio.pads(), 0xfdff);
        assert_eq!(gpio.read(OUTPUT_VAL), Ok(0x0100), "16 pins");
        gpio.set_outside(9, true);
        gpio.set_outside(0, false);
        gpio.set_outside(200, false);
        assert_eq!(gpio.pads(), 0xfdfe, "outside moves inputs only");
        assert_eq!(gpio.read(INPUT_VAL), Ok(0));
        gpio.write(INPUT_EN, 0x0303).unwrap();
        gpio.write(INPUT_VAL, 0).unwrap();
        assert_eq!(gpio.read(INPUT_VAL), Ok(0x0102));
        gpio.write(OUT_XOR, 0x0100).unwrap();
        assert_eq!(gpio.read(INPUT_VAL), Ok(0x0002), "inverted");
    }
}
