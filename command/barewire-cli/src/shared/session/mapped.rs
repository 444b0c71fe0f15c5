//! A controller's registers mapped into this process as a bus: through UIO or `/dev/mem`.
//! Experimental.
//!
//! How it works: a thread checks every 100 ms whether a kernel driver took the controller back. If so,
//! the next message fails, and the command ends with an error that gives the reason. A command that
//! sends no further message learns it from [`OpenBus::check`], before it trusts its data or at the
//! end. So at most 100 ms of messages go over the wire beside that driver.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::spi::Mode;
use barewire::time::Timer;
use barewire_linux::map::{MapSpec, Mapped, Watch};
use barewire_linux::platform::FUTEX;
use barewire_linux::shared::{ChipLocks, ProcessShared, SharedError};
use barewire_linux::{Monotonic, Root};

use super::OpenBus;
use super::first_read::first_read;
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

/// The thread that looks whether the controller is still ours.
struct Guard {
    watch: Watch,
    stop: Arc<AtomicBool>,
    /// What it has seen.
    taken: Arc<OnceLock<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Guard {
    fn start(watch: Watch) -> Result<Self, Failure> {
        let (stop, taken) = (Arc::new(AtomicBool::new(false)), Arc::new(OnceLock::new()));
        let (looking, stopped, seen) = (watch.clone(), Arc::clone(&stop), Arc::clone(&taken));
        let look = move || {
            while !stopped.load(Ordering::Relaxed) {
                if let Err(error) = looking.still_ours() {
                    let _ = seen.set(error.to_string());
                    return;
                }
                thread::park_timeout(Watch::INTERVAL);
            }
        };
        let thread = thread::Builder::new().name("still-ours".into()).spawn(look);
        let thread = thread.map_err(|error| Failure::io("start a thread", &error))?;
        Ok(Self { watch, stop, taken, thread: Some(thread) })
    }

    /// What was seen, now or before.
    fn taken(&self) -> Option<String> {
        let now = || self.watch.still_ours().err().map(|error| error.to_string());
        self.taken.get().cloned().or_else(now)
    }

    fn end(&mut self) -> Option<String> {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It does not panic; if it did, the last look is what counts.
            let _ = thread.join();
        }
        let last = || self.watch.final_check().err().map(|error| error.to_string());
        self.taken().or_else(last)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

impl MappedBus {
    /// The controller as asked, mapped, looked at, and only then touched.
    pub(super) fn open(spec: &MapSpec, around: Around) -> Result<Self, Failure> {
        let mut mapped = Mapped::open(&Root::system(), spec)
            .map_err(|error| Failure::Failed(error.to_string()))?;
        first_read(mapped.first_reads())?;
        // Before a register is written: a block without its clock hangs the machine, one without its
        // pins is not heard.
        for warning in mapped.warnings() {
            note!("barewire: warning: {warning}");
        }
        let chip_locks = mapped.chip_locks();
        let guard = Guard::start(mapped.watch())?;
        let failed = |error: SharedError| Failure::Failed(error.to_string());
        let bus = match mapped.lock().map_err(failed)? {
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
        let pins = spec.chip_selects.each_ref().map(Option::as_ref);
        let active_high = pins.map(|pin| pin.is_some_and(|pin| pin.active_high));
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
