//! A bus with its lock. Devices, chips and spidev nodes keep a share of it.
//!
//! # How it works
//! A call that waits for the bus lets other Python threads run meanwhile. On buses whose messages take
//! microseconds, a controller's registers and the null bus, a short message on an idle bus keeps the interpreter:
//! giving it up and taking it back costs more than the message. `busy` counts the calls that run without
//! the interpreter. It is changed with the interpreter held, so that a short message that finds 0 waits for no
//! one.
//!
//! A thread that waits for another's lock looks for signals every 50 ms.

mod queue;
mod turnstile;

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use barewire::spi::{Error, MessageError, Settings, Transfer};
use barewire_linux::{is_memory_borrowed, process_number};
use barewire_open::name::{self, BusName};
use barewire_open::{AnyBus, AnyDevice, OpenOptions};
use pyo3::prelude::*;

use crate::error::{self, Class};
use queue::Queue;
use turnstile::Turnstile;

/// A message that takes at most this long on the wire keeps the interpreter's lock, on buses where a call
/// takes little more than the wire. Python itself lets a thread keep it for 5 ms.
const SHORT_NS: u64 = 50_000;

/// A bus, opened by this process.
pub(crate) struct SharedBus {
    pub(crate) any: AnyBus,
    /// As it was opened: with options.
    pub(crate) full_name: String,
    pub(crate) parsed: BusName,
    born: u32,
    /// Whether a message takes no longer than its clocks.
    swift: bool,
    /// The number of calls that run with the interpreter's lock released.
    busy: AtomicU32,
    pub(crate) turnstile: Turnstile,
    /// The queue in which asyncio's messages wait.
    pub(crate) queue: Queue,
}

/// Counts a call that runs without the interpreter.
pub(crate) struct Busy<'s>(&'s SharedBus);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

fn warn(py: Python<'_>, note: &str) -> PyResult<()> {
    py.import("warnings")?.call_method1("warn", (note,)).map(drop)
}

impl SharedBus {
    /// Opens a bus; notes for people become warnings.
    pub(crate) fn open(py: Python<'_>, full_name: &str) -> PyResult<Arc<Self>> {
        let refused = |text| error::exception(py, Class::Name, libc::EINVAL, text);
        let parsed = name::parse(full_name).map_err(refused)?;
        let mut warned = Ok(());
        let mut warn = |note: &str| {
            // Warns at once: the note may name the process that this one waits for.
            let again = Python::attach(|py| warn(py, note));
            warned = mem::replace(&mut warned, Ok(())).and(again);
        };
        let opened = py.detach(|| AnyBus::open_with(&parsed, OpenOptions::default(), &mut warn));
        let any = opened.map_err(|error| error::of_open(py, &error))?;
        warned?;
        let swift = matches!(parsed, BusName::Null | BusName::Mapped(_));
        Ok(Arc::new(Self {
            turnstile: Turnstile::new(&any),
            any,
            full_name: full_name.to_owned(),
            parsed,
            born: process_number(),
            swift,
            busy: AtomicU32::new(0),
            queue: Queue::default(),
        }))
    }

    /// Fails in a child of the process that opened it.
    #[inline]
    pub(crate) fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_forked() { Err(self.of_another_process(py)) } else { Ok(()) }
    }

    /// Whether a child of the process that opened it asks.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.born != process_number() || is_memory_borrowed()
    }

    #[cold]
    fn of_another_process(&self, py: Python<'_>) -> PyErr {
        let text = format!(
            "{} was opened before a fork and belongs to the parent process: open it in this process",
            self.any.name()
        );
        error::exception(py, Class::Forked, libc::EPERM, text)
    }

    /// Counts a call that is to run without the interpreter, which is held now.
    pub(crate) fn busy(&self, _py: Python<'_>) -> Busy<'_> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(self)
    }

    /// Counts a call that ends elsewhere, by [`SharedBus::end_busy`].
    pub(crate) fn begin_busy(&self, _py: Python<'_>) {
        self.busy.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_busy(&self) {
        self.busy.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether a message of `bytes` at `speed_hz` takes so short that it keeps the interpreter, on an idle bus.
    #[inline]
    pub(crate) fn is_short(&self, bytes: usize, speed_hz: u32) -> bool {
        self.swift && (bytes as u64) * 8 * 1_000_000_000 <= SHORT_NS * u64::from(speed_hz)
    }

    /// Whether no other Python thread has a call to the bus under way.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.busy.load(Ordering::Relaxed) == 0 && !self.turnstile.is_held()
    }

    /// Whether a message of `bytes` at `speed_hz` keeps the interpreter now.
    #[inline]
    pub(crate) fn keeps_interpreter(&self, bytes: usize, speed_hz: u32) -> bool {
        self.is_short(bytes, speed_hz) && self.is_idle()
    }

    /// Runs a message, without the interpreter, also on the lock of the calling thread.
    pub(crate) fn sync(
        &self,
        device: &AnyDevice,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, MessageError> {
        match device.device().sync(message) {
            Err(error) if error.error == Error::WouldDeadlock => {
                self.turnstile.sync(device, message).unwrap_or(Err(error))
            }
            ran => ran,
        }
    }

    /// Runs a message that may take long, and lets other threads run.
    pub(crate) fn run(
        &self,
        py: Python<'_>,
        device: &AnyDevice,
        message: &mut [Transfer<'_>],
    ) -> PyResult<usize> {
        let ran = self.detached(py, || self.sync(device, message))?;
        ran.map_err(|error| error::of_message(py, &self.any, error))
    }

    /// Does `work` with this bus while other threads run, once no other thread has its lock.
    pub(crate) fn detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> R + Send,
    ) -> PyResult<R> {
        self.check_process(py)?;
        self.turnstile.wait(py)?;
        let _busy = self.busy(py);
        Ok(py.detach(work))
    }

    /// Opens a device on it.
    pub(crate) fn device(&self, py: Python<'_>, settings: &Settings) -> PyResult<AnyDevice> {
        let opened = self.detached(py, || self.any.device(settings))?;
        match opened {
            // Under the thread's own lock the bus's controller is asked without waiting for the bus.
            Err(Error::WouldDeadlock) => {
                let text = "open devices before the bus is locked".to_owned();
                Err(error::exception(py, Class::Deadlock, libc::EDEADLK, text))
            }
            opened => opened.map_err(|error| error::of_bus(py, &self.any, error)),
        }
    }

    /// Closes the bus.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_forked() {
            // The parent's.
            return Ok(());
        }
        self.turnstile.wait(py)?;
        py.detach(|| self.any.close()).map_err(|error| error::of_open(py, &error))
    }
}
