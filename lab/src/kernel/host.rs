//! The SPI core's interface to a controller's driver, and the word its threads sleep on.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use barewire::bus::platform::AtomicU32;
use barewire_sim::Engine;

use super::Waiting;
use crate::machine::Machine;

/// A transfer, both ways at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Xfer {
    /// The bytes to send.
    pub tx: Vec<u8>,
    /// The received bytes. After the transfer it is as long as `tx`.
    pub rx: Vec<u8>,
    /// Chip select is inactive for a moment after it.
    pub cs_change: bool,
}

impl Xfer {
    /// Sends `tx`.
    #[must_use]
    pub fn new(tx: &[u8]) -> Self {
        Self { tx: tx.to_vec(), ..Self::default() }
    }

    /// The same with chip select inactive for a moment after it.
    #[must_use]
    pub fn with_cs_change(self) -> Self {
        Self { cs_change: true, ..self }
    }
}

/// A kernel's driver of a controller, on a simulated board.
pub trait Host {
    /// The driver's work once for each message.
    fn prepare(&self, machine: &Machine);
    /// The driver's work at the end of each message; none unless a driver has some.
    fn unprepare(&self, _machine: &Machine) {}
    /// Moves the chip's line.
    fn set_cs(&self, machine: &Machine, active: bool);
    /// One transfer, to its end.
    fn transfer(&self, machine: &Machine, waiting: Waiting, xfer: &mut Xfer);
}

/// A word that one thread sleeps on until another raises it.
#[derive(Debug, Default)]
pub struct Word(AtomicU32);

impl Word {
    /// Raises it and wakes the sleeper.
    pub fn raise(&self, engine: &Engine) {
        self.0.store(1, Relaxed);
        engine.wake(&raw const self.0);
    }

    /// Sleeps until it was raised, and lowers it.
    pub fn wait(&self, engine: &Engine) {
        while self.0.swap(0, Relaxed) == 0 {
            engine.wait(&self.0, 0);
        }
    }
}

/// The lock of a bus. The steps contain its cost when it is free. A thread that finds it taken sleeps.
#[derive(Debug, Default)]
pub struct Mutex {
    taken: AtomicU32,
    waiters: Cell<u32>,
}

impl Mutex {
    /// Takes it.
    pub fn lock(&self, machine: &Machine) {
        while self.taken.swap(1, Relaxed) == 1 {
            self.waiters.set(self.waiters.get() + 1);
            machine
                .wait("wait for the bus", false, || machine.board().engine().wait(&self.taken, 1));
            self.waiters.set(self.waiters.get() - 1);
        }
    }

    /// Gives it back.
    pub fn unlock(&self, machine: &Machine) {
        self.taken.store(0, Relaxed);
        if self.waiters.get() > 0 {
            machine
                .waking("wake the next", || machine.board().engine().wake(&raw const self.taken));
        }
    }
}
