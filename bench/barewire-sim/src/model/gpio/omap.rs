//! The GPIO block of TI's OMAP4 and later, as in the AM335x: 32 pins with set and clear registers.
//!
//! *Read first*: TI, *AM335x and AMIC110 Sitara Processors Technical Reference Manual* (SPRUH73), chapter 25:
//! GPIO_OE, GPIO_DATAIN, GPIO_DATAOUT, GPIO_CLEARDATAOUT, GPIO_SETDATAOUT.
//!
//! # How it works
//! A pin whose bit in GPIO_OE is 0 is driven with its bit of GPIO_DATAOUT. At reset all are inputs. GPIO_SETDATAOUT
//! and GPIO_CLEARDATAOUT change GPIO_DATAOUT regardless of the direction, and read it. GPIO_DATAIN reads the
//! pads. A pin that is not driven has the level its surroundings give it, by default the 1 of a pull-up.
//!
//! # Not supported
//! Interrupts, debouncing and wake-up: their registers do not exist here. GPIO_CTRL's clock gate.

use super::{GpioBlock, GpioKind, NoRegister};

/// The GPIO block of OMAP4 and later.
pub const KIND: GpioKind = GpioKind {
    name: "OMAP GPIO",
    bytes: 0x1000,
    registers: &[
        (0x000, "REVISION"),
        (0x134, "OE"),
        (0x138, "DATAIN"),
        (0x13c, "DATAOUT"),
        (0x190, "CLEARDATAOUT"),
        (0x194, "SETDATAOUT"),
    ],
    model: |_| Box::new(OmapGpio::new()),
    drive: |write, pins, high| {
        write(0x194, high);
        write(0x190, pins & !high);
        write(0x134, !pins);
    },
};

const REVISION: u32 = 0x000;
const OE: u32 = 0x134;
const DATAIN: u32 = 0x138;
const DATAOUT: u32 = 0x13c;
const CLEARDATAOUT: u32 = 0x190;
const SETDATAOUT: u32 = 0x194;

/// One bank.
#[derive(Clone, Debug)]
pub struct OmapGpio {
    oe: u32,
    dataout: u32,
    outside: u32,
}

impl OmapGpio {
    /// The block at reset: all pins inputs, pulled up.
    #[must_use]
    pub fn new() -> Self {
        Self { oe: u32::MAX, dataout: 0, outside: u32::MAX }
    }

    fn levels(&self) -> u32 {
        self.dataout & !self.oe | self.outside & self.oe
    }
}

impl GpioBlock for OmapGpio {
    fn read(&self, offset: u32) -> Result<u32, NoRegister> {
        Ok(match offset {
            // Scheme 1 and the function of GPIO. The manual does not define the other bits.
            REVISION => 0x5060_0000,
            OE => self.oe,
            DATAIN => self.levels(),
            DATAOUT | CLEARDATAOUT | SETDATAOUT => self.dataout,
            _ => return Err(NoRegister),
        })
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), NoRegister> {
        match offset {
            OE => self.oe = value,
            DATAOUT => self.dataout = value,
            CLEARDATAOUT => self.dataout &= !value,
            SETDATAOUT => self.dataout |= value,
            // Read-only.
            REVISION | DATAIN => {}
            _ => return Err(NoRegister),
        }
        Ok(())
    }

    fn pads(&self) -> u64 {
        self.levels().into()
    }

    fn set_outside(&mut self, bit: u8, level: bool) {
        let pin = 1_u32.checked_shl(u32::from(bit)).unwrap_or(0);
        self.outside = if level { self.outside | pin } else { self.outside & !pin };
    }
}

super::default_is_new!(OmapGpio);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_inputs_at_reset_and_drive_what_was_set_once_they_are_outputs() {
        let mut gpio = OmapGpio::new();
        assert_eq!((gpio.read(OE), gpio.read(DATAIN)), (Ok(u32::MAX), Ok(u32::MAX)));
        gpio.set_outside(3, false);
        gpio.set_outside(200, false);
        gpio.write(SETDATAOUT, 0x0f).unwrap();
        gpio.write(CLEARDATAOUT, 0x02).unwrap();
        assert_eq!(gpio.pads(), 0xffff_fff7, "kept, not driven");
        gpio.write(OE, !0x0f).unwrap();
        assert_eq!((gpio.pads(), gpio.read(DATAIN)), (0xffff_fffd, Ok(0xffff_fffd)));
        for offset in [DATAOUT, CLEARDATAOUT, SETDATAOUT] {
            assert_eq!(gpio.read(offset), Ok(0x0d), "{offset:#x}");
        }
        gpio.write(DATAOUT, 0).unwrap();
        gpio.write(DATAIN, u32::MAX).unwrap();
        assert_eq!(gpio.pads(), 0xffff_fff0);
        assert_eq!((gpio.read(0x44), gpio.write(0x44, 0)), (Err(NoRegister), Err(NoRegister)));
    }
}
