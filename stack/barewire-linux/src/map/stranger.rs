//! Finds a process that has a controller's registers mapped and takes no part in the lock: one of an older version
//! of this crate, or a program of another kind.
//!
//! # How it works
//! `/proc/PID/maps` lists what a process has mapped, each with the file and the offset in it. A process that takes
//! part in the lock has the lock's file mapped, from before it maps the registers until after it unmaps them. A
//! forked child inherits both mappings from its parent.
//!
//! One look at all processes took 4 to 16 ms on an x86-64 machine with 92 of them. So if an opener has looked
//! already, a process that joins it ([`Mapped::join`](super::Mapped::join)) does not look again.
//!
//! # Not supported
//! Processes that `/proc` does not show to this user: those of other users if this user is not root, and those in
//! containers that do not descend from this one. A process that maps the registers later and unmaps them before the bus
//! is closed: only each opening and [`Watch::final_check`](super::Watch::final_check) look.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{major, minor};

use super::MapError;
use crate::root::Root;
use crate::shared::{BusUser, SharedLock};

/// How often a process is looked at before it counts as a stranger, since a list that changes is not
/// read at one moment.
const LOOKS: u32 = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// The mappings that the lists of processes are searched for.
#[derive(Clone, Debug)]
pub(super) struct Search {
    root: Root,
    address: u64,
    /// The UIO device that has it.
    uio: Option<String>,
    /// The lock's device and inode, as the lists have them, and its path.
    lock: (String, String),
    lock_path: PathBuf,
}

impl Search {
    /// A search for a process that has the controller at `address` mapped without having `lock` mapped. `uio` is the
    /// UIO device that has the controller.
    pub(super) fn new(root: &Root, address: u64, uio: Option<String>, lock: &SharedLock) -> Self {
        let id = |file: Metadata| {
            let dev = file.dev();
            (format!("{:02x}:{:02x}", major(dev), minor(dev)), file.ino().to_string())
        };
        Self {
            root: root.clone(),
            address,
            uio,
            lock: lock.file().metadata().map(id).unwrap_or_default(),
            lock_path: lock.path().to_owned(),
        }
    }

    /// Fails if there is one.
    pub(super) fn refuse(&self) -> Result<(), MapError> {
        let processes = self.root.names("/proc").into_iter();
        let mut others = processes
            .filter_map(|name| name.parse::<u32>().ok())
            .filter(|&process| process != std::process::id());
        match others.find(|&process| self.finds(process)) {
            None => Ok(()),
            Some(process) => {
                let (user, lock) = (BusUser::of(process), self.lock_path.clone());
                Err(MapError::Stranger { address: self.address, user, lock })
            }
        }
    }

    fn finds(&self, process: u32) -> bool {
        (0..LOOKS).all(|look| {
            if look > 0 {
                thread::sleep(BETWEEN_LOOKS);
            }
            let maps = self.root.bytes(format!("/proc/{process}/maps"));
            maps.is_ok_and(|maps| self.is_stranger(&String::from_utf8_lossy(&maps)))
        })
    }

    /// Whether the list `maps` has the controller and not the lock.
    fn is_stranger(&self, maps: &str) -> bool {
        let found = maps.lines().filter_map(|line| self.find(line));
        let (mut mapped, mut locked) = (false, false);
        for is_lock in found {
            mapped |= !is_lock;
            locked |= is_lock;
        }
        mapped && !locked
    }

    /// Checks one line: `7f00-7f01 rw-s 30820000 00:05 4    /dev/mem`.
    fn find(&self, line: &str) -> Option<bool> {
        let mut words = line.split_ascii_whitespace();
        let (range, _, offset) = (words.next()?, words.next(), words.next()?);
        let (dev, inode) = (words.next()?, words.next()?);
        // With ` (deleted)`, if it was removed.
        let path = words.collect::<Vec<_>>().join(" ");
        if (dev, inode) == (&self.lock.0, &self.lock.1) || Path::new(&path) == self.lock_path {
            return Some(true);
        }
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (begin, end) = range.split_once('-')?;
        let (offset, len) = (hex(offset)?, hex(end)?.checked_sub(hex(begin)?)?);
        let page = self.address - self.address % crate::sys::page_size() as u64;
        let by_memory = path == "/dev/mem" && (offset..offset.saturating_add(len)).contains(&page);
        let by_uio = self.uio.as_ref() == Some(&path) && offset == 0;
        (by_memory || by_uio).then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTERS: &str = "7f10-17f10 rw-s 30820000 00:05 4    /dev/mem\n";

    fn is_stranger(maps: &str) -> bool {
        let search = Search {
            root: Root::system(),
            address: 0x3082_0004,
            uio: Some("/dev/uio0".into()),
            lock: ("00:19".into(), "42".into()),
            lock_path: "/run/lock/barewire-30820000.lock".into(),
        };
        search.is_stranger(maps)
    }

    #[test]
    fn who_has_the_registers_has_the_lock_or_is_a_stranger() {
        let lock = "7f00-7f01 rw-s 00000000 00:19 42    /run/lock/barewire-30820000.lock\n";
        assert!(is_stranger(REGISTERS));
        assert!(!is_stranger(&format!("{REGISTERS}{lock}")));
        assert!(!is_stranger(&format!("{lock}{REGISTERS}")));
        let elsewhere = lock.replace("00:19 42", "00:2a 7");
        assert!(!is_stranger(&format!("{elsewhere}{REGISTERS}")), "by its path");
        let removed = elsewhere.replace(".lock\n", ".lock (deleted)\n");
        assert!(is_stranger(&format!("{removed}{REGISTERS}")), "of a file that was removed");
    }

    #[test]
    fn the_page_counts_in_whatever_part_of_the_memory() {
        assert!(is_stranger("1000-3000 rw-s 3081f000 00:05 4    /dev/mem\n"));
        assert!(!is_stranger("1000-2000 rw-s 3081f000 00:05 4    /dev/mem\n"), "the page before");
        assert!(!is_stranger("1000-2000 rw-s 30821000 00:05 4    /dev/mem\n"), "the page behind");
        assert!(is_stranger("1000-2000 rw-s 00000000 00:05 9    /dev/uio0\n"));
        assert!(!is_stranger("1000-2000 rw-s 00001000 00:05 9    /dev/uio0\n"), "another map");
        assert!(!is_stranger("1000-2000 rw-s 00000000 00:05 9    /dev/uio1\n"));
        assert!(!is_stranger("1000-2000 r--p 00000000 00:00 0\nheap\n"));
    }
}
