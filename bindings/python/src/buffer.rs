//! Bytes from Python's objects, and back: the buffer protocol, and sequences of integers.
//!
//! Bytes are copied while the interpreter is held, so that another thread may change the object while a
//! message runs.
//!
//! # Safety
//! A buffer of the buffer protocol that is C-contiguous is `len_bytes` bytes from its pointer on, valid while
//! the view exists. Nothing of Python's runs during the copy.
#![allow(unsafe_code, reason = "copies bytes out of and into Python's buffers")]

use std::ptr;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error;

/// A view of an object's buffer, or none if it has no such buffer.
fn view(value: &Bound<'_, PyAny>) -> Option<PyUntypedBuffer> {
    PyUntypedBuffer::get(value).ok()
}

fn copy_of(view: &PyUntypedBuffer) -> Vec<u8> {
    let len = view.len_bytes();
    let mut bytes = Vec::with_capacity(len);
    if len > 0 {
        // SAFETY: `len` bytes may be read there (module, Safety), and there is room for them.
        unsafe { ptr::copy_nonoverlapping(view.buf_ptr().cast::<u8>(), bytes.as_mut_ptr(), len) };
    }
    // SAFETY: they were written.
    unsafe { bytes.set_len(len) };
    bytes
}

/// The bytes of an object with a contiguous buffer, whatever its items; none for others.
pub(crate) fn raw(value: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Some(bytes.as_bytes().to_vec());
    }
    view(value).filter(PyUntypedBuffer::is_c_contiguous).map(|view| copy_of(&view))
}

/// The bytes of an object whose buffer has items of one byte; none for others.
pub(crate) fn of_bytes(value: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Some(bytes.as_bytes().to_vec());
    }
    let view = view(value)?;
    let contiguous = view.item_size() == 1 && view.is_c_contiguous() && view.format() != c"?";
    contiguous.then(|| copy_of(&view))
}

/// An integer as a byte.
pub(crate) fn byte(value: &Bound<'_, PyAny>, index: usize) -> PyResult<u8> {
    match value.extract::<i64>() {
        Ok(number) => u8::try_from(number)
            .map_err(|_| error::argument(format!("value {index} is {number}: a byte is 0 to 255"))),
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(value.py()) => {
            Err(error::argument(format!("value {index} is no byte: a byte is 0 to 255")))
        }
        Err(error) => Err(error),
    }
}

/// Converts the data that a message sends: bytes, an array whose items are one byte or one word, or integers.
pub(crate) fn to_send(value: &Bound<'_, PyAny>, bits_per_word: u8) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    if let Some(view) = view(value) {
        let (item, word) = (view.item_size(), usize::from(bits_per_word).div_ceil(8));
        if item != 1 && item != word.next_power_of_two() {
            return Err(error::argument_type(format!(
                "items of {item} bytes: a message takes bytes, or words of {bits_per_word} bits (for NumPy: \
                 dtype uint8, or .tobytes())"
            )));
        }
        if !view.is_c_contiguous() {
            return Err(error::argument_type(
                "the buffer has gaps: pass a copy of it, for example bytes(buffer)",
            ));
        }
        return Ok(copy_of(&view));
    }
    let refused = || {
        error::argument_type(format!(
            "a message takes bytes, a buffer or a sequence of integers, not {}",
            value.get_type().name().map_or("this".into(), |name| name.to_string())
        ))
    };
    if value.is_instance_of::<pyo3::types::PyString>() {
        return Err(refused());
    }
    let items = value.try_iter().map_err(|_| refused())?;
    items.enumerate().map(|(index, item)| byte(&item?, index)).collect()
}

/// An object to receive into: a writable, contiguous buffer.
pub(crate) struct Into(PyUntypedBuffer);

impl Into {
    /// The buffer of `value`, which must have `len` bytes.
    pub(crate) fn new(value: &Bound<'_, PyAny>, len: usize) -> PyResult<Self> {
        let view = PyUntypedBuffer::get(value)?;
        if view.readonly() || !view.is_c_contiguous() {
            return Err(error::argument_type(
                "into= needs a writable buffer without gaps: a bytearray, an array, a NumPy array",
            ));
        }
        if view.len_bytes() != len {
            return Err(error::argument(format!(
                "into= has {} bytes, and the message receives {len}",
                view.len_bytes()
            )));
        }
        Ok(Self(view))
    }

    /// Copies what was received; `received` has the buffer's length.
    pub(crate) fn fill(&self, _py: Python<'_>, received: &[u8]) {
        assert_eq!(received.len(), self.0.len_bytes(), "checked when it was made");
        if !received.is_empty() {
            let to = self.0.buf_ptr().cast::<u8>();
            // SAFETY: as many bytes may be written there (module, Safety; `new` has seen that it is writable).
            unsafe { ptr::copy_nonoverlapping(received.as_ptr(), to, received.len()) };
        }
    }
}
