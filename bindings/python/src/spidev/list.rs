//! A caller's list of integers: read, and overwritten with what was received.
//!
//! # Safety
//! The interpreter is held. Items are borrowed from the list, and nothing of Python's runs between fetching an
//! item and the last use of it: only exact integers are read here, whose conversion calls nothing.
#![allow(
    unsafe_code,
    reason = "the interpreter's own functions, without counting each item's references"
)]

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Reads a list of as many integers as `bytes` has places, all from 0 to 255. `None` if an item is another: the caller
/// finds out what is wrong.
#[inline]
pub(super) fn read(list: &Bound<'_, PyList>, bytes: &mut [u8]) -> Option<()> {
    for (index, byte) in (0..).zip(bytes) {
        // SAFETY: it is a list; an index behind its end is an error, and null.
        let item = unsafe { ffi::PyList_GetItem(list.as_ptr(), index) };
        if item.is_null() {
            drop(PyErr::take(list.py()));
            return None;
        }
        // SAFETY: an object of the list, which keeps it.
        if unsafe { ffi::PyLong_CheckExact(item) } == 0 {
            return None;
        }
        // SAFETY: an exact integer.
        let value = unsafe { ffi::PyLong_AsLong(item) };
        match u8::try_from(value) {
            Ok(value) => *byte = value,
            Err(_) => {
                // An integer that is too large for a C integer is an error too.
                drop(PyErr::take(list.py()));
                return None;
            }
        }
    }
    Some(())
}

/// Overwrites the list's first items with `bytes`.
///
/// # Errors
/// Another thread made it shorter.
#[inline]
pub(super) fn overwrite(list: &Bound<'_, PyList>, bytes: &[u8]) -> PyResult<()> {
    for (index, byte) in (0..).zip(bytes) {
        // SAFETY: a new reference, or null with an error, which needs no memory for a byte.
        let value = unsafe { ffi::PyLong_FromLong((*byte).into()) };
        // SAFETY: it takes the reference over, also where it fails.
        if unsafe { ffi::PyList_SetItem(list.as_ptr(), index, value) } != 0 {
            return Err(PyErr::fetch(list.py()));
        }
    }
    Ok(())
}
