//! Which kernel driver has a controller.
//!
//! How it works: the kernel names a platform device by its first register's address and its
//! device-tree node (`30820000.spi`; `.ecspi` in old trees), so that the address finds the
//! directory in `/sys/bus/platform/devices`, and its link `driver` names the driver.
//!
//! # Not supported
//! Devices that the kernel names without an address (no device tree), which are not found.

use super::MapError;
use crate::root::Root;

const DEVICES: &str = "/sys/bus/platform/devices";

/// UIO's drivers: theirs is the way we come by ourselves.
const UIO_DRIVERS: [&str; 2] = ["uio_pdrv_genirq", "uio_dmem_genirq"];

/// What a device is, by its node's name in the device tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An SPI controller.
    Spi,
    /// A GPIO bank.
    Gpio,
}

/// A device of the SoC, by its registers' address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformDevice {
    /// Its name in `/sys/bus/platform/devices`.
    pub name: String,
    /// Where its registers begin.
    pub address: u64,
    /// The kernel driver that has it.
    pub driver: Option<String>,
}

impl PlatformDevice {
    /// The device called `name`, if its name has an address.
    fn named(root: &Root, name: String) -> Option<Self> {
        let (address, _) = name.split_once('.')?;
        let address = u64::from_str_radix(address, 16).ok()?;
        let driver = root.link_name(format!("{DEVICES}/{name}/driver"));
        Some(Self { name, address, driver })
    }

    /// Whether its name is that of a device of `kind`.
    #[must_use]
    pub fn is(&self, kind: Kind) -> bool {
        let node = self.name.split_once('.').map(|(_, node)| node);
        match kind {
            Kind::Spi => matches!(node, Some("spi" | "ecspi")),
            Kind::Gpio => node == Some("gpio"),
        }
    }

    /// The kernel driver that must let go before the registers can be ours.
    #[must_use]
    pub fn rival(&self) -> Option<&str> {
        self.driver.as_deref().filter(|driver| !UIO_DRIVERS.contains(driver))
    }

    /// What makes `driver` let go, as root types it.
    #[must_use]
    pub fn unbind_command(&self, driver: &str) -> String {
        format!("echo {} > /sys/bus/platform/drivers/{driver}/unbind", self.name)
    }
}

/// The devices whose registers begin at `address`.
#[must_use]
pub fn devices_at(root: &Root, address: u64) -> Vec<PlatformDevice> {
    let all = root.names(DEVICES).into_iter();
    all.filter_map(|name| PlatformDevice::named(root, name))
        .filter(|device| device.address == address)
        .collect()
}

/// The SPI controllers among the platform devices.
#[must_use]
pub fn spi_controllers(root: &Root) -> Vec<PlatformDevice> {
    let all = root.names(DEVICES).into_iter();
    all.filter_map(|name| PlatformDevice::named(root, name))
        .filter(|device| device.is(Kind::Spi))
        .collect()
}

/// Refuses `address` if the kernel knows a device there, and by its name none of `kind`.
///
/// # Errors
/// [`MapError::OtherDevice`].
pub fn refuse_other_device(root: &Root, address: u64, kind: Kind) -> Result<(), MapError> {
    let mut devices = devices_at(root, address);
    if devices.is_empty() || devices.iter().any(|device| device.is(kind)) {
        return Ok(());
    }
    Err(MapError::OtherDevice { device: devices.swap_remove(0), wanted: kind })
}

/// Refuses the registers at `address` if a kernel driver other than UIO's has them.
///
/// # Errors
/// [`MapError::Bound`], with the command that releases them.
pub fn refuse_if_bound(root: &Root, address: u64) -> Result<(), MapError> {
    for device in devices_at(root, address) {
        if let Some(driver) = device.rival() {
            let driver = driver.to_owned();
            return Err(MapError::Bound { device, driver });
        }
    }
    Ok(())
}
