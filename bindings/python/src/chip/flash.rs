//! SPI NOR flash.

use std::ops::ControlFlow;
use std::sync::Arc;

use barewire::chip::spi_nor::{Assume, Enter, Layout, NorError, SpiNor, Written};
use barewire::spi::Settings;
use barewire_open::AnyTimer;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::buffer::{self, Into};
use crate::bus::Bus;
use crate::error;
use crate::port::{Exclusive, SharedPort, port, simulated};
use crate::shared::SharedBus;

/// Bytes that are read before other threads and signals have their turn.
const PIECE: usize = 64 << 10;

type NorChip = SpiNor<SharedPort, AnyTimer>;

/// A SPI NOR flash chip, identified by its id and SFDP.
#[pyclass(frozen, module = "barewire")]
pub(crate) struct Flash {
    shared: Arc<SharedBus>,
    chip: Exclusive<NorChip>,
    id: [u8; 3],
    size: u64,
    erase_size: u32,
    scratch_size: u32,
    page_size: u32,
}

/// Tells Python how far an operation is, and stops it: by a signal, or by an exception of the callback.
struct Watch {
    progress: Option<Py<PyAny>>,
    total: u64,
    stopped: Option<PyErr>,
}

impl Watch {
    fn new(progress: Option<Py<PyAny>>, total: usize) -> Self {
        Self { progress, total: total as u64, stopped: None }
    }

    /// `done` bytes of all are done.
    fn tell(&mut self, py: Python<'_>, done: u64) -> PyResult<()> {
        py.check_signals()?;
        if let Some(progress) = &self.progress {
            progress.call1(py, (done, self.total))?;
        }
        Ok(())
    }

    /// The same from the driver, which runs without the interpreter.
    fn observe(&mut self, done: u64) -> ControlFlow<()> {
        match Python::attach(|py| self.tell(py, done)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.stopped = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Converts the result of an operation.
    fn judge<R>(
        &mut self,
        py: Python<'_>,
        shared: &SharedBus,
        ended: Result<R, NorError>,
    ) -> PyResult<R> {
        ended.map_err(|error| match (self.stopped.take(), error) {
            (Some(stopped), NorError::Interrupted { .. }) => stopped,
            (None, NorError::Interrupted { .. }) => PyKeyboardInterrupt::new_err(()),
            (_, error) => error::of_flash(py, &shared.any, error),
        })
    }
}

impl Flash {
    /// Runs an operation of the driver without the interpreter.
    fn operate<R: Send>(
        &self,
        py: Python<'_>,
        mut watch: Watch,
        work: impl FnOnce(&mut NorChip, &mut Watch) -> Result<R, NorError> + Send,
    ) -> PyResult<R> {
        self.chip.with(py, |chip| {
            let ended = self.shared.detached(py, || work(chip, &mut watch))?;
            watch.judge(py, &self.shared, ended)
        })
    }

    /// The length of a range that the chip has.
    fn range(&self, py: Python<'_>, offset: u64, length: u64) -> PyResult<usize> {
        let end = offset.checked_add(length).filter(|end| *end <= self.size);
        end.and(usize::try_from(length).ok()).ok_or_else(|| {
            let size = self.size;
            let text = format!("{length} bytes from {offset} on: the chip has {size} bytes");
            error::of_argument(py, text)
        })
    }

    fn erase_range(
        &self,
        py: Python<'_>,
        offset: u64,
        length: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let total = self.range(py, offset, length)?;
        let end = offset + length;
        // The chip's own command for all of it takes minutes and cannot be stopped.
        let middle = if length == self.size { offset + self.size / 2 } else { end };
        self.operate(py, Watch::new(progress, total), |chip, watch| {
            chip.erase(offset..middle, &mut |done| watch.observe(done))?;
            chip.erase(middle..end, &mut |done| watch.observe(middle - offset + done))
        })
    }
}

#[pymethods]
impl Flash {
    /// Identifies the chip. `chip_select` is a simulated board's own if it is not given, else 0. The other arguments
    /// replace parts of the chip's own description: `size` and `erase_size` in bytes, `protection` and
    /// `four_byte_mode` as on the command line.
    #[new]
    #[pyo3(signature = (bus, chip_select=None, *, speed_hz=20_000_000, size=None, erase_size=None, protection=None, four_byte_mode=None))]
    #[expect(clippy::too_many_arguments, reason = "Python's keywords")]
    fn new(
        py: Python<'_>,
        bus: &Bus,
        chip_select: Option<u8>,
        speed_hz: u32,
        size: Option<u64>,
        erase_size: Option<u32>,
        protection: Option<&str>,
        four_byte_mode: Option<&str>,
    ) -> PyResult<Self> {
        let unknown = |what, name| error::argument(format!("{what}: there is no {name:?}"));
        let mut assume = Assume::default();
        (assume.size, assume.erase_size) = (size, erase_size);
        if let Some(name) = protection {
            let layout = Layout::named(name).ok_or_else(|| unknown("protection", name))?;
            assume.protection = Some(layout);
        }
        if let Some(name) = four_byte_mode {
            let ways = Enter::named(name).ok_or_else(|| unknown("four_byte_mode", name))?;
            assume.four_byte_mode = Some(ways);
        }
        let shared = Arc::clone(&bus.shared);
        let on_board = simulated(&shared).and_then(|options| options.board.first_flash());
        let settings =
            Settings::new(chip_select.or(on_board.map(|flash| flash.cs)).unwrap_or(0), speed_hz);
        let (port, timer) = (port(py, &shared, &settings)?, shared.any.timer());
        let chip = shared.detached(py, || SpiNor::assuming(port, timer, &assume))?;
        let chip = chip.map_err(|error| error::of_flash(py, &shared.any, error))?;
        let geometry = chip.geometry();
        Ok(Self {
            id: chip.jedec_id().0,
            size: chip.size(),
            erase_size: geometry.erase_size(),
            scratch_size: geometry.scratch_size(),
            page_size: geometry.page_size(),
            chip: Exclusive::new(chip),
            shared,
        })
    }

    /// The JEDEC id: three bytes.
    #[getter]
    fn id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.id)
    }

