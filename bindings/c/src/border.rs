//! The border to C: no panic crosses it, text goes out, structs grow.
//!
//! # Safety
//! Pointers are null or valid, as the callers' callers promise.
#![allow(unsafe_code, reason = "it reads and writes what C code points at")]

use std::any::Any;
use std::ffi::{CStr, c_char};
use std::mem::{MaybeUninit, size_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use barewire_linux::is_memory_borrowed;

use crate::error::bw_error;
use crate::failure::{Failure, keep};

/// Runs a function's body. A failure, or a panic, is kept for the thread and becomes the code.
///
/// Not in a child that borrows the memory: the text would be stored in its parent's memory.
#[inline]
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Failure>) -> bw_error {
    if is_memory_borrowed() {
        return bw_error::BW_ERROR_FORKED;
    }
    // After a panic the bus keeps its state consistent: it promises that.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => bw_error::BW_OK,
        Ok(Err(failure)) => keep(failure),
        Err(panic) => panicked(&*panic),
    }
}

#[cold]
#[inline(never)]
fn panicked(panic: &(dyn Any + Send)) -> bw_error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let text = text.unwrap_or_else(|| "no text".into());
    let text = format!("barewire failed inside, which is a mistake of its own: {text}");
    keep(Failure::new(bw_error::BW_ERROR_PANIC, text))
}

/// The text at `text`.
///
/// # Safety
/// Null, or a string that ends with a zero byte.
pub(crate) unsafe fn text<'t>(text: *const c_char, what: &str) -> Result<&'t str, Failure> {
    if text.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    let not_utf8 = |_| Failure::new(bw_error::BW_ERROR_NAME, format!("{what} is not UTF-8"));
    text.to_str().map_err(not_utf8)
}

/// Writes `text` and a zero byte into a buffer of `size` bytes; cut, if there is less room.
///
/// # Safety
/// Null, or valid for writes of `size` bytes.
pub(crate) unsafe fn put_text(text: &str, into: *mut c_char, size: usize) -> Result<(), Failure> {
    if into.is_null() {
        return Err(Failure::null("the buffer for the text"));
    }
    let Some(room) = size.checked_sub(1) else {
        return Err(Failure::new(
            bw_error::BW_ERROR_ARGUMENT,
            "the buffer for the text has no bytes",
        ));
    };
    let mut len = text.len().min(room);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    // SAFETY: `len` bytes, and one more, fit.
    unsafe { ptr::copy_nonoverlapping(text.as_ptr().cast(), into, len) };
    // SAFETY: within the buffer.
    let end = unsafe { into.add(len) };
    // SAFETY: likewise.
    unsafe { end.write(0) };
    Ok(())
}

/// Writes a value through an out pointer, if there is one.
///
/// # Safety
/// Null, or valid for a write.
#[inline]
pub(crate) unsafe fn put<T>(value: T, into: *mut T) {
    if !into.is_null() {
        // SAFETY: the caller's promise.
        unsafe { into.write(value) };
    }
}

/// A struct of the header that begins with its size, so that it may grow.
///
/// # Safety
/// It is `repr(C)`, its first field is a `u32` with its size, and it is valid if all further bytes are zero.
pub(crate) unsafe trait Sized32: Copy {
    /// Its name in errors.
    const NAME: &'static str;
    /// The size that the first version of the library had.
    const FIRST: usize;
    /// Sets the field.
    fn set_size(&mut self, size: u32);
}

fn size_of_it<T: Sized32>(size: u32) -> Result<usize, Failure> {
    let bytes = size as usize;
    // Nothing here grows beyond a page.
    if bytes >= T::FIRST && bytes <= 4096 {
        return Ok(bytes);
    }
    let (name, own) = (T::NAME, size_of::<T>());
    let text = format!("{name}.size is {size}: set it to sizeof({name}), which is {own}");
    Err(Failure::new(bw_error::BW_ERROR_SIZE, text))
}

/// Reads a struct of the caller's size. Fields that the caller's struct lacks become zero. Fields that this library
/// does not know must be zero.
///
/// # Safety
/// Null, or valid for reads of as many bytes as its first field says.
pub(crate) unsafe fn take<T: Sized32>(from: *const T) -> Result<T, Failure> {
    if from.is_null() {
        return Err(Failure::null(T::NAME));
    }
    // SAFETY: the first field, by the trait.
    let size = unsafe { from.cast::<u32>().read() };
    let bytes = size_of_it::<T>(size)?;
    let known = bytes.min(size_of::<T>());
    let mut taken = MaybeUninit::<T>::zeroed();
    // SAFETY: both have these bytes.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), taken.as_mut_ptr().cast::<u8>(), known) };
    for index in known..bytes {
        // SAFETY: within the caller's struct.
        let byte = unsafe { from.cast::<u8>().add(index) };
        // SAFETY: likewise.
        if unsafe { byte.read() } != 0 {
            let text = format!(
                "{} has a field at byte {index} that this library does not know: use a newer one",
                T::NAME
            );
            return Err(Failure::new(bw_error::BW_ERROR_SIZE, text));
        }
    }
    // SAFETY: zero bytes and the caller's are valid, by the trait.
    Ok(unsafe { taken.assume_init() })
}

/// Writes as much of a struct as the caller's has room for, and sets its `size` to the bytes written.
///
/// # Safety
/// Null, or valid for writes of as many bytes as its first field says.
pub(crate) unsafe fn give<T: Sized32>(mut value: T, into: *mut T) -> Result<(), Failure> {
    if into.is_null() {
        return Err(Failure::null(T::NAME));
    }
    // SAFETY: the first field, by the trait.
    let size = unsafe { into.cast::<u32>().read() };
    let known = size_of_it::<T>(size)?.min(size_of::<T>());
    // Below a page.
    value.set_size(known as u32);
    // SAFETY: both have these bytes.
    unsafe { ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), into.cast::<u8>(), known) };
    Ok(())
}
