//! The functions that this library defines in the C library's place, a file for each kind.
//!
//! Functions with variable arguments are defined with those that they may have: on the architectures that
//! barewire is built for, an integer or pointer is passed alike either way.

mod close;
mod directory;
mod gpio;
mod io;
mod link;
mod list;
mod map;
mod open;
mod receive;
mod search;
mod signal;
mod stat;
#[cfg(all(target_arch = "arm", target_env = "gnu"))]
mod stat_time64;
mod stream;

use core::ffi::{CStr, c_char};

/// A path that a program passes; `None` for null.
fn path_of<'p>(path: *const c_char) -> Option<&'p CStr> {
    if path.is_null() {
        return None;
    }
    // SAFETY: the contract of the function that it is passed to: a string that ends in a zero byte and
    // stays for the call.
    Some(unsafe { CStr::from_ptr(path) })
}
