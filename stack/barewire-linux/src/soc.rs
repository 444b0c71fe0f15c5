//! Finds devices of the SoC by the address of their registers.
//!
//! The kernel begins the name of a device-tree device with its address in hexadecimal
//! (`30820000.spi`). The devices are in `/sys/bus/platform/devices`, or for ARM's PrimeCells in
//! `/sys/bus/amba/devices`.

use crate::root::Root;

/// The kernel's buses on which the SoC's devices are.
const BUSES: [&str; 2] = ["platform", "amba"];

/// UIO's drivers: a device bound to one of these is available to us.
pub(crate) const UIO_DRIVERS: [&str; 2] = ["uio_pdrv_genirq", "uio_dmem_genirq"];

/// The kernel module's driver that gives a controller to programs.
pub(crate) const DOOR_DRIVER: &str = "barewire-user";

/// A device that was found.
#[derive(Debug)]
pub(crate) struct DetectedSoc {
    /// The kernel's bus it is on.
    pub(crate) bus: &'static str,
    /// The address of its first register.
    pub(crate) address: u64,
    /// Its name in its bus's directory.
    pub(crate) name: String,
}

/// The devices whose address is `wanted`.
pub(crate) fn devices(root: &Root, wanted: impl Fn(u64) -> bool) -> Vec<DetectedSoc> {
    let of_bus = |bus: &'static str| {
        let names = root.names(format!("/sys/bus/{bus}/devices")).into_iter();
        names.filter_map(move |name| Some(DetectedSoc { bus, address: address_of(&name)?, name }))
    };
    BUSES.into_iter().flat_map(of_bus).filter(|found| wanted(found.address)).collect()
}

impl DetectedSoc {
    /// Its directory in sysfs.
    pub(crate) fn directory(&self) -> String {
        directory(self.bus, &self.name)
    }

    /// Whether a kernel driver other than UIO's is bound to it.
    pub(crate) fn has_rival(&self, root: &Root) -> bool {
        let driver = root.link_name(format!("{}/driver", self.directory()));
        driver.is_some_and(|driver| is_rival(&driver))
    }
}

/// Whether a kernel driver uses the registers of the device it is bound to. UIO's drivers do not.
pub(crate) fn is_rival(driver: &str) -> bool {
    !UIO_DRIVERS.contains(&driver)
}

/// The directory in sysfs of the device `name` on `bus`.
pub(crate) fn directory(bus: &str, name: &str) -> String {
    format!("/sys/bus/{bus}/devices/{name}")
}

/// The address in a device's name.
pub(crate) fn address_of(name: &str) -> Option<u64> {
    u64::from_str_radix(name.split_once('.')?.0, 16).ok()
}
