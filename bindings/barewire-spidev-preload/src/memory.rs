//! The program's memory, at addresses that may be bad.
//!
//! The kernel copies between this process and itself, and checks the addresses. Where that call is forbidden
//! (a sandbox without `process_vm_readv`), the bytes go through a pipe, whose ends the kernel checks
//! likewise.

use core::ffi::c_void;
use core::ptr;

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, getpid};

/// Bytes that a pipe takes at once without waiting: on Linux a pipe's capacity is at least a page.
const PIPE_BYTES: usize = 4096;

/// Fills `into` from `address`.
///
/// # Errors
/// `EFAULT` if not all of it is there.
pub(crate) fn read(address: u64, into: &mut [u8]) -> Result<(), Errno> {
    if into.is_empty() {
        return Ok(());
    }
    let from = pointer(address)?;
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: from, iov_len: into.len() };
    let process = Pid::as_raw(Some(getpid()));
    // SAFETY: the local bytes are `into`'s; the remote ones are checked by the kernel.
    let copied = unsafe { libc::process_vm_readv(process, &local, 1, &remote, 1, 0) };
    if judged(copied, into.len())? {
        return Ok(());
    }
    through_pipe(from, into.as_mut_ptr().cast(), into.len())
}

/// Writes `bytes` at `address`.
///
/// # Errors
/// `EFAULT` if not all of it can be written; some may have been.
pub(crate) fn write(address: u64, bytes: &[u8]) -> Result<(), Errno> {
    if bytes.is_empty() {
        return Ok(());
    }
    let to = pointer(address)?;
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: to, iov_len: bytes.len() };
    let process = Pid::as_raw(Some(getpid()));
    // SAFETY: the local bytes are read only; the remote ones are checked by the kernel.
    let copied = unsafe { libc::process_vm_writev(process, &local, 1, &remote, 1, 0) };
    if judged(copied, bytes.len())? {
        return Ok(());
    }
    through_pipe(bytes.as_ptr().cast_mut().cast(), to, bytes.len())
}

/// Copies `len` bytes through a pipe. The kernel checks both addresses.
fn through_pipe(from: *mut c_void, to: *mut c_void, len: usize) -> Result<(), Errno> {
    let pipe = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let mut done = 0;
    while done < len {
        let piece = (len - done).min(PIPE_BYTES);
        give_and_take(&pipe, from.wrapping_byte_add(done), to.wrapping_byte_add(done), piece)?;
        done += piece;
    }
    Ok(())
}

fn give_and_take(
    (reader, writer): &(OwnedFd, OwnedFd),
    from: *mut c_void,
    to: *mut c_void,
    len: usize,
) -> Result<(), Errno> {
    // The system calls themselves: the functions `read` and `write` are this library's own.
    // SAFETY: the kernel checks the address.
    let given = unsafe { libc::syscall(libc::SYS_write, writer.as_raw_fd(), from, len) };
    if usize::try_from(given) != Ok(len) {
        return Err(Errno::FAULT);
    }
    // SAFETY: the kernel checks the address.
    let taken = unsafe { libc::syscall(libc::SYS_read, reader.as_raw_fd(), to, len) };
    if usize::try_from(taken) == Ok(len) { Ok(()) } else { Err(Errno::FAULT) }
}

fn pointer(address: u64) -> Result<*mut c_void, Errno> {
    let address = usize::try_from(address).map_err(|_| Errno::FAULT)?;
    Ok(ptr::with_exposed_provenance_mut(address))
}

/// Whether the kernel copied; false if it may not.
fn judged(copied: isize, len: usize) -> Result<bool, Errno> {
    if usize::try_from(copied) == Ok(len) {
        return Ok(true);
    }
    let error = std::io::Error::last_os_error();
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSYS | Errno::PERM) if copied < 0 => Ok(false),
        _ => Err(Errno::FAULT),
    }
}
