//! Linux's SPI core as a program of steps: what a message costs between its caller and the controller's driver.
//!
//! *Read first*: Linux's `Documentation/spi`; [`crate::machine`] for steps; `lab/paths.toml` for the paths.
//!
//! # How it works
//! A [`Kernel`] is a path on a machine with a [`Host`], the controller's driver. [`Kernel::sync`] runs a message in the
//! caller's context, through the queue where the path has it. [`Kernel::submit`] queues one for the pump, a thread of
//! its own: [`Kernel::pump`].
//!
//! # Ordering of a message
//! 1. validate; statistics of the call; queue.
//! 2. the two mutexes; the driver prepares.
//! 3. chip select active; statistics of the message.
//! 4. each transfer: statistics, the driver's set-up, the exchange; chip select between two, if asked.
//! 5. chip select inactive; the driver's end of the message; finalize: the pump is woken to find out that nothing is left.
//! 6. completion.
//!
//! # Not supported
//! Priority inheritance: a caller that finds the bus taken sleeps until its holder is done.

pub mod atmel;
pub mod bcm2835;
mod host;
pub mod imx;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::error::LabError;
use crate::machine::Machine;
pub use host::{Host, Mutex, Word, Xfer};

/// How updates of statistics exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistics {
    /// By a spin lock each.
    Locked,
    /// By one counter for each processor.
    PerCpu,
    /// There are none.
    None,
}

/// The way from the caller to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Core {
    /// Through the queue, whose pump runs in the caller.
    Queue,
    /// In the caller's context: "Optimize spi_sync path".
    Direct,
    /// The RFC's calls.
    Fast,
    /// Linux 3.14: spi-atmel through the common queue, each transfer awaited by the pump's thread.
    #[serde(rename = "3.14-queue")]
    Queue314,
    /// Linux 3.14 with spi-atmel's own tasklet.
    #[serde(rename = "3.14-tasklet")]
    Tasklet314,
}

/// How the driver waits for a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// It reads the status register until all is there.
    Polling,
    /// It fills and empties the FIFO in a handler and sleeps meanwhile.
    Interrupts,
    /// The DMA engine moves the bytes, where a transfer is long enough.
    Dma,
}

/// A kernel path.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Its name.
    pub name: String,
    /// In words.
    pub title: String,
    /// Its statistics.
    pub statistics: Statistics,
    /// Its core.
    pub core: Core,
    /// Its waiting.
    pub waiting: Waiting,
    /// Its wait at a cs_change, in nanoseconds.
    #[serde(default)]
    pub cs_change_delay_ns: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    path: Vec<Path>,
}

impl Path {
    /// All of them.
    ///
    /// # Panics
    /// If the embedded file is malformed, which a test excludes.
    #[must_use]
    pub fn all() -> &'static [Self] {
        // Each replay of a figure asks for its path.
        static ALL: LazyLock<File> =
            LazyLock::new(|| toml::from_str(include_str!("../../paths.toml")).expect("paths.toml"));
        &ALL.path
    }

    /// The path `name`.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(name: &str) -> Result<&'static Self, LabError> {
        Self::all().iter().find(|path| path.name == name).ok_or_else(|| LabError::Unknown {
            what: "path",
            name: name.into(),
            known: Self::all().iter().map(|path| path.name.clone()).collect(),
        })
    }

    /// The kernel's version, which the name has after its first word: (5, 18) of `linux-5.18-A`. A name without one
    /// stands for the newest kernel.
    #[must_use]
    pub fn version(&self) -> (u32, u32) {
        let number = |text: &str| text.parse().ok();
        let version = || {
            let (major, minor) = self.name.split('-').nth(1)?.split_once('.')?;
            Some((number(major)?, number(minor)?))
        };
        version().unwrap_or((u32::MAX, 0))
    }

    /// Linux 5.5 gave a transfer chip select delays. Its time stamps cost a client nothing that does not ask for them.
    fn has_delays(&self) -> bool {
        self.version() >= (5, 5)
    }
}

/// A path on a machine.
pub struct Kernel<'m, H> {
    /// The machine.
    pub machine: &'m Machine,
    /// The driver.
    pub host: &'m H,
    /// The path.
    pub path: &'m Path,
    queue: RefCell<VecDeque<Vec<Xfer>>>,
    /// Raised when the pump has something to look at.
    work: Word,
    done: Cell<bool>,
    bus: Mutex,
}

impl<'m, H: Host> Kernel<'m, H> {
    /// Puts them together.
    pub fn new(machine: &'m Machine, host: &'m H, path: &'m Path) -> Self {
        Self {
            machine,
            host,
            path,
            queue: RefCell::default(),
            work: Word::default(),
            done: Cell::new(false),
            bus: Mutex::default(),
        }
    }

