//! Captures of logic analyzers, piece by piece, as columns. `barewire.scope` makes arrays and tables of them.
//!
//! A capture is read without the interpreter, in pieces of some milliseconds; between two of them signals are handled.

mod columns;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use barewire_open::near;
use barewire_scope::capture::{Channel, name_of};
use barewire_scope::chip::Chip;
use barewire_scope::decode::Wires;
use barewire_scope::find::Hints;
use barewire_scope::{Options, Scope, ScopeError, Summary};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{self, Class};
use columns::Columns;

/// A capture is read for so long before signals have their turn.
const PIECE: Duration = Duration::from_millis(20);

/// A capture that is read once, from its beginning to its end.
#[pyclass(frozen, module = "barewire", name = "_Scope")]
pub(crate) struct PyScope {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    at: At,
    columns: Columns,
    channels: Vec<Channel>,
}

/// How far the capture was read.
enum At {
    Reading(Box<Scope>),
    /// To its end.
    Read(Box<Summary>),
    /// An error ended it.
    Failed,
}

/// What `options` of [`PyScope::new`] says of the wires.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Given {
    samplerate: Option<u64>,
    glitch_ns: f64,
    gap_ns: Option<f64>,
    clk: Option<String>,
    mosi: Option<String>,
    miso: Option<String>,
    cs: Option<Vec<String>>,
    cs_active_high: Option<bool>,
    mode: Option<u8>,
    bits: Option<u8>,
    lsb_first: bool,
    late_edges: bool,
    /// By chip select; an empty name is all others.
    chips: Vec<(String, String)>,
}

impl Given {
    fn options(self) -> PyResult<Options> {
        if self.mode.is_some_and(|mode| mode > 3) {
            return Err(error::argument("mode: 0, 1, 2 or 3"));
        }
        if self.bits.is_some_and(|bits| !(1..=32).contains(&bits)) {
            return Err(error::argument("bits: a word has 1 to 32"));
        }
        if self.samplerate == Some(0) {
            return Err(error::argument("samplerate: samples a second, 1 or more"));
        }
        let is_time = |ns: f64| ns.is_finite() && ns >= 0.0;
        if !is_time(self.glitch_ns) || !self.gap_ns.is_none_or(is_time) {
            return Err(error::argument("glitch_ns, gap_ns: nanoseconds, 0 or more"));
        }
        let chip = |(select, name): (String, String)| match Chip::find(&name) {
            Some(chip) => Ok(((!select.is_empty()).then_some(select), chip)),
            None => Err(error::argument(near::unknown("chip", &name, &Chip::NAMES))),
        };
        Ok(Options {
            samplerate: self.samplerate,
            glitch_ns: self.glitch_ns,
            pause_ns: self.gap_ns,
            hints: Hints {
                clk: self.clk,
                mosi: self.mosi,
                miso: self.miso,
                cs: self.cs,
                cs_active_high: self.cs_active_high,
                mode: self.mode,
                word_bits: self.bits,
                lsb_first: self.lsb_first,
                pause: None,
                late_edges: self.late_edges,
            },
            chips: self.chips.into_iter().map(chip).collect::<PyResult<_>>()?,
        })
    }
}

/// The library's sentence, with the system's error number where the file cannot be opened.
fn failed(error: &ScopeError) -> PyErr {
    let opened = std::fs::metadata(&error.path).err().and_then(|error| error.raw_os_error());
    let errno = opened.unwrap_or(libc::EINVAL);
    Python::attach(|py| error::exception(py, Class::Capture, errno, error.to_string()))
}

impl State {
    fn open(path: &Path, options: Options) -> Result<Self, ScopeError> {
        let scope = Scope::open(path, options)?;
        let columns = Columns::new(scope.capture());
        let channels = scope.capture().channels().to_vec();
        Ok(Self { at: At::Reading(Box::new(scope)), columns, channels })
    }

