//! close, dup, fcntl and similar calls, which end or copy a descriptor.

use core::ffi::{c_int, c_long, c_uint};

use crate::files;
use crate::real::call_real;

#[unsafe(no_mangle)]
pub(super) extern "C" fn close(fd: c_int) -> c_int {
    files::forget(fd);
    call_real!(close(fd => c_int) -> c_int, or -1)
}

#[unsafe(no_mangle)]
extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let closed = call_real!(
        close_range(first => c_uint, last => c_uint, flags => c_int) -> c_int,
        or -1
    );
    if closed == 0 && flags & libc::CLOSE_RANGE_CLOEXEC.cast_signed() == 0 {
        files::forget_all(first, last);
    }
    closed
}

#[unsafe(no_mangle)]
extern "C" fn closefrom(first: c_int) {
    files::forget_all(first.max(0).cast_unsigned(), c_uint::MAX);
    call_real!(closefrom(first => c_int) -> (), or ());
}

/// Notes that a copy of a descriptor has the original's open file.
fn copied(from: c_int, to: c_int) -> c_int {
    if to >= 0 && files::copy(from, to).is_err() {
        // SAFETY: just made, and known to no other code.
        unsafe { rustix::io::close(to) };
        crate::real::set_errno(rustix::io::Errno::MFILE);
        return -1;
    }
    to
}

#[unsafe(no_mangle)]
extern "C" fn dup(fd: c_int) -> c_int {
    copied(fd, call_real!(dup(fd => c_int) -> c_int, or -1))
}

#[unsafe(no_mangle)]
extern "C" fn dup2(fd: c_int, to: c_int) -> c_int {
    copied(fd, call_real!(dup2(fd => c_int, to => c_int) -> c_int, or -1))
}

#[unsafe(no_mangle)]
extern "C" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    copied(fd, call_real!(dup3(fd => c_int, to => c_int, flags => c_int) -> c_int, or -1))
}

/// Any of the C library's names of fcntl. The descriptor of an open node is always non-blocking, so
/// that calls that bypass the library do not hang. The program does not see the flag.
fn fcntl_by(fd: c_int, command: c_int, argument: c_long, real: impl Fn(c_long) -> c_int) -> c_int {
    let node = files::node(fd);
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => copied(fd, real(argument)),
        libc::F_SETFL if node.is_some() => real(argument | c_long::from(libc::O_NONBLOCK)),
        libc::F_GETFL => match (files::file(fd), real(argument)) {
            (Some(id), flags @ 0..) => {
                let hidden = if node.is_some() { libc::O_NONBLOCK } else { 0 };
                flags & !(hidden | libc::O_ACCMODE) | id.access().cast_signed()
            }
            (_, flags) => flags,
        },
        _ => real(argument),
    }
}

macro_rules! define_fcntl {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(fd: c_int, command: c_int, argument: c_long) -> c_int {
            fcntl_by(fd, command, argument, |argument| {
                call_real!($name(fd => c_int, command => c_int, argument => c_long) -> c_int, or -1)
            })
        }
    )*};
}
define_fcntl!(fcntl, fcntl64);
#[cfg(target_pointer_width = "32")]
define_fcntl!(__fcntl_time64);
