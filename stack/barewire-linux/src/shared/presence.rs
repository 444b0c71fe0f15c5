//! The processes that have a lock's file open, and whether one has it alone.
//!
//! Read first: flock(2); fcntl(2), *Open file description locks*; pid_namespaces(7).
//!
//! # How it works
//! An opener holds a flock(2) on the file until it closes the file or ends. The flock is shared, or exclusive for
//! an opener that wants the controller for itself. An opener that finds no other resets the state that the last
//! users left: the lock, and the [origin](super::origin) whose thread ids it has. So a holder that a power cut ended, or a
//! namespace without users left, does not exclude anyone. A namespace with users excludes all others.
//!
//! # Ordering
//! 1. Acquire the gate, an open file description lock, which each opener holds while it enters. So the steps below
//!    are one step to other openers, and flock(2) may release one kind before it gives the other.
//! 2. Try the exclusive lock. If it is free, reset the file.
//! 3. Change it to a shared one, unless the opener wants to be alone.
//! 4. Compare the origin. From here on no other opener resets it.
//! 5. Release the gate.

use std::fmt;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock, major, minor};
use rustix::io::Errno;

use super::retry::until_free;
use crate::sys::record;

/// How long other openers may have the gate, which takes them microseconds.
const GATE_AT_MOST: Duration = Duration::from_secs(2);

/// A process that uses a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusUser {
    /// Its id.
    pub process: u32,
    /// The program it runs; empty if `/proc` does not tell.
    pub name: String,
}

impl BusUser {
    /// The process with that id.
    pub(crate) fn of(process: u32) -> Self {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        Self { process, name: name.trim_end().to_owned() }
    }
}

/// A list of processes, as text.
pub(crate) struct UserNames<'u>(pub(crate) &'u [BusUser]);

impl fmt::Display for UserNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(
                "a process that /proc does not show here (in a container, or another user's)",
            );
        }
        for (index, BusUser { process, name }) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}process {process}")?;
            if !name.is_empty() {
                write!(f, " ({name})")?;
            }
        }
        Ok(())
    }
}

/// The right to enter.
pub(super) struct Gate<'f>(&'f File);

impl<'f> Gate<'f> {
    /// Step 1.
    pub(super) fn acquire(file: &'f File) -> Result<Self, Errno> {
        let mut patient = Some(|waited| match waited < GATE_AT_MOST {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        });
        match until_free(&mut None, &mut patient, || record::try_acquire(file)) {
            Err(Errno::INTR) => Err(Errno::TIMEDOUT),
            acquired => acquired.map(|()| Self(file)),
        }
    }

    /// Acquires the lock of that kind, if no other opener prevents it.
    pub(super) fn try_lock(&self, exclusive: bool) -> Result<bool, Errno> {
        let kind = match exclusive {
            true => FlockOperation::NonBlockingLockExclusive,
            false => FlockOperation::NonBlockingLockShared,
        };
        match flock(self.0, kind) {
            Err(Errno::WOULDBLOCK) => Ok(false),
            tried => tried.map(|()| true),
        }
    }
}

impl Drop for Gate<'_> {
    /// Step 5.
    fn drop(&mut self) {
        // Cannot fail for an open file; closing the file would release it too.
        let _ = record::release(self.0);
    }
}

/// Whether `path` names that file: it may have been removed, and made anew.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let (there, ours) = (fs::symlink_metadata(path).map(id), file.metadata().map(id));
    matches!((there, ours), (Ok(there), Ok(ours)) if there == ours)
}

/// The processes that have a lock of that file by flock(2), as far as `/proc` shows them.
pub(super) fn users(file: &File) -> Vec<BusUser> {
    let (Ok(table), Ok(metadata)) = (fs::read_to_string("/proc/locks"), file.metadata()) else {
        return Vec::new();
    };
    processes(&table, metadata.dev(), metadata.ino()).into_iter().map(BusUser::of).collect()
}

/// The processes in the table of `/proc/locks`: `1: FLOCK  ADVISORY  READ 71 00:19:42 0 EOF`.
fn processes(table: &str, dev: u64, ino: u64) -> Vec<u32> {
    let place = format!("{:02x}:{:02x}:{ino}", major(dev), minor(dev));
    let holder = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        // A waiting lock has an arrow (`->`) here.
        (words.next() == Some("FLOCK")).then_some(())?;
        let process = words.nth(2)?.parse().ok().filter(|&process| process != 0)?;
        (words.next() == Some(&place)).then_some(process)
    };
    let mut found: Vec<u32> = table.lines().filter_map(holder).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_names_the_holders_of_one_file() {
        let table = "1: FLOCK  ADVISORY  READ 71 00:19:42 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 72 00:19:42 0 EOF\n\
                     2: OFDLCK ADVISORY  WRITE -1 00:19:42 0 EOF\n\
                     3: FLOCK  ADVISORY  READ 71 00:19:42 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 73 00:19:42 0 EOF\n\
                     4: FLOCK  ADVISORY  READ 0 00:19:42 0 EOF\n\
                     5: FLOCK  ADVISORY  WRITE 74 00:19:421 0 EOF\n\
                     6: FLOCK  ADVISORY  READ 8 00:19:42 0 EOF\n";
        assert_eq!(processes(table, rustix::fs::makedev(0, 0x19), 42), [8, 71]);
    }
}
