//! The chips on a controller's bus: what the device tree says they are, and what the kernel uses them
//! for.

use crate::node;
use crate::root::{Root, number};

use super::refusal::{Refusal, Rules};
use super::supplier;

/// A chip: a node below the controller's, or a device of the kernel without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// The number of its chip select.
    pub chip_select: u8,
    /// Its `compatible`, the most specific first; empty without a node.
    pub compatible: Vec<String>,
    /// The kernel's name of it, as `spi1.0`; `None` while the controller has no driver.
    pub device: Option<String>,
    /// The kernel driver bound to it.
    pub driver: Option<String>,
    /// The driver that was asked for in its place (`driver_override`).
    pub asked_driver: Option<String>,
    /// The devices that must have drivers before it can have one, as far as they have none.
    pub awaits: Vec<String>,
    /// The kernel's uses of it.
    pub uses: Vec<Use>,
    /// Whether its chip select is active high (`spi-cs-high`).
    pub active_high: bool,
    /// Its fastest clock, in hertz, by the tree.
    pub max_speed_hz: Option<u32>,
}

/// Something that other programs use, and that ends with the chip's driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// Its class: `mtd`, `net`, `tpm`, `regulator`, `graphics`, …
    pub class: String,
    /// Its name, as `mtd0` or `can0`.
    pub name: String,
    /// The mount points and other users that have it in use now; empty if none was found.
    pub used_by: Vec<String>,
}

/// A chip's node that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedChip {
    /// The node's name, as `flash@0`.
    pub node: String,
    /// Its `compatible`, the most specific first.
    pub compatible: Vec<String>,
    /// The values of its `reg`.
    pub reg: Vec<u32>,
    /// Why it is refused.
    pub why: Refusal,
    /// The device that the kernel made nevertheless.
    pub device: Option<Child>,
}

impl Child {
    /// The chips of the controller whose node is `of_node` and whose bus has number `bus`, by chip
    /// select, and the nodes that are refused.
    pub(super) fn all(
        root: &Root,
        of_node: &str,
        bus: Option<u32>,
        rules: &Rules,
    ) -> (Vec<Self>, Vec<RefusedChip>) {
        let devices = bus.map(|bus| devices(root, bus)).unwrap_or_default();
        let made = |number: u32| {
            devices.iter().any(|name| chip_select(name).is_some_and(|it| u32::from(it) == number))
        };
        let (mut children, mut refused, mut taken) =
            (Vec::<Self>::new(), Vec::<RefusedChip>::new(), Vec::new());
        for node in nodes(root, of_node, &devices) {
            let path = format!("{of_node}/{node}");
            let reg = node::cells(root, &format!("{path}/reg"));
            let checked = rules.check(root, &path, &taken, made);
            taken.extend(reg.iter().map(|&number| (number, node.clone())));
            let compatible = node::strings(root, &format!("{path}/compatible"));
            match checked {
                Ok(chip_select) => {
                    children.push(Self::of_node(root, &path, chip_select, compatible))
                }
                Err(why) => refused.push(RefusedChip { node, compatible, reg, why, device: None }),
            }
        }
        for name in &devices {
            let Some(chip_select) = chip_select(name) else { continue };
            let number = u32::from(chip_select);
            let child = children.iter_mut().find(|child| child.chip_select == chip_select);
            let refused = refused.iter_mut().find(|it| it.reg.first() == Some(&number));
            match (child, refused) {
                (Some(child), _) => child.look(root, name),
                (None, Some(refused)) => {
                    refused.device = Some(Self::found(root, chip_select, name))
                }
                (None, None) => children.push(Self::found(root, chip_select, name)),
            }
        }
        children.sort_by_key(|child| child.chip_select);
        (children, refused)
    }

    /// A device of the kernel.
    fn found(root: &Root, chip_select: u8, name: &str) -> Self {
        let mut child = Self::new(chip_select);
        child.look(root, name);
        child
    }

    fn new(chip_select: u8) -> Self {
        Self {
            chip_select,
            compatible: Vec::new(),
            device: None,
            driver: None,
            asked_driver: None,
            awaits: Vec::new(),
            uses: Vec::new(),
            active_high: false,
            max_speed_hz: None,
        }
    }

    /// The chip that a node describes.
    fn of_node(root: &Root, path: &str, chip_select: u8, compatible: Vec<String>) -> Self {
        let mut child = Self { compatible, ..Self::new(chip_select) };
        child.active_high = root.path(format!("{path}/spi-cs-high")).exists();
        child.max_speed_hz =
            node::cells(root, &format!("{path}/spi-max-frequency")).first().copied();
        child
    }

