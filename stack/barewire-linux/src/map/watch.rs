//! Whether a kernel driver has come back to a controller that is mapped here.
//!
//! Nothing keeps `echo … > bind` away from a controller that a process drives, and nobody tells that
//! process: both drive one FIFO, and both may end without an error and with wrong data.
//!
//! How it works: a bound driver is a link `driver` in the device's directory in sysfs. A driver that
//! was bound and has gone again, or whose probe failed after it had touched the registers, leaves none.
//! But each link made or removed changes the directory's time of modification, if the kernel keeps
//! that: it does from the first `chmod` on (`kernfs_add_one()` of `fs/kernfs/dir.c`, Linux 6.1, writes
//! it to the attributes that `kernfs_iop_setattr()` makes). So [`Watch::new`] sets the directory's mode to
//! what it is, for which it must be root; without, only a driver that is still there is seen.
//!
//! A look costs two or three system calls. Messages look at nothing: look every 100 ms
//! ([`Watch::INTERVAL`]), and once at the end, before the data is believed.
//!
//! # Not supported
//! Undoing harm: what went over the wire between a driver's coming and the next look may be wrong, in
//! this process and in the kernel's.

use std::fs;
use std::time::{Duration, SystemTime};

use rustix::io::Errno;

use super::MapError;
use super::bound::{PlatformDevice, devices_in};
use crate::gpio::CsFault;
use crate::root::Root;

/// Looks whether a controller is still ours.
#[derive(Clone, Debug)]
pub struct Watch {
    root: Root,
    address: u64,
    len: u32,
    /// The devices of the kernel there, each with its directory's time of modification.
    devices: Vec<(PlatformDevice, Option<SystemTime>)>,
    /// Where a controller is told that its messages are none.
    fault: CsFault,
}

impl Watch {
    /// How often to look: wrong data is seen within this time.
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
        Self { root: root.clone(), address, len, devices, fault: CsFault::default() }
    }

    /// The same, and the controller that takes `fault` has its messages fail once it is not ours.
    pub(super) fn telling(self, fault: CsFault) -> Self {
        Self { fault, ..self }
    }

    /// Fails if a driver was bound since [`Watch::new`]. The controller's next message then fails too,
    /// with [`Error::Os`](barewire::spi::Error::Os) (`EBUSY`).
    ///
    /// # Errors
    /// [`MapError::TakenBack`].
    pub fn still_ours(&self) -> Result<(), MapError> {
        let looked = self.devices.iter().try_for_each(|(device, begun)| self.look(device, *begun));
        looked.inspect_err(|_| self.fault.told(Err(Errno::BUSY)))
    }

    /// [`Watch::still_ours`], which also sees devices that the kernel did not know at the beginning: it
    /// reads whole directories.
    ///
    /// # Errors
    /// [`MapError::TakenBack`].
    pub fn still_ours_at_the_end(&self) -> Result<(), MapError> {
        self.still_ours()?;
        let mut now = devices_in(&self.root, self.address, self.len).into_iter();
        match now.find_map(|device| Some((device.rival()?.to_owned(), device))) {
            Some((driver, device)) => {
                Err(MapError::TakenBack { device: device.into(), driver: Some(driver) })
            }
            None => Ok(()),
        }
    }

    fn look(&self, device: &PlatformDevice, begun: Option<SystemTime>) -> Result<(), MapError> {
        let directory = device.directory();
        let driver = self.root.link_name(format!("{directory}/driver"));
        let now = PlatformDevice { driver, ..device.clone() };
        let modified = fs::metadata(self.root.path(&directory)).and_then(|it| it.modified()).ok();
        let rival = now.rival().map(str::to_owned);
        if rival.is_none() && (begun.is_none() || modified == begun) {
            return Ok(());
        }
        Err(MapError::TakenBack { device: now.into(), driver: rival })
    }
}
