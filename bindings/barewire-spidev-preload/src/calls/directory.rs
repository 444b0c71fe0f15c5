//! chdir and getcwd: the working directory may be one of the tree.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;

use super::path_of;
use crate::paths::{from_inside, instead, outside};
use crate::real::call_real;

#[unsafe(no_mangle)]
extern "C" fn chdir(path: *const c_char) -> c_int {
    let text = path_of(path);
    let place = text.and_then(|path| instead(libc::AT_FDCWD, path));
    // The way up from a directory of the tree leads to one of the system.
    let outside = text.and_then(from_inside).filter(|_| place.is_none());
    let path = match (&place, &outside) {
        (Some(place), _) => place.path().as_ptr(),
        (None, Some(outside)) => outside.as_ptr(),
        (None, None) => path,
    };
    call_real!(chdir(path => *const c_char) -> c_int, or -1)
}

/// Cuts the tree's own path off the front of a directory's, if it is there. Null stays null.
fn as_known(path: *mut c_char) -> *mut c_char {
    if !path.is_null() {
        // SAFETY: the C library has written it, with a zero byte at its end.
        let text = unsafe { CStr::from_ptr(path) }.to_bytes();
        let rest = outside(text).len();
        let front = text.len() - rest;
        // SAFETY: within the string.
        let from = unsafe { path.add(front) };
        // SAFETY: the rest and its zero byte, to the string's beginning.
        unsafe { ptr::copy(from, path, rest + 1) };
    }
    path
}

#[unsafe(no_mangle)]
extern "C" fn getcwd(to: *mut c_char, room: usize) -> *mut c_char {
    as_known(
        call_real!(getcwd(to => *mut c_char, room => usize) -> *mut c_char, or ptr::null_mut()),
    )
}

#[unsafe(no_mangle)]
extern "C" fn __getcwd_chk(to: *mut c_char, room: usize, len: usize) -> *mut c_char {
    as_known(call_real!(
        __getcwd_chk(to => *mut c_char, room => usize, len => usize) -> *mut c_char,
        or ptr::null_mut()
    ))
}

#[unsafe(no_mangle)]
extern "C" fn get_current_dir_name() -> *mut c_char {
    as_known(call_real!(get_current_dir_name() -> *mut c_char, or ptr::null_mut()))
}
