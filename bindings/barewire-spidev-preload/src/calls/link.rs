//! readlink and realpath, whether a path is there, and its attributes.

use core::ffi::{c_char, c_int, c_void};
use std::ffi::CString;
use std::os::fd::AsRawFd as _;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use super::path_of;
use crate::paths::{Substitute, behind_link, instead, of_descriptor, outside};
use crate::real::{call_real, told};

/// The file used instead of `path`, or, if `path` is a link, instead of the link's target.
fn place(directory: c_int, path: *const c_char) -> Option<Substitute> {
    let path = path_of(path)?;
    instead(directory, path).or_else(|| behind_link(directory, path))
}

#[unsafe(no_mangle)]
extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    let place = place(libc::AT_FDCWD, path);
    let path = place.as_ref().map_or(path, |place| place.path().as_ptr());
    call_real!(access(path => *const c_char, mode => c_int) -> c_int, or -1)
}

macro_rules! define_eaccess {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(path: *const c_char, mode: c_int) -> c_int {
            let place = place(libc::AT_FDCWD, path);
            let path = place.as_ref().map_or(path, |place| place.path().as_ptr());
            call_real!($name(path => *const c_char, mode => c_int) -> c_int, or -1)
        }
    )*};
}
define_eaccess!(eaccess, euidaccess);

#[unsafe(no_mangle)]
extern "C" fn faccessat(directory: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int {
    let place = place(directory, path);
    let path = place.as_ref().map_or(path, |place| place.path().as_ptr());
    call_real!(
        faccessat(
            directory => c_int,
            path => *const c_char,
            mode => c_int,
            flags => c_int
        ) -> c_int,
        or -1
    )
}

/// The link's text in the caller's room, cut like the kernel's.
fn link_text(text: &[u8], to: *mut c_char, room: usize) -> Result<isize, Errno> {
    let text = outside(text);
    let cut = text.len().min(room);
    crate::memory::write(to.expose_provenance() as u64, &text[..cut])?;
    Ok(isize::try_from(cut).unwrap_or(isize::MAX))
}

fn readlink_by(
    directory: c_int,
    path: *const c_char,
    to: *mut c_char,
    room: usize,
    real: impl Fn() -> isize,
) -> isize {
    // The link of a descriptor's own: what the program opened.
    if let Some(text) = path_of(path).and_then(node_of_descriptor) {
        return told(link_text(text.as_bytes(), to, room));
    }
    let Some(place) = path_of(path).and_then(|path| instead(directory, path)) else {
        return real();
    };
    let text = rustix::fs::readlinkat(CWD, place.path(), Vec::new());
    told(text.and_then(|text| link_text(text.as_bytes(), to, room)))
}

/// `/proc/self/fd/N` of an open node: the node's path.
fn node_of_descriptor(path: &core::ffi::CStr) -> Option<String> {
    let path = path.to_str().ok()?;
    let own = format!("/proc/{}/fd/", std::process::id());
    let number = path
        .strip_prefix("/proc/self/fd/")
        .or_else(|| path.strip_prefix("/dev/fd/"))
        .or_else(|| path.strip_prefix(own.as_str()))?;
    let id = crate::files::file(number.parse().ok()?)?;
    crate::server::path_of(id).ok()
}

#[unsafe(no_mangle)]
extern "C" fn readlink(path: *const c_char, to: *mut c_char, room: usize) -> isize {
    readlink_by(libc::AT_FDCWD, path, to, room, || {
        call_real!(
            readlink(path => *const c_char, to => *mut c_char, room => usize) -> isize,
            or -1
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn readlinkat(
    directory: c_int,
    path: *const c_char,
    to: *mut c_char,
    room: usize,
) -> isize {
    readlink_by(directory, path, to, room, || {
        call_real!(
            readlinkat(
                directory => c_int,
                path => *const c_char,
                to => *mut c_char,
                room => usize
            ) -> isize,
            or -1
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn __readlink_chk(
    path: *const c_char,
    to: *mut c_char,
    len: usize,
    room: usize,
) -> isize {
    readlink_by(libc::AT_FDCWD, path, to, len.min(room), || {
        call_real!(
            __readlink_chk(
                path => *const c_char,
                to => *mut c_char,
                len => usize,
                room => usize
            ) -> isize,
            or -1
        )
    })
}

/// A path without links, as the program knows it.
fn resolved(path: *const c_char) -> Option<CString> {
    let place = place(libc::AT_FDCWD, path)?;
    // The kernel follows all links to the file; the link of its descriptor is the path without them.
    let file = openat(CWD, place.path(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let text = of_descriptor(file.as_raw_fd())?;
    CString::new(outside(text.as_bytes())).ok()
}

/// Writes the resolved path to `to`. If `to` is null, returns memory from the C library, which the
/// caller frees.
fn resolved_into(text: &CString, to: *mut c_char) -> *mut c_char {
    if to.is_null() {
        // SAFETY: a string that ends in a zero byte.
        return unsafe { libc::strdup(text.as_ptr()) };
    }
    match crate::memory::write(to.expose_provenance() as u64, text.as_bytes_with_nul()) {
        Ok(()) => to,
        Err(errno) => {
            crate::real::set_errno(errno);
            core::ptr::null_mut()
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn realpath(path: *const c_char, to: *mut c_char) -> *mut c_char {
    match resolved(path) {
        Some(text) => resolved_into(&text, to),
        None => call_real!(
            realpath(path => *const c_char, to => *mut c_char) -> *mut c_char,
            or core::ptr::null_mut()
        ),
    }
}

#[unsafe(no_mangle)]
extern "C" fn __realpath_chk(path: *const c_char, to: *mut c_char, room: usize) -> *mut c_char {
    match resolved(path) {
        Some(text) if text.as_bytes_with_nul().len() <= room => resolved_into(&text, to),
        _ => call_real!(
            __realpath_chk(
                path => *const c_char,
                to => *mut c_char,
                room => usize
            ) -> *mut c_char,
            or core::ptr::null_mut()
        ),
    }
}

#[unsafe(no_mangle)]
extern "C" fn canonicalize_file_name(path: *const c_char) -> *mut c_char {
    realpath(path, core::ptr::null_mut())
}

macro_rules! define_getxattr {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            path: *const c_char,
            attribute: *const c_char,
            to: *mut c_void,
            room: usize,
        ) -> isize {
            let place = place(libc::AT_FDCWD, path);
            let path = place.as_ref().map_or(path, |place| place.path().as_ptr());
            call_real!(
                $name(
                    path => *const c_char,
                    attribute => *const c_char,
                    to => *mut c_void,
                    room => usize
                ) -> isize,
                or -1
            )
        }
    )*};
}
define_getxattr!(getxattr, lgetxattr);

macro_rules! define_listxattr {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(path: *const c_char, to: *mut c_char, room: usize) -> isize {
            let place = place(libc::AT_FDCWD, path);
            let path = place.as_ref().map_or(path, |place| place.path().as_ptr());
            call_real!(
                $name(path => *const c_char, to => *mut c_char, room => usize) -> isize,
                or -1
            )
        }
    )*};
}
define_listxattr!(listxattr, llistxattr);
