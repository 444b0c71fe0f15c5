//! The port of a chip's driver: a device on a bus, with other processes and threads kept off.

mod exclusive;

use std::sync::Arc;

use barewire::chip::Port;
use barewire::spi::{MessageError, Settings, Transfer};
use barewire_linux::shared::{ChipLock, ChipPort};
use barewire_open::AnyDevice;
use barewire_open::name::{BusName, SimOptions};
use pyo3::prelude::*;

pub(crate) use exclusive::Exclusive;

use crate::error;
use crate::shared::SharedBus;

/// A driver's port: a device on a bus.
pub(crate) struct DevicePort {
    pub(crate) shared: Arc<SharedBus>,
    pub(crate) device: AnyDevice,
}

impl Port for DevicePort {
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.shared.sync(&self.device, message).map(drop)
    }

    fn speed_hz(&self) -> u32 {
        self.device.device().effective().speed_hz
    }

    fn max_message_bytes(&self) -> usize {
        self.device.device().limits().max_message_bytes
    }
}

/// A port that excludes other processes, if the bus can have any.
pub(crate) type SharedPort = ChipPort<DevicePort>;

/// The port of a chip.
pub(crate) fn port(
    py: Python<'_>,
    shared: &Arc<SharedBus>,
    settings: &Settings,
) -> PyResult<SharedPort> {
    let lock = chip_lock(py, shared, settings.chip_select)?;
    let device = shared.device(py, settings)?;
    Ok(ChipPort::new(DevicePort { shared: Arc::clone(shared), device }, lock))
}

/// The lock of a chip that other processes may use.
pub(crate) fn chip_lock(
    py: Python<'_>,
    shared: &SharedBus,
    chip_select: u8,
) -> PyResult<Option<ChipLock>> {
    shared.any.chip_lock(chip_select).map_err(|error| error::of_open(py, &error))
}

/// The options of a simulated board; `None` for another bus.
pub(crate) fn simulated(shared: &SharedBus) -> Option<&SimOptions> {
    match &shared.parsed {
        BusName::Sim(options) => Some(options),
        _ => None,
    }
}
