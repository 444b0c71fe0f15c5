//! Messages of several transfers, from Python's objects.

use barewire::spi::Transfer;
use barewire_open::near;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::buffer;
use crate::error;

/// The longest transfer, in bytes: more is a slip, and would take all memory.
const LEN_MAX: usize = 1 << 30;

/// The direction of a transfer, with its bytes.
enum Data {
    Write(Py<PyAny>),
    Read(usize),
    Exchange(Py<PyAny>),
}

#[derive(Clone, Copy, Debug, Default)]
struct Fields {
    speed_hz: u32,
    word_delay_ns: u32,
    delay_ns: u32,
    cs_change_delay_ns: u32,
    bits_per_word: u8,
    cs_change: bool,
}

/// One transfer of a message. A field of zero takes the device's value.
#[pyclass(frozen, module = "barewire", name = "Transfer")]
pub(crate) struct PyTransfer {
    data: Data,
    fields: Fields,
}

const FIELDS: [&str; 6] =
    ["speed_hz", "bits_per_word", "delay_ns", "word_delay_ns", "cs_change", "cs_change_delay_ns"];

impl Fields {
    fn of(given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut fields = Self::default();
        let Some(given) = given else { return Ok(fields) };
        for (name, value) in given {
            let name: String = name.extract()?;
            match name.as_str() {
                "speed_hz" => fields.speed_hz = value.extract()?,
                "bits_per_word" => fields.bits_per_word = value.extract()?,
                "delay_ns" => fields.delay_ns = value.extract()?,
                "word_delay_ns" => fields.word_delay_ns = value.extract()?,
                "cs_change" => fields.cs_change = value.extract()?,
                "cs_change_delay_ns" => fields.cs_change_delay_ns = value.extract()?,
                _ => return Err(error::argument_type(near::unknown("field", &name, &FIELDS))),
            }
        }
        Ok(fields)
    }
}

#[pymethods]
impl PyTransfer {
    /// Sends `tx`, and drops what is received.
    #[staticmethod]
    #[pyo3(signature = (tx, /, **fields))]
    fn write(tx: Py<PyAny>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Ok(Self { data: Data::Write(tx), fields: Fields::of(fields)? })
    }

    /// Receives `length` bytes, and sends zeros.
    #[staticmethod]
    #[pyo3(signature = (length, /, **fields))]
    fn read(length: usize, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Ok(Self { data: Data::Read(length), fields: Fields::of(fields)? })
    }

    /// Sends `tx` and receives as many bytes.
    #[staticmethod]
    #[pyo3(signature = (tx, /, **fields))]
    fn exchange(tx: Py<PyAny>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Ok(Self { data: Data::Exchange(tx), fields: Fields::of(fields)? })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (name, mut text) = match &self.data {
            Data::Write(tx) => ("write", tx.bind(py).repr()?.to_string()),
            Data::Read(length) => ("read", length.to_string()),
            Data::Exchange(tx) => ("exchange", tx.bind(py).repr()?.to_string()),
        };
        let Fields { speed_hz, word_delay_ns, delay_ns, cs_change_delay_ns, .. } = self.fields;
        for (field, value) in [
            ("speed_hz", speed_hz),
            ("bits_per_word", self.fields.bits_per_word.into()),
            ("delay_ns", delay_ns),
            ("word_delay_ns", word_delay_ns),
            ("cs_change_delay_ns", cs_change_delay_ns),
        ] {
            if value != 0 {
                text += &format!(", {field}={value}");
            }
        }
        if self.fields.cs_change {
            text += ", cs_change=True";
        }
        Ok(format!("barewire.Transfer.{name}({text})"))
    }
}

/// A transfer with bytes of its own.
pub(crate) struct OwnedTransfer {
    tx: Option<Vec<u8>>,
    rx: Option<Vec<u8>>,
    fields: Fields,
}

impl OwnedTransfer {
    fn of(py: Python<'_>, transfer: &PyTransfer, bits_per_word: u8) -> PyResult<Self> {
        let fields = transfer.fields;
        let bits = if fields.bits_per_word == 0 { bits_per_word } else { fields.bits_per_word };
        let (tx, rx) = match &transfer.data {
            Data::Write(tx) => (Some(buffer::to_send(tx.bind(py), bits)?), None),
            Data::Read(len) => (None, Some(room(*len)?)),
            Data::Exchange(tx) => {
                let tx = buffer::to_send(tx.bind(py), bits)?;
                let rx = room(tx.len())?;
                (Some(tx), Some(rx))
            }
        };
        Ok(Self { tx, rx, fields })
    }

