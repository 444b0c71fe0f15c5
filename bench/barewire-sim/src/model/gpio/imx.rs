//! The i.MX GPIO block: 32 pins, their levels and edges.
//!
//! *Read first*: i.MX 6Dual/Quad reference manual, chapter GPIO (memory map and register
//! definition). The block is the same on i.MX 8M.
//!
//! # How it works
//! A pin whose GDIR bit is set drives its DR bit. Any other pin has the level its surroundings give
//! it, by default the 1 of a pull-up. DR reads the written value for outputs and the pad for
//! inputs; PSR reads the pad. ISR collects the conditions of ICR1, ICR2 and EDGE_SEL, one bit per
//! pin. Writing a 1 clears the bit, unless a level condition still holds.
//!
//! # Not supported
//! IOMUX (every pin is in GPIO mode with its input path on); the set, clear and toggle registers
//! of i.MX RT, which i.MX 6 and 8M do not have.

use super::{GpioBlock, GpioKind, NoRegister};

/// The GPIO block of i.MX.
pub const KIND: GpioKind = GpioKind {
    name: "i.MX GPIO",
    bytes: 0x4000,
    registers: &[
        (0x00, "DR"),
        (0x04, "GDIR"),
        (0x08, "PSR"),
        (0x0c, "ICR1"),
        (0x10, "ICR2"),
        (0x14, "IMR"),
        (0x18, "ISR"),
        (0x1c, "EDGE_SEL"),
    ],
    model: |_| Box::new(ImxGpio::new()),
    drive: |write, pins, high| {
        write(0x00, high);
        write(0x04, pins);
    },
};

const DR: u32 = 0x00;
const GDIR: u32 = 0x04;
const PSR: u32 = 0x08;
const ICR1: u32 = 0x0c;
const ICR2: u32 = 0x10;
const IMR: u32 = 0x14;
const ISR: u32 = 0x18;
const EDGE_SEL: u32 = 0x1c;

/// One GPIO block.
#[derive(Clone, Debug)]
pub struct ImxGpio {
    dr: u32,
    gdir: u32,
    outside: u32,
    icr: u64,
    imr: u32,
    isr: u32,
    edge_sel: u32,
    seen: u32,
}

impl ImxGpio {
    /// The block at reset: all pins inputs, pulled up.
    #[must_use]
    pub fn new() -> Self {
        Self {
            dr: 0,
            gdir: 0,
            outside: u32::MAX,
            icr: 0,
            imr: 0,
            isr: 0,
            edge_sel: 0,
            seen: u32::MAX,
        }
    }

    /// The level of every pad.
    fn levels(&self) -> u32 {
        self.dr & self.gdir | self.outside & !self.gdir
    }

    /// Whether the block raised its interrupt.
    #[must_use]
    pub fn interrupt(&self) -> bool {
        self.isr & self.imr != 0
    }

    fn detect(&mut self) {
        let pads = self.levels();
        let changed = pads ^ self.seen;
        self.seen = pads;
        for bit in 0..32 {
            let (level, edge) = (pads >> bit & 1 != 0, changed >> bit & 1 != 0);
            let hit = if self.edge_sel >> bit & 1 != 0 {
                edge
            } else {
                match self.icr >> (2 * bit) & 3 {
                    0 => !level,
                    1 => level,
                    2 => edge && level,
                    _ => edge && !level,
                }
            };
            self.isr |= u32::from(hit) << bit;
        }
    }
}

impl GpioBlock for ImxGpio {
    fn read(&self, offset: u32) -> Result<u32, NoRegister> {
        Ok(match offset {
            DR => self.dr & self.gdir | self.levels() & !self.gdir,
            GDIR => self.gdir,
            PSR => self.levels(),
            ICR1 => self.icr as u32,
            ICR2 => (self.icr >> 32) as u32,
            IMR => self.imr,
            ISR => self.isr,
            EDGE_SEL => self.edge_sel,
            _ => return Err(NoRegister),
        })
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), NoRegister> {
        match offset {
            DR => self.dr = value,
            GDIR => self.gdir = value,
            // Read-only.
            PSR => {}
            ICR1 => self.icr = self.icr & !0xffff_ffff | u64::from(value),
            ICR2 => self.icr = self.icr & 0xffff_ffff | u64::from(value) << 32,
            IMR => self.imr = value,
            ISR => self.isr &= !value,
            EDGE_SEL => self.edge_sel = value,
            _ => return Err(NoRegister),
        }
        self.detect();
        Ok(())
    }

