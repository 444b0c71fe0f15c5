//! The class `SpiDev`, as py-spidev 3.8 has it.
//!
//! # Where it differs
//! * Values that are no bytes, lengths and settings that do not fit raise, where py-spidev cuts off bits.
//! * `readbytes` of more than 4,096 bytes raises, where py-spidev reads 4,096.
//! * Buffers whose items are bytes (NumPy, memoryview, array) are taken everywhere, and NumPy's integers are.
//! * A path is accepted in place of a bus number: `SpiDev("/dev/spidev0.0")`.
//! * Errors have a note that says why, where more is known than the number.

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use barewire_spidev_abi::{IocTransfer, Setting};
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use super::list;
use super::node::{CallRefusal, Node};
use super::open::{Open, Options, not_open, os_error};
use super::values::{LEN_MAX, boolean, integer, not_empty, sequence, too_long};
use crate::buffer;

/// A message of up to this many bytes needs no memory of its own.
const SMALL: usize = 64;

const CPHA_CPOL: u8 = 0x03;
const CS_HIGH: u8 = 0x04;
const LSB_FIRST: u8 = 0x08;
const THREE_WIRE: u8 = 0x10;
const LOOP: u8 = 0x20;
const NO_CS: u8 = 0x40;

/// SpiDev([bus],[client]) -> SPI
///
/// Returns a new SPI object that is (optionally) connected to the specified SPI device interface: a number of a bus and
/// of a chip select, or a path.
#[pyclass(subclass, frozen, module = "barewire.spidev", name = "SpiDev")]
pub(crate) struct SpiDev {
    open: Mutex<Option<Open>>,
    read0: AtomicBool,
}

impl SpiDev {
    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the connection. `work` keeps the interpreter: another thread may wait for the connection with it.
    fn with<R>(&self, py: Python<'_>, work: impl FnOnce(&mut Open) -> PyResult<R>) -> PyResult<R> {
        let forked = |open: &mut Open| open.node.shared.is_forked();
        let of_parent = self.lock().take_if(forked);
        if let Some(mut open) = of_parent {
            // Taken out while it is opened again, because opening lets other threads run.
            let opened = open.after_fork(py);
            self.lock().get_or_insert(open);
            opened?;
        }
        work(self.lock().as_mut().ok_or_else(|| not_open(py))?)
    }

    /// The node, and a message's transfer on it.
    fn of_message(
        &self,
        py: Python<'_>,
        options: Options,
        len: usize,
    ) -> PyResult<(Arc<Node>, IocTransfer)> {
        self.with(py, |open| Ok((Arc::clone(&open.node), open.transfer(options, len))))
    }

    fn run(&self, py: Python<'_>, options: Options, tx: &[u8], rx: &mut [u8]) -> PyResult<()> {
        let (node, transfer) = self.of_message(py, options, tx.len())?;
        node.run(py, transfer, tx, rx)?.map_err(|refused| os_error(py, &refused))
    }

    /// Sends `tx` as `write` does: with the node's settings.
    fn send(&self, py: Python<'_>, tx: &[u8]) -> PyResult<()> {
        let (node, _) = self.of_message(py, Options::NONE, 0)?;
        let len = u32::try_from(tx.len()).unwrap_or(u32::MAX);
        let transfer = IocTransfer { tx_buf: 1, len, ..IocTransfer::default() };
        node.run(py, transfer, tx, &mut [])?.map_err(|refused| os_error(py, &refused))
    }

