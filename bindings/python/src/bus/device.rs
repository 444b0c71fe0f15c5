//! A chip select with its settings.

use std::sync::Arc;

use barewire::spi::{Mode, Settings};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::aio::AioDevice;
use super::inner::Inner;
use super::message::Message;
use super::prepared::Prepared;
use crate::buffer::{self, Into};
use crate::error;
use crate::shared::SharedBus;

/// A device on a bus: one chip select with its settings. Made by `Bus.device`.
#[pyclass(frozen, module = "barewire")]
pub(crate) struct Device {
    pub(super) inner: Arc<Inner>,
}

/// A mode from Python: 0 to 3, or Linux's `SPI_*` bits.
pub(crate) fn mode(bits: u32) -> PyResult<Mode> {
    let named = [
        (0x01, Mode::CPHA),
        (0x02, Mode::CPOL),
        (0x04, Mode::CS_HIGH),
        (0x08, Mode::LSB_FIRST),
        (0x20, Mode::LOOP),
        (0x40, Mode::NO_CS),
    ];
    let known = named.iter().fold(0, |known, (bit, _)| known | bit);
    if bits & !known != 0 {
        return Err(error::argument(format!(
            "mode {bits:#x}: 0 to 3, with CS_HIGH (0x04), LSB_FIRST (0x08), LOOP (0x20) or NO_CS (0x40)"
        )));
    }
    let set = named.into_iter().filter(|(bit, _)| bits & bit != 0);
    Ok(set.fold(Mode::default(), |mode, (_, flag)| mode | flag))
}

impl Device {
    pub(super) fn open(
        py: Python<'_>,
        shared: &Arc<SharedBus>,
        settings: &Settings,
        priority: u8,
    ) -> PyResult<Self> {
        let device = shared.device(py, settings)?.with_priority(priority);
        Ok(Self { inner: Arc::new(Inner { shared: Arc::clone(shared), device }) })
    }
}

#[pymethods]
impl Device {
    /// Runs a message and returns what was received.
    ///
    /// `message` is bytes to exchange, or a list of `Transfer`s. What is received is returned as bytes, for several
    /// transfers as a list; with `into`, a writable buffer of the right length, it is stored there instead.
    #[pyo3(signature = (message, /, *, into=None))]
    fn transfer<'py>(
        &self,
        py: Python<'py>,
        message: &Bound<'py, PyAny>,
        into: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut message = Message::new(message, self.inner.settings().bits_per_word)?;
        match into {
            None => {
                self.inner.run(py, &mut message)?;
                message.received(py)
            }
            Some(object) => {
                let into = Into::new(object, message.received_len())?;
                self.inner.run(py, &mut message)?;
                message.fill(py, &into);
                Ok(object.clone())
            }
        }
    }

    /// Sends bytes, and drops what is received.
    #[pyo3(signature = (tx, /))]
    fn write(&self, py: Python<'_>, tx: &Bound<'_, PyAny>) -> PyResult<()> {
        let tx = buffer::to_send(tx, self.inner.settings().bits_per_word)?;
        self.inner.run(py, &mut Message::write(tx)).map(drop)
    }

    /// Receives `length` bytes, and sends zeros.
    #[pyo3(signature = (length, /))]
    fn read<'py>(&self, py: Python<'py>, length: usize) -> PyResult<Bound<'py, PyAny>> {
        let mut message = Message::read(length)?;
        self.inner.run(py, &mut message)?;
        message.received(py)
    }

    /// Prepares an exchange that sends `tx`: a callable that reuses its buffers.
    #[pyo3(signature = (tx, /))]
    fn prepare(&self, py: Python<'_>, tx: &Bound<'_, PyAny>) -> PyResult<Prepared> {
        let tx = buffer::to_send(tx, self.inner.settings().bits_per_word)?;
        Prepared::new(py, Arc::clone(&self.inner), tx)
    }

    /// Queues a message for asyncio and returns its future: `await device.transfer_async(…)`.
    #[pyo3(signature = (message, /))]
    fn transfer_async<'py>(
        &self,
        py: Python<'py>,
        message: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.aio().transfer(py, message)
    }

    /// The same device for asyncio: `await device.aio.transfer(…)`.
    #[getter]
    fn aio(&self) -> AioDevice {
        AioDevice::new(Arc::clone(&self.inner))
    }

    /// The chip select.
    #[getter]
    fn chip_select(&self) -> u8 {
        self.inner.settings().chip_select
    }

    /// The clock that was asked for, in hertz.
    #[getter]
    fn speed_hz(&self) -> u32 {
        self.inner.settings().speed_hz
    }

    /// The mode, as Linux's `SPI_*` bits.
    #[getter]
    fn mode(&self) -> u8 {
        self.inner.settings().mode.bits()
    }

    /// Bits of a word.
    #[getter]
    fn bits_per_word(&self) -> u8 {
        self.inner.settings().bits_per_word
    }

    /// The clock that the controller makes, in hertz.
    #[getter]
    fn effective_speed_hz(&self) -> u32 {
        self.inner.device.device().effective().speed_hz
    }

    /// The settings as the hardware implements them: clock and delays.
    #[getter]
    fn effective<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let device = self.inner.device.device();
        let effective = device.effective();
        let dict = PyDict::new(py);
        dict.set_item("speed_hz", effective.speed_hz)?;
        dict.set_item("cs_setup_ns", effective.cs_setup_ns)?;
        dict.set_item("cs_hold_ns", effective.cs_hold_ns)?;
        dict.set_item("cs_inactive_ns", effective.cs_inactive_ns)?;
        dict.set_item("word_delay_ns", effective.word_delay_ns)?;
        dict.set_item("quantum_ns", effective.quantum_ns)?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let settings = self.inner.settings();
        format!(
            "<barewire.Device {} chip_select={} {} Hz {:?}>",
            self.inner.shared.any.name(),
            settings.chip_select,
            settings.speed_hz,
            settings.mode
        )
    }
}
