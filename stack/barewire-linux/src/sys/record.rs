//! A lock of the kernel on a file, which belongs to the open file and not to the process.
//!
//! Read first: fcntl(2), *Open file description locks*. rustix has only the older kind, which every
//! thread of a process holds together and which closing any descriptor of the file gives back.
//!
//! # Safety
//! fcntl(2) reads one `flock` here, which lives until the call returns, and writes nothing.
#![allow(unsafe_code, reason = "fcntl's open file description locks, which rustix does not have")]

use std::fs::File;
use std::os::fd::AsRawFd;

use rustix::io::Errno;

fn set(file: &File, kind: libc::c_int) -> Result<(), Errno> {
    // From 0 for 0 bytes is the whole file; no process is named.
    // SAFETY: integers alone, of which every value is one.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as _;
    lock.l_whence = libc::SEEK_SET as _;
    // SAFETY: an open descriptor, and the argument that this command takes (Safety).
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if done == -1 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    Ok(())
}

/// Takes it without waiting: `EAGAIN` or `EACCES` where another has it.
pub(crate) fn try_take(file: &File) -> Result<(), Errno> {
    set(file, libc::F_WRLCK)
}

/// Gives it back.
pub(crate) fn release(file: &File) -> Result<(), Errno> {
    set(file, libc::F_UNLCK)
}
