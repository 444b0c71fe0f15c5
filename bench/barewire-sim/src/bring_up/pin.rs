//! A board's pads as a program uses them: `embedded-hal` pins over the GPIO block's registers, and
//! [`GpioLines`], all pads of a block as a kernel's driver has them.
//!
//! Every edge and every look is register accesses at the cost of the board's profile.

use std::convert::Infallible;
use std::fmt;

use barewire::controller::gpio::{
    AtmelPio, Bcm2835Gpio, GpioBank, ImxGpio, OmapGpio, Ownership, Pl061, Rp1Gpio, SiFiveGpio,
    ZynqGpio,
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
    /// Makes the pin of that bit an input.
    undrive: fn(&mut SimRegisters, u32),
}

/// Clears bits of a register, which other pins share.
fn clear(regs: &mut SimRegisters, offset: u32, mask: u32) {
    let value = regs.read(offset);
    regs.write(offset, value & !mask);
}

/// A row for each kind.
///
/// The registers of levels: PIO_PDSR of SAMA5D3 (its datasheet, chapter PIO), GPLEV0 of BCM2835
/// (*BCM2835 ARM Peripherals*, chapter 6), PSR of the i.MX GPIO (i.MX 6Dual/Quad reference manual, chapter
/// GPIO), GPIODATA of PL061 (ARM DDI 0190, 3.3), whose address bits 9 to 2 select the pins that are read,
/// GPIOn_STATUS of RP1 (*RP1 Peripherals*, 3.1), whose bit 17 is the level from the pad, and `input_val` of
/// SiFive (*FU540-C000 Manual*, chapter GPIO), which `input_en` lets tell it; GPIO_DATAIN of AM335x (its manual,
/// chapter 25); DATA_0_RO of Zynq (UG585, B.19).
///
/// The registers of directions, from the same chapters: PIO_ODR, which a bit is written to; GPFSEL, three
/// bits a pin, ten pins a register; GDIR; GPIODIR; SYS_RIO's OE, whose fourth view clears bits; `output_en`;
/// GPIO_OE, whose bits are 1 for inputs; DIRM_0.
static PINS: &[Pins] = &[
    Pins {
        kind: &gpio::atmel_pio::KIND,
        bank: |regs| Box::new(AtmelPio::new(regs)),
        level: |bit| (0x3c, 1 << bit),
        input_enable: None,
        undrive: |regs, bit| regs.write(0x14, 1 << bit),
    },
    Pins {
        kind: &gpio::bcm2835::KIND,
        bank: |regs| Box::new(Bcm2835Gpio::new(regs)),
        level: |bit| (0x34, 1 << bit),
        input_enable: None,
        undrive: |regs, bit| clear(regs, bit / 10 * 4, 0b111 << (bit % 10 * 3)),
    },
    Pins {
        kind: &gpio::imx::KIND,
        bank: |regs| Box::new(ImxGpio::new(regs, Ownership::Shared)),
        level: |bit| (0x08, 1 << bit),
        input_enable: None,
        undrive: |regs, bit| clear(regs, 0x04, 1 << bit),
    },
    Pins {
        kind: &gpio::omap::KIND,
        bank: |regs| Box::new(OmapGpio::new(regs)),
        level: |bit| (0x138, 1 << bit),
        input_enable: None,
        undrive: |regs, bit| {
            let inputs = regs.read(0x134);
            regs.write(0x134, inputs | 1 << bit);
        },
    },
    Pins {
        kind: &gpio::pl061::KIND,
        bank: |regs| Box::new(Pl061::new(regs)),
        level: |bit| (4 << bit, 1 << bit),
        input_enable: None,
        undrive: |regs, bit| clear(regs, 0x400, 1 << bit),
    },
    Pins {
        kind: &gpio::rp1::KIND,
        bank: |regs| Box::new(Rp1Gpio::new(regs)),
        level: |bit| (8 * bit, 1 << 17),
        input_enable: None,
        undrive: |regs, bit| regs.write(0x1_3004, 1 << bit),
    },
    Pins {
        kind: &gpio::sifive::KIND,
        bank: |regs| Box::new(SiFiveGpio::new(regs, Ownership::Shared)),
        level: |bit| (0x00, 1 << bit),
        input_enable: Some(0x04),
        undrive: |regs, bit| clear(regs, 0x08, 1 << bit),
    },
    Pins {
        kind: &gpio::zynq::KIND,
        bank: |regs| Box::new(ZynqGpio::new(regs)),
        level: |bit| (0x060, 1 << bit),
        input_enable: None,
        undrive: |regs, bit| clear(regs, 0x204, 1 << bit),
    },
];

