//! The chip selects of a mapped controller: registers of GPIO banks, lines of the kernel, or both.
//!
//! # Ordering
//! 1. Lines of the kernel are requested first, a request a chip.
//! 2. Each bank whose registers are written is mapped, then its lines are [held](hold). Nothing is
//!    requested of a bank that is `unsafe-shared`, nor where several processes share the controller:
//!    the kernel gives a line to one of them.
//! 3. At the start the kernel makes the lines outputs, at their inactive levels; only then is a bank
//!    read.

use barewire::controller::CsLine;
use barewire::controller::gpio::{GpioBank, NoGpio, PinAt, Spread};

use super::MapError;
use super::block::Facts;
use super::spec::{CsLineAt, MapSpec};
use crate::gpio::{CsFault, GpioChip, GpioError, Kernel, KernelPins, Lines, Opened, hold};
use crate::gpio::{open_at, open_chip, request};
use crate::root::Root;
use crate::sys::MappedRegisters;

/// As many banks as there are chip selects.
const BANKS: usize = 4;

/// A bank whose registers are written.
#[derive(Debug)]
struct Direct {
    address: u64,
    registers: MappedRegisters,
    /// The lines that are held, if the kernel has the bank.
    held: Option<Box<dyn Lines>>,
    /// Of those, by the request's bits: the chip selects, and which of them are high at rest.
    selects: u64,
    at_rest: u64,
    /// Nobody else writes the bank.
    ours: bool,
}

/// What the chip selects of a controller are made of.
#[derive(Debug)]
pub(super) struct Selects {
    direct: Vec<Direct>,
    kernel: Vec<Box<dyn Lines>>,
    /// By chip select. Banks are numbered: first the direct ones, then the kernel's.
    pins: [PinAt; 4],
    fault: CsFault,
}

impl Selects {
    /// Steps 1 and 2 of the module; `map` maps the registers of the bank at an address.
    pub(super) fn open(
        root: &Root,
        kernel: &dyn Kernel,
        spec: &MapSpec,
        mut map: impl FnMut(u64) -> Result<MappedRegisters, MapError>,
    ) -> Result<Self, MapError> {
        let facts = spec.block.facts();
        let mut pins = [PinAt::default(); 4];
        // Step 1: the kernel's lines are requested.
        let chips = Chips::open(root, kernel, spec)?;
        chips.refuse_both_ways(root, kernel, spec, facts)?;
        let lines = chips.request()?;
        // Step 2: each bank is mapped and held.
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

    /// Bytes mapped.
    pub(super) fn mapped_len(&self) -> usize {
        self.direct.iter().map(|bank| bank.registers.mapped_len()).sum()
    }

    /// The registers of the first bank that is mapped.
    pub(super) fn registers(&mut self) -> Option<&mut MappedRegisters> {
        self.direct.first_mut().map(|bank| &mut bank.registers)
    }

    /// The banks that are mapped: where each begins, and its registers.
    pub(super) fn banks(&mut self) -> impl Iterator<Item = (u64, &mut MappedRegisters)> {
        self.direct.iter_mut().map(|bank| (bank.address, &mut bank.registers))
    }

    /// What goes wrong with lines of the kernel.
    pub(super) fn fault(&self) -> CsFault {
        self.fault.clone()
    }

    /// Step 3 of the module. `new` makes a bank of its registers, told whether nobody else writes them.
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

    /// Whether one bank's registers are all there is.
    pub(super) fn is_one_bank(&self) -> bool {
        self.direct.len() == 1 && self.kernel.is_empty()
    }

    /// The table of chip selects for the bank that [`Selects::start`] makes; `by_number` is one whose
    /// pin `n` is chip select `n`.
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

/// The kernel's chips that a specification names lines of, and which lines of each.
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
                    // One chip may be named in two ways.
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

    /// Refuses a bank that the kernel would write while it is written here.
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

    /// Which chip, and which bit of its request.
    fn place_of(&self, chip: &GpioChip, offset: u32) -> (usize, u8) {
        let place = self.0.iter().position(|(_, names, _)| names.contains(chip));
        let place = place.unwrap_or_default();
        let bit = self.0[place].2.iter().position(|&other| other == offset);
        (place, bit.unwrap_or_default() as u8)
    }
}

#[derive(Debug)]
enum CsBank<B> {
    /// A place that no chip select is in.
    None(NoGpio),
    /// Registers of a bank.
    Registers(B),
    /// Lines of the kernel.
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

/// Where the pins of a controller's table are.
#[derive(Debug)]
enum Pins<B> {
    /// In one bank, whose own they are: an edge looks nothing up.
    Bank(B),
    /// In several, or in the kernel's; pin `n` is chip select `n`.
    Spread(Spread<CsBank<B>, BANKS>),
}

/// The GPIO chip selects of a mapped controller.
#[derive(Debug)]
pub struct CsGpio<B> {
    pins: Pins<B>,
    /// Nobody may request these while the registers are written.
    _held: Vec<Box<dyn Lines>>,
}

/// # Panics
/// On every call for a chip select that is no GPIO, which a controller's table does not make.
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
            // Not asked of these. A panic here would have every message keep what to do about it.
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

/// Apart, so that the edge of a bank alone is compiled into the driver.
#[inline(never)]
fn drive_spread<B: GpioBank>(spread: &mut Spread<CsBank<B>, BANKS>, mask: u32, high: bool) {
    spread.drive(mask, high);
}
