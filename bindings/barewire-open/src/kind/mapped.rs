//! A controller's registers mapped into this process: checked before they are touched, watched, and
//! shared with other processes unless this process has the controller alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use barewire::controller::Controller;
use barewire::spi::Mode;
use barewire_linux::map::{MapSpec, Mapped, MappedUser};
use barewire_linux::shared::{ChipLocks, ProcessShared, SharedLock};
use barewire_linux::{Monotonic, Root};

use super::Backing;
use super::guard::Guard;
use crate::first_read::first_read;
use crate::waiting::while_opening;
use crate::{Console, Layers, OpenError};

/// The backing of a mapped controller.
pub(crate) struct MappedBacking {
    guard: Guard,
    /// Which chip selects are active high.
    active_high: [bool; 4],
    locks: Option<ChipLocks>,
    /// Whether the user ended the last wait for another process.
    stopped: Arc<AtomicBool>,
}

/// Maps the controller as asked and reads one register of each block in a child process. No register is written. `tell`
/// gets warnings for people.
///
/// # Errors
/// The errors of [`Mapped::open`]; a register that does not answer.
pub fn map(spec: &MapSpec, tell: &mut dyn FnMut(&str)) -> Result<Mapped, OpenError> {
    let mut mapped = Mapped::open(&Root::system(), spec).map_err(OpenError::of_map)?;
    first_read(mapped.first_reads())?;
    // Before a register is written: a block without its clock hangs the machine, one without its
    // pins is not heard.
    for warning in mapped.warnings() {
        tell(&format!("barewire: warning: {warning}"));
    }
    Ok(mapped)
}

/// Opens the controller that `spec` names: maps its registers, checks the machine, and accesses the
/// registers last.
pub(crate) fn open(
    spec: &MapSpec,
    layers: Layers,
    console: Option<Console>,
    tell: &mut dyn FnMut(&str),
) -> Result<(Box<dyn Controller + Send>, MappedBacking), OpenError> {
    let mut mapped = map(spec, tell)?;
    let active_high = mapped.chip_selects().each_ref().map(|pin| {
        let pin = pin.as_ref();
        pin.is_some_and(|pin| pin.active_high)
    });
    let guard = Guard::start(mapped.watch())?;
    let (locks, lock) = (mapped.chip_locks(), mapped.take_lock());
    let stopped = Arc::new(AtomicBool::new(false));
    let sharing = Sharing { lock, console, stopped: Arc::clone(&stopped), layers, tell };
    let controller = mapped.start_each(sharing)?;
    Ok((controller, MappedBacking { guard, active_high, locks, stopped }))
}

/// Brings the controller up, under its lock if other processes may use it.
struct Sharing<'t> {
    /// `None` if this process has the controller alone.
    lock: Option<SharedLock>,
    console: Option<Console>,
    stopped: Arc<AtomicBool>,
    layers: Layers,
    tell: &'t mut dyn FnMut(&str),
}

impl MappedUser for Sharing<'_> {
    type Output = Result<Box<dyn Controller + Send>, OpenError>;

    fn run<C: Controller + Send + 'static>(self, start: impl FnOnce() -> C) -> Self::Output {
        let Self { lock, console, stopped, layers, tell } = self;
        let Some(mut lock) = lock else {
            return Ok(layers.around(start(), Monotonic::new()));
        };
        if let Some(console) = console {
            lock = console.attend_bus(lock, stopped);
        }
        let path = lock.path().to_owned();
        let wait = &mut while_opening(&path, console, tell);
        let shared = ProcessShared::bring_up_while(lock, wait, start);
        let mut shared = shared.map_err(OpenError::of_sharing)?;
        if let Some(console) = console {
            shared = shared.on_recovered(move |recovered| {
                let text = format!("barewire: warning: a process died in a message: {recovered}");
                (console.tell)(&text);
            });
        }
        Ok(layers.around(shared, Monotonic::new()))
    }
}

impl Backing for MappedBacking {
    fn mode(&self, chip_select: u8) -> Mode {
        match self.active_high.get(usize::from(chip_select)) {
            Some(true) => Mode::CS_HIGH,
            _ => Mode::default(),
        }
    }

    fn chip_locks(&self) -> Option<&ChipLocks> {
        self.locks.as_ref()
    }

    fn cause(&self) -> Option<String> {
        self.guard.taken()
    }

    fn check(&self) -> Result<(), OpenError> {
        self.guard.taken().map_or(Ok(()), |text| Err(OpenError::Failed(text)))
    }

    fn stopped(&self) -> Option<OpenError> {
        self.stopped.load(Ordering::Relaxed).then(OpenError::stopped)
    }

    fn close(&mut self) -> Result<(), OpenError> {
        self.guard.end().map_or(Ok(()), |text| Err(OpenError::Failed(text)))
    }
}
