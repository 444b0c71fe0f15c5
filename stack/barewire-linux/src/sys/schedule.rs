//! Sets the calling thread's scheduling to SCHED_FIFO.
//!
//! # Safety
//! The call changes how the calling thread is scheduled; it accesses no memory but its argument.
#![allow(unsafe_code, reason = "pthread_setschedparam, which rustix does not have")]

use rustix::io::Errno;

/// Gives the calling thread real-time `priority`, 1 to 99.
pub(crate) fn set_fifo(priority: u8) -> Result<(), Errno> {
    // SAFETY: a struct of integers (musl has several fields), for which zeros are valid.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority.into();
    // SAFETY: it has no preconditions.
    let this = unsafe { libc::pthread_self() };
    // SAFETY: the calling thread lives, and the parameters are valid while the call lasts.
    match unsafe { libc::pthread_setschedparam(this, libc::SCHED_FIFO, &raw const parameters) } {
        0 => Ok(()),
        errno => Err(Errno::from_raw_os_error(errno)),
    }
}
