//! Which kernel driver has a controller.
//!
//! How it works: the kernel names a device of the SoC by its first register's address and its
//! device-tree node (`30820000.spi`; `.ecspi` or `.ssp` in old trees), so that the address finds the
//! directory in `/sys/bus/platform/devices`, or, for ARM's PrimeCells, in `/sys/bus/amba/devices`.
//! Its link `driver` names the driver, its node's `compatible` the block. How far its registers reach
//! says the file `resource` of a PrimeCell, and the node's `reg` of another, whose first entry is at
//! the address in the name: the node's own addresses may be another bus's. A node with `ranges` is a
//! bus: its range holds its children's, and is nobody's registers.
//!
//! # Not supported
//! Devices that the kernel names without an address (no device tree), which are not found; ranges of
//! devices without `reg` and `resource`, which are found by their first address alone.

use super::{Block, MapError, node};
use crate::root::Root;
use crate::soc;

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
    /// Its registers, as far as that is known: each range's first and last byte.
    pub ranges: Vec<(u64, u64)>,
}

/// Those that the kernel has under an address `wanted`.
fn devices(root: &Root, wanted: impl Fn(u64) -> bool) -> Vec<PlatformDevice> {
    let found = soc::devices(root, wanted).into_iter();
    found
        .map(|soc::Found { bus, address, name }| PlatformDevice::named(root, bus, address, name))
        .collect()
}

impl PlatformDevice {
    /// The device called `name`, which has `address` in it.
    fn named(root: &Root, bus: &'static str, address: u64, name: String) -> Self {
        let ranges = Vec::new();
        let mut device = Self { name, bus, address, driver: None, block: None, ranges };
        let directory = device.directory();
        device.driver = root.link_name(format!("{directory}/driver"));
        let compatible = root.text(format!("{directory}/of_node/compatible")).ok();
        device.block = compatible.and_then(|compatible| Block::of_compatible(&compatible));
        device.ranges = resource(root, &directory)
            .map_or_else(|| node::reg(root, &format!("{directory}/of_node"), address), |r| vec![r]);
        device
    }

    /// Whether `len` bytes at `address` touch its registers. A bus's do not count.
    fn overlaps(&self, root: &Root, address: u64, len: u32) -> bool {
        let last = address.saturating_add(u64::from(len).saturating_sub(1));
        let touched = |&(first, end): &(u64, u64)| address <= end && first <= last;
        let own = (self.address, self.address);
        let touches = self.ranges.iter().chain([&own]).any(touched);
        touches && !root.path(format!("{}/of_node/ranges", self.directory())).exists()
    }

    /// The first range of its registers: its first and last byte.
    #[must_use]
    pub fn range(&self) -> (u64, u64) {
        self.ranges.first().copied().unwrap_or((self.address, self.address))
    }

    /// Where sysfs has it.
    pub(crate) fn directory(&self) -> String {
        soc::directory(self.bus, &self.name)
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
        self.driver.as_deref().filter(|driver| !soc::UIO_DRIVERS.contains(driver))
    }

    /// What makes `driver` let go, as root types it.
    #[must_use]
    pub fn unbind_command(&self, driver: &str) -> String {
        format!("echo {} > /sys/bus/{}/drivers/{driver}/unbind", self.name, self.bus)
    }
}

/// The range of a PrimeCell's registers: the first and last address in its `resource`.
fn resource(root: &Root, directory: &str) -> Option<(u64, u64)> {
    let text = root.text(format!("{directory}/resource")).ok()?;
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let mut numbers = text.split_whitespace().map(hex);
    Some((numbers.next()??, numbers.next()??)).filter(|(first, last)| first <= last)
}

/// The devices whose registers begin at `address`.
#[must_use]
pub fn devices_at(root: &Root, address: u64) -> Vec<PlatformDevice> {
    devices(root, |other| other == address)
}

/// The devices whose registers `len` bytes at `address` touch, those that begin there first.
#[must_use]
pub fn devices_in(root: &Root, address: u64, len: u32) -> Vec<PlatformDevice> {
    let last = address.saturating_add(u64::from(len).saturating_sub(1));
    let mut found = devices(root, |other| other <= last);
    found.retain(|device| device.overlaps(root, address, len));
    found.sort_by_key(|device| device.address != address);
    found
}

/// The SPI controllers among the devices.
#[must_use]
pub fn spi_controllers(root: &Root) -> Vec<PlatformDevice> {
    let mut found = devices(root, |_| true);
    found.retain(|device| device.is(Kind::Spi));
    found
}

/// Refuses `len` bytes at `address` if the kernel knows a device there, and by its name none of `kind`
/// that begins at `address`.
///
/// # Errors
/// * [`MapError::OtherDevice`] if a device there is of another kind.
/// * [`MapError::NotBase`] if one of `kind` is there and begins elsewhere.
pub fn refuse_other_device(
    root: &Root,
    address: u64,
    len: u32,
    kind: Kind,
) -> Result<(), MapError> {
    let mut devices = devices_in(root, address, len);
    let begins = |device: &PlatformDevice| device.address == address && device.is(kind);
    if devices.is_empty() || devices.iter().any(begins) {
        return Ok(());
    }
    let device = match devices.iter().position(|device| device.is(kind)) {
        Some(within) if devices[0].address != address => devices.swap_remove(within),
        _ => {
            let device = devices.swap_remove(0).into();
            return Err(MapError::OtherDevice { device, wanted: kind });
        }
    };
    Err(MapError::NotBase { address, device: device.into(), kind, remedy: None })
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
        Some((device, is)) => Err(MapError::OtherBlock { device: device.into(), is, wanted }),
        None => Ok(()),
    }
}

/// Refuses `len` bytes of registers at `address` if a kernel driver other than UIO's has any of them.
///
/// # Errors
/// [`MapError::Bound`], with the command that releases them.
pub fn refuse_if_bound(root: &Root, address: u64, len: u32) -> Result<(), MapError> {
    for device in devices_in(root, address, len) {
        if let Some(driver) = device.rival() {
            let driver = driver.to_owned();
            return Err(MapError::Bound { device: device.into(), driver });
        }
    }
    Ok(())
}