    /// Reads until `is_enough` or the end, or for a while. Returns whether it is to be called again.
    fn read(&mut self, is_enough: impl Fn(&Scope, &Columns) -> bool) -> Result<bool, ScopeError> {
        let begun = Instant::now();
        while let At::Reading(scope) = &mut self.at {
            if is_enough(scope, &self.columns) {
                return Ok(false);
            }
            let columns = &mut self.columns;
            let more =
                match scope.step(&mut |wires, message, told| columns.add(wires, message, told)) {
                    Ok(more) => more,
                    Err(error) => {
                        self.at = At::Failed;
                        return Err(error);
                    }
                };
            if !more && let At::Reading(scope) = std::mem::replace(&mut self.at, At::Failed) {
                // The last step finds the wires, or fails.
                self.at = scope.finish().map_or(At::Failed, |summary| At::Read(Box::new(summary)));
            }
            if begun.elapsed() > PIECE {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn found(&self) -> Option<(&Wires, &[String])> {
        match &self.at {
            At::Reading(scope) => scope.found(),
            At::Read(summary) => Some((&summary.wires, &summary.why)),
            At::Failed => None,
        }
    }

    fn name(&self, bit: u8) -> Option<&str> {
        name_of(&self.channels, bit)
    }
}

impl PyScope {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_until(
        &self,
        py: Python<'_>,
        is_enough: impl Fn(&Scope, &Columns) -> bool + Sync,
    ) -> PyResult<()> {
        // Locked without the interpreter: else this thread would keep it from the one that reads.
        while py.detach(|| self.state().read(&is_enough)).map_err(|error| failed(&error))? {
            py.check_signals()?;
        }
        Ok(())
    }

    /// What `look` sees of the state.
    fn look<R: Send>(&self, py: Python<'_>, look: impl FnOnce(&State) -> R + Send) -> R {
        py.detach(|| look(&self.state()))
    }
}

#[pymethods]
impl PyScope {
    /// Opens the capture and finds its wires.
    #[new]
    fn new(py: Python<'_>, path: PathBuf, options: Given) -> PyResult<Self> {
        let options = options.options()?;
        let state = py.detach(|| State::open(&path, options)).map_err(|error| failed(&error))?;
        let scope = Self { path, state: Mutex::new(state) };
        scope.read_until(py, |scope, _| scope.found().is_some())?;
        Ok(scope)
    }

    /// The columns of at least `rows` messages, or of those up to the capture's end; none behind it.
    fn read<'py>(
        &self,
        py: Python<'py>,
        rows: usize,
    ) -> PyResult<Option<(usize, Bound<'py, PyDict>)>> {
        self.read_until(py, |_, columns| columns.rows >= rows)?;
        let taken = py.detach(|| {
            let mut state = self.state();
            let empty = state.columns.emptied();
            std::mem::replace(&mut state.columns, empty)
        });
        if taken.rows == 0 {
            return Ok(None);
        }
        Ok(Some((taken.rows, taken.dict(py)?)))
    }

    /// Its wires by their roles.
    #[getter]
    fn wires<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let state = self.state();
        let Some((wires, _)) = state.found() else { return Ok(dict) };
        dict.set_item("sck", state.name(wires.sck))?;
        dict.set_item("mosi", wires.mosi.and_then(|bit| state.name(bit)))?;
        dict.set_item("miso", wires.miso.and_then(|bit| state.name(bit)))?;
        let level = |is_high| if is_high { "high" } else { "low" };
        let selects = wires.selects.iter();
        let selects: Vec<_> = selects
            .filter_map(|select| Some((state.name(select.bit)?, level(select.active_high))))
            .collect();
        dict.set_item("selects", selects)?;
        dict.set_item("mode", wires.mode)?;
        dict.set_item("word_bits", wires.word_bits)?;
        dict.set_item("word_bytes", columns::word_bytes(wires))?;
        dict.set_item("lsb_first", wires.lsb_first)?;
        Ok(dict)
    }

    /// What speaks for the wires, a sentence each.
    #[getter]
    fn why(&self, py: Python<'_>) -> Vec<String> {
        self.look(py, |state| state.found().map_or_else(Vec::new, |(_, why)| why.to_vec()))
    }

    /// What else is to be known; whole at the capture's end.
    #[getter]
    fn notes(&self, py: Python<'_>) -> Vec<String> {
        self.look(py, |state| match &state.at {
            At::Reading(scope) => scope.capture().notes(),
            At::Read(summary) => summary.notes.clone(),
            At::Failed => Vec::new(),
        })
    }

    /// Glitches that were left out, by channel; whole at the capture's end.
    #[getter]
    fn glitches(&self, py: Python<'_>) -> Vec<(String, u64)> {
        self.look(py, |state| match &state.at {
            At::Read(summary) => summary.glitches.clone(),
            _ => Vec::new(),
        })
    }

    /// The channels' names.
    #[getter]
    fn channels(&self, py: Python<'_>) -> Vec<String> {
        self.look(py, |state| state.channels.iter().map(|channel| channel.name.clone()).collect())
    }

    fn __repr__(&self) -> String {
        format!("barewire._Scope({:?})", self.path.display().to_string())
    }
}