/// A board's GPIO block under the shipped driver for its kind.
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

/// `pad` as an input, which it is at reset. No register is written, except on a block whose input
/// path must be enabled.
///
/// # Panics
/// If the board has no such pad, or its bit is above 31.
#[must_use]
pub fn input(board: &Board, pad: Pad) -> SimInput {
    let (pins, mut regs) = block(board, pad);
    assert!(pad.bit < 32, "{pad}: inputs are read from one register of 32 bits");
    let (offset, mask) = (pins.level)(pad.bit.into());
    enable_input(pins, &mut regs, pad.bit);
    SimInput { regs, offset, mask }
}

/// Looks at the pad of `bit`, where a block has to be told to.
fn enable_input(pins: &Pins, regs: &mut SimRegisters, bit: u8) {
    if let Some(input_enable) = pins.input_enable {
        let enabled = regs.read(input_enable);
        regs.write(input_enable, enabled | 1 << bit);
    }
}

/// The pads of a GPIO block, each of which may become an output and an input again, as the kernel's driver
/// of the block has them.
pub struct GpioLines {
    pins: &'static Pins,
    regs: SimRegisters,
    bank: Box<dyn GpioBank>,
    lines: u8,
}

impl GpioLines {
    /// The pads of the block at `index` of the board's; `None` beyond it. Nothing is written yet.
    ///
    /// # Panics
    /// If the kind of block is not listed here.
    #[must_use]
    pub fn new(board: &Board, index: u8) -> Option<Self> {
        let (pins, regs) = found(board, index)?;
        let lines = board.pads_of(index)?.min(LINES_MAX);
        let bank = (pins.bank)(regs.clone());
        Some(Self { pins, regs, bank, lines })
    }

    /// How many there are: the first 32 of the block's at most, which the banks drive.
    #[must_use]
    pub fn lines(&self) -> u8 {
        self.lines
    }

    /// Reads a pad's level from a register, for inputs and outputs alike.
    ///
    /// # Panics
    /// If there is no such line, as for the other methods.
    pub fn level(&mut self, bit: u8) -> bool {
        let (offset, mask) = (self.pins.level)(self.checked(bit).into());
        self.regs.read(offset) & mask != 0
    }

    /// Makes a pad an output that begins with `high`.
    pub fn output(&mut self, bit: u8, high: bool) {
        self.bank.output(1 << self.checked(bit), high);
        enable_input(self.pins, &mut self.regs, bit);
    }

    /// Drives the pads of `mask`, which are outputs.
    pub fn drive(&mut self, mask: u32, high: bool) {
        self.bank.drive(mask, high);
    }

    /// Makes a pad an input.
    pub fn input(&mut self, bit: u8) {
        let bit = self.checked(bit);
        (self.pins.undrive)(&mut self.regs, bit.into());
        enable_input(self.pins, &mut self.regs, bit);
    }

    fn checked(&self, bit: u8) -> u8 {
        assert!(bit < self.lines, "line {bit} of {}", self.lines);
        bit
    }
}

impl fmt::Debug for GpioLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpioLines").field("lines", &self.lines).finish_non_exhaustive()
    }
}

/// Inputs are read from one register of 32 bits, and banks drive as many.
const LINES_MAX: u8 = 32;

