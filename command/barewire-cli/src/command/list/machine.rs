//! Lists this machine's means to run SPI: the kernel's nodes and controllers.

use std::fmt::Write as _;

use barewire_linux::Root;
use barewire_linux::discover::{Found, discover};
use barewire_linux::map::{Block, Uio};
use barewire_linux::spidev::{Spidev, SpidevError};
use serde::Serialize;

use crate::command::doctor;

/// The SPI nodes, UIO devices and controllers of this machine.
#[derive(Serialize)]
pub(super) struct Machine {
    spidev: Vec<Node>,
    uio: Vec<UioNode>,
    doors: Vec<Door>,
    controllers: Vec<Controller>,
    /// Buses that can be used now.
    ready: Vec<String>,
}

/// One chip select of a controller with a kernel driver.
#[derive(Serialize)]
struct Node {
    path: String,
    bus: String,
    accessible: bool,
    /// Why it is not accessible, and what to do about it.
    remedy: Option<String>,
}

/// A device whose registers the kernel gives away.
#[derive(Serialize)]
struct UioNode {
    path: String,
    name: String,
    maps: Vec<Map>,
    accessible: bool,
    remedy: Option<String>,
}

#[derive(Serialize)]
struct Map {
    name: String,
    base: u64,
    size: u64,
}

/// A controller that the kernel module gives to programs.
#[derive(Serialize)]
struct Door {
    path: String,
    bus: String,
    base: Option<u64>,
    accessible: bool,
    remedy: Option<String>,
}

/// A controller of the SoC.
#[derive(Serialize)]
struct Controller {
    name: String,
    /// The address of its registers, if it has any.
    base: Option<u64>,
    /// Its name for `controller=`, if it can be mapped.
    block: Option<&'static str>,
    driver: Option<String>,
    kernel_bus: Option<u32>,
}

impl Machine {
    /// The buses found under `root`.
    pub(super) fn of(root: &Root) -> Self {
        let (ready, refused) = doctor::ready_and_refused(root);
        let mut machine =
            Self { spidev: vec![], uio: vec![], doors: vec![], controllers: vec![], ready };
        for found in discover(root) {
            machine.add(root, found);
        }
        for node in machine.spidev.iter_mut().filter(|node| refused.contains(&node.path)) {
            node.remedy = Some(format!("refused: `barewire doctor {}` says why", node.bus));
        }
        machine
    }

