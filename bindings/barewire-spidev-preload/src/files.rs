//! Which descriptors are open nodes, GPIO chips and lines.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, Ordering};

use barewire_spidev_abi::protocol::{FileKind, OpenId};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, getsockname};
use rustix::process::{Pid, getpid};

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

/// The process that the table is of.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// The calling process owns the table: it loaded the library, or is a copy of one that did.
pub(crate) extern "C" fn own() {
    OWNER.store(Pid::as_raw(Some(getpid())), Ordering::Relaxed);
}

fn entry(fd: c_int) -> Option<&'static AtomicU32> {
    TABLE.get(usize::try_from(fd).ok()?)
}

/// The open file behind a descriptor.
#[inline]
pub(crate) fn file(fd: c_int) -> Option<OpenId> {
    match entry(fd)?.load(Ordering::Relaxed) {
        0 => None,
        id => Some(OpenId(id)),
    }
}

/// The open spidev node behind a descriptor.
#[inline]
pub(crate) fn node(fd: c_int) -> Option<OpenId> {
    file(fd).filter(|id| id.kind() == FileKind::Node)
}

/// The open file behind a descriptor that another process may have passed on.
pub(crate) fn find(fd: c_int) -> Option<OpenId> {
    file(fd).or_else(|| {
        if fd < 0 {
            return None;
        }
        // SAFETY: used for one call, which fails if there is none.
        let file = unsafe { BorrowedFd::borrow_raw(fd) };
        let id = of_socket(file)?;
        set(fd, Some(id)).ok()?;
        Some(id)
    })
}

/// The open file whose id is in a socket's name.
pub(crate) fn of_socket(file: impl AsFd) -> Option<OpenId> {
    let server = config()?.server.as_str();
    let name = SocketAddrUnix::try_from(getsockname(file).ok()?).ok()?;
    OpenId::of_socket_name(server, name.abstract_name()?)
}

/// Notes what a descriptor is now.
///
/// # Errors
/// `EMFILE` for an open node whose descriptor is beyond the table.
pub(crate) fn set(fd: c_int, id: Option<OpenId>) -> Result<(), Errno> {
    match (entry(fd), id) {
        (Some(entry), id) => {
            if let Some(direct) = direct(fd) {
                direct.store(UNKNOWN, Ordering::Relaxed);
            }
            entry.store(id.map_or(0, |id| id.0), Ordering::Relaxed);
            Ok(())
        }
        (None, None) => Ok(()),
        (None, Some(_)) => Err(Errno::MFILE),
    }
}

/// Forgets a descriptor that is being closed, unless the caller shares the table with its parent and has
/// descriptors of its own.
pub(crate) fn forget(fd: c_int) {
    if file(fd).is_some() && OWNER.load(Ordering::Relaxed) == Pid::as_raw(Some(getpid())) {
        // An entry that is there.
        let _ = set(fd, None);
    }
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
