//! A board's pads as a program has them: `embedded-hal` pins over the GPIO block's registers.
//!
//! Every edge and every look is register accesses at the cost of the board's profile.

use std::convert::Infallible;
use std::fmt;

use barewire::controller::gpio::{
    AtmelPio, Bcm2835Gpio, GpioBank, ImxGpio, Ownership, Pl061, Rp1Gpio,
};
use barewire::hal::BankPin;
use barewire::reg::Registers;
use embedded_hal::digital::{ErrorType, InputPin};

use crate::board::spec::GpioKind;
use crate::board::{Board, Pad, SimRegisters};

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
    let (kind, regs) = block(board, pad);
    let bank: Box<dyn GpioBank> = match kind {
        GpioKind::AtmelPio => Box::new(AtmelPio::new(regs)),
        GpioKind::Bcm2835 => Box::new(Bcm2835Gpio::new(regs)),
        GpioKind::Imx => Box::new(ImxGpio::new(regs, Ownership::Shared)),
        GpioKind::Pl061 => Box::new(Pl061::new(regs)),
        GpioKind::Rp1 => Box::new(Rp1Gpio::new(regs)),
    };
    BankPin::new(AnyBank(bank), pad.bit, high)
}

/// An input pin on a simulated board. A look is one read of the block's level register.
#[derive(Debug)]
pub struct SimInput {
    regs: SimRegisters,
    offset: u32,
    mask: u32,
}

/// `pad` as an input, which it is at reset: nothing is written.
///
/// The register that is read: PSR of the i.MX GPIO (i.MX 6Dual/Quad reference manual, chapter GPIO),
/// GPLEV0 of BCM2835 (*BCM2835 ARM Peripherals*, chapter 6), GPIODATA of PL061 (ARM DDI 0190, 3.3),
/// PIO_PDSR of SAMA5D3 (its datasheet, chapter PIO), GPIOn_STATUS of RP1 (*RP1 Peripherals*, 3.1).
///
/// # Panics
/// If the board has no such pad, or its bit is above 31.
#[must_use]
pub fn input(board: &Board, pad: Pad) -> SimInput {
    let (kind, regs) = block(board, pad);
    assert!(pad.bit < 32, "{pad}: inputs are read from one register of 32 bits");
    let (bit, pin) = (u32::from(pad.bit), 1 << pad.bit);
    let (offset, mask) = match kind {
        GpioKind::AtmelPio => (0x3c, pin),
        GpioKind::Bcm2835 => (0x34, pin),
        GpioKind::Imx => (0x08, pin),
        // The address bits 9 to 2 select the pins that are read.
        GpioKind::Pl061 => (pin << 2, pin),
        // Bit 17 is the level from the pad.
        GpioKind::Rp1 => (8 * bit, 1 << 17),
    };
    SimInput { regs, offset, mask }
}

fn block(board: &Board, pad: Pad) -> (GpioKind, SimRegisters) {
    let spec = board.spec().gpio.get(usize::from(pad.block));
    let regs = board.gpio(pad.block);
    let (Some(spec), Some(regs)) = (spec, regs) else {
        panic!("{} has no {pad}", board.spec().name)
    };
    (spec.kind, regs)
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