    fn add(&mut self, root: &Root, found: Found) {
        match found {
            Found::Spidev { path, accessible } => self.spidev.push(Node {
                bus: format!("spidev:{path}"),
                remedy: remedy(accessible, || Spidev::open_at(root, &path).err()),
                accessible,
                path,
            }),
            Found::Uio { path, name, maps, accessible } => self.uio.push(UioNode {
                name,
                maps: maps
                    .into_iter()
                    .map(|map| Map { base: map.registers_at(), name: map.name, size: map.size })
                    .collect(),
                remedy: remedy(accessible, || Uio::open(root, &path).err()),
                accessible,
                path,
            }),
            Found::Door { path, address, refusal } => self.doors.push(Door {
                bus: format!("barewire:{}", path.trim_start_matches("/dev/barewire")),
                base: address,
                accessible: refusal.is_none(),
                remedy: refusal.map(|error| error.to_string()),
                path,
            }),
            Found::Controller { device, bus } => self.controllers.push(Controller {
                base: device.base(),
                block: device.block.map(Block::name),
                name: device.name,
                driver: device.driver,
                kernel_bus: bus,
            }),
            // A kind that this list does not know yet.
            _ => {}
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::from("This machine\n");
        let mut row = |name: &str, what: &str, remedy: &Option<String>| {
            let _ = writeln!(text, "  {name:<14}{what}");
            if let Some(remedy) = remedy {
                let _ = writeln!(text, "                {remedy}");
            }
        };
        for Node { path, bus, remedy, .. } in &self.spidev {
            row(path, &format!("  --bus {bus}"), remedy);
        }
        for UioNode { path, name, maps, remedy, .. } in &self.uio {
            let maps: Vec<String> = maps
                .iter()
                .map(|Map { base, size, .. }| format!("{size:#x} bytes at {base:#x}"))
                .collect();
            row(path, &format!("  {name}: {}", maps.join(", ")), remedy);
        }
        for Door { path, bus, base, remedy, .. } in &self.doors {
            let at = base.map(|base| format!(" ({base:#x})")).unwrap_or_default();
            row(path, &format!("  --bus {bus}{at}"), remedy);
        }
        for Controller { name, base, block, driver, kernel_bus } in &self.controllers {
            let driver = match driver {
                Some(driver) => format!("kernel driver {driver}"),
                None => "no kernel driver".into(),
            };
            let bus = kernel_bus.map(|bus| format!(", bus {bus}")).unwrap_or_default();
            let block = block.map(|block| format!(" ({block})")).unwrap_or_default();
            let at = base.as_ref().map(|base| format!(" at {base:#x}{block}")).unwrap_or_default();
            row(name, &format!("  controller{at}, {driver}{bus}"), &None);
        }
        for bus in &self.ready {
            let _ = writeln!(text, "  ready: --bus {bus}");
        }
        if self.spidev.is_empty() {
            let none = SpidevError::NoSuchDevice { path: "/dev/spidev*".into(), present: vec![] };
            let _ = writeln!(text, "  no {none}");
        }
        text += "  what stands in the way, and what to do about it: barewire doctor\n";
        text
    }
}

/// The error of opening, if opening is known to fail.
fn remedy<E: ToString>(accessible: bool, open: impl FnOnce() -> Option<E>) -> Option<String> {
    (!accessible).then(open).flatten().map(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_found_says_what_to_do() {
        let dir = tempfile::tempdir().expect("a directory");
        let machine = Machine::of(&Root::at(dir.path()));
        let text = machine.text();
        assert!(
            text.starts_with("This machine\n  no /dev/spidev*: there is no spidev node"),
            "{text}"
        );
        assert!(text.contains("dtparam=spi=on"), "{text}");
        assert_eq!(text.lines().count(), 3, "{text}");
    }

    #[test]
    fn nodes_and_controllers_are_listed() {
        let dir = tempfile::tempdir().expect("a directory");
        let make = |path: &str| fs::create_dir_all(dir.path().join(path)).expect("a directory");
        make("dev");
        make("sys/bus/platform/devices/30820000.spi/spi_master/spi1");
        make("sys/bus/platform/drivers/spi_imx");
        make("sys/class/uio/uio0/maps/map0");
        let device = dir.path().join("sys/bus/platform/devices/30820000.spi");
        symlink("../../drivers/spi_imx", device.join("driver")).expect("a link");
        make("sys/bus/platform/devices/30820000.spi/of_node");
        fs::write(device.join("of_node/compatible"), "fsl,imx51-ecspi\0").expect("a file");
        fs::write(dir.path().join("dev/spidev1.0"), "").expect("a node");
        for (name, content) in
            [("name", "ecspi1"), ("maps/map0/addr", "0x30820000"), ("maps/map0/size", "0x1000")]
        {
            fs::write(dir.path().join("sys/class/uio/uio0").join(name), content).expect("a file");
        }
        let machine = Machine::of(&Root::at(dir.path()));
        let node = &machine.spidev[0];
        assert_eq!((node.bus.as_str(), node.accessible), ("spidev:/dev/spidev1.0", true));
        assert_eq!(node.remedy, None);
        let controller = &machine.controllers[0];
        assert_eq!(controller.driver.as_deref(), Some("spi_imx"));
        assert_eq!((controller.base, controller.kernel_bus), (Some(0x3082_0000), Some(1)));
        let uio = &machine.uio[0];
        assert_eq!((uio.name.as_str(), uio.accessible), ("ecspi1", false), "there is no node");
        assert!(uio.remedy.is_some());
        let text = machine.text();
        assert!(text.contains("--bus spidev:/dev/spidev1.0"), "{text}");
        assert!(
            text.contains(
                "30820000.spi    controller at 0x30820000 (ecspi), kernel driver spi_imx, bus 1"
            ),
            "{text}"
        );
        assert!(!text.contains("no /dev/spidev*"), "{text}");
        // Another host drives the bus.
        fs::write(device.join("of_node/spi-slave"), "").expect("a file");
        let text = Machine::of(&Root::at(dir.path())).text();
        assert!(
            text.contains("refused: `barewire doctor spidev:/dev/spidev1.0` says why"),
            "{text}"
        );
    }
}
