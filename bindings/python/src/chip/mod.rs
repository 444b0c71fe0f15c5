//! Chip drivers: the stack's own, on a device that keeps its bus.
//!
//! How it works: a driver is used by one thread at a time ([`Exclusive`]), without the interpreter. Long
//! operations are cut into pieces, between which other threads run and Ctrl-C is honoured.

mod adc;
mod can;
mod exclusive;
mod flash;
pub(crate) mod registers;

use std::sync::Arc;

use barewire::chip::Port;
use barewire::spi::{MessageError, Settings, Transfer};
use barewire_linux::shared::{ChipLock, ChipPort};
use barewire_open::AnyDevice;
use barewire_open::name::{BusName, SimOptions};
use pyo3::prelude::*;

pub(crate) use adc::Mcp3008;
pub(crate) use can::{CanFrame, Mcp251xFd};
use exclusive::Exclusive;
pub(crate) use flash::Flash;

use crate::bus::Shared;
use crate::error;

/// A driver's port: a device on a bus.
struct DevicePort {
    shared: Arc<Shared>,
    device: AnyDevice,
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

/// A port of which other processes are kept off, where there may be some.
type SharedPort = ChipPort<DevicePort>;

/// The port of a chip.
fn port(py: Python<'_>, shared: &Arc<Shared>, settings: &Settings) -> PyResult<SharedPort> {
    let lock = chip_lock(py, shared, settings.chip_select)?;
    let device = shared.device(py, settings)?;
    Ok(ChipPort::new(DevicePort { shared: Arc::clone(shared), device }, lock))
}

/// The lock of a chip that other processes may use.
fn chip_lock(py: Python<'_>, shared: &Shared, chip_select: u8) -> PyResult<Option<ChipLock>> {
    shared.any.chip_lock(chip_select).map_err(|error| error::of_open(py, &error))
}

/// The options of a simulated board; `None` for another bus.
fn simulated(shared: &Shared) -> Option<&SimOptions> {
    match &shared.parsed {
        BusName::Sim(options) => Some(options),
        _ => None,
    }
}
