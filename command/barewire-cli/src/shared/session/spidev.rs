//! A spidev node as a bus: the kernel's controller, with one chip select.

use barewire::bus::Bus;
use barewire::bus::platform::Spin;
use barewire::controller::Controller;
use barewire::time::Timer;
use barewire_linux::Monotonic;
use barewire_linux::shared::ChipLocks;
use barewire_linux::spidev::{LastError, SavedMode, Spidev};

use super::OpenBus;
use super::selftest::{self, Around};
use crate::shared::bus_name::SpidevName;
use crate::shared::failure::Failure;

/// A spidev node in use.
pub(super) struct SpidevBus {
    bus: Box<Bus<dyn Controller>>,
    last_error: LastError,
    chip_locks: ChipLocks,
    /// Last: it is dropped behind the bus.
    _saved_mode: SavedMode,
}

impl SpidevBus {
    /// The node as asked, opened.
    pub(super) fn open(name: &SpidevName, around: Around) -> Result<Self, Failure> {
        let saved_mode =
            SavedMode::of(&name.path).map_err(|error| Failure::Failed(error.to_string()))?;
        let spidev =
            Spidev::open(&name.path).map_err(|error| Failure::Failed(error.to_string()))?;
        let last_error = spidev.last_error();
        let bus = selftest::bus(spidev, around, Monotonic::new(), &Spin);
        Ok(Self {
            bus,
            last_error,
            chip_locks: ChipLocks::Node(name.path.clone()),
            _saved_mode: saved_mode,
        })
    }
}

impl OpenBus for SpidevBus {
    fn bus(&self) -> &Bus<dyn Controller + '_> {
        &*self.bus
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(Monotonic::new())
    }

    fn chip_locks(&self) -> Option<ChipLocks> {
        Some(self.chip_locks.clone())
    }

    fn cause(&self) -> Option<String> {
        self.last_error.take().map(|error| error.to_string())
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
