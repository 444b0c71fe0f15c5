//! A bus of any kind, which any thread may use.
//!
//! # How it works
//! The [`Bus`] waits by futexes and is served by a worker thread once something is queued. Its controller is a
//! [`DynController`], which can be closed while others still hold devices on the bus. Simulated boards and
//! boards in QEMU are not `Send`, so they are confined: each message uses them under a mutex.
//!
//! # Time
//! A simulated board's time passes by messages and by waits on [`AnyBus::timer`]. It also passes with real time:
//! if the program pauses for a millisecond or more, the board's time advances too, so that a driver which sleeps
//! finds its chip ready. Shorter pauses do not count: calls one after the other give the same times in each run.
//! [`AnyBus::steady`] switches that off.
//!
//! # Ordering
//! Closing: the flag is set; the controller is dropped between two messages; then the board is closed. A message of
//! another thread runs before or fails.

mod gate;
mod steady;
mod timer;
mod world;

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use barewire::bus::{Bus, OwnedDevice, Platform, Pump};
use barewire::controller::Controller;
use barewire::spi::{Error, Mode, Settings};
use barewire_linux::Monotonic;
use barewire_linux::platform::FUTEX;
use barewire_linux::shared::ChipLock;
use barewire_linux::worker::{self, Worker, WorkerOptions};

pub use gate::DynController;
pub use steady::Steady;
pub use timer::AnyTimer;
use timer::Kind;
use world::{BoardInUse, Elsewhere, Keeper};

use crate::confined::ConfinedGraph;
use crate::kind::{self, Backing, NoBacking, mapped, spidev};
use crate::name::{self, BusName};
use crate::{OpenError, OpenOptions, SimFigures};

/// A device on a bus of any kind; it keeps its bus.
pub type AnyDevice = OwnedDevice<Arc<Bus<DynController>>>;

/// A bus of any kind. Clones are the same bus.
#[derive(Clone)]
pub struct AnyBus(Arc<Inner>);

struct Inner {
    name: String,
    behind: Behind,
    closed: Arc<AtomicBool>,
    worker: OnceLock<Result<Mutex<Option<Worker<'static, u64>>>, String>>,
    bus: Arc<Bus<DynController>>,
}

/// The backing of the controller.
enum Behind {
    Own(Mutex<Box<dyn Backing + Send>>),
    /// Of a board that is confined: with the frequency of its timer.
    Board {
        world: Arc<ConfinedGraph<BoardInUse>>,
        hz: u32,
        keeper: Mutex<Option<Keeper>>,
    },
}

impl Behind {
    fn own(backing: impl Backing + Send + 'static) -> Self {
        Self::Own(Mutex::new(Box::new(backing)))
    }

    fn board(
        world: Arc<ConfinedGraph<BoardInUse>>,
        keeper: Option<Keeper>,
    ) -> (Box<dyn Controller + Send>, Self) {
        let controller = Box::new(Elsewhere(Arc::clone(&world)));
        let hz = world.with(|world| world.timed(|timer| timer.frequency_hz()));
        (controller, Self::Board { world, hz, keeper: Mutex::new(keeper) })
    }

    /// Asks the controller's backing. Returns the default of `R` once a board is closed.
    fn ask<R: Default + Send>(&self, ask: impl FnOnce(&dyn Backing) -> R + Send) -> R {
        match self {
            Self::Own(backing) => ask(&**backing.lock().unwrap_or_else(PoisonError::into_inner)),
            Self::Board { world, .. } => {
                world.with(|world| world.backing().map(ask).unwrap_or_default())
            }
        }
    }

    fn close(&self) -> Result<(), OpenError> {
        match self {
            Self::Own(backing) => backing.lock().unwrap_or_else(PoisonError::into_inner).close(),
            Self::Board { world, keeper, .. } => {
                let closed = world.with(BoardInUse::close);
                let keeper = keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some((end, thread)) = keeper {
                    drop(end);
                    // It only waits: it does not panic.
                    let _ = thread.join();
                }
                closed
            }
        }
    }
}

