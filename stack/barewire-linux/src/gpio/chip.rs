//! Finds and opens a GPIO chip by its registers' address or by its label.
//!
//! In sysfs a chip is a child of its device: the directory of the device at an address
//! (`/sys/bus/platform/devices/30240000.gpio`) has an entry `gpiochipN`, and the chip's node is
//! `/dev/gpiochipN`. To find a label, every node is opened and asked for its label.

use rustix::io::Errno;

use super::error::GpioError;
use super::kernel::{ChipInfo, Kernel, KernelChip};
use super::line::GpioChip;
use crate::rights::Group;
use crate::root::Root;
use crate::soc;

/// A chip that was found and opened.
#[derive(Debug)]
pub(crate) struct OpenChip {
    pub(crate) chip: Box<dyn KernelChip>,
    /// Its node: `/dev/gpiochip4`.
    pub(crate) path: String,
    pub(crate) info: ChipInfo,
}

/// Whether `name` is a chip's name in the kernel: `gpiochip` and a number.
fn is_chip(name: &str) -> bool {
    let number = name.strip_prefix("gpiochip").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
}

/// The chips' nodes.
fn nodes(root: &Root) -> Vec<String> {
    let names = root.names("/dev").into_iter().filter(|name| is_chip(name));
    names.map(|name| format!("/dev/{name}")).collect()
}

/// Whether the kernel has any chip at all, with a node or without.
pub(super) fn any(root: &Root) -> bool {
    !nodes(root).is_empty() || root.names("/sys/bus/gpio/devices").iter().any(|name| is_chip(name))
}

/// The kernel's names of the chips of devices whose registers are at `address`.
pub(crate) fn names_at(root: &Root, address: u64) -> Vec<String> {
    let devices = soc::devices(root, |other| other == address).into_iter();
    let names = devices.flat_map(|found| root.names(found.directory()));
    names.filter(|name| is_chip(name)).collect()
}

fn open_node(root: &Root, kernel: &dyn Kernel, path: String) -> Result<OpenChip, GpioError> {
    let chip = kernel.open(&root.path(&path)).map_err(|errno| match errno {
        Errno::ACCESS => {
            let group = Group::of(root, &root.path(&path));
            GpioError::NoPermission { path: path.clone(), group }
        }
        Errno::NOENT | Errno::NXIO | Errno::NODEV => GpioError::NoNode { path: path.clone() },
        errno => GpioError::Os { path: path.clone(), what: "opened", errno },
    })?;
    let info = chip.info();
    let info = info.map_err(|errno| GpioError::of_call(&path, "asked what it is", errno))?;
    Ok(OpenChip { chip, path, info })
}

/// Opens the chip at `address`; `None` if the kernel has none there.
///
/// # Errors
/// [`GpioError::SeveralChips`], and those of opening a node.
pub(crate) fn open_at(
    root: &Root,
    kernel: &dyn Kernel,
    address: u64,
) -> Result<Option<OpenChip>, GpioError> {
    let mut names = names_at(root, address);
    if names.len() > 1 {
        return Err(GpioError::SeveralChips { chip: GpioChip::At(address), names });
    }
    names.pop().map(|name| open_node(root, kernel, format!("/dev/{name}"))).transpose()
}

/// Opens the chip `wanted`.
///
/// # Errors
/// [`GpioError::NoChip`], [`GpioError::SeveralChips`], and those of opening a node.
pub(crate) fn open_chip(
    root: &Root,
    kernel: &dyn Kernel,
    wanted: &GpioChip,
) -> Result<OpenChip, GpioError> {
    let label = match wanted {
        GpioChip::At(address) => {
            let found = open_at(root, kernel, *address)?;
            return found.ok_or_else(|| GpioError::NoChip {
                chip: wanted.clone(),
                labels: labels(root, kernel),
            });
        }
        GpioChip::Labelled(label) => label,
    };
    let (mut found, mut refused) = (Vec::new(), None);
    for path in nodes(root) {
        match open_node(root, kernel, path) {
            Ok(opened) if opened.info.label == *label => found.push(opened),
            Ok(_) => {}
            Err(error) => refused = Some(error),
        }
    }
    match (found.len(), refused) {
        (1, _) => Ok(found.swap_remove(0)),
        // The chip that could not be opened may be the one.
        (0, Some(error)) => Err(error),
        (0, None) => Err(GpioError::NoChip { chip: wanted.clone(), labels: labels(root, kernel) }),
        _ => {
            let names = found.into_iter().map(|opened| opened.path).collect();
            Err(GpioError::SeveralChips { chip: wanted.clone(), names })
        }
    }
}

/// The labels of all chips, for a user who mistyped one.
fn labels(root: &Root, kernel: &dyn Kernel) -> Vec<String> {
    let opened = nodes(root).into_iter().filter_map(|path| open_node(root, kernel, path).ok());
    opened.map(|opened| opened.info.label).collect()
}

impl OpenChip {
    /// Refuses a line number that the chip does not have.
    pub(crate) fn check(&self, offset: u32) -> Result<(), GpioError> {
        if offset < self.info.lines {
            return Ok(());
        }
        Err(GpioError::NoLine { path: self.path.clone(), offset, lines: self.info.lines })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chip_is_known_by_its_name() {
        for (name, known) in [
            ("gpiochip0", true),
            ("gpiochip12", true),
            ("gpiochip", false),
            ("gpiochip1a", false),
            ("gpio", false),
        ] {
            assert_eq!(is_chip(name), known, "{name}");
        }
    }
}
