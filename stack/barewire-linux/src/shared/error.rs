//! Errors of a lock's file, with a remedy.

use std::fmt;
use std::path::PathBuf;

use rustix::io::Errno;

use super::presence::{BusUser, UserNames};

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SharedError {
    /// The device whose owner and mode the file should get cannot be examined.
    Like {
        /// The device.
        path: PathBuf,
        /// Why.
        errno: Errno,
    },
    /// The file's directory does not exist.
    NoDirectory {
        /// The file.
        path: PathBuf,
    },
    /// This user may not open or create the file.
    NoPermission {
        /// The file.
        path: PathBuf,
        /// The device it is for.
        like: PathBuf,
    },
    /// The new file cannot be given the device's group.
    Group {
        /// The file.
        path: PathBuf,
        /// The device's group.
        gid: u32,
        /// Why.
        errno: Errno,
    },
    /// The file may be written by users who may not write the device.
    Untrusted {
        /// The file.
        path: PathBuf,
        /// The device it is for.
        like: PathBuf,
        /// The reason why the file cannot be used.
        why: &'static str,
    },
    /// The file is not a lock.
    NotALock {
        /// The path.
        path: PathBuf,
    },
    /// A different version of this crate made the file.
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The version of this program.
        ours: char,
    },
    /// A program with another layout of the mutex made the file.
    Layout {
        /// The file.
        path: PathBuf,
        /// That program's layout.
        found: String,
        /// This program's layout.
        ours: String,
    },
    /// The file has the wrong length.
    Size {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        bytes: u64,
        /// The right length in bytes.
        expected: u64,
    },
    /// Another opener holds the bus exclusively.
    Exclusive {
        /// The file.
        path: PathBuf,
        /// The opener, if `/proc` shows it.
        users: Vec<BusUser>,
    },
    /// The bus is wanted alone, and others have it open.
    InUse {
        /// The file.
        path: PathBuf,
        /// The others, as far as `/proc` shows them.
        users: Vec<BusUser>,
    },
    /// The processes that have the bus open are in another PID namespace.
    Namespace {
        /// The file.
        path: PathBuf,
        /// The user who opened it first.
        user: u32,
    },
    /// The processes that have the bus open belong to another boot: they run on another machine
    /// that shares the file system.
    Boot {
        /// The file.
        path: PathBuf,
        /// The user who opened it first.
        user: u32,
    },
    /// This process's boot or PID namespace is not known.
    NoOrigin {
        /// The file.
        path: PathBuf,
        /// Why.
        errno: Errno,
    },
    /// The file was removed, replaced or overwritten while this process uses the bus.
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// The system has no such lock, or the one in the file cannot be acquired.
    Mutex {
        /// The file.
        path: PathBuf,
        /// The system's error.
        errno: Errno,
    },
    /// Any other error of the system.
    Os {
        /// The file.
        path: PathBuf,
        /// The operation that failed.
        what: &'static str,
        /// The system's error.
        errno: Errno,
    },
}

const REMOVE: &str = "remove it while no process uses the bus";

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Like { path, errno } => write!(
                f,
                "the lock gets the owner and permissions of {}, which cannot be examined: {errno}",
                path.display()
            ),
            Self::NoDirectory { path } => write!(
                f,
                "there is no directory for the lock {}: make it, or name another file (shared=/PATH in the bus's name)",
                path.display()
            ),
            Self::NoPermission { path, like } => write!(
                f,
                "the lock {} may not be opened or made by this user: let root open the bus once, which gives it the rights of {}, or name a file elsewhere (shared=/PATH in the bus's name)",
                path.display(),
                like.display()
            ),
            Self::Group { path, gid, errno } => write!(
                f,
                "the lock {} cannot be given to group {gid}, as the device is: {errno}; become a member of the group, or let root open the bus first",
                path.display()
            ),
            Self::Untrusted { path, like, why } => write!(
                f,
                "the lock {} {why}, unlike {}: a user who may write it can stop the bus; {REMOVE}",
                path.display(),
                like.display()
            ),
            Self::NotALock { path } => {
                write!(f, "{} is not a lock of barewire: name another file", path.display())
            }
            Self::Version { path, found, ours } => write!(
                f,
                "the lock {} is of version {found}, this program's are of version {ours}: use one version of barewire, or {REMOVE}",
                path.display()
            ),
            Self::Layout { path, found, ours } => write!(
                f,
                "the lock {} was made by a program for {found:?}, this one is for {ours:?}: programs that share a bus must be built for one target; {REMOVE}",
                path.display()
            ),
            Self::Size { path, bytes, expected } => write!(
                f,
                "the lock {} has {bytes} bytes instead of {expected}: {REMOVE}",
                path.display()
            ),
            Self::Exclusive { path, users } => write!(
                f,
                "the bus is in use by {}, which has it alone (exclusive): wait until it ends, or start it without exclusive (lock {})",
                UserNames(users),
                path.display()
            ),
            Self::InUse { path, users } => write!(
                f,
                "the bus cannot be had alone (exclusive): it is in use by {}: wait until no other process uses it, or leave exclusive out (lock {})",
                UserNames(users),
                path.display()
            ),
            Self::Namespace { path, user } => write!(
                f,
                "the bus is in use by processes of another PID namespace (a container; first by user {user}), which cannot share a lock with this one (lock {}): end them, or run this program in their namespace (nsenter --pid, docker --pid)",
                path.display()
            ),
            Self::Boot { path, user } => write!(
                f,
                "the lock {} is in use by processes of another boot or machine (first by user {user}), which cannot share a lock with this one: put it on a file system of this machine (shared=/PATH in the bus's name)",
                path.display()
            ),
            Self::NoOrigin { path, errno } => write!(
                f,
                "the lock {} cannot be shared by a process whose boot and PID namespace are unknown (/proc/sys/kernel/random/boot_id, /proc/self/ns/pid: {errno}): mount /proc",
                path.display()
            ),
            Self::Replaced { path } => write!(
                f,
                "the lock {} was removed, replaced or overwritten while the bus is in use: processes that open the bus now do not see this one; end all of them, and open the bus again",
                path.display()
            ),
            Self::Mutex { path, errno: Errno::CHILD } => write!(
                f,
                "the lock {} is not for a child that shares its parent's memory (vfork, CLONE_VM): use fork, or exec first",
                path.display()
            ),
            Self::Mutex { path, errno: Errno::SRCH } => write!(
                f,
                "the lock {} is held by a thread that there is not: another program wrote into it; end all processes that use the bus, the next one repairs it",
                path.display()
            ),
            Self::Mutex { path, errno } => {
                write!(f, "the lock {} cannot be acquired by this thread: {errno}", path.display())
            }
            Self::Os { path, what, errno } => {
                write!(f, "the lock {} could not be {what}: {errno}", path.display())
            }
        }
    }
}

impl std::error::Error for SharedError {}