impl AnyBus {
    /// Opens the bus of that name, as `barewire --bus` takes it: `sim:rpi3`, `spidev:/dev/spidev0.0`, `mem:…`. Notes and
    /// warnings go to standard error.
    ///
    /// # Errors
    /// [`OpenError::Name`] if the name is wrong, else what could not be opened and why.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        let name = name::parse(name).map_err(OpenError::Name)?;
        Self::open_with(&name, OpenOptions::default(), &mut |note| eprintln!("{note}"))
    }

    /// Opens the bus of a name that is parsed. `tell` gets notes and warnings for people, a line each; while the bus
    /// waits for another process, it gets that process's number and name.
    ///
    /// # Errors
    /// The part that could not be opened, and why.
    pub fn open_with(
        name: &BusName,
        options: OpenOptions,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Self, OpenError> {
        let (controller, behind) = match name {
            BusName::Null => (kind::null(options.layers), Behind::own(NoBacking)),
            BusName::Spidev(name) => {
                let (controller, backing) = spidev::open(name, options.layers)?;
                (controller, Behind::own(backing))
            }
            BusName::Mapped(spec) => {
                let OpenOptions { layers, console, .. } = options;
                let (controller, backing) = mapped::open(spec, layers, console, tell)?;
                (controller, Behind::own(backing))
            }
            BusName::Sim(name) => Behind::board(world::sim(name, options, tell)?, None),
            BusName::Qemu(name) => {
                let (world, keeper) = world::qemu(name, options)?;
                Behind::board(world, Some(keeper))
            }
        };
        let closed = Arc::new(AtomicBool::new(false));
        let controller = DynController::new(controller, Arc::clone(&closed));
        let platform: &'static dyn Platform = &FUTEX;
        let bus = Arc::new(Bus::with_platform(controller, platform).with_pump(Pump::Worker));
        let (name, worker) = (name.to_string(), OnceLock::new());
        Ok(Self(Arc::new(Inner { name, behind, closed, worker, bus })))
    }

    /// The confined board, if there is one.
    fn world(&self) -> Option<&Arc<ConfinedGraph<BoardInUse>>> {
        match &self.0.behind {
            Behind::Board { world, .. } => Some(world),
            Behind::Own(_) => None,
        }
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

    /// Opens a device. Adds the flags that its chip select needs to the mode, see [`AnyBus::mode`].
    ///
    /// # Errors
    /// As [`Bus::device`].
    pub fn device(&self, settings: &Settings) -> Result<AnyDevice, Error> {
        let mode = settings.mode | self.mode(settings.chip_select);
        OwnedDevice::new(Arc::clone(&self.0.bus), &settings.with_mode(mode))
    }

    /// The mode flags that a device on that chip select needs: `NO_CS` where no line of the
    /// board selects anything, `CS_HIGH` where the line is active high.
    #[must_use]
    pub fn mode(&self, chip_select: u8) -> Mode {
        self.0.behind.ask(|backing| backing.mode(chip_select))
    }

    /// The chip selects that the bus has, in words for a message about one that it does not have.
    #[must_use]
    pub fn chip_selects_text(&self) -> String {
        /// More than any controller here has.
        const ASKED: u8 = 32;
        let ask = |chip_select| self.device(&Settings::new(chip_select, 1_000_000));
        let is_there = |&chip_select: &u8| match ask(chip_select) {
            Err(Error::NoSuchChipSelect { .. } | Error::WouldDeadlock | Error::Os { .. }) => false,
            // One that exists may refuse these settings.
            _ => true,
        };
        let there: Vec<String> = (0..ASKED).filter(is_there).map(|cs| cs.to_string()).collect();
        match there.split_last() {
            None => format!("see `barewire list` for what {} has", self.name()),
            Some((only, [])) => format!("{} has only {only}", self.name()),
            Some((last, others)) => format!("{} has {} and {last}", self.name(), others.join(", ")),
        }
    }

    /// A timer for a chip driver: the board's time.
    #[must_use]
    pub fn timer(&self) -> AnyTimer {
        AnyTimer(match &self.0.behind {
            Behind::Own(_) => Kind::Process(Monotonic::new()),
            Behind::Board { world, hz, .. } => Kind::Board { world: Arc::clone(world), hz: *hz },
        })
    }

    /// The lock of a chip that other processes may use, if there are such.
    ///
    /// # Errors
    /// The lock's file cannot be made or opened.
    pub fn chip_lock(&self, chip_select: u8) -> Result<Option<ChipLock>, OpenError> {
        let locks = self.0.behind.ask(|backing| backing.chip_locks().cloned());
        locks.map(|locks| locks.open(chip_select)).transpose().map_err(OpenError::failed)
    }

    /// The cause of the bus's last error, if more is known than the error says.
    #[must_use]
    pub fn cause(&self) -> Option<String> {
        self.0.behind.ask(|backing| backing.cause())
    }

    /// A simulated board's counts since it was opened.
    #[must_use]
    pub fn simulated(&self) -> Option<SimFigures> {
        self.world()?.with(|world| world.figures())
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
    /// The part that could not be written back or ended in order; the bus is closed nevertheless. If the calling
    /// thread holds the bus, by a lock or in a callback, the controller is released with the last of the bus's
    /// devices.
    pub fn close(&self) -> Result<(), OpenError> {
        self.0.close()
    }
}

impl Inner {
    fn close(&self) -> Result<(), OpenError> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        // It fails if the caller itself holds the bus.
        let held = self.bus.with_controller(DynController::close).is_err();
        if let Some(Ok(worker)) = self.worker.get() {
            let worker = worker.lock().unwrap_or_else(PoisonError::into_inner).take();
            // The worker may be the caller, in a callback or a waker. The worker's thread must not join
            // itself. Dropping the handle only asks it to end.
            match worker {
                Some(worker) if !held && worker.thread().id() != thread::current().id() => {
                    drop(worker.stop());
                }
                other => drop(other),
            }
        }
        self.behind.close()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // No caller is left that could get the error.
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
