//! An exchange that was prepared once: a callable that reuses its buffers.
//!
//! # How it works
//! Short exchanges are the stack's own prepared ones, a type for each length; longer ones are messages. The caller's
//! bytes, two bytearrays, are copied before and after a run, so that another thread may change them meanwhile.
//! They are exported, so that Python refuses to change their lengths.
//!
//! # Safety
//! 1. A prepared exchange borrows the bus that `inner` keeps; fields are dropped in their order.
//! 2. The exported bytearrays are not resized while `exports` has them, so their bytes stay where they are.
//!    They are read and written with the interpreter held.
//! 3. `runner` is used by the thread that changed `running` from false to true.
#![allow(
    unsafe_code,
    reason = "keeps an exchange beside its bus, and bytes of Python's by address"
)]

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use barewire::bus;
use barewire::spi::{Error, MessageError, Transfer};
use barewire_open::DynController;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use super::inner::Inner;
use crate::error;

/// An exchange of any length.
trait Run: Send {
    /// Copies what is to be sent from `tx`.
    ///
    /// # Safety
    /// As many bytes as the exchange has can be read there.
    unsafe fn load(&mut self, tx: *const u8);

    /// Runs it.
    fn run(&mut self) -> Result<(), MessageError>;

    /// Lends it as a message, for a lock.
    fn lend(&mut self) -> (&[u8], &mut [u8]);

    /// Copies what was received to `rx`.
    ///
    /// # Safety
    /// As many bytes as the exchange has can be written there.
    unsafe fn store(&mut self, rx: *mut u8);
}

/// A prepared exchange of `N` bytes.
struct Short<const N: usize> {
    prepared: bus::Prepared<'static, DynController, N>,
    /// The received bytes. If a lock runs the exchange instead, it writes them here.
    rx: [u8; N],
}

impl<const N: usize> Run for Short<N> {
    #[inline]
    unsafe fn load(&mut self, tx: *const u8) {
        // SAFETY: the caller's.
        *self.prepared.tx_mut() = unsafe { tx.cast::<[u8; N]>().read_unaligned() };
    }

    #[inline]
    fn run(&mut self) -> Result<(), MessageError> {
        self.rx = *self.prepared.run()?;
        Ok(())
    }

    fn lend(&mut self) -> (&[u8], &mut [u8]) {
        (self.prepared.tx_mut(), &mut self.rx)
    }

    #[inline]
    unsafe fn store(&mut self, rx: *mut u8) {
        // SAFETY: the caller's.
        unsafe { rx.cast::<[u8; N]>().write_unaligned(self.rx) };
    }
}

/// An exchange that is too long for a type of its own.
struct Long {
    inner: Arc<Inner>,
    tx: Vec<u8>,
    rx: Vec<u8>,
}

impl Run for Long {
    unsafe fn load(&mut self, tx: *const u8) {
        // SAFETY: the caller's promise; and the bytes are not the vector's.
        unsafe { ptr::copy_nonoverlapping(tx, self.tx.as_mut_ptr(), self.tx.len()) };
    }

    fn run(&mut self) -> Result<(), MessageError> {
        let device = self.inner.device.device();
        device.sync(&mut [Transfer::exchange(&self.tx, &mut self.rx)]).map(drop)
    }

    fn lend(&mut self) -> (&[u8], &mut [u8]) {
        (&self.tx, &mut self.rx)
    }

    unsafe fn store(&mut self, rx: *mut u8) {
        // SAFETY: the caller's promise; and the bytes are not the vector's.
        unsafe { ptr::copy_nonoverlapping(self.rx.as_ptr(), rx, self.rx.len()) };
    }
}

/// The exchange of these bytes.
fn runner(inner: &Arc<Inner>, tx: &[u8]) -> Result<Box<dyn Run>, MessageError> {
    macro_rules! short {
        ($($n:literal)*) => {
            match tx.len() {
                $($n => Some(short::<$n>(inner, tx)?),)*
                _ => None,
            }
        };
    }
    if let Some(short) = short!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16) {
        return Ok(short);
    }
    let mut long = Long { inner: Arc::clone(inner), tx: tx.to_vec(), rx: vec![0; tx.len()] };
    // Refused now, not at the first run.
    let mut message = [Transfer::exchange(&long.tx, &mut long.rx)];
    inner.device.device().prepare_message(&mut message)?;
    Ok(Box::new(long))
}

fn short<const N: usize>(inner: &Arc<Inner>, tx: &[u8]) -> Result<Box<dyn Run>, MessageError> {
    let mut bytes = [0; N];
    bytes.copy_from_slice(tx);
    let device = inner.device.device();
    let prepared = device.prepare(bytes)?;
    // SAFETY: only the lifetime differs: `inner` keeps the bus for longer (module, Safety 1).
    let prepared = unsafe {
        std::mem::transmute::<
            bus::Prepared<'_, DynController, N>,
            bus::Prepared<'static, DynController, N>,
        >(prepared)
    };
    Ok(Box::new(Short { prepared, rx: [0; N] }))
}