    /// Returns it in the form that the bus takes.
    fn transfer(&mut self) -> Transfer<'_> {
        let Fields { speed_hz, word_delay_ns, delay_ns, cs_change_delay_ns, .. } = self.fields;
        let mut transfer = match (&self.tx, &mut self.rx) {
            (Some(tx), Some(rx)) => Transfer::exchange(tx, rx),
            (Some(tx), None) => Transfer::write(tx),
            (None, Some(rx)) => Transfer::read(rx),
            (None, None) => Transfer::write(&[]),
        };
        transfer.speed_hz = speed_hz;
        transfer.word_delay_ns = word_delay_ns;
        transfer.delay_ns = delay_ns;
        transfer.cs_change_delay_ns = cs_change_delay_ns;
        transfer.bits_per_word = self.fields.bits_per_word;
        transfer.cs_change = self.fields.cs_change;
        transfer
    }
}

/// Zeroed memory to receive into.
pub(crate) fn room(len: usize) -> PyResult<Vec<u8>> {
    if len > LEN_MAX {
        return Err(error::argument(format!("a transfer of {len} bytes: at most {LEN_MAX}")));
    }
    Ok(vec![0; len])
}

/// A message as Python gives it: one exchange, or several transfers.
pub(crate) struct Message {
    transfers: Vec<OwnedTransfer>,
    /// Whether the result is a list, one entry for each transfer.
    several: bool,
}

impl Message {
    /// Reads `what`: bytes to exchange, or a sequence of transfers.
    pub(crate) fn new(what: &Bound<'_, PyAny>, bits_per_word: u8) -> PyResult<Self> {
        let py = what.py();
        if let Ok(transfer) = what.cast::<PyTransfer>() {
            let transfers = vec![OwnedTransfer::of(py, transfer.get(), bits_per_word)?];
            return Ok(Self { transfers, several: true });
        }
        if let Some(transfers) = transfers(what)? {
            let owned = transfers.iter().map(|one| OwnedTransfer::of(py, one.get(), bits_per_word));
            return Ok(Self { transfers: owned.collect::<PyResult<_>>()?, several: true });
        }
        let tx = buffer::to_send(what, bits_per_word)?;
        let rx = room(tx.len())?;
        let one = OwnedTransfer { tx: Some(tx), rx: Some(rx), fields: Fields::default() };
        Ok(Self { transfers: vec![one], several: false })
    }

    /// A message that receives `len` bytes.
    pub(crate) fn read(len: usize) -> PyResult<Self> {
        let one = OwnedTransfer { tx: None, rx: Some(room(len)?), fields: Fields::default() };
        Ok(Self { transfers: vec![one], several: false })
    }

    /// A message that sends `tx` and drops what is received.
    pub(crate) fn write(tx: Vec<u8>) -> Self {
        let one = OwnedTransfer { tx: Some(tx), rx: None, fields: Fields::default() };
        Self { transfers: vec![one], several: false }
    }

    /// Lends it as the bus takes it.
    pub(crate) fn lend<R>(&mut self, run: impl FnOnce(&mut [Transfer<'_>]) -> R) -> R {
        let mut message: Vec<_> = self.transfers.iter_mut().map(OwnedTransfer::transfer).collect();
        run(&mut message)
    }

    /// How many bytes are received.
    pub(crate) fn received_len(&self) -> usize {
        self.transfers.iter().filter_map(|one| one.rx.as_ref()).map(Vec::len).sum()
    }

    /// The received data: bytes, or a list with bytes or `None` for each transfer.
    pub(crate) fn received<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = |one: &OwnedTransfer| one.rx.as_ref().map(|rx| PyBytes::new(py, rx));
        if self.several {
            return Ok(PyList::new(py, self.transfers.iter().map(bytes))?.into_any());
        }
        let only = self.transfers.first().and_then(bytes);
        Ok(only.map_or_else(|| py.None().into_bound(py), Bound::into_any))
    }

    /// Copies what was received to `into`, one transfer's bytes behind the other's.
    pub(crate) fn fill(&self, py: Python<'_>, into: &buffer::Into) {
        let all: Vec<u8> =
            self.transfers.iter().filter_map(|one| one.rx.as_deref()).flatten().copied().collect();
        into.fill(py, &all);
    }
}

/// The transfers of a sequence of transfers; none if its first item is none.
fn transfers<'py>(what: &Bound<'py, PyAny>) -> PyResult<Option<Vec<Bound<'py, PyTransfer>>>> {
    if what.is_instance_of::<PyBytes>() {
        return Ok(None);
    }
    let (list, tuple) = (what.cast::<PyList>().ok(), what.cast::<pyo3::types::PyTuple>().ok());
    let items: Vec<_> = match (list, tuple) {
        (Some(list), _) => list.iter().collect(),
        (_, Some(tuple)) => tuple.iter().collect(),
        _ => return Ok(None),
    };
    if !items.first().is_some_and(|first| first.is_instance_of::<PyTransfer>()) {
        return Ok(None);
    }
    let all = items.iter().map(|item| Ok(item.cast::<PyTransfer>()?.clone()));
    all.collect::<PyResult<Vec<_>>>().map(Some)
}
