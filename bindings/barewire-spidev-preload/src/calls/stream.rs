//! Streams on nodes: fdopen, fileno, fclose.
//!
//! # How it works
//! A stream of the C library reads and writes by the library's own functions, which are not taken over. So a
//! stream on a node is one with functions of ours (fopencookie). Such a stream has no descriptor; a table
//! here knows it.

use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::io;
use crate::real::call_real;
use crate::{config, files};

/// Streams on nodes that may be open at once; more have no descriptor to be asked for.
const STREAMS: usize = 64;

/// A stream's address and its descriptor.
struct KnownStream {
    stream: AtomicUsize,
    fd: AtomicUsize,
}

static TABLE: [KnownStream; STREAMS] =
    [const { KnownStream { stream: AtomicUsize::new(0), fd: AtomicUsize::new(0) } }; STREAMS];

/// The C library's `cookie_io_functions_t`.
#[repr(C)]
struct Functions {
    read: extern "C" fn(*mut c_void, *mut c_char, usize) -> isize,
    write: extern "C" fn(*mut c_void, *const c_char, usize) -> isize,
    seek: *const c_void,
    close: extern "C" fn(*mut c_void) -> c_int,
}

unsafe extern "C" {
    fn fopencookie(
        cookie: *mut c_void,
        mode: *const c_char,
        functions: Functions,
    ) -> *mut libc::FILE;
}

fn fd_of(cookie: *mut c_void) -> c_int {
    // It was a descriptor.
    cookie.addr() as c_int
}

extern "C" fn read(cookie: *mut c_void, to: *mut c_char, len: usize) -> isize {
    io::read(fd_of(cookie), to.cast(), len.min(config::bufsiz() as usize))
}

extern "C" fn write(cookie: *mut c_void, from: *const c_char, len: usize) -> isize {
    // A stream takes 0 for an error.
    io::write(fd_of(cookie), from.cast(), len.min(config::bufsiz() as usize)).max(0)
}

extern "C" fn close(cookie: *mut c_void) -> c_int {
    super::close::close(fd_of(cookie))
}

/// A stream on an open node.
pub(super) fn of_node(fd: c_int, mode: *const c_char) -> *mut libc::FILE {
    let functions = Functions { read, write, seek: ptr::null(), close };
    let cookie = ptr::without_provenance_mut(fd.cast_unsigned() as usize);
    // SAFETY: functions that live as long as the program, and the caller's mode, a string.
    let stream = unsafe { fopencookie(cookie, mode, functions) };
    if !stream.is_null() {
        let (address, number) = (stream.addr(), fd.cast_unsigned() as usize);
        for known in &TABLE {
            let free = known.stream.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed);
            if free.is_ok() {
                known.fd.store(number, Ordering::Relaxed);
                known.stream.store(address, Ordering::Release);
                break;
            }
        }
    }
    stream
}

/// A stream on an open GPIO chip: the C library's own, on its descriptor.
pub(super) fn of_chip(fd: c_int, mode: *const c_char) -> *mut libc::FILE {
    let stream = fdopen(fd, mode);
    if stream.is_null() {
        super::close::close(fd);
    }
    stream
}

fn known(stream: *mut libc::FILE) -> Option<&'static KnownStream> {
    TABLE.iter().find(|known| known.stream.load(Ordering::Acquire) == stream.addr())
}

#[unsafe(no_mangle)]
extern "C" fn fdopen(fd: c_int, mode: *const c_char) -> *mut libc::FILE {
    if files::node(fd).is_some() && !mode.is_null() {
        return of_node(fd, mode);
    }
    call_real!(fdopen(fd => c_int, mode => *const c_char) -> *mut libc::FILE, or ptr::null_mut())
}

macro_rules! define_fileno {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(stream: *mut libc::FILE) -> c_int {
            match known(stream) {
                Some(known) => known.fd.load(Ordering::Relaxed) as c_int,
                None => call_real!($name(stream => *mut libc::FILE) -> c_int, or -1),
            }
        }
    )*};
}
define_fileno!(fileno, fileno_unlocked);

#[unsafe(no_mangle)]
extern "C" fn fclose(stream: *mut libc::FILE) -> c_int {
    if let Some(known) = known(stream) {
        known.stream.store(0, Ordering::Relaxed);
    } else if !stream.is_null() {
        files::forget(fileno(stream));
    }
    call_real!(fclose(stream => *mut libc::FILE) -> c_int, or libc::EOF)
}
