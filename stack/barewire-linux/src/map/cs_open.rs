//! Requests, maps and holds what a controller's chip selects need.
//!
//! # Ordering
//! 1. Request: lines of the kernel are requested first, by one request per chip. Those of the kernel module's device need no request.
//! 2. Hold: each bank whose registers will be written is mapped, then its lines are [held](hold).
//!    Nothing is held of a bank that is `unsafe-shared`. Nor of one with set and clear registers, unless the bus is
//!    exclusive: the kernel gives a line to one process only, and several may use the chip. There a
//!    line that another program has is refused.
//! 3. Start ([`Selects::start`]): the kernel makes the lines outputs at their inactive levels. Only then
//!    are a bank's registers read.

use barewire::controller::gpio::PinAt;

use super::MapError;
use super::cs::{Direct, Selects};
use super::door::DoorLines;
use super::facts::Facts;
use super::spec::{CsLineAt, MapSpec};
use crate::gpio::{CsFault, GpioChip, GpioError, Kernel, Lines, OpenChip, hold};
use crate::gpio::{open_at, open_chip, refuse_used, request};
use crate::root::Root;
use crate::sys::MappedRegisters;

impl Selects {
    /// Steps 1 and 2 of the module. `map` maps the registers of the bank at an address.
    pub(super) fn open(
        root: &Root,
        kernel: &dyn Kernel,
        spec: &MapSpec,
        door: Option<DoorLines>,
        mut map: impl FnMut(u64) -> Result<MappedRegisters, MapError>,
    ) -> Result<Self, MapError> {
        let facts = spec.block.facts();
        let mut pins = [PinAt::default(); 4];
        // Step 1: request the kernel's lines.
        let chips = Chips::open(root, kernel, spec)?;
        chips.refuse_both_ways(root, kernel, spec, facts)?;
        let mut lines = chips.request()?;
        let by_door = lines.len();
        // Step 2: map and hold each bank.
        let ours = !spec.unsafe_shared && (spec.exclusive || facts.written_whole);
        let mut direct: Vec<Direct> = Vec::new();
        for address in spec.banks() {
            let bits = spec.bits_of(address);
            let registers = map(address)?;
            let offsets: Vec<u32> = bits.iter().map(|&(bit, _)| bit.into()).collect();
            let held = match ours {
                false if spec.unsafe_shared => None,
                false => refuse_used(root, kernel, address, &offsets)
                    .map(|()| None)
                    .map_err(MapError::Gpio)?,
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
                Some(CsLineAt::Door { line }) => PinAt {
                    bank: (direct.len() + by_door) as u8,
                    bit: door.as_ref().map_or(0, |door| door.place_of(*line)),
                },
                Some(CsLineAt::Native { .. }) | None => PinAt::default(),
            };
        }
        if let Some(door) = door.filter(|door| !door.is_empty()) {
            lines.push(Box::new(door));
        }
        Ok(Self { direct, kernel: lines, pins, fault: CsFault::default() })
    }
}

/// The kernel's chips of which a specification names lines, and the lines of each.
#[derive(Debug, Default)]
struct Chips(Vec<(OpenChip, Vec<GpioChip>, Vec<u32>)>);

impl Chips {
    fn open(root: &Root, kernel: &dyn Kernel, spec: &MapSpec) -> Result<Self, MapError> {
        let mut chips: Vec<(OpenChip, Vec<GpioChip>, Vec<u32>)> = Vec::new();
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
