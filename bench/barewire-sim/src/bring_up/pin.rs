//! A board's pads as a program uses them: `embedded-hal` pins over the GPIO block's registers.
//!
//! Every edge and every look is register accesses at the cost of the board's profile.

use std::convert::Infallible;
use std::fmt;

use barewire::controller::gpio::{
    AtmelPio, Bcm2835Gpio, GpioBank, ImxGpio, Ownership, Pl061, Rp1Gpio, SiFiveGpio,
};
use barewire::hal::BankPin;
use barewire::reg::Registers;
use embedded_hal::digital::{ErrorType, InputPin};

use crate::board::{Board, Pad, SimRegisters};
use crate::model::gpio::{self, GpioKind};

/// What the pins of a kind of GPIO block need.
struct Pins {
    kind: &'static GpioKind,
    /// The shipped driver, for outputs.
    bank: fn(SimRegisters) -> Box<dyn GpioBank>,
    /// The register that has a pin's level, and the pin's bit there.
    level: fn(u32) -> (u32, u32),
    /// The register with a bit for each pin that lets [`Pins::level`] tell its level, if there is one.
    input_enable: Option<u32>,
}

/// A row for each kind.
///
/// The registers of levels: PIO_PDSR of SAMA5D3 (its datasheet, chapter PIO), GPLEV0 of BCM2835
/// (*BCM2835 ARM Peripherals*, chapter 6), PSR of the i.MX GPIO (i.MX 6Dual/Quad reference manual, chapter
/// GPIO), GPIODATA of PL061 (ARM DDI 0190, 3.3), whose address bits 9 to 2 select the pins that are read,
/// GPIOn_STATUS of RP1 (*RP1 Peripherals*, 3.1), whose bit 17 is the level from the pad, and `input_val` of
/// SiFive (*FU540-C000 Manual*, chapter GPIO), which `input_en` lets tell it.
static PINS: &[Pins] = &[
    Pins {
        kind: &gpio::atmel_pio::KIND,
        bank: |regs| Box::new(AtmelPio::new(regs)),
        level: |bit| (0x3c, 1 << bit),
        input_enable: None,
    },
    Pins {
        kind: &gpio::bcm2835::KIND,
        bank: |regs| Box::new(Bcm2835Gpio::new(regs)),
        level: |bit| (0x34, 1 << bit),
        input_enable: None,
    },
    Pins {
        kind: &gpio::imx::KIND,
        bank: |regs| Box::new(ImxGpio::new(regs, Ownership::Shared)),
        level: |bit| (0x08, 1 << bit),
        input_enable: None,
    },
    Pins {
        kind: &gpio::pl061::KIND,
        bank: |regs| Box::new(Pl061::new(regs)),
        level: |bit| (4 << bit, 1 << bit),
        input_enable: None,
    },
    Pins {
        kind: &gpio::rp1::KIND,
        bank: |regs| Box::new(Rp1Gpio::new(regs)),
        level: |bit| (8 * bit, 1 << 17),
        input_enable: None,
    },
    Pins {
        kind: &gpio::sifive::KIND,
        bank: |regs| Box::new(SiFiveGpio::new(regs, Ownership::Shared)),
        level: |bit| (0x00, 1 << bit),
        input_enable: Some(0x04),
    },
];

/// A board's GPIO block under the shipped driver, whichever that is.
pub struct AnyBank(Box<dyn GpioBank>);

impl GpioBank for AnyBank {
    fn drive(&mut self, mask: u32, high: bool) {
        self.0.drive(mask, high);
    }

    fn output(&mut self, mask: u32, high: bool) {
        self.0.output(mask, high);
    }

    fn is_short(&self) -> bool {
        false
    }
}

impl fmt::Debug for AnyBank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyBank")
    }
}

/// An output pin on a simulated board.
pub type SimOutput = BankPin<AnyBank>;

/// Makes `pad` an output, already at `high`. Its bank is
/// [shared](barewire::controller::gpio::Ownership::Shared): other pins of the block stay as they are.
///
/// # Panics
/// If the board has no such pad, or its bit is above 31, which the banks do not drive.
#[must_use]
pub fn output(board: &Board, pad: Pad, high: bool) -> SimOutput {
    let (pins, regs) = block(board, pad);
    let bank = (pins.bank)(regs);
    BankPin::new(AnyBank(bank), pad.bit, high)
}

/// An input pin on a simulated board. A look is one read of the block's level register.
#[derive(Debug)]
pub struct SimInput {
    regs: SimRegisters,
    offset: u32,
    mask: u32,
}

/// `pad` as an input, which it is at reset. Nothing is written, but where a block has to be told to
/// look at the pad.
///
/// # Panics
/// If the board has no such pad, or its bit is above 31.
#[must_use]
pub fn input(board: &Board, pad: Pad) -> SimInput {
    let (pins, mut regs) = block(board, pad);
    assert!(pad.bit < 32, "{pad}: inputs are read from one register of 32 bits");
    let (offset, mask) = (pins.level)(pad.bit.into());
    if let Some(input_enable) = pins.input_enable {
        let enabled = regs.read(input_enable);
        regs.write(input_enable, enabled | 1 << pad.bit);
    }
    SimInput { regs, offset, mask }
}

fn block(board: &Board, pad: Pad) -> (&'static Pins, SimRegisters) {
    let spec = board.spec().gpio.get(usize::from(pad.block));
    let (Some(spec), Some(regs)) = (spec, board.gpio(pad.block)) else {
        panic!("{} has no {pad}", board.spec().name)
    };
    let pins = PINS.iter().find(|pins| pins.kind == spec.kind);
    (pins.unwrap_or_else(|| panic!("add {:?} to `PINS` in bring_up/pin.rs", spec.kind)), regs)
}

impl ErrorType for SimInput {
    type Error = Infallible;
}

impl InputPin for SimInput {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        Ok(self.regs.read(self.offset) & self.mask != 0)
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        self.is_high().map(|high| !high)
    }
}
