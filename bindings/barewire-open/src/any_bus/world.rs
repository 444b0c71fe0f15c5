//! A simulated board, or one in QEMU, with its controller and its time: confined, so that any thread may use it.
//!
//! # Safety
//! The simulator has no thread-local variables, and its engine runs on whatever thread calls it. The connection to
//! QEMU is a socket. That is the promise that [`ConfinedGraph`] asks for. Other parts around the controller, such as
//! a tracer's sink, are `Send`.
#![allow(unsafe_code, reason = "promises that boards, simulated or in QEMU, work on any thread")]

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use barewire::controller::{Controller, Limits, Preset, Unfinished};
use barewire::spi::{Effective, Error, MessageError, Settings, Transfer};
use barewire::time::Timer;
use barewire_sim::Board;

use super::gate::ClosedController;
use crate::confined::ConfinedGraph;
use crate::kind::{Backing, qemu, sim};
use crate::name::{QemuName, SimOptions};
use crate::{OpenError, OpenOptions, SimBoard, SimFigures};

const NS_PER_S: u32 = 1_000_000_000;
const PS_PER_NS: u64 = 1_000;
/// A pause of the program from this length on is the board's too.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// A board in use.
pub(super) struct BoardInUse {
    /// None once it is closed.
    open: Option<(Box<dyn Controller>, Box<dyn Backing>)>,
    closed: ClosedController,
    timer: Box<dyn Timer>,
    /// The counts at the time it was closed.
    last_figures: Option<SimFigures>,
    /// When the program last used the board.
    last: Instant,
    /// How many want the board's time to pass by its own events alone.
    steady: usize,
}

/// The thread that started QEMU, and the channel that ends it. QEMU ends with that thread.
pub(super) type Keeper = (Sender<()>, JoinHandle<()>);

/// The simulated board as asked.
pub(super) fn sim(
    name: &SimOptions,
    options: OpenOptions,
    tell: &mut dyn FnMut(&str),
) -> Result<Arc<ConfinedGraph<BoardInUse>>, OpenError> {
    let OpenOptions { layers, fitted, linux_process, .. } = options;
    let mut notes = Vec::new();
    let make = || {
        let note = &mut |note: &str| notes.push(note.to_owned());
        let (controller, board) = sim::open(name, fitted, linux_process, layers, note)?;
        Ok(BoardInUse::new(controller, Box::new(board)))
    };
    // SAFETY: the module's.
    let world = unsafe { ConfinedGraph::new(make) };
    notes.iter().for_each(|note| tell(note));
    world.map(Arc::new)
}

/// The board in QEMU as asked, started by a thread that lives until the bus is closed.
pub(super) fn qemu(
    name: &QemuName,
    options: OpenOptions,
) -> Result<(Arc<ConfinedGraph<BoardInUse>>, Keeper), OpenError> {
    let (made, making) = mpsc::channel();
    let (end, ending) = mpsc::channel();
    let (name, layers) = (name.clone(), options.layers);
    let keep = move || {
        let make = || {
            let (controller, backing) = qemu::open(&name, layers)?;
            Ok(BoardInUse::new(controller, Box::new(backing)))
        };
        // SAFETY: the module's.
        let world = unsafe { ConfinedGraph::new(make) };
        if made.send(world.map(Arc::new)).is_ok() {
            // Ends with a message, or with the sender.
            let _ = ending.recv();
        }
    };
    let thread = thread::Builder::new().name("qemu".into()).spawn(keep);
    let thread = thread.map_err(|error| OpenError::io("start a thread", &error))?;
    let lost = || OpenError::Failed("the thread that starts QEMU ended".into());
    Ok((making.recv().map_err(|_| lost())??, (end, thread)))
}

impl BoardInUse {
    fn new(controller: Box<dyn Controller>, backing: Box<dyn Backing>) -> Self {
        let timer: Box<dyn Timer> = match backing.board() {
            Some(board) => Box::new(SimClock(board.board.clone())),
            None => backing.timer(),
        };
        Self {
            timer,
            open: Some((controller, backing)),
            closed: ClosedController,
            last_figures: None,
            last: Instant::now(),
            steady: 0,
        }
    }

