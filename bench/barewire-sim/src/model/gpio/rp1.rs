//! Bank 0 of RP1's GPIO: 28 pins, their functions, levels and pads.
//!
//! *Read first*: Raspberry Pi Ltd, *RP1 Peripherals*, chapter 3, "Low speed peripherals"
//! (<https://datasheets.raspberrypi.com/rp1/rp1-peripherals.pdf>): IO_BANK0, SYS_RIO0, PADS_BANK0 and
//! the atomic register aliases.
//!
//! # How it works
//! IO_BANK0 is at offset 0, SYS_RIO0 at 0x1_0000, PADS_BANK0 at 0x2_0000, as RP1 has them and as Linux
//! maps them in one piece. Each block is there four times, 4 KiB apart: a write to the second flips
//! the bits written, one to the third sets them, one to the fourth clears them.
//!
//! A pin is driven while its function is SYS_RIO, SYS_RIO's OE has its bit and its pad is not disabled
//! (OD); the overrides of GPIOn_CTRL come after the function. Any other pin has the level its
//! surroundings give it. At reset no pin has a function and every pad is disabled. GPIOn_STATUS shows
//! the level that comes in; so does SYS_RIO's IN, while the pad's input is enabled (IE).
//!
//! # Not supported
//! Interrupts (INTR, PROC0_INTE and the events in GPIOn_STATUS) and SYNC_IN: accesses to no register.
//! Outputs of functions other than SYS_RIO: such a pin has the level that its surroundings give it.
//! Pulls, drive strength, slew rate and VOLTAGE_SELECT are kept and do nothing.

use super::{GpioBlock, GpioKind, NoRegister};

/// Bank 0 of RP1: IO_BANK0, SYS_RIO0 and PADS_BANK0.
pub const KIND: GpioKind = GpioKind {
    name: "RP1 GPIO",
    bytes: 0x3_0000,
    registers: &[
        (0x10000, "RIO_OUT"),
        (0x10004, "RIO_OE"),
        (0x10008, "RIO_IN"),
        (0x12000, "RIO_OUT_SET"),
        (0x12004, "RIO_OE_SET"),
        (0x13000, "RIO_OUT_CLR"),
        (0x13004, "RIO_OE_CLR"),
    ],
    model: |_| Box::new(Rp1Gpio::new()),
    drive: |write, pins, high| {
        write(0x1_0000, high);
        write(0x1_0004, pins);
        for pin in (0..28).filter(|pin| pins >> pin & 1 != 0) {
            write(0x2_0004 + pin * 4, 0x56);
            write(pin * 8 + 4, 5);
        }
    },
};

const PINS: u32 = 28;
const ALL: u32 = (1 << PINS) - 1;

const IO_BANK0: u32 = 0x0_0000;
const SYS_RIO0: u32 = 0x1_0000;
const PADS_BANK0: u32 = 0x2_0000;
const VIEW: u32 = 0x1000;
const VIEWS: u32 = 4 * VIEW;

const RIO_OUT: u32 = SYS_RIO0;
const RIO_OE: u32 = SYS_RIO0 + 4;
const RIO_IN: u32 = SYS_RIO0 + 8;

/// GPIOn_CTRL: its fields, FUNCSEL and after it F_M, OUTOVER, OEOVER, INOVER.
const CTRL_BITS: u32 = 0x3_ffff;
const CTRL_RESET: u32 = 0x85;
const FUNCSEL: u32 = 0x1f;
const NULL: u32 = 0x1f;
const SYS_RIO: u32 = 5;
/// A pad at reset: disabled, without input, 4 mA, Schmitt trigger, pulled down.
const PAD_RESET: u32 = 0x96;
const IE: u32 = 1 << 6;
const OD: u32 = 1 << 7;
/// GPIOn_STATUS: the level from the pad.
const INFROMPAD: u32 = 1 << 17;

/// One GPIO bank.
#[derive(Clone, Debug)]
pub struct Rp1Gpio {
    ctrl: [u32; PINS as usize],
    pad: [u32; PINS as usize],
    voltage_select: u32,
    out: u32,
    oe: u32,
    outside: u32,
}

/// A register of the bank.
#[derive(Clone, Copy)]
enum Register {
    Status(usize),
    Ctrl(usize),
    Out,
    Oe,
    In,
    VoltageSelect,
    Pad(usize),
}

