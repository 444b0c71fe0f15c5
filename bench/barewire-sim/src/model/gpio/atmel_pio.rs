//! The PIO controller of SAMA5D3: 32 pins with separate set and clear registers.
//!
//! *Read first*: SAMA5D3 Series data sheet, chapter Parallel Input/Output Controller (I/O lines,
//! output control, synchronous data output, multi drive, write protection).
//!
//! # How it works
//! Most settings have three registers, one bit per pin: enable, disable and read. The PIO controls
//! a pin while its PIO_PSR bit is set, and drives it with its PIO_ODSR bit while its PIO_OSR bit is
//! set too. Any other pin has the level its surroundings give it, by default the 1 of a pull-up.
//! PIO_SODR and PIO_CODR change PIO_ODSR regardless of the pin's direction, so software can set the
//! level before the direction. PIO_ODSR can be written directly where PIO_OWSR allows it. In multi
//! drive (PIO_MDSR) a 1 is not driven. PIO_PDSR reads the pads.
//!
//! Under write protection (PIO_WPMR) writes to PIO_PER, PDR, OER, ODR, MDER, MDDR, OWER and OWDR
//! are ignored. PIO_WPSR reports the first such write, until it is read.
//!
//! At reset the PIO controls every pin. This depends on the product; on SAMA5D3 it is so for all
//! pins but those of the memory interface.
//!
//! # Not supported
//! Interrupts, input filters, pull resistors, the choice of a peripheral, Schmitt triggers, drive
//! strength and lock status: these registers do not exist here. PMC clocks: pads are read without
//! one.

use std::cell::Cell;

use super::{GpioBlock, GpioKind, NoRegister};

/// The PIO controller of SAMA5D3.
pub const KIND: GpioKind = GpioKind {
    name: "Atmel PIO",
    bytes: 0x200,
    registers: &[
        (0x00, "PER"),
        (0x04, "PDR"),
        (0x08, "PSR"),
        (0x10, "OER"),
        (0x14, "ODR"),
        (0x18, "OSR"),
        (0x30, "SODR"),
        (0x34, "CODR"),
        (0x38, "ODSR"),
        (0x3c, "PDSR"),
        (0x50, "MDER"),
        (0x54, "MDDR"),
        (0x58, "MDSR"),
        (0xa0, "OWER"),
        (0xa4, "OWDR"),
        (0xa8, "OWSR"),
        (0xe4, "WPMR"),
        (0xe8, "WPSR"),
    ],
    model: |_| Box::new(AtmelPio::new()),
    drive: |write, pins, high| {
        write(0x30, high);
        write(0x34, pins & !high);
        write(0x10, pins);
        write(0x00, pins);
    },
};

const PER: u32 = 0x00;
const PDR: u32 = 0x04;
const PSR: u32 = 0x08;
const OER: u32 = 0x10;
const ODR: u32 = 0x14;
const OSR: u32 = 0x18;
const SODR: u32 = 0x30;
const CODR: u32 = 0x34;
const ODSR: u32 = 0x38;
const PDSR: u32 = 0x3c;
const MDER: u32 = 0x50;
const MDDR: u32 = 0x54;
const MDSR: u32 = 0x58;
const OWER: u32 = 0xa0;
const OWDR: u32 = 0xa4;
const OWSR: u32 = 0xa8;
const WPMR: u32 = 0xe4;
const WPSR: u32 = 0xe8;

/// The key "PIO", without which a write to PIO_WPMR has no effect.
const WPKEY: u32 = 0x0050_494f;

/// One PIO controller.
#[derive(Clone, Debug)]
pub struct AtmelPio {
    psr: u32,
    osr: u32,
    odsr: u32,
    mdsr: u32,
    owsr: u32,
    outside: u32,
    write_protected: bool,
    /// Cleared by its read.
    wpsr: Cell<u32>,
}

impl AtmelPio {
    /// The block at reset: all pins inputs, pulled up.
    #[must_use]
    pub fn new() -> Self {
        Self {
            psr: u32::MAX,
            osr: 0,
            odsr: 0,
            mdsr: 0,
            owsr: 0,
            outside: u32::MAX,
            write_protected: false,
            wpsr: Cell::new(0),
        }
    }

    fn levels(&self) -> u32 {
        let driven = self.psr & self.osr & !(self.mdsr & self.odsr);
        self.odsr & driven | self.outside & !driven
    }

    /// Records a write to a protected register, if it is the first.
    fn refuse(&self, offset: u32) {
        if self.wpsr.get() == 0 {
            self.wpsr.set(offset << 8 | 1);
        }
    }
}

