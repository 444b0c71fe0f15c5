//! Finds the SPI buses of this machine, for `barewire list`.

use rustix::fs::{Access, access};

use crate::map::device::{PlatformDevice, bus_number, spi_controllers};
use crate::map::{MapError, UioMap, door, uio};
use crate::root::Root;
use crate::spidev;

/// One way to reach a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// A spidev node: one chip select of a controller with a kernel driver.
    Spidev {
        /// The node, as `/dev/spidevB.C`.
        path: String,
        /// Whether this user may read and write it.
        accessible: bool,
    },
    /// A UIO device. Whether it is an SPI controller must be judged by its registers' addresses.
    Uio {
        /// The node, as `/dev/uioN`.
        path: String,
        /// Its device's name.
        name: String,
        /// Its register blocks; empty if sysfs does not describe them.
        maps: Vec<UioMap>,
        /// Whether this user may read and write it.
        accessible: bool,
    },
    /// A controller that the kernel module gives to programs.
    Door {
        /// The node, as `/dev/barewireN`.
        path: String,
        /// The address of its registers, by its device's name.
        address: Option<u64>,
        /// Why this user may not read and write it.
        refusal: Option<MapError>,
    },
    /// A controller of the SoC.
    Controller {
        /// Its device, and the kernel driver bound to it.
        device: PlatformDevice,
        /// The kernel's number of its bus: the B of its `spidevB.C` nodes.
        bus: Option<u32>,
    },
}

/// Searches `root` for spidev nodes, UIO devices, the kernel module's devices and SPI controllers, in this order.
#[must_use]
pub fn discover(root: &Root) -> Vec<Found> {
    let accessible =
        |path: &str| access(root.path(path), Access::READ_OK | Access::WRITE_OK).is_ok();
    let mut found = Vec::new();
    for path in spidev::nodes(root) {
        found.push(Found::Spidev { accessible: accessible(&path), path });
    }
    for path in uio::nodes(root) {
        let node = path.strip_prefix("/dev/").unwrap_or(&path);
        found.push(Found::Uio {
            accessible: accessible(&path),
            name: uio::device_name(root, node),
            maps: uio::maps(root, node).unwrap_or_default(),
            path,
        });
    }
    for path in door::nodes(root) {
        // Opening one that may be opened would take it.
        let refusal = (!accessible(&path)).then(|| door::refusal(root, &path)).flatten();
        found.push(Found::Door { refusal, address: door::address_of(root, &path), path });
    }
    for device in spi_controllers(root) {
        let bus = bus_number(root, &device);
        found.push(Found::Controller { device, bus });
    }
    found
}