    /// The size in bytes.
    #[getter]
    fn size(&self) -> u64 {
        self.size
    }

    /// The smallest block that is erased, in bytes.
    #[getter]
    fn erase_size(&self) -> u32 {
        self.erase_size
    }

    /// Sentences: contradictions in the chip's description, facts it leaves out, and what the driver did beyond the
    /// request.
    #[getter]
    fn notes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.operate(py, Watch::new(None, 0), |chip, _| {
            Ok(chip.geometry().notes.iter().map(|note| note.to_string()).collect())
        })
    }

    /// The bytes of a page, which is programmed at once.
    #[getter]
    fn page_size(&self) -> u32 {
        self.page_size
    }

    /// Reads `length` bytes from `offset` on, by default all that follow; into `into` if it is given.
    #[pyo3(signature = (offset=0, length=None, *, into=None, progress=None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        length: Option<u64>,
        into: Option<&Bound<'py, PyAny>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let length = length.unwrap_or(self.size.saturating_sub(offset));
        let length = self.range(py, offset, length)?;
        let into = into.map(|object| Into::new(object, length).map(|into| (into, object)));
        let into = into.transpose()?;
        let mut bytes = vec![0; length];
        self.operate(py, Watch::new(progress, length), |chip, watch| {
            let mut done = 0;
            for piece in bytes.chunks_mut(PIECE) {
                chip.read(offset + done, piece)?;
                done += piece.len() as u64;
                if watch.observe(done).is_break() {
                    return Err(NorError::Interrupted { done });
                }
            }
            Ok(())
        })?;
        Ok(match into {
            Some((into, object)) => {
                into.fill(py, &bytes);
                object.clone()
            }
            None => PyBytes::new(py, &bytes).into_any(),
        })
    }

    /// Writes `data` at `offset`: erases and programs only what differs, keeps what is around it, and reads back what it
    /// changed. Returns what it did, in bytes and commands.
    #[pyo3(signature = (offset, data, *, progress=None))]
    fn write<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        data: &Bound<'py, PyAny>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let data = buffer::to_send(data, 8)?;
        let mut scratch = vec![0; self.scratch_size as usize];
        let watch = Watch::new(progress, data.len());
        let written = self.operate(py, watch, |chip, watch| {
            chip.write(offset, &data, &mut scratch, &mut |done| watch.observe(done))
        })?;
        let Written { unchanged_bytes, programmed_bytes, skipped_bytes, restored_bytes, .. } =
            written;
        let Written { erased_bytes, erases, programs, .. } = written;
        let dict = PyDict::new(py);
        dict.set_item("unchanged_bytes", unchanged_bytes)?;
        dict.set_item("programmed_bytes", programmed_bytes)?;
        dict.set_item("skipped_bytes", skipped_bytes)?;
        dict.set_item("restored_bytes", restored_bytes)?;
        dict.set_item("erased_bytes", erased_bytes)?;
        dict.set_item("erases", erases)?;
        dict.set_item("programs", programs)?;
        Ok(dict)
    }

    /// Erases whole blocks: `offset` and `length` are multiples of `erase_size`. For all of the chip there is
    /// `erase_chip`.
    #[pyo3(signature = (offset, length, *, progress=None))]
    fn erase(
        &self,
        py: Python<'_>,
        offset: u64,
        length: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        self.erase_range(py, offset, length, progress)
    }

    /// Erases the whole chip, block by block, so that it can be stopped.
    #[pyo3(signature = (*, progress=None))]
    fn erase_chip(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<()> {
        self.erase_range(py, 0, self.size, progress)
    }

    /// Compares the chip's content from `offset` on with `data`; raises `VerifyError` at the first difference.
    #[pyo3(signature = (offset, data, *, progress=None))]
    fn verify(
        &self,
        py: Python<'_>,
        offset: u64,
        data: &Bound<'_, PyAny>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let data = buffer::to_send(data, 8)?;
        let mut scratch = vec![0; PIECE];
        self.operate(py, Watch::new(progress, data.len()), |chip, watch| {
            chip.verify(offset, &data, &mut scratch, &mut |done| watch.observe(done))
        })
    }

    /// Status register 1.
    fn status(&self, py: Python<'_>) -> PyResult<u8> {
        self.operate(py, Watch::new(None, 0), |chip, _| chip.status())
    }

    fn __repr__(&self) -> String {
        let [a, b, c] = self.id;
        format!("<barewire.Flash {a:02x}{b:02x}{c:02x} {} bytes>", self.size)
    }
}
