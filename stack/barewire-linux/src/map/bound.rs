//! Refuses a controller that is another device, another block, or that a kernel driver is bound to.

use super::device::by_bus_address;
pub use super::device::{Kind, PlatformDevice, devices_at, devices_in, spi_controllers};
use super::{Block, MapError};
use crate::root::Root;

/// Refuses `len` bytes at `address` if the kernel has a device there and none of `kind` begins at
/// `address`.
///
/// # Errors
/// * [`MapError::OtherDevice`] if a device there is of another kind.
/// * [`MapError::NotBase`] if a device of `kind` is there but begins at another address.
/// * [`MapError::BusAddress`] if no device is there, and `address` is that of a device of `kind` as its
///   own bus numbers it.
pub fn refuse_other_device(
    root: &Root,
    address: u64,
    len: u32,
    kind: Kind,
) -> Result<(), MapError> {
    let mut devices = devices_in(root, address, len);
    let begins = |device: &PlatformDevice| device.address == address && device.is(kind);
    if devices.iter().any(begins) {
        return Ok(());
    }
    if devices.is_empty() {
        return match by_bus_address(root, address, kind) {
            Some(device) => {
                Err(MapError::BusAddress { address, device: device.into(), remedy: None })
            }
            None => Ok(()),
        };
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

/// Refuses `address` if the device tree names another of the supported blocks there. Passes if the
/// tree does not name the block.
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

/// Refuses `len` bytes of registers at `address` if a kernel driver other than UIO's is bound to
/// any of them.
///
/// # Errors
/// [`MapError::Bound`], with the command that unbinds the driver.
pub fn refuse_if_bound(root: &Root, address: u64, len: u32) -> Result<(), MapError> {
    for device in devices_in(root, address, len) {
        if let Some(driver) = device.rival() {
            let driver = driver.to_owned();
            return Err(MapError::Bound { device: device.into(), driver });
        }
    }
    Ok(())
}
