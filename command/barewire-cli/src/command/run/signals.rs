//! Signals while a program runs under this command.
//!
//! # How it works
//! They are blocked and read from a descriptor, beside the server's sockets. A signal from the terminal
//! reaches the program too, so it is not passed on. A signal that another process sends to this one is
//! passed on. A program that was started before this has no signals blocked.
//!
//! SIGCHLD is blocked before the buses are opened, because a bus may start a thread, and a thread inherits
//! the signals its creator has blocked. A thread that has not blocked SIGCHLD would take the signal, and the
//! server would not learn that the program has ended.
#![allow(unsafe_code, reason = "sigprocmask and signalfd")]

use std::fs::File;
use std::io::Read as _;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _};
use std::ptr;

use rustix::process::{Pid, Signal, kill_process};

use crate::shared::failure::Failure;

const TAKEN: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];

/// Blocks or unblocks SIGCHLD in this thread and in the threads that it will start.
pub(super) fn block_ends(block: bool) {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: it fills the set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: a set that was filled, and a signal that exists.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD) };
    let how = if block { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
    // SAFETY: a set that was filled.
    unsafe { libc::pthread_sigmask(how, set.as_ptr(), ptr::null_mut()) };
}

/// The signals of this process, from here on read from a descriptor.
pub(super) struct Signals {
    file: File,
}

impl Signals {
    /// Blocks and takes them.
    pub(super) fn take() -> Result<Self, Failure> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: it fills the set.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        for signal in TAKEN.into_iter().chain([libc::SIGCHLD]) {
            // SAFETY: a set that was filled, and a signal that exists.
            unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
        }
        // SAFETY: a set that was filled.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut()) };
        let flags = libc::SFD_NONBLOCK | libc::SFD_CLOEXEC;
        // SAFETY: a set that was filled; -1 asks for a new descriptor.
        let fd = unsafe { libc::signalfd(-1, set.as_ptr(), flags) };
        if fd < 0 {
            return Err(Failure::io("take signals", &std::io::Error::last_os_error()));
        }
        // SAFETY: no other code has this descriptor.
        let file = unsafe { File::from_raw_fd(fd) };
        Ok(Self { file })
    }

    /// The descriptor to poll.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Passes the signals that other processes sent to this one on to the program.
    pub(super) fn pass_on(&self, to: Pid) {
        const BYTES: usize = size_of::<libc::signalfd_siginfo>();
        let mut bytes = [0; BYTES];
        while let Ok(BYTES) = (&self.file).read(&mut bytes) {
            // The first and third words of `struct signalfd_siginfo`: the number and the sender's code.
            let [number, _, code] = std::array::from_fn(|index| {
                bytes.as_chunks::<4>().0.get(index).map_or(0, |word| i32::from_ne_bytes(*word))
            });
            if code <= libc::SI_USER
                && TAKEN.contains(&number)
                && let Some(signal) = Signal::from_named_raw(number)
            {
                // It may have ended already.
                let _ = kill_process(to, signal);
            }
        }
    }
}
