//! Which kernel driver has a controller.
//!
//! How it works: the kernel names a device of the SoC by its first register's address and its
//! device-tree node (`30820000.spi`; `.ecspi` or `.ssp` in old trees), so that the address finds the
//! directory in `/sys/bus/platform/devices`, or, for ARM's PrimeCells, in `/sys/bus/amba/devices`.
//! Its link `driver` names the driver, its node's `compatible` the block.
//!
//! # Not supported
//! Devices that the kernel names without an address (no device tree), which are not found.

use super::{Block, MapError};
use crate::root::Root;

/// The kernel's buses that have devices of the SoC.
const BUSES: [&str; 2] = ["platform", "amba"];

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
    /// Its name in its bus's directory.
    pub name: String,
    /// The kernel's bus that has it: `platform` or `amba`.
    pub bus: &'static str,
    /// Where its registers begin.
    pub address: u64,
    /// The kernel driver that has it.
    pub driver: Option<String>,
    /// Which of the controllers known here it is, by its node in the device tree.
    pub block: Option<Block>,
}

/// Those that the kernel has under an address.
fn devices(root: &Root) -> impl Iterator<Item = PlatformDevice> {
    BUSES.into_iter().flat_map(move |bus| {
        let names = root.names(format!("/sys/bus/{bus}/devices")).into_iter();
        names.filter_map(move |name| PlatformDevice::named(root, bus, name))
    })
}

impl PlatformDevice {
    /// The device called `name`, if its name has an address.
    fn named(root: &Root, bus: &'static str, name: String) -> Option<Self> {
        let (address, _) = name.split_once('.')?;
        let address = u64::from_str_radix(address, 16).ok()?;
        let mut device = Self { name, bus, address, driver: None, block: None };
        let directory = device.directory();
        device.driver = root.link_name(format!("{directory}/driver"));
        let compatible = root.text(format!("{directory}/of_node/compatible")).ok();
        device.block = compatible.and_then(|compatible| Block::of_compatible(&compatible));
        Some(device)
    }

    /// Where sysfs has it.
    pub(crate) fn directory(&self) -> String {
        format!("/sys/bus/{}/devices/{}", self.bus, self.name)
    }

    /// Whether its name is that of a device of `kind`.
    #[must_use]
    pub fn is(&self, kind: Kind) -> bool {
        let node = self.name.split_once('.').map(|(_, node)| node);
        match kind {
            Kind::Spi => matches!(node, Some("spi" | "ecspi" | "ssp")),
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
        format!("echo {} > /sys/bus/{}/drivers/{driver}/unbind", self.name, self.bus)
    }
}

/// The devices whose registers begin at `address`.
#[must_use]
pub fn devices_at(root: &Root, address: u64) -> Vec<PlatformDevice> {
    devices(root).filter(|device| device.address == address).collect()
}

/// The SPI controllers among the devices.
#[must_use]
pub fn spi_controllers(root: &Root) -> Vec<PlatformDevice> {
    devices(root).filter(|device| device.is(Kind::Spi)).collect()
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

/// Refuses `address` if by the device tree another of the blocks known here is there. Of a block that
/// it does not name nothing is known, and nothing said.
///
/// # Errors
/// [`MapError::OtherBlock`].
pub fn refuse_other_block(root: &Root, address: u64, wanted: Block) -> Result<(), MapError> {
    let mut devices = devices_at(root, address).into_iter();
    let other = devices
        .find_map(|device| device.block.filter(|&block| block != wanted).map(|is| (device, is)));
    match other {
        Some((device, is)) => Err(MapError::OtherBlock { device, is, wanted }),
        None => Ok(()),
    }
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
