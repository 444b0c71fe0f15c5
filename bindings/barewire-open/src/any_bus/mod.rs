//! A bus of any kind, which any thread may use.
//!
//! # How it works
//! The [`Bus`] waits by futexes and is served by a worker thread once something is queued. Its controller
//! is behind a `Gate`, so that the bus can be closed while others still hold devices on it. What is not
//! `Send` by itself, a simulated board or one in QEMU, is confined: a message uses it under a mutex.
//!
//! # Time
//! A simulated board's time passes by messages and by waits on [`AnyBus::timer`]. It also passes with the clock
//! on the wall: a pause of the program of a millisecond or more is the board's pause too, so that a driver which
//! sleeps finds its chip ready. Shorter pauses do not count: calls one after the other give the same times in
//! each run. [`AnyBus::steady`] leaves the clock on the wall out.
//!
//! # Ordering
//! Closing: the flag is set; a message drops the controller; then the board is closed. A message of
//! another thread runs before or fails.

mod elsewhere;
mod gate;
mod mapped;
mod qemu;
mod sim;
mod steady;
mod timer;

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use barewire::bus::{Bus, OwnedDevice, Platform, Pump};
use barewire::controller::Controller;
use barewire::controller::null::Null;
use barewire::spi::{Error, Mode, Settings, Transfer};
use barewire_linux::Monotonic;
use barewire_linux::platform::FUTEX;
use barewire_linux::shared::{ChipLock, ChipLocks};
use barewire_linux::spidev::{LastError, SavedMode, Spidev};
use barewire_linux::worker::{self, Worker, WorkerOptions};

use gate::{CLOSING, Gate};
use mapped::MappedPart;
use qemu::QemuPart;
pub use sim::SimFigures;
use sim::SimPart;
pub use steady::Steady;
pub use timer::AnyTimer;
use timer::Kind;

use crate::OpenError;
use crate::name::{self, BusName};

/// A controller of any kind.
pub type DynController = dyn Controller + Send;

/// A device on a bus of any kind; it keeps its bus.
pub type AnyDevice = OwnedDevice<Arc<Bus<DynController>>>;

/// A bus of any kind. Clones are the same bus.
#[derive(Clone)]
pub struct AnyBus(Arc<Opened>);

struct Opened {
    name: String,
    part: Part,
    closed: Arc<AtomicBool>,
    /// The device that closes; taken by the first who does.
    closing: Mutex<Option<AnyDevice>>,
    worker: OnceLock<Result<Mutex<Option<Worker<'static, u64>>>, String>>,
    bus: Arc<Bus<DynController>>,
}

/// What stands behind the controller.
enum Part {
    Null,
    Sim(SimPart),
    Qemu(QemuPart),
    Spidev(SpidevPart),
    Mapped(Box<MappedPart>),
}

/// A spidev node. Its mode is restored when the bus is dropped.
struct SpidevPart {
    last_error: LastError,
    locks: ChipLocks,
    _saved_mode: SavedMode,
}

/// A bus over `controller`, behind a gate that `closed` shuts.
fn gated<C: Controller + Send + 'static>(
    controller: C,
    closed: &Arc<AtomicBool>,
) -> Arc<Bus<DynController>> {
    let platform: &'static dyn Platform = &FUTEX;
    let gate = Gate::new(controller, Arc::clone(closed));
    Arc::new(Bus::with_platform(gate, platform).with_pump(Pump::Worker))
}

impl AnyBus {
    /// Opens the bus of that name, as `barewire --bus` takes it. `tell` gets notes and warnings for people, a
    /// line each.
    ///
    /// # Errors
    /// [`OpenError::Name`] if the name is wrong, else what could not be opened and why.
    pub fn open(name: &str, tell: &mut dyn FnMut(&str)) -> Result<Self, OpenError> {
        let name = name::parse(name).map_err(OpenError::Name)?;
        Self::open_parsed(&name, tell)
    }

    /// [`AnyBus::open`] of a name that is parsed.
    ///
    /// # Errors
    /// What could not be opened and why.
    pub fn open_parsed(name: &BusName, tell: &mut dyn FnMut(&str)) -> Result<Self, OpenError> {
        let closed = Arc::new(AtomicBool::new(false));
        let (bus, part) = match name {
            BusName::Null => (gated(Null::new(), &closed), Part::Null),
            BusName::Sim(options) => {
                let (controller, part) = sim::open(options, tell)?;
                (gated(controller, &closed), Part::Sim(part))
            }
            BusName::Qemu(name) => {
                let (controller, part) = qemu::open(name)?;
                (gated(controller, &closed), Part::Qemu(part))
            }
            BusName::Spidev(name) => {
                let saved_mode = SavedMode::of(&name.path).map_err(OpenError::failed)?;
                let spidev = Spidev::open(&name.path).map_err(OpenError::failed)?;
                let last_error = spidev.last_error();
                let locks = ChipLocks::Node(name.path.clone());
                let part = SpidevPart { last_error, locks, _saved_mode: saved_mode };
                (gated(spidev, &closed), Part::Spidev(part))
            }
            BusName::Mapped(spec) => mapped::open(spec, &closed, tell)?,
        };
        let closing = OwnedDevice::new(Arc::clone(&bus), &CLOSING).map_err(OpenError::failed)?;
        Ok(Self(Arc::new(Opened {
            name: name.to_string(),
            part,
            closed,
            closing: Mutex::new(Some(closing)),
            worker: OnceLock::new(),
            bus,
        })))
    }