fn block(board: &Board, pad: Pad) -> (&'static Pins, SimRegisters) {
    let Some(found) = found(board, pad.block) else { panic!("{} has no {pad}", board.spec().name) };
    found
}

fn found(board: &Board, block: u8) -> Option<(&'static Pins, SimRegisters)> {
    let (spec, regs) = (board.spec().gpio.get(usize::from(block))?, board.gpio(block)?);
    let pins = PINS.iter().find(|pins| pins.kind == spec.kind);
    let missing = || panic!("add {:?} to `PINS` in bring_up/pin.rs", spec.kind);
    Some((pins.unwrap_or_else(missing), regs))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::boards;
    use crate::board::{BoardOptions, BoardSpec};

    /// A line that is no chip select's, on each board.
    fn free(board: &Board) -> u8 {
        let taken = |bit| {
            let driver = crate::wire::Driver::Gpio { block: 0, bit };
            board.spec().cs.iter().any(|cs| cs.driver == driver)
        };
        (1..32).find(|bit| !taken(*bit)).expect("a line without a chip")
    }

    #[test]
    fn a_line_of_any_block_is_an_output_and_an_input_again() {
        for spec in boards() {
            let board = Board::new(spec, BoardOptions::default());
            let mut lines = GpioLines::new(&board, 0).expect("a block");
            let bit = free(&board);
            let pad = Pad { block: 0, bit };
            for level in [true, false, true] {
                lines.output(bit, level);
                assert_eq!((lines.level(bit), board.look_at(pad)), (level, (level, None)));
                lines.drive(1 << bit, !level);
                assert_eq!(lines.level(bit), !level, "{}", spec.name);
                // The level that it drove before is lost.
                for up in [level, !level] {
                    board.pull(pad, up);
                    lines.input(bit);
                    assert_eq!(lines.level(bit), up, "{}", spec.name);
                }
            }
            assert_eq!(board.violations(), [], "{}: no register that is not there", spec.name);
        }
    }

    #[test]
    fn a_recording_has_the_pads_that_are_driven() {
        let board = Board::new(BoardSpec::find("rpi3").expect("a board"), BoardOptions::default());
        let mut lines = GpioLines::new(&board, 0).expect("a block");
        let [before, after] = [24, 25].map(|bit| Pad { block: 0, bit });
        board.record(before, "GPIO24");
        board.start_vcd();
        board.record(after, "GPIO25");
        for bit in [24, 25, 26] {
            lines.output(bit, true);
            lines.drive(1 << bit, false);
        }
        let vcd = String::from_utf8(board.take_vcd().expect("a recording").vcd).expect("text");
        for name in ["GPIO24", "GPIO25"] {
            let line = vcd.lines().find(|line| line.ends_with(&format!("{name} $end")));
            let code = line.and_then(|line| line.split(' ').nth(3)).expect(name);
            let levels = vcd.lines().filter_map(|line| line.strip_suffix(code));
            assert_eq!(levels.collect::<String>(), "010", "{name}");
        }
        assert!(!vcd.contains("GPIO26"));
    }

    #[test]
    fn a_chips_pin_is_stronger_than_a_pull() {
        let board =
            Board::new(BoardSpec::find("imx8mp").expect("a board"), BoardOptions::default());
        let can = crate::model::can::CanBus::new(crate::model::can::BitTimes::from_rates(
            500_000, 2_000_000,
        ));
        let (chip, _) = board.attach_can(&can, None).expect("a CAN controller");
        let pad = board.connect_can_int(&chip.borrow()).expect("a free pad").expect("a pad");
        assert_eq!(board.look_at(pad), (true, None), "not asserted");
        board.pull(pad, false);
        assert_eq!(board.look_at(pad), (true, None));
        let again = board.connect_can_int(&chip.borrow());
        assert_eq!(again, Err(crate::board::LineError::Driven(pad)));
    }
}
