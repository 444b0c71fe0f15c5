//! A controller's registers mapped into this process as a bus: through UIO or `/dev/mem`.
//! Experimental.
//!
//! How it works: a [`Guard`] checks whether a kernel driver took the controller back. If so, the next message fails, and the command ends with an error that gives the reason. A command that
//! sends no further message learns it from [`OpenBus::check`], before it trusts its data or at the
//! end. So at most 100 ms of messages go over the wire beside that driver.

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::spi::Mode;
use barewire::time::Timer;
use barewire_linux::Monotonic;
use barewire_linux::map::MapSpec;
use barewire_linux::platform::FUTEX;
use barewire_linux::shared::{ChipLocks, ProcessShared, SharedError};
use barewire_open::mapped::{self, Guard};

use super::OpenBus;
use super::selftest::{self, Around};
use super::waiting;
use crate::shared::failure::Failure;
use crate::shared::output::note;

/// A mapped controller in use.
pub(super) struct MappedBus {
    bus: Box<Bus<dyn Controller>>,
    /// Which chip selects are active high.
    active_high: [bool; 4],
    chip_locks: Option<ChipLocks>,
    guard: Guard,
}

impl MappedBus {
    /// The controller as asked, mapped, looked at, and only then touched.
    pub(super) fn open(spec: &MapSpec, around: Around) -> Result<Self, Failure> {
        let (mut mapped, guard) = mapped::open(spec, &mut |text| note!("{text}"))?;
        let chip_locks = mapped.chip_locks();
        let failed = |error: SharedError| Failure::Failed(error.to_string());
        let bus = match mapped.take_lock() {
            None => selftest::bus(mapped.start(), around, Monotonic::new(), &FUTEX),
            Some(lock) => {
                let lock = waiting::patient(lock);
                let shared = ProcessShared::bring_up(lock, || mapped.start())
                    .map_err(|error| waiting::broken_off().unwrap_or_else(|| failed(error)))?;
                let tell = |recovered| {
                    note!("barewire: warning: a process died in a message: {recovered}")
                };
                selftest::bus(shared.on_recovered(tell), around, Monotonic::new(), &FUTEX)
            }
        };
        let active_high = mapped::active_high(spec);
        Ok(Self { bus, active_high, chip_locks, guard })
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

    fn cause(&self) -> Option<String> {
        self.guard.taken()
    }

    fn check(&self) -> Result<(), Failure> {
        self.guard.taken().map_or(Ok(()), |text| Err(Failure::Failed(text)))
    }

    fn close(&mut self) -> Result<(), Failure> {
        self.guard.end().map_or(Ok(()), |text| Err(Failure::Failed(text)))
    }
}
