//! Notices whether a kernel driver was bound to a controller that is mapped here.
//!
//! Nothing prevents `echo … > bind` for a controller that a process drives, and the process is not
//! notified. Both then drive one FIFO, and both may end without an error and with wrong data.
//!
//! A bound driver is a link `driver` in the device's sysfs directory. A driver that was bound and
//! unbound again, or whose probe failed after it had accessed the registers, leaves no link. But
//! each link that is made or removed changes the directory's modification time, if the kernel
//! stores one. It does so after the first `chmod` of the directory (`kernfs_add_one()` in
//! `fs/kernfs/dir.c`, Linux 6.1, updates the attributes that `kernfs_iop_setattr()` makes). So
//! [`Watch::new`] sets the directory's mode to its present value, for which it must be root.
//! Without root, only a driver that is still bound is noticed.
//!
//! A check costs two or three system calls. Messages do not check: the caller checks every 100 ms
//! ([`Watch::INTERVAL`]), and once more at the end, before it trusts the data.
//!
//! # Not supported
//! A file of the lock that was replaced within a check's time and put back. Undoing damage: what was transferred between the driver's binding and the next check may be
//! wrong, in this process and in the kernel.

use std::fs;
use std::time::{Duration, SystemTime};

use rustix::io::Errno;

use super::MapError;
use super::device::{PlatformDevice, devices_in};
use super::stranger::Search;
use crate::gpio::CsFault;
use crate::root::Root;
use crate::shared::LockFile;

/// Checks whether a controller is still ours.
#[derive(Clone, Debug)]
pub struct Watch {
    root: Root,
    address: u64,
    len: u32,
    /// The kernel's devices there, each with its directory's modification time.
    devices: Vec<(PlatformDevice, Option<SystemTime>)>,
    /// Where the controller learns that its messages must fail.
    fault: CsFault,
    search: Option<Search>,
    lock: Option<LockFile>,
    /// The kernel's driver that is to be bound.
    own: Option<&'static str>,
}

impl Watch {
    /// How often to check: wrong data is noticed within this time.
    pub const INTERVAL: Duration = Duration::from_millis(100);

    /// Begins to watch `len` bytes of registers at `address`.
    #[must_use]
    pub fn new(root: &Root, address: u64, len: u32) -> Self {
        let mut devices = Vec::new();
        for device in devices_in(root, address, len) {
            let directory = root.path(device.directory());
            let metadata = fs::metadata(&directory);
            let begun = metadata.and_then(|metadata| {
                fs::set_permissions(&directory, metadata.permissions())?;
                fs::metadata(&directory)?.modified()
            });
            devices.push((device, begun.ok()));
        }
        Self {
            root: root.clone(),
            address,
            len,
            devices,
            fault: CsFault::default(),
            search: None,
            lock: None,
            own: None,
        }
    }

    /// Takes the driver `own` for what gives the controller to this process, and its absence for the end.
    pub(super) fn beside(self, own: Option<&'static str>) -> Self {
        Self { own, ..self }
    }

    /// Watches the lock's file too.
    pub(super) fn locked_by(self, lock: LockFile) -> Self {
        Self { lock: Some(lock), ..self }
    }

    /// Makes the final check look for a process without the lock, too.
    pub(super) fn searching(self, search: Option<Search>) -> Self {
        Self { search, ..self }
    }

    /// Makes the controller that shares `fault` fail its messages once it is not ours.
    pub(super) fn telling(self, fault: CsFault) -> Self {
        Self { fault, ..self }
    }

    /// Fails if a driver was bound since [`Watch::new`], or the file of the lock was replaced, so that a process
    /// that opens the bus now gets another lock. The controller's next message then fails too, with [`Error::Os`](barewire::spi::Error::Os) (`EBUSY`).
    ///
    /// # Errors
    /// [`MapError::TakenBack`]; [`MapError::Lock`].
    pub fn still_ours(&self) -> Result<(), MapError> {
        let looked = self.devices.iter().try_for_each(|(device, begun)| self.look(device, *begun));
        let lock = || self.lock.as_ref().map_or(Ok(()), LockFile::still_there);
        let looked = looked.and_then(|()| lock().map_err(MapError::Lock));
        looked.inspect_err(|_| self.fault.told(Err(Errno::BUSY)))
    }

    /// [`Watch::still_ours`] that also notices devices which the kernel did not know at the
    /// beginning, and a process that has the controller without the lock: it reads whole directories.
    ///
    /// # Errors
    /// Those of [`Watch::still_ours`]; [`MapError::Stranger`].
    pub fn final_check(&self) -> Result<(), MapError> {
        self.still_ours()?;
        let mut now = devices_in(&self.root, self.address, self.len).into_iter();
        match now.find_map(|device| Some((self.rival(&device)?.to_owned(), device))) {
            Some((driver, device)) => {
                Err(MapError::TakenBack { device: device.into(), driver: Some(driver) })
            }
            None => self.search.as_ref().map_or(Ok(()), Search::refuse),
        }
    }

    fn rival<'d>(&self, device: &'d PlatformDevice) -> Option<&'d str> {
        device.rival().filter(|&driver| Some(driver) != self.own)
    }

    fn look(&self, device: &PlatformDevice, begun: Option<SystemTime>) -> Result<(), MapError> {
        let directory = device.directory();
        let driver = self.root.link_name(format!("{directory}/driver"));
        let now = PlatformDevice { driver, ..device.clone() };
        let modified = fs::metadata(self.root.path(&directory)).and_then(|it| it.modified()).ok();
        let rival = self.rival(&now).map(str::to_owned);
        let is_gone = self.own.is_some() && self.own != now.driver.as_deref();
        if rival.is_none() && !is_gone && (begun.is_none() || modified == begun) {
            return Ok(());
        }
        Err(MapError::TakenBack { device: now.into(), driver: rival })
    }
}