    fn bufsiz(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |open| Ok(open.node.bufsiz))
    }

    /// `xfer` and `xfer2`.
    #[inline]
    fn exchange<'py>(
        &self,
        values: &Bound<'py, PyAny>,
        options: Options,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(list) = values.cast_exact::<PyList>()
            && (1..=SMALL).contains(&list.len())
        {
            let (mut tx, mut rx) = ([0; SMALL], [0; SMALL]);
            let (tx, rx) = (&mut tx[..list.len()], &mut rx[..list.len()]);
            if list::read(list, tx).is_some()
                && let Some(ran) = self.exchange_short(options, tx, rx)
            {
                ran.map_err(|refused| os_error(list.py(), &refused))?;
                list::overwrite(list, rx)?;
                return Ok(values.clone());
            }
        }
        self.exchange_any(values, options)
    }

    #[inline]
    fn exchange_short(
        &self,
        options: Options,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Option<Result<(), CallRefusal>> {
        match &mut *self.lock() {
            Some(open) if !open.node.shared.is_forked() => open.run_short(options, tx, rx),
            _ => None,
        }
    }

    #[inline(never)]
    fn exchange_any<'py>(
        &self,
        values: &Bound<'py, PyAny>,
        options: Options,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = values.py();
        if values.len().is_ok_and(|len| len > LEN_MAX) {
            return Err(too_long());
        }
        let (list, tx) = sequence(values)?;
        not_empty(&tx)?;
        if tx.len() > LEN_MAX {
            return Err(too_long());
        }
        let mut rx = vec![0; tx.len()];
        self.run(py, options, &tx, &mut rx)?;
        if values.is_instance_of::<PyTuple>() {
            return Ok(PyTuple::new(py, &rx)?.into_any());
        }
        list::overwrite(&list, &rx)?;
        Ok(list.into_any())
    }

    fn set_mode(&self, py: Python<'_>, change: impl FnOnce(u8) -> u8) -> PyResult<()> {
        let (node, mode) = self.with(py, |open| Ok((Arc::clone(&open.node), open.mode)))?;
        let wanted = change(mode);
        let written = node.write(py, Setting::Mode, wanted.into())?;
        written.map_err(|refused| os_error(py, &refused))?;
        let found = node.read(Setting::Mode);
        if found != u32::from(wanted) {
            return Err(PyOSError::new_err(format!(
                "Attempted to set mode {wanted:#x} but mode {found:#x} returned"
            )));
        }
        self.with(py, |open| {
            open.mode = wanted;
            Ok(())
        })
    }

    fn set_flag(&self, value: &Bound<'_, PyAny>, name: &str, flag: u8) -> PyResult<()> {
        let set = boolean(value, name)?;
        self.set_mode(value.py(), |mode| if set { mode | flag } else { mode & !flag })
    }

    fn flag(&self, flag: u8) -> bool {
        self.lock().as_ref().is_some_and(|open| open.mode & flag != 0)
    }

    fn open_at(&self, py: Python<'_>, path: &Path) -> PyResult<()> {
        let open = Open::new(py, path)?;
        let before = self.lock().replace(open);
        py.detach(|| drop(before));
        Ok(())
    }
}

fn undeletable() -> PyErr {
    PyTypeError::new_err("Cannot delete attribute")
}

