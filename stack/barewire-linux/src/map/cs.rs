//! The chip selects of a mapped controller: through GPIO banks' registers, through the kernel, or
//! both.
//!
//! # Ordering
//! 1. Request: lines of the kernel are requested first, by one request per chip.
//! 2. Hold: each bank whose registers will be written is mapped, then its lines are [held](hold).
//!    Nothing is held of a bank that is `unsafe-shared`, or if several processes share the
//!    controller: the kernel gives a line to one process only.
//! 3. Start: the kernel makes the lines outputs at their inactive levels. Only then are a bank's
//!    registers read.

use barewire::controller::CsLine;
use barewire::controller::gpio::{GpioBank, NoGpio, PinAt, Spread};

use super::MapError;
use super::block::Facts;
use super::spec::{CsLineAt, MapSpec};
use crate::gpio::{CsFault, GpioChip, GpioError, Kernel, KernelPins, Lines, Opened, hold};
use crate::gpio::{open_at, open_chip, request};
use crate::root::Root;
use crate::sys::MappedRegisters;

/// One bank per chip select at most.
const BANKS: usize = 4;

/// A bank whose registers are written.
#[derive(Debug)]
struct Direct {
    address: u64,
    registers: MappedRegisters,
    /// The lines that are held, if the kernel has the bank.
    held: Option<Box<dyn Lines>>,
    /// Bits of that request: the chip selects, and those that are high when inactive.
    selects: u64,
    at_rest: u64,
    /// Whether no other program writes the bank.
    ours: bool,
}

/// The parts from which a controller's chip selects are made.
#[derive(Debug)]
pub(super) struct Selects {
    direct: Vec<Direct>,
    kernel: Vec<Box<dyn Lines>>,
    /// By chip select. Banks are numbered: direct ones first, then the kernel's.
    pins: [PinAt; 4],
    fault: CsFault,
}

impl Selects {
    /// Steps 1 and 2 of the module. `map` maps the registers of the bank at an address.
    pub(super) fn open(
        root: &Root,
        kernel: &dyn Kernel,
        spec: &MapSpec,
        mut map: impl FnMut(u64) -> Result<MappedRegisters, MapError>,
    ) -> Result<Self, MapError> {
        let facts = spec.block.facts();
        let mut pins = [PinAt::default(); 4];
        // Step 1: request the kernel's lines.
        let chips = Chips::open(root, kernel, spec)?;
        chips.refuse_both_ways(root, kernel, spec, facts)?;
        let lines = chips.request()?;
        // Step 2: map and hold each bank.
        let ours = !(spec.unsafe_shared || spec.shared.is_some());
        let mut direct: Vec<Direct> = Vec::new();
        for address in spec.banks() {
            let bits = spec.bits_of(address);
            let registers = map(address)?;
            let offsets: Vec<u32> = bits.iter().map(|&(bit, _)| bit.into()).collect();
            let held = match ours {
                false => None,
                true => hold(
                    root,
                    kernel,
                    address,
                    facts.bank_pins.into(),
                    facts.written_whole,
                    &offsets,
                )
                .map_err(MapError::Gpio)?,
            };
            let (mut selects, mut at_rest) = (0, 0);
            for (index, &(bit, active_high)) in bits.iter().enumerate() {
                let of_request = if facts.written_whole { bit.into() } else { index };
                selects |= 1 << of_request;
                at_rest |= u64::from(!active_high) << of_request;
            }
            direct.push(Direct { address, registers, held, selects, at_rest, ours });
        }
        for (pin, line) in pins.iter_mut().zip(&spec.chip_selects) {
            *pin = match line.as_ref().map(|line| &line.at) {
                Some(CsLineAt::Gpio { address, bit }) => {
                    let bank = direct.iter().position(|bank| bank.address == *address);
                    PinAt { bank: bank.unwrap_or_default() as u8, bit: *bit }
                }
                Some(CsLineAt::Kernel(line)) => {
                    let (chip, bit) = chips.place_of(&line.chip, line.offset);
                    PinAt { bank: (direct.len() + chip) as u8, bit }
                }
                Some(CsLineAt::Native { .. }) | None => PinAt::default(),
            };
        }
        Ok(Self { direct, kernel: lines, pins, fault: CsFault::default() })
    }

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

    /// Step 3 of the module. `new` makes a bank of registers; its flag says whether no other
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

/// The kernel's chips of which a specification names lines, and the lines of each.
#[derive(Debug, Default)]
struct Chips(Vec<(Opened, Vec<GpioChip>, Vec<u32>)>);

impl Chips {
    fn open(root: &Root, kernel: &dyn Kernel, spec: &MapSpec) -> Result<Self, MapError> {
        let mut chips: Vec<(Opened, Vec<GpioChip>, Vec<u32>)> = Vec::new();
        for line in spec.kernel_lines() {
            let place = match chips.iter().position(|(_, names, _)| names.contains(&line.chip)) {
                Some(place) => place,
                None => {
                    let opened = open_chip(root, kernel, &line.chip).map_err(MapError::Gpio)?;
                    // A chip may be named in two ways.
                    let known = chips.iter().position(|(chip, ..)| chip.path == opened.path);
                    let place = known.unwrap_or(chips.len());
                    if known.is_none() {
                        chips.push((opened, Vec::new(), Vec::new()));
                    }
                    chips[place].1.push(line.chip.clone());
                    place
                }
            };
            chips[place].2.push(line.offset);
        }
        Ok(Self(chips))
    }

    /// Refuses a bank that the kernel would write while this process writes its registers.
    fn refuse_both_ways(
        &self,
        root: &Root,
        kernel: &dyn Kernel,
        spec: &MapSpec,
        facts: &Facts,
    ) -> Result<(), MapError> {
        if self.0.is_empty() || !facts.written_whole {
            return Ok(());
        }
        for address in spec.banks() {
            let chip = open_at(root, kernel, address).map_err(MapError::Gpio)?;
            if chip.is_some_and(|chip| self.0.iter().any(|(other, ..)| other.path == chip.path)) {
                return Err(MapError::Gpio(GpioError::BothWays { address }));
            }
        }
        Ok(())
    }

    fn request(&self) -> Result<Vec<Box<dyn Lines>>, MapError> {
        let requested = self.0.iter().map(|(chip, _, offsets)| request(chip, offsets));
        requested.collect::<Result<_, _>>().map_err(MapError::Gpio)
    }

    /// The chip's index, and the bit in its request.
    fn place_of(&self, chip: &GpioChip, offset: u32) -> (usize, u8) {
        let place = self.0.iter().position(|(_, names, _)| names.contains(chip));
        let place = place.unwrap_or_default();
        let bit = self.0[place].2.iter().position(|&other| other == offset);
        (place, bit.unwrap_or_default() as u8)
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