/// A prepared exchange: call it to run it. It returns `rx`, the same bytearray each time.
///
/// `tx` may be changed between runs, byte by byte.
#[pyclass(frozen, module = "barewire")]
pub(crate) struct Prepared {
    // Dropped before `inner` (module, Safety 1).
    runner: UnsafeCell<Box<dyn Run>>,
    running: AtomicBool,
    /// Whether its time on the wire lets it keep the interpreter, on an idle bus.
    is_short: bool,
    inner: Arc<Inner>,
    tx_at: *const u8,
    rx_at: *mut u8,
    _exports: [PyBuffer<u8>; 2],
    tx: Py<PyByteArray>,
    rx: Py<PyByteArray>,
}

// SAFETY: the exchange is used by one thread at a time (module, Safety 3), the bytes with the interpreter held
// (module, Safety 2).
unsafe impl Send for Prepared {}
// SAFETY: likewise.
unsafe impl Sync for Prepared {}

/// Ends a run, also by a panic.
struct Running<'p>(&'p AtomicBool);

impl Drop for Running<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Prepared {
    pub(super) fn new(py: Python<'_>, inner: Arc<Inner>, tx: Vec<u8>) -> PyResult<Self> {
        let made = inner.shared.detached(py, || runner(&inner, &tx))?;
        let runner = made.map_err(|error| match error.error {
            Error::WouldDeadlock => {
                let text = "prepare exchanges before the bus is locked".to_owned();
                error::exception(py, error::Class::Deadlock, libc::EDEADLK, text)
            }
            _ => error::of_message(py, &inner.shared.any, error),
        })?;
        let speed_hz = inner.device.device().effective().speed_hz;
        let rx = PyByteArray::new(py, &vec![0; tx.len()]);
        let tx_bytes = PyByteArray::new(py, &tx);
        let exports = [PyBuffer::get(tx_bytes.as_any())?, PyBuffer::get(rx.as_any())?];
        Ok(Self {
            runner: UnsafeCell::new(runner),
            running: AtomicBool::new(false),
            is_short: inner.shared.is_short(tx.len(), speed_hz),
            inner,
            tx_at: exports[0].buf_ptr().cast(),
            rx_at: exports[1].buf_ptr().cast(),
            _exports: exports,
            tx: tx_bytes.unbind(),
            rx: rx.unbind(),
        })
    }

    #[inline]
    fn begin(&self) -> PyResult<Running<'_>> {
        match self.running.swap(true, Ordering::Acquire) {
            false => Ok(Running(&self.running)),
            true => Err(in_use()),
        }
    }

    #[inline]
    fn run_now(&self, py: Python<'_>) -> PyResult<Py<PyByteArray>> {
        let Inner { shared, .. } = &*self.inner;
        shared.check_process(py)?;
        let _running = self.begin()?;
        // SAFETY: this run began, so no other has it (module, Safety 3).
        let runner = unsafe { &mut **self.runner.get() };
        // SAFETY: as many bytes as were prepared (module, Safety 2).
        unsafe { runner.load(self.tx_at) };
        if self.is_short && shared.is_idle() {
            runner.run().map_err(|error| error::of_message(py, &shared.any, error))?;
        } else {
            self.run_apart(py, runner)?;
        }
        // SAFETY: as many bytes as were prepared.
        unsafe { runner.store(self.rx_at) };
        Ok(self.rx.clone_ref(py))
    }

    /// Runs it without the interpreter, or on the thread's own lock.
    #[inline(never)]
    fn run_apart(&self, py: Python<'_>, runner: &mut dyn Run) -> PyResult<()> {
        let Inner { shared, device } = &*self.inner;
        let ran = shared.detached(py, || match runner.run() {
            Err(error) if error.error == Error::WouldDeadlock => {
                let (tx, rx) = runner.lend();
                shared.sync(device, &mut [Transfer::exchange(tx, rx)]).map(drop)
            }
            ran => ran,
        })?;
        ran.map_err(|error| error::of_message(py, &shared.any, error))
    }
}

#[cold]
fn in_use() -> PyErr {
    error::state(
        libc::EBUSY,
        "another thread runs this prepared exchange: its buffers are for one at a time",
    )
}

#[pymethods]
impl Prepared {
    /// Runs the exchange and returns `rx`: what a call of the object does, a little faster.
    fn run(&self, py: Python<'_>) -> PyResult<Py<PyByteArray>> {
        self.run_now(py)
    }

    fn __call__(&self, py: Python<'_>) -> PyResult<Py<PyByteArray>> {
        self.run_now(py)
    }

    /// The bytes to send.
    #[getter]
    fn tx(&self, py: Python<'_>) -> Py<PyByteArray> {
        self.tx.clone_ref(py)
    }

    /// The bytes that were received last.
    #[getter]
    fn rx(&self, py: Python<'_>) -> Py<PyByteArray> {
        self.rx.clone_ref(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let Inner { shared, device } = &*self.inner;
        let chip_select = device.device().settings().chip_select;
        let bytes = self.tx.bind(py).len();
        format!("<barewire.Prepared {} chip_select={chip_select} {bytes} bytes>", shared.any.name())
    }

    /// Does nothing: what a call of a method costs, which the cost of a run is compared with.
    fn _empty(&self) {}
}

/// An object whose call does nothing: what calling an object costs, which calling a prepared exchange is compared
/// with.
#[pyclass(frozen, module = "barewire", name = "_EmptyCall")]
pub(crate) struct EmptyCall;

#[pymethods]
impl EmptyCall {
    #[new]
    fn new() -> Self {
        Self
    }

    fn __call__(&self) {}
}