    /// The bus's name, without options.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The bus itself.
    #[must_use]
    pub fn bus(&self) -> &Arc<Bus<DynController>> {
        &self.0.bus
    }

    /// Opens a device. What its chip select needs is added to the mode, as [`AnyBus::mode`] says.
    ///
    /// # Errors
    /// As [`Bus::device`].
    pub fn device(&self, settings: &Settings) -> Result<AnyDevice, Error> {
        let mode = settings.mode | self.mode(settings.chip_select);
        OwnedDevice::new(Arc::clone(&self.0.bus), &settings.with_mode(mode))
    }

    /// What a device on that chip select needs in its mode: `NO_CS` where no line of the board
    /// selects anything, `CS_HIGH` where the line is active high.
    #[must_use]
    pub fn mode(&self, chip_select: u8) -> Mode {
        match &self.0.part {
            Part::Null => Mode::NO_CS,
            Part::Qemu(part) => part.mode(chip_select),
            Part::Mapped(part) => part.mode(chip_select),
            Part::Sim(_) | Part::Spidev(_) => Mode::default(),
        }
    }

    /// A timer for a chip driver: the board's time.
    #[must_use]
    pub fn timer(&self) -> AnyTimer {
        AnyTimer(match &self.0.part {
            Part::Sim(part) => Kind::Sim(part.clock()),
            Part::Qemu(part) => Kind::Qemu(part.clock()),
            Part::Null | Part::Spidev(_) | Part::Mapped(_) => Kind::Process(Monotonic::new()),
        })
    }

    /// The lock of a chip that other processes may use, if there are such.
    ///
    /// # Errors
    /// The lock's file cannot be made or opened.
    pub fn chip_lock(&self, chip_select: u8) -> Result<Option<ChipLock>, OpenError> {
        let locks = match &self.0.part {
            Part::Spidev(part) => Some(&part.locks),
            Part::Mapped(part) => part.locks.as_ref(),
            Part::Null | Part::Sim(_) | Part::Qemu(_) => None,
        };
        locks.map(|locks| locks.open(chip_select)).transpose().map_err(OpenError::failed)
    }

    /// What lies behind the last error of the bus, where more is known than the error says.
    #[must_use]
    pub fn cause(&self) -> Option<String> {
        match &self.0.part {
            Part::Null | Part::Sim(_) => None,
            Part::Qemu(part) => part.lost(),
            Part::Spidev(part) => part.last_error.take().map(|error| error.to_string()),
            Part::Mapped(part) => part.taken(),
        }
    }

    /// What a simulated board counted since it was opened.
    #[must_use]
    pub fn simulated(&self) -> Option<SimFigures> {
        match &self.0.part {
            Part::Sim(part) => Some(part.figures()),
            _ => None,
        }
    }

    /// Makes sure that a thread serves what is queued. Call it before queued messages are submitted.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start_worker(&self) -> Result<(), OpenError> {
        let start = || {
            let options = WorkerOptions { name: "barewire-worker".into(), ..Default::default() };
            let bus = Arc::clone(&self.0.bus);
            let worker = Worker::spawn(&options, move |stop| worker::serve(&bus, stop));
            let bus = Arc::clone(&self.0.bus);
            let worker = worker.map_err(|error| error.to_string())?;
            Ok(Mutex::new(Some(worker.ringing(move || bus.ring()))))
        };
        match self.0.worker.get_or_init(start) {
            Ok(_) => Ok(()),
            Err(error) => Err(OpenError::Failed(error.clone())),
        }
    }

    /// Whether it was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    /// Closes the bus: waits for the message on the wire, releases the controller, completes the flash
    /// file, ends QEMU. Messages that are queued, and later ones, fail with `ESHUTDOWN`. The second call does
    /// nothing. A bus that is not closed closes with the last of its clones and devices.
    ///
    /// # Errors
    /// What could not be kept or ended in order; the bus is closed all the same. If the calling thread holds the
    /// bus, by a lock or in a callback, the controller is released with the last of the bus's devices.
    pub fn close(&self) -> Result<(), OpenError> {
        self.0.close()
    }
}

impl Opened {
    fn close(&self) -> Result<(), OpenError> {
        let closing = self.closing.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(closing) = closing else { return Ok(()) };
        self.closed.store(true, Ordering::Release);
        // It always fails: with `ESHUTDOWN`, or if the caller itself holds the bus.
        let held = match closing.device().sync(&mut [Transfer::write(&[0])]) {
            Err(error) => error.error == Error::WouldDeadlock,
            Ok(_) => false,
        };
        drop(closing);
        if let Some(Ok(worker)) = self.worker.get() {
            let worker = worker.lock().unwrap_or_else(PoisonError::into_inner).take();
            // The worker may be the caller, in a callback or a waker. It does not wait for itself: dropped,
            // it is asked to end.
            match worker {
                Some(worker) if !held && worker.thread().id() != thread::current().id() => {
                    drop(worker.stop());
                }
                other => drop(other),
            }
        }
        match &self.part {
            Part::Sim(part) => part.close(),
            Part::Qemu(part) => part.close(),
            Part::Mapped(part) => part.close(),
            Part::Null | Part::Spidev(_) => Ok(()),
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // Nobody is left to hear of it.
        let _ = self.close();
    }
}

impl Deref for AnyBus {
    type Target = Bus<DynController>;

    fn deref(&self) -> &Self::Target {
        &self.0.bus
    }
}

impl fmt::Debug for AnyBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyBus").field("name", &self.0.name).finish_non_exhaustive()
    }
}
