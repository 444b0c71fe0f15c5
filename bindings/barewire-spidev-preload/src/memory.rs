//! The program's memory, at addresses that may be bad.
//!
//! The kernel copies, between this process and itself: it checks what it touches. Where that is forbidden (a
//! sandbox without `process_vm_readv`), the bytes are copied here, and a bad address ends the program.

use core::ffi::c_void;
use core::ptr;

use rustix::io::Errno;
use rustix::process::{Pid, getpid};

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
    // SAFETY: as the program promises of what it passes to the kernel.
    unsafe { ptr::copy(from.cast::<u8>(), into.as_mut_ptr(), into.len()) };
    Ok(())
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
    // SAFETY: as the program promises of what it passes to the kernel.
    unsafe { ptr::copy(bytes.as_ptr(), to.cast::<u8>(), bytes.len()) };
    Ok(())
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