impl GpioBlock for AtmelPio {
    fn read(&self, offset: u32) -> Result<u32, NoRegister> {
        Ok(match offset {
            // Write-only.
            PER | PDR | OER | ODR | SODR | CODR | MDER | MDDR | OWER | OWDR => 0,
            PSR => self.psr,
            OSR => self.osr,
            ODSR => self.odsr,
            PDSR => self.levels(),
            MDSR => self.mdsr,
            OWSR => self.owsr,
            WPMR => self.write_protected.into(),
            WPSR => self.wpsr.take(),
            _ => return Err(NoRegister),
        })
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), NoRegister> {
        match offset {
            PER | PDR | OER | ODR | MDER | MDDR | OWER | OWDR if self.write_protected => {
                self.refuse(offset);
            }
            PER => self.psr |= value,
            PDR => self.psr &= !value,
            OER => self.osr |= value,
            ODR => self.osr &= !value,
            SODR => self.odsr |= value,
            CODR => self.odsr &= !value,
            ODSR => self.odsr = self.odsr & !self.owsr | value & self.owsr,
            MDER => self.mdsr |= value,
            MDDR => self.mdsr &= !value,
            OWER => self.owsr |= value,
            OWDR => self.owsr &= !value,
            WPMR if value >> 8 == WPKEY => self.write_protected = value & 1 != 0,
            // A write without the key, or to a read-only register.
            WPMR | PSR | OSR | PDSR | MDSR | OWSR | WPSR => {}
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

super::default_is_new!(AtmelPio);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reset_values() {
        let pio = AtmelPio::new();
        assert_eq!((pio.read(PSR), pio.read(PDSR)), (Ok(u32::MAX), Ok(u32::MAX)));
        for offset in [PER, PDR, OER, ODR, OSR, SODR, CODR, ODSR, MDSR, OWSR, WPMR, WPSR] {
            assert_eq!(pio.read(offset), Ok(0), "{offset:#x}");
        }
        for offset in [0x0c, 0x40, 0x60, 0x100, 0x31] {
            assert_eq!(pio.read(offset), Err(NoRegister), "{offset:#x}");
            assert_eq!(pio.clone().write(offset, 0), Err(NoRegister), "{offset:#x}");
        }
    }

    #[test]
    fn each_setting_is_enabled_disabled_and_read() {
        let mut pio = AtmelPio::new();
        pio.write(PDR, u32::MAX).unwrap();
        for [enable, disable, status] in [
            [PER, PDR, PSR],
            [OER, ODR, OSR],
            [SODR, CODR, ODSR],
            [MDER, MDDR, MDSR],
            [OWER, OWDR, OWSR],
        ] {
            pio.write(enable, 0xff00_ff0f).unwrap();
            assert_eq!(pio.read(status), Ok(0xff00_ff0f), "{status:#x}");
            pio.write(disable, 0x0f00_000f).unwrap();
            assert_eq!(pio.read(status), Ok(0xf000_ff00), "{status:#x}");
            if status != ODSR {
                pio.write(status, 0).unwrap();
                assert_eq!(pio.read(status), Ok(0xf000_ff00), "{status:#x} is read-only");
            }
        }
    }

    #[test]
    fn a_pin_drives_when_it_is_the_pios_and_an_output() {
        let mut pio = AtmelPio::new();
        pio.write(CODR, 0xff).unwrap();
        pio.write(SODR, 0x02).unwrap();
        assert_eq!(pio.pads(), u32::MAX.into(), "kept, not driven");
        pio.write(OER, 0x07).unwrap();
        assert_eq!(pio.pads(), 0xffff_fffa);
        pio.write(PDR, 0x04).unwrap();
        assert_eq!(pio.pads(), 0xffff_fffe, "a peripheral's pin");
        pio.set_outside(1, false);
        pio.set_outside(3, false);
        pio.set_outside(200, false);
        assert_eq!(pio.read(PDSR), Ok(0xffff_fff6), "outside moves what is not driven only");
        pio.write(MDER, 0x03).unwrap();
        assert_eq!(pio.pads(), 0xffff_fff4, "multi drive drives 0 only");
    }

    #[test]
    fn odsr_is_written_where_owsr_allows_it() {
        let mut pio = AtmelPio::new();
        pio.write(SODR, 0xf0).unwrap();
        pio.write(ODSR, 0x0f).unwrap();
        assert_eq!(pio.read(ODSR), Ok(0xf0));
        pio.write(OWER, 0x3c).unwrap();
        pio.write(ODSR, 0x0f).unwrap();
        assert_eq!(pio.read(ODSR), Ok(0xcc));
    }

    #[test]
    fn write_protection_needs_its_key_and_tells_what_it_refused() {
        let mut pio = AtmelPio::new();
        pio.write(WPMR, 1).unwrap();
        assert_eq!(pio.read(WPMR), Ok(0));
        pio.write(WPMR, WPKEY << 8 | 1).unwrap();
        assert_eq!(pio.read(WPMR), Ok(1));
        for offset in [OER, PDR, ODR, MDER, MDDR, OWER, OWDR, PER] {
            pio.write(offset, u32::MAX).unwrap();
        }
        pio.write(SODR, 1).unwrap();
        assert_eq!((pio.read(PSR), pio.read(OSR), pio.read(ODSR)), (Ok(u32::MAX), Ok(0), Ok(1)));
        assert_eq!((pio.read(WPSR), pio.read(WPSR)), (Ok(OER << 8 | 1), Ok(0)));
        pio.write(WPMR, WPKEY << 8).unwrap();
        pio.write(OER, 1).unwrap();
        assert_eq!((pio.read(OSR), pio.read(WPSR)), (Ok(1), Ok(0)));
    }
}
