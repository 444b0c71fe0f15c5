//! The GPIO controller of Zynq-7000: bank 0, 32 pins.
//!
//! *Read first*: Xilinx, *Zynq-7000 SoC Technical Reference Manual* (UG585), chapter 14 and appendix B.19.
//!
//! # How it works
//! A pin drives its bit of DATA while its bits of DIRM and OEN are set. Any other pin has the level its surroundings
//! give it, by default the 1 of a pull-up. DATA_RO reads the pads. A write to MASK_DATA_LSW or MASK_DATA_MSW
//! changes those of 16 bits of DATA whose bit in its upper half is 0. All registers are 0 after a reset.
//!
//! # Not supported
//! Banks 1 to 3, interrupts (0x20c to 0x224): these registers do not exist here. The outputs alone that pins 7 and 8
//! are on silicon, and the multiplexer of the pins.

use super::{GpioBlock, GpioKind, NoRegister};

/// The GPIO controller of Zynq-7000.
pub const KIND: GpioKind = GpioKind {
    name: "Zynq GPIO",
    bytes: 0x1000,
    registers: &[
        (0x000, "MASK_DATA_0_LSW"),
        (0x004, "MASK_DATA_0_MSW"),
        (0x040, "DATA_0"),
        (0x060, "DATA_0_RO"),
        (0x204, "DIRM_0"),
        (0x208, "OEN_0"),
    ],
    model: |_| Box::new(ZynqGpio::new()),
    drive: |write, pins, high| {
        write(DATA, high);
        write(DIRM, pins);
        write(OEN, pins);
    },
};

const MASK_DATA_LSW: u32 = 0x000;
const MASK_DATA_MSW: u32 = 0x004;
const DATA: u32 = 0x040;
const DATA_RO: u32 = 0x060;
const DIRM: u32 = 0x204;
const OEN: u32 = 0x208;

/// One controller's bank 0.
#[derive(Clone, Debug)]
pub struct ZynqGpio {
    data: u32,
    dirm: u32,
    oen: u32,
    outside: u32,
}

impl ZynqGpio {
    /// The bank at reset: all pins inputs, pulled up.
    #[must_use]
    pub fn new() -> Self {
        Self { data: 0, dirm: 0, oen: 0, outside: u32::MAX }
    }

    fn levels(&self) -> u32 {
        let driven = self.dirm & self.oen;
        self.data & driven | self.outside & !driven
    }

    /// A write to one of the masked registers, whose 16 bits begin at `shift`.
    fn write_masked(&mut self, shift: u32, value: u32) {
        let written = (!value >> 16) << shift;
        self.data = self.data & !written | (value & 0xffff) << shift & written;
    }
}

impl GpioBlock for ZynqGpio {
    fn read(&self, offset: u32) -> Result<u32, NoRegister> {
        Ok(match offset {
            // Their masks read 0.
            MASK_DATA_LSW => self.data & 0xffff,
            MASK_DATA_MSW => self.data >> 16,
            DATA => self.data,
            DATA_RO => self.levels(),
            DIRM => self.dirm,
            OEN => self.oen,
            _ => return Err(NoRegister),
        })
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), NoRegister> {
        match offset {
            MASK_DATA_LSW => self.write_masked(0, value),
            MASK_DATA_MSW => self.write_masked(16, value),
            DATA => self.data = value,
            // Read-only.
            DATA_RO => {}
            DIRM => self.dirm = value,
            OEN => self.oen = value,
            _ => return Err(NoRegister),
        }
        Ok(())
    }

    fn pads(&self) -> u64 {
        self.levels().into()
    }

    fn set_outside(&mut self, bit: u8, level: bool) {
        let pin = 1_u32.checked_shl(bit.into()).unwrap_or(0);
        self.outside = if level { self.outside | pin } else { self.outside & !pin };
    }
}

super::default_is_new!(ZynqGpio);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_writes_leave_the_other_pins_alone() {
        let mut gpio = ZynqGpio::new();
        gpio.write(DATA, 0x0001_8001).unwrap();
        gpio.write(MASK_DATA_LSW, 0xfffe_fffe).unwrap();
        gpio.write(MASK_DATA_MSW, 0x7fff_8000).unwrap();
        assert_eq!(gpio.read(DATA), Ok(0x8001_8000));
        assert_eq!((gpio.read(MASK_DATA_LSW), gpio.read(MASK_DATA_MSW)), (Ok(0x8000), Ok(0x8001)));
    }

    #[test]
    fn a_pin_drives_when_its_direction_and_its_output_are_set() {
        let mut gpio = ZynqGpio::new();
        assert_eq!((gpio.pads(), gpio.pins()), (0xffff_ffff, 32));
        gpio.write(DIRM, 0x0300).unwrap();
        assert_eq!(gpio.pads(), 0xffff_ffff);
        gpio.write(OEN, 0x0100).unwrap();
        assert_eq!(gpio.pads(), 0xffff_feff);
        gpio.set_outside(0, false);
        gpio.set_outside(8, true);
        gpio.set_outside(200, false);
        gpio.write(DATA_RO, 0).unwrap();
        assert_eq!(gpio.read(DATA_RO), Ok(0xffff_fefe), "outside moves inputs only");
        assert_eq!((gpio.read(DIRM), gpio.read(OEN)), (Ok(0x300), Ok(0x100)));
        for offset in [0x008, 0x044, 0x20c] {
            assert_eq!(gpio.read(offset), Err(NoRegister), "{offset:#x}");
            assert_eq!(gpio.write(offset, 0), Err(NoRegister), "{offset:#x}");
        }
    }
}
