//! Versions and errors.
//!
//! # Safety
//! Pointers are as the functions' documentation says.
#![allow(unsafe_code, reason = "functions for C code")]

use std::ffi::{CStr, c_char};

use crate::border::{give, guard};
use crate::error::{bw_error, name_of};
use crate::failure::{last_text, with_last};
use crate::types::{BW_VERSION, bw_failure};

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// The library's version as text, for example `0.2.0`.
#[unsafe(no_mangle)]
pub extern "C" fn bw_version() -> *const c_char {
    CStr::from_bytes_with_nul(VERSION.as_bytes()).unwrap_or(c"").as_ptr()
}

/// The library's version as a number, to compare with `BW_VERSION` of the header.
#[unsafe(no_mangle)]
pub extern "C" fn bw_version_number() -> u32 {
    BW_VERSION
}

/// The name of a code, for example `BW_ERROR_NULL`; `BW_ERROR_?` for a number that is none.
#[unsafe(no_mangle)]
pub extern "C" fn bw_error_name(error: i32) -> *const c_char {
    name_of(error).unwrap_or(c"BW_ERROR_?").as_ptr()
}

/// What went wrong in the calling thread's last call that failed, in words; empty if none did. It names the thing and,
/// where there is one, the remedy. Valid until the thread's next call that fails.
#[unsafe(no_mangle)]
pub extern "C" fn bw_last_error() -> *const c_char {
    last_text()
}

/// More about the calling thread's last call that failed. All zero if none did.
///
/// # Safety
/// `failure` is NULL or points at a struct whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_last_failure(failure: *mut bw_failure) -> bw_error {
    guard(|| {
        let last = with_last(|last| bw_failure {
            error: last.code as i32,
            os_errno: last.os_errno,
            transfer_index: last.transfer_index as u64,
            actual_length: last.actual_length as u64,
            ..bw_failure::default()
        });
        // SAFETY: the caller's promise.
        unsafe { give(last.unwrap_or_default(), failure) }
    })
}
