//! Buses by name, their devices, and messages on them.

pub(crate) mod aio;
mod device;
mod inner;
mod lock;
mod message;
mod prepared;

use std::sync::Arc;

use barewire::bus::Statistics;
use barewire::spi::Settings;
use pyo3::prelude::*;
use pyo3::types::PyDict;

pub(crate) use device::Device;
pub(crate) use lock::Lock;
pub(crate) use message::PyTransfer;
pub(crate) use prepared::{EmptyCall, Prepared};

use crate::registers::Registers;
use crate::shared::SharedBus;

/// A bus by its name, as `barewire --bus` takes it: `sim:rpi3`, `spidev:/dev/spidev0.0`, `mem:…`, `null:`.
#[pyclass(frozen, module = "barewire")]
pub(crate) struct Bus {
    pub(crate) shared: Arc<SharedBus>,
}

#[pymethods]
impl Bus {
    /// Opens the bus. With `statistics`, messages are counted.
    #[new]
    #[pyo3(signature = (name, /, *, statistics=false))]
    fn new(py: Python<'_>, name: &str, statistics: bool) -> PyResult<Self> {
        let shared = SharedBus::open(py, name)?;
        shared.any.set_counting(statistics);
        Ok(Self { shared })
    }

    /// Opens a device: the settings of one chip select, under Linux's names. A transfer that takes longer than
    /// `poll_limit_ns` on the wire waits by interrupt; None for the controller's limit, 0 for always, 2**32 - 1 for never.
    #[pyo3(signature = (chip_select=0, *, speed_hz, mode=0, bits_per_word=8, cs_setup_ns=0, cs_hold_ns=0,
                        cs_inactive_ns=0, word_delay_ns=0, priority=0, poll_limit_ns=None))]
    #[expect(clippy::too_many_arguments, reason = "a device's settings, by name")]
    fn device(
        &self,
        py: Python<'_>,
        chip_select: u8,
        speed_hz: u32,
        mode: u32,
        bits_per_word: u8,
        cs_setup_ns: u32,
        cs_hold_ns: u32,
        cs_inactive_ns: u32,
        word_delay_ns: u32,
        priority: u8,
        poll_limit_ns: Option<u32>,
    ) -> PyResult<Device> {
        let settings = Settings {
            chip_select,
            mode: device::mode(mode)?,
            speed_hz,
            bits_per_word,
            cs_setup_ns,
            cs_hold_ns,
            cs_inactive_ns,
            word_delay_ns,
            poll_limit_ns,
        };
        Device::open(py, &self.shared, &settings, priority)
    }

    /// The bus's lock: `with bus.lock():` keeps other threads and processes off between messages.
    fn lock(&self) -> Lock {
        Lock::new(Arc::clone(&self.shared))
    }

    /// A chip's registers by name: `mcp2518fd` or `mcp2517fd`.
    #[pyo3(signature = (chip, chip_select=None, *, speed_hz=None))]
    fn registers(
        &self,
        py: Python<'_>,
        chip: &str,
        chip_select: Option<u8>,
        speed_hz: Option<u32>,
    ) -> PyResult<Registers> {
        Registers::open(py, &self.shared, chip, chip_select, speed_hz)
    }

    /// The counters, under the names of Linux's `spi_statistics`; None while messages are not counted.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.counting().then(|| counters(py, &self.shared.any.statistics())).transpose()
    }

    /// Whether messages are counted.
    #[getter]
    fn counting(&self) -> bool {
        self.shared.any.is_counting()
    }

    #[setter]
    fn set_counting(&self, counting: bool) {
        self.shared.any.set_counting(counting);
    }

    /// What a simulated board counted since it was opened: its time, bits, register accesses, broken rules. `None` for
    /// another bus.
    fn simulated<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let figures = self.shared.detached(py, || self.shared.any.simulated())?;
        let Some(figures) = figures else { return Ok(None) };
        let dict = PyDict::new(py);
        dict.set_item("virtual_ns", figures.virtual_ns)?;
        dict.set_item("bits", figures.bits)?;
        dict.set_item("register_reads", figures.register_reads)?;
        dict.set_item("register_writes", figures.register_writes)?;
        dict.set_item("violations", figures.violations)?;
        dict.set_item("violation_texts", figures.violation_texts)?;
        Ok(Some(dict))
    }

    /// Closes the bus; calls on its devices fail from then on. Closing it again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.close(py)
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.shared.any.is_closed()
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.shared.full_name
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<bool> {
        self.close(py).map(|()| false)
    }

    fn __repr__(&self) -> String {
        let state = if self.closed() { " closed" } else { "" };
        format!("<barewire.Bus {:?}{state}>", self.shared.full_name)
    }
}

/// Statistics as Python has them.
fn counters<'py>(py: Python<'py>, statistics: &Statistics) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let Statistics {
        messages,
        transfers,
        errors,
        timedout,
        spi_sync,
        spi_sync_immediate,
        spi_async,
        bytes,
        bytes_rx,
        bytes_tx,
        transfer_bytes_histo,
        transfers_split_maxsize,
    } = *statistics;
    for (name, value) in [
        ("messages", messages),
        ("transfers", transfers),
        ("errors", errors),
        ("timedout", timedout),
        ("spi_sync", spi_sync),
        ("spi_sync_immediate", spi_sync_immediate),
        ("spi_async", spi_async),
        ("bytes", bytes),
        ("bytes_rx", bytes_rx),
        ("bytes_tx", bytes_tx),
        ("transfers_split_maxsize", transfers_split_maxsize),
    ] {
        dict.set_item(name, value)?;
    }
    let histogram = PyDict::new(py);
    for (index, count) in transfer_bytes_histo.into_iter().enumerate() {
        histogram.set_item(Statistics::bucket_name(index).to_string(), count)?;
    }
    dict.set_item("transfer_bytes_histo", histogram)?;
    Ok(dict)
}
