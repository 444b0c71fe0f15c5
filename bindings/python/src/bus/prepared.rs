//! An exchange that was prepared once: a callable that reuses its buffers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use barewire::spi::Transfer;
use pyo3::exceptions::{PyBufferError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use super::device::Inner;
use crate::buffer;
use crate::error;

/// The bytes of a run, apart from Python's: another thread may change those meanwhile.
struct Buffers {
    tx: Vec<u8>,
    rx: Vec<u8>,
}

/// A prepared exchange: call it to run it. It returns `rx`, the same bytearray each time.
///
/// `tx` may be changed between runs, byte by byte.
#[pyclass(frozen, module = "barewire")]
pub(crate) struct Prepared {
    inner: Arc<Inner>,
    /// Whether its time on the wire lets it keep the interpreter.
    speed_hz: u32,
    tx: Py<PyByteArray>,
    rx: Py<PyByteArray>,
    buffers: Mutex<Buffers>,
}

impl Prepared {
    pub(super) fn new(py: Python<'_>, inner: Arc<Inner>, tx: Vec<u8>) -> PyResult<Self> {
        let mut rx = vec![0; tx.len()];
        // Refused now, not at the first run.
        inner
            .shared
            .detached(py, || {
                let device = inner.device.device();
                device.prepare_message(&mut [Transfer::exchange(&tx, &mut rx)]).map(drop)
            })?
            .or_else(|refused| match refused.error {
                // The thread's own lock: it is planned by its first run.
                barewire::spi::Error::WouldDeadlock => Ok(()),
                _ => Err(error::of_message(py, &inner.shared.any, refused)),
            })?;
        Ok(Self {
            speed_hz: inner.device.device().effective().speed_hz,
            inner,
            tx: PyByteArray::new(py, &tx).unbind(),
            rx: PyByteArray::new(py, &rx).unbind(),
            buffers: Mutex::new(Buffers { tx, rx }),
        })
    }

    fn buffers(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Buffers>> {
        match self.buffers.try_lock() {
            Ok(buffers) => Ok(buffers),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => {
                Ok(PoisonError::into_inner(poisoned))
            }
            Err(std::sync::TryLockError::WouldBlock) => self.buffers_of_another(py),
        }
    }

    #[cold]
    fn buffers_of_another(&self, _py: Python<'_>) -> PyResult<MutexGuard<'_, Buffers>> {
        Err(PyRuntimeError::new_err(
            "another thread runs this prepared exchange: its buffers are for one at a time",
        ))
    }

    #[cold]
    fn resized(&self) -> PyErr {
        PyBufferError::new_err("tx or rx was resized: their lengths were prepared")
    }
}

#[pymethods]
impl Prepared {
    /// Runs the exchange and returns `rx`.
    fn run(&self, py: Python<'_>) -> PyResult<Py<PyByteArray>> {
        self.__call__(py)
    }

    fn __call__(&self, py: Python<'_>) -> PyResult<Py<PyByteArray>> {
        let Inner { shared, device } = &*self.inner;
        shared.check_process(py)?;
        let mut buffers = self.buffers(py)?;
        let Buffers { tx, rx } = &mut *buffers;
        if !buffer::copy_from(self.tx.bind(py), tx) {
            return Err(self.resized());
        }
        if shared.keeps_interpreter(tx.len(), self.speed_hz) {
            let ran = device.device().sync(&mut [Transfer::exchange(tx, rx)]);
            ran.map_err(|error| error::of_message(py, &shared.any, error))?;
        } else {
            shared.run(py, device, &mut [Transfer::exchange(tx, rx)])?;
        }
        if !buffer::copy_into(self.rx.bind(py), rx) {
            return Err(self.resized());
        }
        Ok(self.rx.clone_ref(py))
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

    /// Does nothing: what a call of a method costs, which the cost of a run is compared with.
    fn _empty(&self) {}
}
