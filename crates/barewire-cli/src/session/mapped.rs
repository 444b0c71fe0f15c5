//! ECSPI registers mapped into this process as a bus: through UIO or `/dev/mem`. Experimental.

use barewire::bus::Bus;
use barewire::bus::platform::Spin;
use barewire::controller::Controller;
use barewire::time::Timer;
use barewire_linux::map::{EcspiSpec, MappedEcspi};
use barewire_linux::{Monotonic, Root};

use super::OpenBus;
use super::selftest::{self, Around};
use crate::failure::Failure;
use crate::output::note;

/// A mapped controller in use.
pub(super) struct MappedBus {
    bus: Box<Bus<dyn Controller>>,
}

impl MappedBus {
    /// The controller as asked, mapped, looked at, and only then touched.
    pub(super) fn open(spec: &EcspiSpec, around: Around) -> Result<Self, Failure> {
        let mapped = MappedEcspi::open(&Root::system(), spec)
            .map_err(|error| Failure::Failed(error.to_string()))?;
        // Before a register is touched: a block without its clock hangs the machine.
        if let Some(warning) = mapped.warning() {
            note!("barewire: warning: {warning}");
        }
        let bus = selftest::bus(mapped.start(), around, Monotonic::new(), &Spin);
        Ok(Self { bus })
    }
}

impl OpenBus for MappedBus {
    fn bus(&self) -> &Bus<dyn Controller + '_> {
        &*self.bus
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(Monotonic::new())
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