    fn pads(&self) -> u64 {
        self.levels().into()
    }

    fn set_outside(&mut self, bit: u8, level: bool) {
        let pin = 1_u32.checked_shl(u32::from(bit)).unwrap_or(0);
        self.outside = if level { self.outside | pin } else { self.outside & !pin };
        self.detect();
    }
}

super::default_is_new!(ImxGpio);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reset_values() {
        let gpio = ImxGpio::new();
        for offset in [GDIR, ICR1, ICR2, IMR, ISR, EDGE_SEL] {
            assert_eq!(gpio.read(offset), Ok(0), "{offset:#x}");
        }
        assert_eq!(gpio.read(PSR), Ok(u32::MAX), "pulled up");
        assert_eq!(gpio.read(DR), Ok(u32::MAX), "an input's DR reads its pad");
        assert_eq!(gpio.read(0x84), Err(NoRegister));
        assert_eq!(gpio.read(1), Err(NoRegister));
        assert_eq!(gpio.clone().write(0x20, 0), Err(NoRegister));
    }

    #[test]
    fn a_pin_drives_when_its_gdir_bit_is_set() {
        let mut gpio = ImxGpio::new();
        gpio.write(DR, 0x0000_0100).unwrap();
        assert_eq!(gpio.pads(), u32::MAX.into(), "stored, not driven");
        gpio.write(GDIR, 0x0000_0300).unwrap();
        assert_eq!(gpio.pads(), 0xffff_fdff);
        assert_eq!(gpio.read(PSR), Ok(0xffff_fdff));
        gpio.write(PSR, 0).unwrap();
        assert_eq!(gpio.read(DR), Ok(0xffff_fdff));
        gpio.set_outside(9, true);
        gpio.set_outside(0, false);
        gpio.set_outside(200, false);
        assert_eq!(gpio.read(DR), Ok(0xffff_fdfe), "outside moves inputs only");
    }

    #[test]
    fn each_condition_sets_isr_and_one_clears_it() {
        let mut gpio = ImxGpio::new();
        // Pin 0 rising, pin 1 falling, pin 16 both, pin 2 low level, the rest high level.
        gpio.write(ICR1, 0x5555_5540 | 0b00_11_10).unwrap();
        gpio.write(ICR2, 0x5555_5555).unwrap();
        gpio.write(EDGE_SEL, 1 << 16).unwrap();
        gpio.write(ISR, u32::MAX).unwrap();
        let watched = 0x0001_0007;
        assert_eq!(gpio.read(ISR).unwrap() & watched, 0);
        assert_ne!(gpio.read(ISR).unwrap() & 0x8, 0, "a high level holds on");
        for bit in [0, 1, 16, 2] {
            gpio.set_outside(bit, false);
        }
        assert_eq!(gpio.read(ISR).unwrap() & watched, 0x0001_0006);
        gpio.write(ISR, watched).unwrap();
        assert_eq!(gpio.read(ISR).unwrap() & watched, 0x4, "a low level holds on");
        for bit in [0, 1, 16, 2] {
            gpio.set_outside(bit, true);
        }
        assert_eq!(gpio.read(ISR).unwrap() & watched, 0x0001_0005);
        assert!(!gpio.interrupt());
        gpio.write(IMR, 1).unwrap();
        assert!(gpio.interrupt());
    }

    #[test]
    fn a_one_clears_its_own_bit_of_isr_alone() {
        let mut gpio = ImxGpio::new();
        // Pins 0 and 1, both edges.
        gpio.write(EDGE_SEL, 3).unwrap();
        gpio.set_outside(0, false);
        gpio.set_outside(1, false);
        gpio.write(ISR, 1).unwrap();
        assert_eq!(gpio.read(ISR).unwrap() & 3, 2);
    }
}
