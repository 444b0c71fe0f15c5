//! The kernel's devices of the SoC, found by the address of their registers.
//!
//! The kernel names a device of the SoC by the address of its first register and its device-tree
//! node (`30820000.spi`; `.ecspi` or `.ssp` in old trees). So the address leads to the directory in
//! `/sys/bus/platform/devices`, or for ARM's PrimeCells in `/sys/bus/amba/devices`. There, the link
//! `driver` names the driver, and the node's `compatible` names the block. The range of the
//! registers is in the file `resource` of a PrimeCell, and in the node's `reg` of other devices;
//! its first entry is taken to begin at the address in the name, because the node's own addresses
//! may be another bus's. A node with `ranges` is a bus: its range contains its children's and is
//! not a register block.
//!
//! # Not supported
//! Devices that the kernel names without an address (no device tree) are not found, but for SPI controllers that a
//! driver has: they have a directory in `/sys/class/spi_master`. The range of a
//! device without `reg` and `resource` is unknown: it is found by its first address only.

use super::Block;
use crate::node;
use crate::root::Root;
use crate::soc;

/// The kind of a device, by its node's name in the device tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An SPI controller.
    Spi,
    /// A GPIO bank.
    Gpio,
}

/// A device of the SoC, found by its registers' address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformDevice {
    /// Its name in the directory of its bus.
    pub name: String,
    /// The kernel's bus it is on: `platform` or `amba`; of a controller without a known address also `pci` or `usb`.
    pub bus: &'static str,
    /// The address of its first register; 0 if none is known, as of a controller made of GPIO lines: see
    /// [`PlatformDevice::base`].
    pub address: u64,
    /// The kernel driver bound to it.
    pub driver: Option<String>,
    /// Which of the supported controllers it is, according to its device-tree node.
    pub block: Option<Block>,
    /// Its register ranges, as far as known: the first and last byte of each.
    pub ranges: Vec<(u64, u64)>,
}

/// The kernel's devices whose address is `wanted`.
fn devices(root: &Root, wanted: impl Fn(u64) -> bool) -> Vec<PlatformDevice> {
    let found = soc::devices(root, wanted).into_iter();
    found
        .map(|soc::DetectedSoc { bus, address, name }| {
            PlatformDevice::named(root, bus, address, name)
        })
        .collect()
}

impl PlatformDevice {
    /// The device `name`, which contains `address`.
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

    /// Whether `len` bytes at `address` overlap its registers. Always false for a bus.
    fn overlaps(&self, root: &Root, address: u64, len: u32) -> bool {
        let last = address.saturating_add(u64::from(len).saturating_sub(1));
        let touched = |&(first, end): &(u64, u64)| address <= end && first <= last;
        let own = (self.address, self.address);
        let touches = self.ranges.iter().chain([&own]).any(touched);
        touches && !root.path(format!("{}/of_node/ranges", self.directory())).exists()
    }

    /// The address of its first register, if it is known to have any.
    #[must_use]
    pub fn base(&self) -> Option<u64> {
        (self.address != 0).then_some(self.address)
    }

    /// The first and last byte of its first register range.
    #[must_use]
    pub fn range(&self) -> (u64, u64) {
        self.ranges.first().copied().unwrap_or((self.address, self.address))
    }

    /// The bytes of that range.
    #[must_use]
    pub fn registers_len(&self) -> u32 {
        let (first, last) = self.range();
        u32::try_from(last - first).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// Its directory in sysfs.
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

    /// The kernel driver that must be unbound before its registers can be used.
    #[must_use]
    pub fn rival(&self) -> Option<&str> {
        self.driver.as_deref().filter(|driver| soc::is_rival(driver))
    }

    /// The command by which root unbinds `driver`.
    #[must_use]
    pub fn unbind_command(&self, driver: &str) -> String {
        format!("echo {} > /sys/bus/{}/drivers/{driver}/unbind", self.name, self.bus)
    }
}

/// The register range of a PrimeCell: the first and last address in its `resource`.
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

/// The devices whose registers overlap `len` bytes at `address`; those that begin there come first.
#[must_use]
pub fn devices_in(root: &Root, address: u64, len: u32) -> Vec<PlatformDevice> {
    let last = address.saturating_add(u64::from(len).saturating_sub(1));
    let mut found = devices(root, |other| other <= last);
    found.retain(|device| device.overlaps(root, address, len));
    found.sort_by_key(|device| device.address != address);
    found
}

/// The SPI controllers among all devices, and those that only their driver makes known, as `spi-gpio`.
#[must_use]
pub fn spi_controllers(root: &Root) -> Vec<PlatformDevice> {
    const CLASS: &str = "/sys/class/spi_master";
    let mut found = devices(root, |_| true);
    found.retain(|device| device.is(Kind::Spi));
    for bus in root.names(CLASS) {
        let Some(name) = root.link_name(format!("{CLASS}/{bus}/device")) else { continue };
        if found.iter().any(|device| device.name == name) {
            continue;
        }
        let has = |bus: &&str| root.path(soc::directory(bus, &name)).exists();
        if let Some(bus) = ["platform", "amba", "pci", "usb"].into_iter().find(has) {
            let address = soc::address_of(&name).unwrap_or(0);
            found.push(PlatformDevice::named(root, bus, address, name));
        }
    }
    found
}

/// The kernel's number of a controller's bus, from the directory that its driver makes.
pub(crate) fn bus_number(root: &Root, device: &PlatformDevice) -> Option<u32> {
    // A controller in target mode has a directory of another class.
    let of_class = |class| root.names(format!("{}/{class}", device.directory())).into_iter();
    let mut names = ["spi_master", "spi_slave"].into_iter().flat_map(of_class);
    names.find_map(|name| name.strip_prefix("spi")?.parse().ok())
}

/// The device of `kind` whose own bus gives it `address`.
pub(super) fn by_bus_address(root: &Root, address: u64, kind: Kind) -> Option<PlatformDevice> {
    devices(root, |_| true).into_iter().find(|device| {
        let of_node = format!("{}/of_node", device.directory());
        device.is(kind) && node::bus_address(root, &of_node) == Some(address)
    })
}