    /// Takes over what the kernel says of its device.
    fn look(&mut self, root: &Root, name: &str) {
        let directory = format!("/sys/bus/spi/devices/{name}");
        self.driver = root.link_name(format!("{directory}/driver"));
        let asked = root.text(format!("{directory}/driver_override")).unwrap_or_default();
        self.asked_driver = Some(asked).filter(|asked| !asked.is_empty() && asked != "(null)");
        self.awaits = supplier::awaited(root, &directory, name);
        if self.compatible.is_empty() {
            self.compatible = node::strings(root, &format!("{directory}/of_node/compatible"));
        }
        self.uses = uses(root, &directory);
        self.device = Some(name.to_owned());
    }

    /// The driver that would have to let go of the chip, other than spidev.
    #[must_use]
    pub fn rival(&self) -> Option<&str> {
        self.driver.as_deref().filter(|driver| *driver != "spidev")
    }

    /// Whether it is a flash chip, by the tree.
    #[must_use]
    pub fn is_flash(&self) -> bool {
        self.compatible.iter().any(|name| name == "jedec,spi-nor")
    }

    /// Whether it is a CAN controller that barewire drives, by the tree.
    #[must_use]
    pub fn is_can(&self) -> bool {
        const NAMES: [&str; 3] =
            ["microchip,mcp251xfd", "microchip,mcp2517fd", "microchip,mcp2518fd"];
        self.compatible.iter().any(|name| NAMES.contains(&name.as_str()))
    }
}

/// The enabled nodes of chips. Of two with one chip select the kernel takes the first of the tree, whose order
/// is not to be seen here, so those that it made `devices` of come first.
fn nodes(root: &Root, of_node: &str, devices: &[String]) -> Vec<String> {
    let of_device = |name| root.link_name(format!("/sys/bus/spi/devices/{name}/of_node"));
    let made: Vec<String> = devices.iter().filter_map(of_device).collect();
    let mut nodes = root.directories(of_node);
    nodes.retain(|node| node::is_available(root, &format!("{of_node}/{node}")));
    nodes.sort_by_key(|node| !made.contains(node));
    nodes
}

/// The kernel's devices on bus `bus`.
fn devices(root: &Root, bus: u32) -> Vec<String> {
    let prefix = format!("spi{bus}.");
    let mut names = root.names("/sys/bus/spi/devices");
    names.retain(|name| name.starts_with(&prefix));
    names
}

fn chip_select(device: &str) -> Option<u8> {
    device.rsplit_once('.')?.1.parse().ok()
}

/// The kernel's uses of a device: its directories that have the name of a class.
fn uses(root: &Root, directory: &str) -> Vec<Use> {
    let mut uses = Vec::new();
    for class in root.names(directory) {
        if class.starts_with("iio:") {
            uses.push(Use { class: "iio".into(), name: class, used_by: Vec::new() });
            continue;
        }
        let is_class = root.path(format!("/sys/class/{class}")).exists();
        if !is_class || class == "spidev" {
            continue;
        }
        for name in root.names(format!("{directory}/{class}")) {
            // mtd0ro is mtd0, read only.
            if class == "mtd" && name.ends_with("ro") {
                continue;
            }
            let used_by = if class == "mtd" { users_of_mtd(root, &name) } else { Vec::new() };
            uses.push(Use { class: class.clone(), name, used_by });
        }
    }
    uses
}

/// The users of an MTD device: mounts, and UBI devices on it with their mounts.
fn users_of_mtd(root: &Root, mtd: &str) -> Vec<String> {
    let index = mtd.trim_start_matches("mtd");
    let label = root.text(format!("/sys/class/mtd/{mtd}/name")).unwrap_or_default();
    let names = [
        format!("/dev/mtdblock{index}"),
        format!("/dev/{mtd}"),
        mtd.to_owned(),
        format!("mtd:{label}"),
    ];
    let mounts = root.text("/proc/mounts").unwrap_or_default();
    let mounted_from = |matches: &dyn Fn(&str) -> bool| -> Vec<String> {
        let lines = mounts.lines().map(|line| line.split_whitespace());
        lines
            .filter_map(|mut words| Some((words.next()?, words.next()?)))
            .filter(|(source, _)| matches(source))
            .map(|(_, place)| format!("mounted at {place}"))
            .collect()
    };
    let mut users = mounted_from(&|source| names.iter().any(|name| name == source));
    for ubi in root.names("/sys/class/ubi") {
        let on = root.text(format!("/sys/class/ubi/{ubi}/mtd_num")).ok();
        if on.and_then(|text| number(&text)) == number(index) && number(index).is_some() {
            users.push(format!("{ubi} is attached to it"));
            let volume = |source: &str| {
                source.starts_with(&format!("{ubi}:"))
                    || source.starts_with(&format!("/dev/{ubi}_"))
            };
            users.extend(mounted_from(&volume));
        }
    }
    users
}