    fn controller(&mut self) -> &mut dyn Controller {
        match &mut self.open {
            Some((controller, _)) => &mut **controller,
            None => &mut self.closed,
        }
    }

    /// The backing of the controller; `None` once it is closed.
    pub(super) fn backing(&self) -> Option<&dyn Backing> {
        self.open.as_ref().map(|(_, backing)| &**backing)
    }

    /// A simulated board's counts; `None` for a board in QEMU.
    pub(super) fn figures(&self) -> Option<SimFigures> {
        match self.backing() {
            Some(backing) => backing.board().map(SimBoard::counted),
            None => self.last_figures.clone(),
        }
    }

    pub(super) fn close(&mut self) -> Result<(), OpenError> {
        self.last_figures = self.figures();
        let Some((controller, mut backing)) = self.open.take() else { return Ok(()) };
        if let Some(figures) = &self.last_figures {
            self.timer = Box::new(StoppedClock(figures.virtual_ns));
        }
        drop(controller);
        backing.close()
    }

    /// Begins, or ends, a time without the clock on the wall.
    pub(super) fn steady(&mut self, begins: bool) {
        if begins {
            self.steady += 1;
        } else {
            self.steady -= 1;
            self.last = Instant::now();
        }
    }

    /// Lets the time that the program spent elsewhere pass on a simulated board.
    fn catch_up(&mut self) {
        let pause = self.last.elapsed();
        if self.steady == 0
            && pause >= PAUSE_MIN
            && let Some(board) = self.backing().and_then(|backing| backing.board())
        {
            board.idle_ns(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    /// Runs `with` on the board's timer.
    pub(super) fn timed<R>(&mut self, with: impl FnOnce(&mut dyn Timer) -> R) -> R {
        let result = with(&mut *self.timer);
        self.last = Instant::now();
        result
    }

    /// Runs a message.
    fn message(
        &mut self,
        run: impl FnOnce(&mut dyn Controller) -> Result<usize, Unfinished>,
    ) -> Result<usize, Unfinished> {
        self.catch_up();
        let ran = run(self.controller());
        self.last = Instant::now();
        ran
    }
}

/// A simulated board's time, as a clock in nanoseconds. A wait takes exactly as long as requested.
struct SimClock(Board);

impl Timer for SimClock {
    fn frequency_hz(&self) -> u32 {
        NS_PER_S
    }

    fn now_ticks(&mut self) -> u64 {
        let mut timer = self.0.timer();
        let hz = u128::from(timer.frequency_hz());
        let ns = u128::from(timer.now_ticks()) * u128::from(NS_PER_S) / hz;
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    fn wait_ticks(&mut self, ticks: u64) {
        self.0.engine().spend_ps(ticks.saturating_mul(PS_PER_NS));
    }

    fn sleep_ns(&mut self, ns: u64) {
        self.wait_ticks(ns);
    }
}

/// The time at which a simulated board was closed.
struct StoppedClock(u64);

impl Timer for StoppedClock {
    fn frequency_hz(&self) -> u32 {
        NS_PER_S
    }

    fn now_ticks(&mut self) -> u64 {
        self.0
    }

    fn wait_ticks(&mut self, _: u64) {}

    fn sleep_ns(&mut self, _: u64) {}
}

/// The controller of a confined board.
pub(super) struct Elsewhere(pub(super) Arc<ConfinedGraph<BoardInUse>>);

impl Controller for Elsewhere {
    fn limits(&self) -> Limits {
        self.0.with(|world| world.controller().limits())
    }

    fn may_use_its_bus(&self) -> bool {
        false
    }

    fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
        self.0.with(|world| world.controller().configure(settings))
    }

    fn plan(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.0.with(|world| world.controller().plan(preset, message))
    }

    fn run(&mut self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<usize, Unfinished> {
        self.0.with(|world| world.message(|controller| controller.run(preset, message)))
    }

    fn run_exchange(
        &mut self,
        preset: &Preset,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        let run = |controller: &mut dyn Controller| controller.run_exchange(preset, tx, rx);
        self.0.with(|world| world.message(run))
    }

    fn reclaim(&mut self) {
        self.0.with(|world| world.controller().reclaim());
    }
}
