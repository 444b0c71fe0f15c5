//! A kernel lock on a file that belongs to the open file, not to the process.
//!
//! Read first: fcntl(2), *Open file description locks*. rustix has only the older kind: all threads
//! of a process hold it together, and closing any descriptor of the file releases it.
//!
//! # Safety
//! fcntl(2) reads one `flock` here, which lives until the call returns, and writes nothing.
#![allow(unsafe_code, reason = "fcntl's open file description locks, which rustix does not have")]

use std::fs::File;
use std::os::fd::AsRawFd;

use rustix::io::Errno;

fn set(file: &File, kind: libc::c_int) -> Result<(), Errno> {
    // From 0 for 0 bytes means the whole file; no process is named.
    // SAFETY: a struct of integers, for which every value is valid.
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

/// Acquires the lock without waiting: `EAGAIN` or `EACCES` if another holds it.
pub(crate) fn try_acquire(file: &File) -> Result<(), Errno> {
    set(file, libc::F_WRLCK)
}

/// Releases the lock.
pub(crate) fn release(file: &File) -> Result<(), Errno> {
    set(file, libc::F_UNLCK)
}