/// The register at `offset`, and which of its four views that is.
fn register(offset: u32) -> Option<(Register, u32)> {
    let block = offset & !0xffff;
    let within = offset & 0xffff;
    if within >= VIEWS || !offset.is_multiple_of(4) {
        return None;
    }
    let (view, at) = (within / VIEW, within % VIEW);
    let pin = |index: u32| (index < PINS).then_some(index as usize);
    let register = match block {
        IO_BANK0 if at % 8 == 0 => Register::Status(pin(at / 8)?),
        IO_BANK0 => Register::Ctrl(pin(at / 8)?),
        SYS_RIO0 => match block + at {
            RIO_OUT => Register::Out,
            RIO_OE => Register::Oe,
            RIO_IN => Register::In,
            _ => return None,
        },
        PADS_BANK0 if at == 0 => Register::VoltageSelect,
        PADS_BANK0 => Register::Pad(pin(at / 4 - 1)?),
        _ => return None,
    };
    Some((register, view))
}

impl Rp1Gpio {
    /// The bank at reset: no pin has a function.
    #[must_use]
    pub fn new() -> Self {
        Self {
            ctrl: [CTRL_RESET & !FUNCSEL | NULL; PINS as usize],
            pad: [PAD_RESET; PINS as usize],
            voltage_select: 0,
            out: 0,
            oe: 0,
            outside: 0,
        }
    }

    /// The level that pin `pin` drives, if it is driven.
    fn driven(&self, pin: usize) -> Option<bool> {
        let ctrl = self.ctrl[pin];
        let own = ctrl & FUNCSEL == SYS_RIO;
        let (level, enabled) = (own && self.out >> pin & 1 != 0, own && self.oe >> pin & 1 != 0);
        let over = |value: bool, field: u32| match field & 3 {
            0 => value,
            1 => !value,
            2 => false,
            _ => true,
        };
        let drives = over(enabled, ctrl >> 14) && self.pad[pin] & OD == 0;
        drives.then_some(over(level, ctrl >> 12))
    }

    fn level(&self, pin: usize) -> bool {
        self.driven(pin).unwrap_or(self.outside >> pin & 1 != 0)
    }

    fn value(&self, register: Register) -> u32 {
        match register {
            Register::Status(pin) => {
                if self.level(pin) {
                    INFROMPAD
                } else {
                    0
                }
            }
            Register::Ctrl(pin) => self.ctrl[pin],
            Register::Out => self.out,
            Register::Oe => self.oe,
            Register::In => (0..PINS as usize)
                .filter(|&pin| self.pad[pin] & IE != 0 && self.level(pin))
                .fold(0, |levels, pin| levels | 1 << pin),
            Register::VoltageSelect => self.voltage_select,
            Register::Pad(pin) => self.pad[pin],
        }
    }
}

impl GpioBlock for Rp1Gpio {
    fn read(&self, offset: u32) -> Result<u32, NoRegister> {
        let (register, _) = register(offset).ok_or(NoRegister)?;
        Ok(self.value(register))
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), NoRegister> {
        let (register, view) = register(offset).ok_or(NoRegister)?;
        let before = self.value(register);
        let value = match view {
            0 => value,
            1 => before ^ value,
            2 => before | value,
            _ => before & !value,
        };
        match register {
            Register::Ctrl(pin) => self.ctrl[pin] = value & CTRL_BITS,
            Register::Out => self.out = value & ALL,
            Register::Oe => self.oe = value & ALL,
            Register::VoltageSelect => self.voltage_select = value & 1,
            Register::Pad(pin) => self.pad[pin] = value & 0xff,
            // Registers that show the level of a pin are read-only.
            Register::Status(_) | Register::In => return Err(NoRegister),
        }
        Ok(())
    }

    fn pins(&self) -> u8 {
        PINS as u8
    }

    fn pads(&self) -> u64 {
        (0..PINS as usize).filter(|&pin| self.level(pin)).fold(0, |levels, pin| levels | 1 << pin)
    }

    fn set_outside(&mut self, bit: u8, level: bool) {
        let pin = 1_u32.checked_shl(u32::from(bit)).unwrap_or(0) & ALL;
        self.outside = if level { self.outside | pin } else { self.outside & !pin };
    }
}

super::default_is_new!(Rp1Gpio);

#[cfg(test)]
mod tests {
    use super::*;

    const SET: u32 = 0x2000;
    const CLR: u32 = 0x3000;
    const XOR: u32 = 0x1000;

    /// Pin 8 with its pad enabled, driven by SYS_RIO.
    fn driving() -> Rp1Gpio {
        let mut gpio = Rp1Gpio::new();
        gpio.write(0x2_0024, 0x56).unwrap();
        gpio.write(0x1_2004, 1 << 8).unwrap();
        gpio.write(0x44, 5).unwrap();
        gpio
    }

