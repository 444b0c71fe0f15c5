//! mmap and similar calls, after which the known facts about the program's memory ([`good`]) are void.
//!
//! They are made by the system call itself: an allocator of the program's may call them before the C library can be asked.

use core::ffi::{c_int, c_void};

use rustix::io::Errno;
use rustix::mm::{MprotectFlags, MremapFlags};

use crate::good;
use crate::real::{set_errno, told};

fn address(result: Result<*mut c_void, Errno>) -> *mut c_void {
    result.unwrap_or_else(|errno| {
        set_errno(errno);
        libc::MAP_FAILED
    })
}

/// The number of the call, and the bytes of its unit of the offset.
#[cfg(target_pointer_width = "64")]
const MMAP: (libc::c_long, i64) = (libc::SYS_mmap, 1);
#[cfg(target_pointer_width = "32")]
const MMAP: (libc::c_long, i64) = (libc::SYS_mmap2, 4096);

fn map(
    at: *mut c_void,
    len: usize,
    rights: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    let (call, unit) = MMAP;
    if offset % unit != 0 {
        return address(Err(Errno::INVAL));
    }
    // The kernel judges an offset that does not fit.
    let offset = (offset / unit) as libc::c_long;
    // SAFETY: the caller's promise.
    let mapped = unsafe { libc::syscall(call, at, len, rights, flags, fd, offset) };
    // Only MAP_FIXED can replace memory that was mapped before.
    if flags & libc::MAP_FIXED != 0 {
        good::forget_all();
    }
    core::ptr::with_exposed_provenance_mut(mapped.cast_unsigned() as usize)
}

#[allow(clippy::useless_conversion, reason = "an offset has 32 bits where a pointer has")]
#[unsafe(no_mangle)]
extern "C" fn mmap(
    at: *mut c_void,
    len: usize,
    rights: c_int,
    flags: c_int,
    fd: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    map(at, len, rights, flags, fd, offset.into())
}

#[unsafe(no_mangle)]
extern "C" fn mmap64(
    at: *mut c_void,
    len: usize,
    rights: c_int,
    flags: c_int,
    fd: c_int,
    offset: libc::off64_t,
) -> *mut c_void {
    map(at, len, rights, flags, fd, offset)
}

#[unsafe(no_mangle)]
extern "C" fn munmap(at: *mut c_void, len: usize) -> c_int {
    // SAFETY: the caller's promise.
    let done = unsafe { rustix::mm::munmap(at, len) };
    good::forget_all();
    told(done.map(|()| 0))
}

#[unsafe(no_mangle)]
extern "C" fn mprotect(at: *mut c_void, len: usize, rights: c_int) -> c_int {
    let rights = MprotectFlags::from_bits_retain(rights.cast_unsigned());
    // SAFETY: the caller's promise.
    let done = unsafe { rustix::mm::mprotect(at, len, rights) };
    good::forget_all();
    told(done.map(|()| 0))
}

#[unsafe(no_mangle)]
extern "C" fn mremap(
    at: *mut c_void,
    len: usize,
    new_len: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    let bits = MremapFlags::from_bits_retain(flags.cast_unsigned());
    let moved = if flags & libc::MREMAP_FIXED == 0 {
        // SAFETY: the caller's promise.
        unsafe { rustix::mm::mremap(at, len, new_len, bits) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { rustix::mm::mremap_fixed(at, len, new_len, bits, to) }
    };
    good::forget_all();
    address(moved)
}
