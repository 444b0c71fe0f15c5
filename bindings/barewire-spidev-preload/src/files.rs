//! Which descriptors are open nodes, GPIO chips and lines.
//!
//! # How it works
//! The kernel knows: an open file of ours is a socket whose name holds its id. A table remembers what was ours, so that
//! calls on other files cost no system call more. The table is a hint: it is wrong once a descriptor is closed or
//! copied around the library. So before a call is served, the kernel is asked what the descriptor is now ([`find`]). A
//! child that shares the memory, as of `vfork`, has descriptors of its own, and does not write the table; once it has changed
//! one that is ours here, messages that this process runs itself ask whose the memory is.
//!
//! Messages that this process runs itself trust the table: see [`crate::direct`].

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use barewire_linux::is_memory_borrowed;
use barewire_spidev_abi::protocol::{FileKind, OpenId};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, getsockname};

use crate::config::config;

/// Descriptors above this are not known. The kernel's own default limit is a thousand.
const MAX: usize = 1 << 16;

/// The open file behind each descriptor; 0 for none.
static TABLE: [AtomicU32; MAX] = [const { AtomicU32::new(0) }; MAX];

/// A descriptor's state for messages that this process runs itself: unknown, or a number that `direct` gave.
static DIRECT: [AtomicU8; MAX] = [const { AtomicU8::new(UNKNOWN) }; MAX];
/// Nothing is known yet.
pub(crate) const UNKNOWN: u8 = 0;

/// A descriptor's state for messages that this process runs itself.
#[inline]
pub(crate) fn direct(fd: c_int) -> Option<&'static AtomicU8> {
    DIRECT.get(usize::try_from(fd).ok()?)
}

/// Whether a child that shares the memory has changed its own descriptors, which the table does not know.
static CHILD_DIFFERS: AtomicBool = AtomicBool::new(false);

/// Whether the table may belong to another process than the caller, which is then a child that
/// shares the memory. Costs a system call now and then, but only once such a child has changed one
/// of its descriptors that are ours here.
#[inline(always)]
pub(crate) fn may_differ() -> bool {
    CHILD_DIFFERS.load(Ordering::Relaxed) && is_memory_borrowed()
}

/// Forgets all that is known for messages that this process runs itself.
#[cold]
pub(crate) fn forget_direct() {
    let known = DIRECT.iter().filter(|direct| direct.load(Ordering::Relaxed) != UNKNOWN);
    known.for_each(|direct| direct.store(UNKNOWN, Ordering::Relaxed));
}

fn entry(fd: c_int) -> Option<&'static AtomicU32> {
    TABLE.get(usize::try_from(fd).ok()?)
}

/// What the table says of a descriptor.
#[inline]
fn hint(fd: c_int) -> Option<OpenId> {
    match entry(fd)?.load(Ordering::Relaxed) {
        0 => None,
        id => Some(OpenId(id)),
    }
}

/// The open file behind a descriptor. The kernel is asked only about one that the table calls an open file.
#[inline]
pub(crate) fn file(fd: c_int) -> Option<OpenId> {
    hint(fd).and_then(|_| find(fd))
}

/// The open spidev node behind a descriptor.
#[inline]
pub(crate) fn node(fd: c_int) -> Option<OpenId> {
    file(fd).filter(|id| id.kind() == FileKind::Node)
}

/// The open file behind a descriptor, by the kernel, whatever the table says.
#[cold]
pub(crate) fn find(fd: c_int) -> Option<OpenId> {
    if fd < 0 {
        return None;
    }
    // SAFETY: used for one call, which fails if there is none.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    let id = of_socket(file);
    // One beyond the table is asked about each time.
    let _ = set(fd, id);
    id
}

/// The open file whose id is in a socket's name.
pub(crate) fn of_socket(file: impl AsFd) -> Option<OpenId> {
    let server = config()?.server.as_str();
    let name = SocketAddrUnix::try_from(getsockname(file).ok()?).ok()?;
    OpenId::of_socket_name(server, name.abstract_name()?)
}

/// Notes what a descriptor is now, unless the caller shares the table with its parent: its descriptors are others.
///
/// # Errors
/// `EMFILE` for an open node whose descriptor is beyond the table.
pub(crate) fn set(fd: c_int, id: Option<OpenId>) -> Result<(), Errno> {
    let Some(entry) = entry(fd) else {
        return if id.is_some() { Err(Errno::MFILE) } else { Ok(()) };
    };
    // First what costs nothing: most descriptors are not ours, before and after.
    if hint(fd) == id {
        return Ok(());
    }
    if is_memory_borrowed() {
        CHILD_DIFFERS.store(true, Ordering::Relaxed);
    } else {
        if let Some(direct) = direct(fd) {
            direct.store(UNKNOWN, Ordering::Relaxed);
        }
        entry.store(id.map_or(0, |id| id.0), Ordering::Relaxed);
    }
    Ok(())
}

/// Notes that a copy of a descriptor has the original's open file.
///
/// # Errors
/// As [`set`].
pub(crate) fn copy(from: c_int, to: c_int) -> Result<(), Errno> {
    set(to, hint(from))
}

/// Forgets a descriptor that is being closed.
pub(crate) fn forget(fd: c_int) {
    // Without an open file, nothing fails.
    let _ = set(fd, None);
}

/// [`forget`] of all from `first` to `last`.
pub(crate) fn forget_all(first: u32, last: u32) {
    let first = first as usize;
    let end = (last as usize).saturating_add(1).min(MAX);
    for fd in first..end {
        // Below `MAX`.
        forget(fd as c_int);
    }
}
