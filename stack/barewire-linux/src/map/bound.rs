//! Refuses an address that is another device's, another block's, or that a kernel driver is bound to.
//!
//! # How it works
//! Two lists say what is at an address:
//!
//! 1. The kernel's devices, of every machine ([`refuse_other_device`], [`refuse_other_block`]).
//! 2. The device tree's nodes, which are more: disabled ones, the interrupt controller, memory (`refuse_wrong_address`).
//!    The address must be the first of an enabled node whose `compatible` names the block, or its family's GPIO bank, or is
//!    `generic-uio` alone. On a machine without a device tree, or with one that describes no registers (ACPI), the first list alone decides.

use super::device::by_bus_address;
pub use super::device::{Kind, PlatformDevice, devices_at, devices_in, spi_controllers};
use super::text::text;
use super::{Block, MapError, MapSpec, WrongNode};
use crate::node::{self, Claim};
use crate::root::Root;

/// Refuses the `wanted` of a specification at `address`, unless it names the node there ([`MapSpec::nodes`]).
///
/// # Errors
/// * Errors of [`refuse_other_device`] and [`refuse_other_block`].
/// * [`MapError::OtherNode`] if the device tree gives the address to another node, to one that cannot be used, or
///   to none.
pub(super) fn refuse_wrong_address(
    root: &Root,
    spec: &MapSpec,
    address: u64,
    wanted: Kind,
) -> Result<(), MapError> {
    let (block, facts) = (spec.block, spec.block.facts());
    let len = if wanted == Kind::Spi { facts.registers_len } else { facts.bank_len };
    let is_wanted = |claim: &Claim| match wanted {
        // Given to user space, and not said to be anything.
        _ if claim.compatible == ["generic-uio"] => true,
        Kind::Spi => Block::of_compatible(&claim.compatible.join("\0")) == Some(block),
        Kind::Gpio => claim.compatible.iter().any(|name| (facts.is_bank)(name)),
    };
    let claims = node::claims(root, address, len);
    let wrong = claims.and_then(|claims| wrong_node(&claims, address, is_wanted));
    let name = wrong.as_ref().map(|it| MapSpec::node_name(it.path().unwrap_or(MapSpec::NO_NODE)));
    if name.as_ref().is_some_and(|name| spec.nodes.contains(name)) {
        return Ok(());
    }
    let known = refuse_other_device(root, address, len, wanted).and_then(|()| match wanted {
        Kind::Spi => refuse_other_block(root, address, block),
        Kind::Gpio => Ok(()),
    });
    match (known, wrong, name) {
        // What the tree has in place of another device can be named.
        (Ok(()) | Err(MapError::OtherDevice { .. }), Some(wrong), Some(name)) => {
            let remedy = text(&spec.with_node(name));
            Err(MapError::OtherNode { address, wrong, block, wanted, remedy })
        }
        (known, ..) => known,
    }
}

/// The errors of the nodes that claim registers at `address`; the deepest node is last.
fn wrong_node(
    claims: &[Claim],
    address: u64,
    is_wanted: impl Fn(&Claim) -> bool,
) -> Option<WrongNode> {
    let here = |claim: &&Claim| claim.first == address;
    let right: Vec<_> = claims.iter().filter(here).filter(|claim| is_wanted(claim)).collect();
    if right.iter().any(|claim| claim.enabled && !claim.target) {
        return None;
    }
    let Some(claim) = right.last().copied().or_else(|| claims.iter().rfind(here)).or(claims.last())
    else {
        return Some(WrongNode::None);
    };
    let path = claim.path.clone();
    Some(if !is_wanted(claim) {
        WrongNode::Other { path, compatible: claim.compatible.clone() }
    } else if claim.first != address {
        WrongNode::Within { path, first: claim.first }
    } else if claim.target {
        WrongNode::Target { path }
    } else {
        WrongNode::Disabled { path }
    })
}

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
    refuse_rivals(root, address, len, None)
}

/// [`refuse_if_bound`], but for the driver `own`.
pub(super) fn refuse_rivals(
    root: &Root,
    address: u64,
    len: u32,
    own: Option<&str>,
) -> Result<(), MapError> {
    for device in devices_in(root, address, len) {
        if let Some(driver) = device.rival().filter(|&driver| Some(driver) != own) {
            let driver = driver.to_owned();
            return Err(MapError::Bound { device: device.into(), driver });
        }
    }
    Ok(())
}
