//! The null controller as a bus: no wire, no chip, no time.

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::controller::null::Null;
use barewire::spi::Mode;
use barewire::time::Timer;
use barewire_linux::Monotonic;
use barewire_linux::platform::FUTEX;

use super::OpenBus;
use super::selftest::{self, Around};
use crate::shared::failure::Failure;

/// A bus without a wire.
pub(super) struct NullBus(Box<Bus<dyn Controller>>);

impl NullBus {
    pub(super) fn open(around: Around) -> Self {
        Self(selftest::bus(Null::new(), around, Monotonic::new(), &FUTEX))
    }
}

impl OpenBus for NullBus {
    fn bus(&self) -> &Bus<dyn Controller + '_> {
        &*self.0
    }

    fn mode(&self, _chip_select: u8) -> Mode {
        Mode::NO_CS
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(Monotonic::new())
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