#[pymethods]
impl SpiDev {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self { open: Mutex::new(None), read0: AtomicBool::new(false) }
    }

    #[pyo3(signature = (bus=None, client=None))]
    fn __init__(
        slf: &Bound<'_, Self>,
        bus: Option<&Bound<'_, PyAny>>,
        client: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let Some(bus) = bus else { return Ok(()) };
        if bus.is_instance_of::<PyString>()
            || bus.is_instance_of::<PyBytes>()
            || bus.hasattr("__fspath__")?
        {
            if client.is_some() {
                return Err(PyTypeError::new_err("SpiDev() takes a path, or a bus and a client"));
            }
            return Self::open_path(slf.get(), slf.py(), bus);
        }
        let number: i32 = bus.extract()?;
        let client: Option<i32> = client.map(|client| client.extract()).transpose()?;
        if number < 0 {
            return Ok(());
        }
        let missing = "open() missing required argument 'device' (pos 2)";
        slf.get().open(slf.py(), number, client.ok_or_else(|| PyTypeError::new_err(missing))?)
    }

    /// open(bus, device)
    ///
    /// Connects the object to the specified SPI device: open(X,Y) opens /dev/spidevX.Y.
    #[pyo3(signature = (bus, device))]
    fn open(&self, py: Python<'_>, bus: i32, device: i32) -> PyResult<()> {
        self.open_at(py, Path::new(&format!("/dev/spidev{bus}.{device}")))
    }

    /// open_path(spidev_path)
    ///
    /// Connects the object to the SPI device at a path, following symbolic links.
    #[pyo3(signature = (path))]
    fn open_path(&self, py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<()> {
        let decoded = py.import("os")?.call_method1("fsdecode", (path,))?;
        let path: OsString = decoded.extract()?;
        if path.as_encoded_bytes().contains(&0) {
            return Err(PyValueError::new_err("embedded null byte"));
        }
        self.open_at(py, Path::new(&path))
    }

    /// close()
    ///
    /// Disconnects the object from the interface.
    fn close(&self, py: Python<'_>) {
        let open = self.lock().take();
        py.detach(|| drop(open));
    }

    /// fileno() -> integer "file descriptor"
    ///
    /// The descriptor of a node of the kernel's; for a mapped one, a number of its own that cannot be read or written.
    fn fileno(&self) -> i32 {
        self.lock().as_ref().map_or(-1, |open| open.file.as_raw_fd())
    }

    /// readbytes(len) -> [values]
    ///
    /// Reads len bytes from the SPI device.
    #[pyo3(signature = (len, /))]
    fn readbytes<'py>(&self, py: Python<'py>, len: i32) -> PyResult<Bound<'py, PyList>> {
        let len = usize::try_from(len).unwrap_or(0).max(1);
        if len > LEN_MAX {
            return Err(too_long());
        }
        let (node, _) = self.of_message(py, Options::NONE, 0)?;
        let transfer = IocTransfer { rx_buf: 1, len: len as u32, ..IocTransfer::default() };
        let mut rx = vec![0; len];
        let ran = node.run(py, transfer, &[], &mut rx)?;
        ran.map_err(|refused| os_error(py, &refused))?;
        PyList::new(py, &rx)
    }

    /// writebytes([values]) -> None
    ///
    /// Writes bytes to the SPI device.
    #[pyo3(signature = (values, /))]
    fn writebytes(&self, py: Python<'_>, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let (_, tx) = sequence(values)?;
        not_empty(&tx)?;
        if tx.len() > LEN_MAX {
            return Err(too_long());
        }
        self.send(py, &tx)
    }

    /// writebytes2([values]) -> None
    ///
    /// Writes bytes of any number to the SPI device, in blocks: a list or a buffer.
    #[pyo3(signature = (values, /))]
    fn writebytes2(&self, py: Python<'_>, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let tx = match buffer::raw(values) {
            Some(bytes) => bytes,
            None => {
                let (_, bytes) = sequence(values)?;
                not_empty(&bytes)?;
                bytes
            }
        };
        if tx.is_empty() {
            return Ok(());
        }
        for block in tx.chunks(self.bufsiz(py)?) {
            self.send(py, block)?;
            py.check_signals()?;
        }
        Ok(())
    }

    /// xfer([values]) -> [values]
    ///
    /// Performs an SPI transaction. delay_usecs is the delay behind it.
    #[pyo3(signature = (values, speed_hz=0, delay_usecs=0, bits_per_word=0, /))]
    fn xfer<'py>(
        &self,
        values: &Bound<'py, PyAny>,
        speed_hz: u32,
        delay_usecs: u16,
        bits_per_word: u8,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.exchange(values, Options { speed_hz, delay_usecs, bits_per_word })
    }

    /// xfer2([values]) -> [values]
    ///
    /// Performs an SPI transaction. A list is overwritten with what was received, and returned.
    #[pyo3(signature = (values, speed_hz=0, delay_usecs=0, bits_per_word=0, /))]
    fn xfer2<'py>(
        &self,
        values: &Bound<'py, PyAny>,
        speed_hz: u32,
        delay_usecs: u16,
        bits_per_word: u8,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.exchange(values, Options { speed_hz, delay_usecs, bits_per_word })
    }

    /// xfer3([values]) -> (values)
    ///
    /// Performs SPI transactions of any length, in blocks.
    #[pyo3(signature = (values, speed_hz=0, delay_usecs=0, bits_per_word=0, /))]
    fn xfer3<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        speed_hz: u32,
        delay_usecs: u16,
        bits_per_word: u8,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let options = Options { speed_hz, delay_usecs, bits_per_word };
        let (_, tx) = sequence(values)?;
        not_empty(&tx)?;
        let mut rx = vec![0; tx.len()];
        let bufsiz = self.bufsiz(py)?;
        for (tx, rx) in tx.chunks(bufsiz).zip(rx.chunks_mut(bufsiz)) {
            self.run(py, options, tx, rx)?;
            py.check_signals()?;
        }
        PyTuple::new(py, &rx)
    }

    /// SPI mode as two bit pattern of clock polarity and phase [CPOL|CPHA], 0 to 3.
    #[getter]
    fn mode(&self) -> u8 {
        self.lock().as_ref().map_or(0, |open| open.mode & CPHA_CPOL)
    }

    #[setter(mode)]
    fn set_mode_number(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let number = integer(value, "mode")?.extract::<u8>().ok().filter(|mode| *mode <= 3);
        let refused = "The mode attribute must be an integerbetween 0 and 3.";
        let number = number.ok_or_else(|| PyTypeError::new_err(refused))?;
        self.set_mode(value.py(), |mode| mode & !CPHA_CPOL | number)
    }

    #[deleter(mode)]
    fn del_mode(&self) -> PyResult<()> {
        Err(undeletable())
    }

    /// CS active high.
    #[getter]
    fn cshigh(&self) -> bool {
        self.flag(CS_HIGH)
    }

    #[setter]
    fn set_cshigh(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_flag(value, "cshigh", CS_HIGH)
    }

    #[deleter(cshigh)]
    fn del_cshigh(&self) -> PyResult<()> {
        Err(undeletable())
    }

    /// SI/SO signals shared.
    #[getter]
    fn threewire(&self) -> bool {
        self.flag(THREE_WIRE)
    }

    #[setter]
    fn set_threewire(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_flag(value, "3wire", THREE_WIRE)
    }

    #[deleter(threewire)]
    fn del_threewire(&self) -> PyResult<()> {
        Err(undeletable())
    }

    /// LSB first.
    #[getter]
    fn lsbfirst(&self) -> bool {
        self.flag(LSB_FIRST)
    }

    #[setter]
    fn set_lsbfirst(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_flag(value, "lsbfirst", LSB_FIRST)
    }

    #[deleter(lsbfirst)]
    fn del_lsbfirst(&self) -> PyResult<()> {
        Err(undeletable())
    }

    /// Loopback configuration.
    #[getter(r#loop)]
    fn get_loop(&self) -> bool {
        self.flag(LOOP)
    }

    #[setter(r#loop)]
    fn set_loop(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_flag(value, "loop", LOOP)
    }

    #[deleter(r#loop)]
    fn del_loop(&self) -> PyResult<()> {
        Err(undeletable())
    }

    /// Disable chip select.
    #[getter]
    fn no_cs(&self) -> bool {
        self.flag(NO_CS)
    }

    #[setter]
    fn set_no_cs(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_flag(value, "no_cs", NO_CS)
    }

    #[deleter(no_cs)]
    fn del_no_cs(&self) -> PyResult<()> {
        Err(undeletable())
    }

    /// Bits per word.
    #[getter]
    fn bits_per_word(&self) -> u8 {
        self.lock().as_ref().map_or(0, |open| open.bits_per_word)
    }

    #[setter]
    fn set_bits_per_word(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let bits = integer(value, "bits_per_word")?.extract::<u8>().ok();
        let refused = "invalid bits_per_word (8 to 32)";
        let bits = bits.filter(|bits| (8..=32).contains(bits));
        let bits = bits.ok_or_else(|| PyTypeError::new_err(refused))?;
        let py = value.py();
        let (node, known) =
            self.with(py, |open| Ok((Arc::clone(&open.node), open.bits_per_word)))?;
        if known == bits {
            return Ok(());
        }
        let written = node.write(py, Setting::BitsPerWord, bits.into())?;
        written.map_err(|refused| os_error(py, &refused))?;
        self.with(py, |open| {
            open.bits_per_word = bits;
            Ok(())
        })
    }

    #[deleter(bits_per_word)]
    fn del_bits_per_word(&self) -> PyResult<()> {
        Err(undeletable())
    }

    /// Maximum speed in Hz.
    #[getter]
    fn max_speed_hz(&self) -> u32 {
        self.lock().as_ref().map_or(0, |open| open.max_speed_hz)
    }

    #[setter]
    fn set_max_speed_hz(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let speed_hz = integer(value, "max_speed_hz")?.extract::<u32>()?;
        let py = value.py();
        if self.max_speed_hz() == speed_hz {
            return Ok(());
        }
        let node = self.with(py, |open| Ok(Arc::clone(&open.node)))?;
        let written = node.write(py, Setting::MaxSpeedHz, speed_hz)?;
        written.map_err(|refused| os_error(py, &refused))?;
        self.with(py, |open| {
            open.max_speed_hz = speed_hz;
            Ok(())
        })
    }

    #[deleter(max_speed_hz)]
    fn del_max_speed_hz(&self) -> PyResult<()> {
        Err(undeletable())
    }

    /// Read 0 bytes after transfer to lower CS if cshigh == True. Here CS is lowered by each message.
    #[getter]
    fn read0(&self) -> bool {
        self.read0.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_read0(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.read0.store(boolean(value, "read0")?, Ordering::Relaxed);
        Ok(())
    }

    #[deleter(read0)]
    fn del_read0(&self) -> PyResult<()> {
        Err(undeletable())
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (_exc_type, _exc_value, _traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _exc_type: &Bound<'_, PyAny>,
        _exc_value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> bool {
        self.close(py);
        false
    }
}
