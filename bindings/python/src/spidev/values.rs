//! Values from Python: sequences of bytes, and attributes, refused in py-spidev's words.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyList};

use crate::buffer;

/// The most bytes of `xfer`, `xfer2`, `writebytes` and `readbytes`.
pub(super) const LEN_MAX: usize = 4096;

/// More than [`LEN_MAX`] bytes.
pub(super) fn too_long() -> PyErr {
    PyOverflowError::new_err(format!("Argument list size exceeds {LEN_MAX} bytes."))
}

/// A list of values and the bytes that they are.
pub(super) fn sequence<'py>(values: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyList>, Vec<u8>)> {
    let py = values.py();
    if let Some(bytes) = buffer::of_bytes(values) {
        return Ok((PyList::new(py, &bytes)?, bytes));
    }
    let list = match values.cast::<PyList>() {
        Ok(list) => list.clone(),
        Err(_) => {
            let items = values.try_iter().map_err(|error| {
                match error.is_instance_of::<PyTypeError>(py) {
                    true => PyTypeError::new_err("expected a sequence"),
                    false => error,
                }
            })?;
            let list = PyList::empty(py);
            items.into_iter().try_for_each(|item| list.append(item?))?;
            list
        }
    };
    let bytes = list.iter().enumerate().map(|(index, item)| {
        buffer::byte(&item, index).map_err(|error| match error.is_instance_of::<PyTypeError>(py) {
            true => PyTypeError::new_err(format!("Non-Int/Long value in arguments: {item}.")),
            false => error,
        })
    });
    let bytes = bytes.collect::<PyResult<Vec<u8>>>()?;
    Ok((list, bytes))
}

/// Refuses no bytes at all.
pub(super) fn not_empty(bytes: &[u8]) -> PyResult<()> {
    if bytes.is_empty() { Err(PyTypeError::new_err("Empty argument list.")) } else { Ok(()) }
}

/// A boolean attribute.
pub(super) fn boolean(value: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    let refused = |_| PyTypeError::new_err(format!("The {name} attribute must be boolean"));
    Ok(value.cast::<PyBool>().map_err(refused)?.is_true())
}

/// An integer attribute.
pub(super) fn integer<'a, 'py>(
    value: &'a Bound<'py, PyAny>,
    name: &str,
) -> PyResult<&'a Bound<'py, PyInt>> {
    let refused = |_| PyTypeError::new_err(format!("The {name} attribute must be an integer"));
    value.cast::<PyInt>().map_err(refused)
}