    /// `updates` of counters.
    fn count(&self, updates: f64) {
        let cost = match self.path.statistics {
            Statistics::Locked => "statistics-locked",
            Statistics::PerCpu => "statistics-per-cpu",
            Statistics::None => return,
        };
        self.machine.charge_times("statistics", updates, &[cost]);
    }

    /// Runs a message in the caller's context and returns its transfers with what they received.
    pub fn sync(&self, mut message: Vec<Xfer>) -> Vec<Xfer> {
        let machine = self.machine;
        if self.path.core == Core::Fast {
            machine.charge("lock", &["fast-lock"]);
            self.bus.lock(machine);
            self.fast(&mut message);
            self.bus.unlock(machine);
            return message;
        }
        machine.charge_times("validate", message.len() as f64, &["validate"]);
        // The call and its being immediate, of the controller and of the device.
        self.count(4.0);
        let is_queued = self.path.core != Core::Direct;
        if is_queued {
            machine.charge("queue", &["queue", "pump"]);
        }
        self.run(&mut message);
        if is_queued {
            machine.charge("completion", &["completion"]);
        }
        message
    }

    /// Queues a message and wakes the pump.
    pub fn submit(&self, message: Vec<Xfer>) {
        let machine = self.machine;
        machine.charge_times("validate", message.len() as f64, &["validate"]);
        self.count(2.0);
        machine.charge("queue", &["queue"]);
        self.queue.borrow_mut().push_back(message);
        machine.waking("wake the pump", || self.wake_pump());
    }

    fn wake_pump(&self) {
        self.work.raise(self.machine.board().engine());
    }

    /// The pump's thread.
    pub fn pump(&self) {
        let engine = self.machine.board().engine();
        loop {
            self.machine.wait("wake-up and switch", false, || self.work.wait(engine));
            loop {
                let next = self.queue.borrow_mut().pop_front();
                self.machine.set_background(next.is_none());
                self.machine.charge("pump", &["pump"]);
                let Some(mut message) = next else { break };
                self.run(&mut message);
                self.machine.charge("completion", &["completion"]);
            }
            if self.done.get() {
                return;
            }
        }
    }

    /// Lets the pump's thread end.
    pub fn stop(&self) {
        self.done.set(true);
        self.work.raise(self.machine.board().engine());
    }

    /// A message, from the driver's preparation to its end.
    fn run(&self, message: &mut [Xfer]) {
        let machine = self.machine;
        machine.charge("mutexes", &["io-mutex"]);
        self.bus.lock(machine);
        machine.charge("prepare", &["prepare"]);
        machine.step("prepare registers", || self.host.prepare(machine));
        self.select(true);
        self.count(2.0);
        let last = message.len() - 1;
        for (index, xfer) in message.iter_mut().enumerate() {
            // Number, length and histogram, of the controller and of the device.
            self.count(2.0);
            machine.charge("transfer", &["transfer"]);
            self.host.transfer(machine, self.path.waiting, xfer);
            if xfer.cs_change && index != last {
                self.select(false);
                if self.path.cs_change_delay_ns > 0 {
                    machine.delay("cs_change delay", self.path.cs_change_delay_ns * 1_000);
                }
                self.select(true);
            }
        }
        self.select(false);
        self.host.unprepare(machine);
        machine.charge("finalize", &["finalize"]);
        self.bus.unlock(machine);
        if self.path.core == Core::Queue {
            // A message that is queued has woken the pump already.
            machine.waking_idly("wake the pump to idle", || self.wake_pump());
        }
    }

    /// The RFC's: no more than chip select and exchange.
    fn fast(&self, message: &mut [Xfer]) {
        let machine = self.machine;
        let last = message.len() - 1;
        self.edge(true);
        for (index, xfer) in message.iter_mut().enumerate() {
            machine.charge("transfer", &["transfer"]);
            self.host.transfer(machine, self.path.waiting, xfer);
            if xfer.cs_change && index != last {
                self.edge(false);
                self.edge(true);
            }
        }
        self.edge(false);
    }

    /// Moves the chip's line.
    fn edge(&self, active: bool) {
        self.machine.charge("set chip select", &["set-cs"]);
        self.machine.step("chip select", || self.host.set_cs(self.machine, active));
    }

    /// spi_set_cs carries out its delays after the edge that they belong to.
    fn select(&self, active: bool) {
        self.edge(active);
        if self.path.has_delays() {
            self.machine.charge("chip select delays", &["set-cs-delays"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paths_name_has_its_version() {
        for path in Path::all() {
            let (major, _) = path.version();
            assert!((3..=5).contains(&major), "{}", path.name);
        }
        let version = |name| Path::find(name).expect("a path").version();
        assert_eq!((version("spidev-4.4-no-delay"), version("linux-5.18-A")), ((4, 4), (5, 18)));
    }
}
