//! A controller's registers mapped into this process as a bus: through UIO or `/dev/mem`.
//! Experimental.

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::spi::Mode;
use barewire::time::Timer;
use barewire_linux::map::{MapSpec, Mapped};
use barewire_linux::platform::FUTEX;
use barewire_linux::shared::{ChipLocks, ProcessShared, SharedError};
use barewire_linux::{Monotonic, Root};

use super::OpenBus;
use super::selftest::{self, Around};
use crate::failure::Failure;
use crate::output::note;

/// A mapped controller in use.
pub(super) struct MappedBus {
    bus: Box<Bus<dyn Controller>>,
    /// Which chip selects are active high.
    active_high: [bool; 4],
    chip_locks: Option<ChipLocks>,
}

impl MappedBus {
    /// The controller as asked, mapped, looked at, and only then touched.
    pub(super) fn open(spec: &MapSpec, around: Around) -> Result<Self, Failure> {
        let mapped = Mapped::open(&Root::system(), spec)
            .map_err(|error| Failure::Failed(error.to_string()))?;
        // Before a register is touched: a block without its clock hangs the machine, one without its
        // pins is not heard.
        for warning in mapped.warnings() {
            note!("barewire: warning: {warning}");
        }
        let chip_locks = mapped.chip_locks();
        let failed = |error: SharedError| Failure::Failed(error.to_string());
        let bus = match mapped.lock().map_err(failed)? {
            None => selftest::bus(mapped.start(), around, Monotonic::new(), &FUTEX),
            Some(lock) => {
                let shared = ProcessShared::bring_up(lock, || mapped.start()).map_err(failed)?;
                let tell = |recovered| {
                    note!("barewire: warning: a process died in a message: {recovered}")
                };
                selftest::bus(shared.on_recovered(tell), around, Monotonic::new(), &FUTEX)
            }
        };
        let pins = spec.chip_selects.each_ref().map(Option::as_ref);
        let active_high = pins.map(|pin| pin.is_some_and(|pin| pin.active_high));
        Ok(Self { bus, active_high, chip_locks })
    }
}

impl OpenBus for MappedBus {
    fn bus(&self) -> &Bus<dyn Controller + '_> {
        &*self.bus
    }

    fn mode(&self, chip_select: u8) -> Mode {
        match self.active_high.get(usize::from(chip_select)) {
            Some(true) => Mode::CS_HIGH,
            _ => Mode::default(),
        }
    }

    fn chip_locks(&self) -> Option<ChipLocks> {
        self.chip_locks.clone()
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(Monotonic::new())
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
