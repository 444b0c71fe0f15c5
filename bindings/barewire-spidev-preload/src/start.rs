//! Runs when the library is loaded: finds its server, reports to it, and finds the nodes that are open
//! already.

use std::os::fd::AsRawFd as _;

use barewire_spidev_abi::protocol::{Call, Head, OpenId};
use rustix::fd::BorrowedFd;
use rustix::fs::{CWD, Dir, Mode, OFlags, openat};
use rustix::process::{Pid, getpid};

use crate::config::config;
use crate::{connection, files};

/// Run by the loader.
extern "C" fn start() {
    if config().is_none() {
        return;
    }
    know_process();
    // SAFETY: a function without arguments that writes atomics and asks for the process's id.
    unsafe { libc::pthread_atfork(None, None, Some(know_process)) };
    let process = u32::try_from(Pid::as_raw(Some(getpid()))).unwrap_or_default();
    let head = Head { id: OpenId(0), call: Call::Hello(process), body: 0 };
    // A server that is gone is reported by the first call that needs it.
    let _ = connection::ask(&head, &[], &mut Vec::new());
    adopt();
}

/// Takes note of the process before a child of `vfork` could be taken for it.
extern "C" fn know_process() {
    barewire_linux::process_number();
}

/// Finds the nodes that the process has open already, because it was made by `exec`.
fn adopt() {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(listing) = openat(CWD, c"/proc/self/fd", flags, Mode::empty()) else { return };
    let own = listing.as_raw_fd();
    let Ok(entries) = Dir::new(listing) else { return };
    for entry in entries.flatten() {
        let number = entry.file_name().to_str().ok().and_then(|name| name.parse().ok());
        let Some(fd) = number.filter(|fd| *fd != own) else { continue };
        // SAFETY: used for one call, which fails if it is closed meanwhile.
        let file = unsafe { BorrowedFd::borrow_raw(fd) };
        if let Some(id) = files::of_socket(file) {
            let _ = files::set(fd, Some(id));
        }
    }
}

#[used]
// SAFETY: the loader calls each function of this section. `start` may ignore the arguments that it
// passes.
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
