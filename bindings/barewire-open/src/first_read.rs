//! The first access to each mapped block, where it can end without ending the command.
//!
//! How it works: where no block answers, the access ends in a signal, mostly SIGBUS. The signal would
//! end the command without an error text and leave its temporary files behind. So a child process,
//! which has the same mappings, reads first. If a signal ends the child, [`first_read`] returns an
//! error with the register's name.
//!
//! # Safety
//! The child is a copy of this process with one thread. It makes one volatile read and leaves by
//! `_exit`: it takes no lock and allocates nothing, because another thread may have held a lock at
//! the fork.
#![allow(unsafe_code, reason = "fork, and waiting for that child")]

use barewire_linux::map::FirstRead;

use crate::OpenError;

/// Reads a register of each block in a child process.
///
/// # Errors
/// [`OpenError::Failed`] with the register that does not answer and what to do, or if there is no child.
pub(crate) fn first_read(reads: Vec<FirstRead<'_>>) -> Result<(), OpenError> {
    for mut read in reads {
        let ended_by = in_a_child(|| {
            read.read();
        });
        match ended_by.map_err(|error| OpenError::io("start a process that reads first", &error))? {
            None => {}
            Some(signal) => return Err(OpenError::Failed(told(&read, signal))),
        }
    }
    Ok(())
}

fn told(read: &FirstRead<'_>, signal: i32) -> String {
    let FirstRead { register, address, of, .. } = read;
    let signal = match signal {
        libc::SIGBUS => "SIGBUS".to_owned(),
        other => format!("signal {other}"),
    };
    format!(
        "{register} of {of} at {address:#x} does not answer ({signal}): no block is there, or it has no clock or power; check the address (`barewire list`, /proc/iomem) and keep its clock on (`barewire doctor`)"
    )
}

/// Runs `access` in a child process and gives the signal that ended it, if one did.
fn in_a_child(access: impl FnOnce()) -> std::io::Result<Option<i32>> {
    // SAFETY: the child does what the module's Safety says, and nothing else.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(std::io::Error::last_os_error()),
        0 => {
            access();
            // SAFETY: ends this process at once, without destructors and handlers of the parent's.
            unsafe { libc::_exit(0) }
        }
        _ => wait(child),
    }
}

fn wait(child: libc::pid_t) -> std::io::Result<Option<i32>> {
    let mut status = 0;
    // SAFETY: the status is a local integer. The child is ours, and no other call waits for it.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } == -1 {
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;
    use std::ptr;

    use super::*;

    #[test]
    fn what_ends_the_child_is_told_and_does_not_end_us() {
        assert_eq!(in_a_child(|| {}).expect("a child"), None);
        // A page behind the end of a file answers as a hole of the bus does.
        let file = tempfile::tempfile().expect("a scratch file");
        let (access, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: a null hint lets the kernel choose a range that nothing uses.
        let page = unsafe { libc::mmap(ptr::null_mut(), 4, access, shared, file.as_raw_fd(), 0) };
        assert_ne!(page, libc::MAP_FAILED);
        let page = page.cast::<u32>();
        let read = || {
            // SAFETY: a mapping of ours, aligned to a page; the fault ends the child.
            let _ = unsafe { ptr::read_volatile(page) };
        };
        assert_eq!(in_a_child(read).expect("a child"), Some(libc::SIGBUS));
    }
}
