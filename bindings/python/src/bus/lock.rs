//! A bus's lock as a context manager.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error;
use crate::shared::SharedBus;

/// The lock of a bus: `with bus.lock():`.
#[pyclass(frozen, module = "barewire")]
pub(crate) struct Lock {
    shared: Arc<SharedBus>,
}

impl Lock {
    pub(super) fn new(shared: Arc<SharedBus>) -> Self {
        Self { shared }
    }
}

#[pymethods]
impl Lock {
    fn __enter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        slf.shared.turnstile.acquire(slf.py(), &slf.shared)?;
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<bool> {
        match self.shared.turnstile.release(py) {
            true => Ok(false),
            false => Err(error::state(libc::EPERM, "this thread does not have the bus's lock")),
        }
    }

    fn __repr__(&self) -> String {
        let state = if self.held() { " held" } else { "" };
        format!("<barewire.Lock {:?}{state}>", self.shared.full_name)
    }

    /// Whether the calling thread has it.
    #[getter]
    fn held(&self) -> bool {
        self.shared.turnstile.is_mine()
    }
}
