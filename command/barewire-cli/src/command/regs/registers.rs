//! A chip's registers on any bus, whatever the length of an exchange.

use barewire::bus::Device;
use barewire::controller::Controller;
use barewire::regmap::{Access, Frames, Location, Map, OnDevice, RegMap, RegmapError};

use super::chips::RegisterChip;
use crate::shared::failure::Failure;

/// A [`RegMap`] of any length of exchange.
pub(super) trait Registers {
    /// [`RegMap::read`].
    fn read(&mut self, at: Location<'static>) -> Result<u32, RegmapError>;

    /// [`RegMap::write`].
    fn write(&mut self, at: Location<'static>, value: u32) -> Result<(), RegmapError>;

    /// [`RegMap::read_bulk`].
    fn read_bulk(&mut self, at: Location<'static>, values: &mut [u32]) -> Result<(), RegmapError>;
}

impl<F: Frames<N>, const N: usize> Registers for RegMap<F, N> {
    fn read(&mut self, at: Location<'static>) -> Result<u32, RegmapError> {
        self.read(at)
    }

    fn write(&mut self, at: Location<'static>, value: u32) -> Result<(), RegmapError> {
        self.write(at, value)
    }

    fn read_bulk(&mut self, at: Location<'static>, values: &mut [u32]) -> Result<(), RegmapError> {
        self.read_bulk(at, values)
    }
}

/// A device on any bus.
type AnyDevice<'b> = Device<'b, dyn Controller + 'b>;

/// The registers of `map` behind `device`.
pub(super) fn open<'b>(
    device: AnyDevice<'b>,
    map: &'static Map,
) -> Result<Box<dyn Registers + 'b>, Failure> {
    fn on<'b, const N: usize>(
        device: AnyDevice<'b>,
        map: &'static Map,
    ) -> Result<Box<dyn Registers + 'b>, Failure> {
        Ok(Box::new(RegMap::<_, N>::new(OnDevice::new(device)?, map)))
    }
    match map.format().frame_bytes() {
        1 => on::<1>(device, map),
        2 => on::<2>(device, map),
        3 => on::<3>(device, map),
        4 => on::<4>(device, map),
        5 => on::<5>(device, map),
        6 => on::<6>(device, map),
        7 => on::<7>(device, map),
        // A format's most.
        _ => on::<8>(device, map),
    }
}

/// Fails if no chip drives MISO.
pub(super) fn prove(
    registers: &mut dyn Registers,
    chip: &RegisterChip,
    chip_select: u8,
) -> Result<(), Failure> {
    let ones = chip.map.format().value_max();
    let mut all_zero = true;
    for name in chip.proof {
        let at = chip.map.find(name).expect("a chip's proof is of its own registers");
        let value = registers.read(at)?;
        if value == ones {
            return Err(missing(chip, chip_select, name, value));
        }
        all_zero &= value == 0;
    }
    match chip.proof.first() {
        Some(name) if all_zero => Err(missing(chip, chip_select, name, 0)),
        _ => Ok(()),
    }
}

fn missing(chip: &RegisterChip, chip_select: u8, register: &str, value: u32) -> Failure {
    Failure::Failed(format!(
        "no {} answers on chip select {chip_select} ({register} reads {value:#x})",
        chip.map.name()
    ))
}

/// Every register that can be read without changing it, by address: neighbours in one exchange
/// where the chip can.
pub(super) fn read_all(
    registers: &mut dyn Registers,
    map: &'static Map,
) -> Result<Vec<(Location<'static>, u32)>, RegmapError> {
    let readable = |at: &Location<'_>| {
        at.register().access() != Access::WriteOnly && !at.register().is_precious()
    };
    let mut all: Vec<_> = map.locations().filter(readable).map(|at| (at, 0)).collect();
    all.sort_by_key(|(at, _)| at.address());
    let stride = u32::from(map.format().reg_stride);
    let bulk = map.format().has_bulk();
    let follows = |one: &(Location<'_>, u32), next: &(Location<'_>, u32)| {
        bulk && one.0.address() + stride == next.0.address()
    };
    for run in all.chunk_by_mut(follows) {
        if let [(at, value)] = run {
            *value = registers.read(*at)?;
            continue;
        }
        let mut values = vec![0; run.len()];
        registers.read_bulk(run[0].0, &mut values)?;
        for ((_, value), read) in run.iter_mut().zip(values) {
            *value = read;
        }
    }
    Ok(all)
}
