//! The chip selects of a mapped controller: through GPIO banks' registers, through the kernel, or
//! both. [`cs_open`](super::cs_open) has the order in which they are opened and started.

use barewire::controller::CsLine;
use barewire::controller::gpio::{GpioBank, NoGpio, PinAt, Spread};

use crate::gpio::{CsFault, KernelPins, Lines};
use crate::sys::MappedRegisters;

/// One bank per chip select at most.
const BANKS: usize = 4;

/// A bank whose registers are written.
#[derive(Debug)]
pub(super) struct Direct {
    pub(super) address: u64,
    pub(super) registers: MappedRegisters,
    /// The lines that are held, if the kernel has the bank.
    pub(super) held: Option<Box<dyn Lines>>,
    /// Bits of that request: the chip selects, and those that are high when inactive.
    pub(super) selects: u64,
    pub(super) at_rest: u64,
    /// Whether no other program writes the bank.
    pub(super) ours: bool,
}

/// The parts from which a controller's chip selects are made.
#[derive(Debug)]
pub(super) struct Selects {
    pub(super) direct: Vec<Direct>,
    pub(super) kernel: Vec<Box<dyn Lines>>,
    /// By chip select. Banks are numbered: direct ones first, then the kernel's.
    pub(super) pins: [PinAt; 4],
    pub(super) fault: CsFault,
}

impl Selects {
    /// The mapped length in bytes.
    pub(super) fn mapped_len(&self) -> usize {
        self.direct.iter().map(|bank| bank.registers.mapped_len()).sum()
    }

    /// The registers of the first mapped bank.
    pub(super) fn registers(&mut self) -> Option<&mut MappedRegisters> {
        self.direct.first_mut().map(|bank| &mut bank.registers)
    }

    /// The mapped banks: the address and the registers of each.
    pub(super) fn banks(&mut self) -> impl Iterator<Item = (u64, &mut MappedRegisters)> {
        self.direct.iter_mut().map(|bank| (bank.address, &mut bank.registers))
    }

    /// The errors of lines through the kernel.
    pub(super) fn fault(&self) -> CsFault {
        self.fault.clone()
    }

    /// Step 3 of the ordering. `new` makes a bank of registers; its flag says whether no other
    /// program writes them.
    pub(super) fn start<B: GpioBank>(self, new: impl Fn(MappedRegisters, bool) -> B) -> CsGpio<B> {
        let mut banks = [const { CsBank::None(NoGpio) }; BANKS];
        let mut places = banks.iter_mut();
        let mut held_lines = Vec::new();
        let one_bank = self.is_one_bank();
        for Direct { registers, held, selects, at_rest, ours, .. } in self.direct {
            if let Some(mut lines) = held {
                self.fault.told(lines.output(selects, at_rest));
                held_lines.push(lines);
            }
            if let Some(place) = places.next() {
                *place = CsBank::Registers(new(registers, ours));
            }
        }
        for lines in self.kernel {
            if let Some(place) = places.next() {
                *place = CsBank::Kernel(KernelPins::new(lines, self.fault.clone()));
            }
        }
        let pins = match (one_bank, banks) {
            (true, [CsBank::Registers(bank), ..]) => Pins::Bank(bank),
            (_, banks) => Pins::Spread(Spread::new(banks, &self.pins)),
        };
        CsGpio { pins, _held: held_lines }
    }

    /// Whether all chip selects are in the registers of one bank.
    pub(super) fn is_one_bank(&self) -> bool {
        self.direct.len() == 1 && self.kernel.is_empty()
    }

    /// The table of chip selects for the bank that [`Selects::start`] makes. In `by_number`, pin
    /// `n` is chip select `n`.
    pub(super) fn table(&self, by_number: [CsLine; 4]) -> [CsLine; 4] {
        let mut table = by_number;
        for (line, pin) in table.iter_mut().zip(self.pins) {
            if let (true, CsLine::Gpio { bit, .. }) = (self.is_one_bank(), line) {
                *bit = pin.bit;
            }
        }
        table
    }
}

#[derive(Debug)]
enum CsBank<B> {
    /// No chip select uses this bank.
    None(NoGpio),
    /// The registers of a bank.
    Registers(B),
    /// Lines through the kernel.
    Kernel(KernelPins),
}

impl<B: GpioBank> GpioBank for CsBank<B> {
    #[inline]
    fn drive(&mut self, mask: u32, high: bool) {
        match self {
            Self::None(none) => none.drive(mask, high),
            Self::Registers(bank) => bank.drive(mask, high),
            Self::Kernel(lines) => lines.drive(mask, high),
        }
    }

    fn output(&mut self, mask: u32, high: bool) {
        match self {
            Self::None(none) => none.output(mask, high),
            Self::Registers(bank) => bank.output(mask, high),
            Self::Kernel(lines) => lines.output(mask, high),
        }
    }
}

/// The location of the pins of a controller's table.
#[derive(Debug)]
enum Pins<B> {
    /// In one bank, under its own pin numbers: an edge needs no table lookup.
    Bank(B),
    /// In several banks or in the kernel; pin `n` is chip select `n`.
    Spread(Spread<CsBank<B>, BANKS>),
}

/// The GPIO chip selects of a mapped controller.
#[derive(Debug)]
pub struct CsGpio<B> {
    pins: Pins<B>,
    /// Held so that no other program can request them while the registers are written.
    _held: Vec<Box<dyn Lines>>,
}

/// # Panics
/// On every call for a chip select that is not a GPIO; a controller's table contains no such call.
impl<B: GpioBank> GpioBank for CsGpio<B> {
    #[inline(always)]
    fn drive(&mut self, mask: u32, high: bool) {
        match &mut self.pins {
            Pins::Bank(bank) => bank.drive(mask, high),
            Pins::Spread(spread) => drive_spread(spread, mask, high),
        }
    }

    #[inline(always)]
    fn is_short(&self) -> bool {
        matches!(self.pins, Pins::Bank(_))
    }

    #[inline(always)]
    fn drive_short(&mut self, mask: u32, high: bool) {
        match &mut self.pins {
            Pins::Bank(bank) => bank.drive(mask, high),
            // Never called here. Aborting keeps the code of a panic out of every message.
            Pins::Spread(_) => std::process::abort(),
        }
    }

    fn output(&mut self, mask: u32, high: bool) {
        match &mut self.pins {
            Pins::Bank(bank) => bank.output(mask, high),
            Pins::Spread(spread) => spread.output(mask, high),
        }
    }
}

/// Not inlined, so that the edge of a single bank is inlined in the driver.
#[inline(never)]
fn drive_spread<B: GpioBank>(spread: &mut Spread<CsBank<B>, BANKS>, mask: u32, high: bool) {
    spread.drive(mask, high);
}