    #[test]
    fn reset_values() {
        let gpio = Rp1Gpio::new();
        for pin in 0..PINS {
            assert_eq!(gpio.read(pin * 8), Ok(0), "status");
            assert_eq!(gpio.read(pin * 8 + 4), Ok(0x9f), "no function");
            assert_eq!(gpio.read(0x2_0004 + pin * 4), Ok(0x96), "disabled");
        }
        for offset in [RIO_OUT, RIO_OE, RIO_IN, PADS_BANK0] {
            assert_eq!(gpio.read(offset), Ok(0), "{offset:#x}");
        }
        assert_eq!(gpio.pads(), 0);
    }

    #[test]
    fn each_view_does_its_own() {
        let mut gpio = Rp1Gpio::new();
        gpio.write(RIO_OUT, 0b1100).unwrap();
        gpio.write(RIO_OUT + SET, 0b0001).unwrap();
        assert_eq!(gpio.read(RIO_OUT), Ok(0b1101));
        gpio.write(RIO_OUT + CLR, 0b0100).unwrap();
        gpio.write(RIO_OUT + XOR, 0b1010).unwrap();
        for view in [0, XOR, SET, CLR] {
            assert_eq!(gpio.read(RIO_OUT + view), Ok(0b0011), "{view:#x}");
        }
        gpio.write(0x2_0004 + CLR, OD).unwrap();
        assert_eq!(gpio.read(0x2_0004), Ok(0x16));
    }

    #[test]
    fn a_pin_needs_function_direction_and_pad_to_drive() {
        let mut gpio = driving();
        gpio.write(RIO_OUT + SET, 1 << 8).unwrap();
        assert_eq!(gpio.pads(), 1 << 8);
        for (offset, off, on) in [(0x44, 0, 5), (RIO_OE, 0, 1 << 8), (0x2_0024, 0xd6, 0x56)] {
            gpio.write(offset, off).unwrap();
            assert_eq!(gpio.pads(), 0, "{offset:#x}");
            gpio.write(offset, on).unwrap();
            assert_eq!(gpio.pads(), 1 << 8, "{offset:#x}");
        }
        gpio.set_outside(8, false);
        assert_eq!(gpio.pads(), 1 << 8, "outside moves what is not driven");
        gpio.set_outside(3, true);
        assert_eq!(gpio.pads(), 1 << 8 | 1 << 3);
    }

    #[test]
    fn overrides_come_after_the_function() {
        let mut gpio = driving();
        for (over, level) in [(0, false), (1, true), (2, false), (3, true)] {
            gpio.write(0x44, 5 | over << 12).unwrap();
            assert_eq!(gpio.pads() != 0, level, "OUTOVER {over}");
        }
        gpio.set_outside(8, true);
        gpio.write(RIO_OUT + CLR, 1 << 8).unwrap();
        for (over, drives) in [(0, true), (1, false), (2, false), (3, true)] {
            gpio.write(0x44, 5 | over << 14).unwrap();
            assert_eq!(gpio.pads() == 0, drives, "OEOVER {over}");
        }
    }

    #[test]
    fn levels_come_in_where_the_input_is_enabled() {
        let mut gpio = Rp1Gpio::new();
        gpio.set_outside(27, true);
        assert_eq!(gpio.read(RIO_IN), Ok(0));
        gpio.write(0x2_0070 + SET, IE).unwrap();
        assert_eq!(gpio.read(RIO_IN), Ok(1 << 27));
        assert_eq!(gpio.read(27 * 8), Ok(INFROMPAD));
    }

    #[test]
    fn there_is_nothing_beyond_pin_27_nor_between_the_blocks() {
        let mut gpio = Rp1Gpio::new();
        for offset in [28 * 8, 0x4000, 0x1_000c, 0x1_4000, 0x2_0074, 0x2_4000, 0x3_0000, 2] {
            assert_eq!(gpio.read(offset), Err(NoRegister), "{offset:#x}");
            assert_eq!(gpio.write(offset, 1), Err(NoRegister), "{offset:#x}");
        }
        for offset in [0, RIO_IN] {
            assert_eq!(gpio.write(offset, 1), Err(NoRegister), "{offset:#x}");
        }
        gpio.write(RIO_OUT, u32::MAX).unwrap();
        gpio.write(0x04, u32::MAX).unwrap();
        assert_eq!((gpio.read(RIO_OUT), gpio.read(0x04)), (Ok(ALL), Ok(CTRL_BITS)));
        for bit in [28, 31, 32, 255] {
            gpio.set_outside(bit, true);
        }
        assert_eq!(gpio.pads() & !u64::from(ALL), 0);
    }
}
