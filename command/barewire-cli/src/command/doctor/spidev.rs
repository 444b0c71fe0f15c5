//! The way through the kernel's driver: one node of spidev for each chip.

use barewire_linux::survey::{Access, Child, Controller, Driver, Machine};

use super::board::Board;
use super::facts::{used, waits};
use super::report::{Step, Way};

pub(super) fn ways(machine: &Machine, controller: &Controller) -> Vec<Way> {
    let Some(bus) = controller.bus else {
        return Vec::new();
    };
    let ways: Vec<Way> =
        controller.children.iter().map(|child| of_child(machine, controller, bus, child)).collect();
    if !ways.is_empty() {
        return ways;
    }
    let obstacle = format!("the tree has no chip on this bus: {}", Board::of(machine).add_a_chip());
    let obstacles = vec![obstacle];
    vec![Way { obstacles, ..Way::new("spidev") }]
}

fn of_child(machine: &Machine, controller: &Controller, bus: u32, child: &Child) -> Way {
    let path = format!("/dev/spidev{bus}.{}", child.chip_select);
    let text = format!("spidev:{path}");
    let mut way = Way { tries: tries(&text, child, 0), bus: Some(text), ..Way::new("spidev") };
    match controller.spidev.iter().find(|node| node.path == path) {
        Some(node) if node.allowed => way.ready = true,
        Some(node) => way.steps.push(permission(node, "SUBSYSTEM==\"spidev\"", "spi")),
        None => hand_over(machine, child, &mut way),
    }
    way
}

/// Commands that try a bus on the chip that the tree declares there, which has number `chip_select` on
/// the bus. Only known chips are read, because a converter would take 9F as data.
pub(super) fn tries(bus: &str, child: &Child, chip_select: usize) -> Vec<String> {
    let cs = if chip_select == 0 { String::new() } else { format!(" --cs {chip_select}") };
    if child.is_flash() {
        vec![format!("barewire flash id --bus {bus}{cs}")]
    } else if child.is_can() {
        vec![format!("barewire regs read --chip mcp2518fd --bus {bus}{cs} OSC")]
    } else {
        Vec::new()
    }
}

/// How a user gets a node's permission.
pub(super) fn permission(node: &Access, matches: &str, group: &str) -> Step {
    let Access { path, .. } = node;
    let rule = format!("{matches}, GROUP=\"{group}\", MODE=\"0660\"");
    Step::new(format!("{path} may not be opened by this user: a udev rule (contrib/udev has it) and a group; log in again afterwards"))
        .run(format!("groupadd -f {group}; usermod -aG {group} \"${{SUDO_USER:-$USER}}\""))
        .run(format!("echo '{rule}' >> /etc/udev/rules.d/60-barewire.rules"))
        .run("udevadm control --reload; udevadm trigger")
        .undone_by("rm /etc/udev/rules.d/60-barewire.rules; udevadm control --reload; udevadm trigger")
}

/// Adds the steps that give a chip to spidev.
fn hand_over(machine: &Machine, child: &Child, way: &mut Way) {
    let Some(device) = &child.device else {
        way.obstacles.push(
            "the kernel did not make a device of the chip: `dmesg | grep spi` says why".into(),
        );
        return;
    };
    if !child.awaits.is_empty() {
        way.obstacles.push(waits(&child.awaits));
        return;
    }
    match machine.spidev {
        Driver::Loaded => {}
        Driver::Module => {
            let load = Step::new("load spidev");
            way.steps.push(load.run("modprobe spidev").undone_by("modprobe -r spidev"));
        }
        Driver::Missing => {
            way.obstacles.push("this kernel has no spidev (CONFIG_SPI_SPIDEV)".into());
            return;
        }
    }
    // A flash chip that is not mounted can be taken from its driver for a while. A chip in use is
    // not touched.
    let busy = child.uses.iter().find(|it| it.class != "mtd" || !it.used_by.is_empty());
    if let (Some(driver), Some(busy)) = (child.rival(), busy) {
        let what = used(busy);
        way.obstacles.push(format!("the kernel's driver {driver} has the chip for {what}, which others use: leave it, or end its use first"));
        return;
    }
    let of_device = format!("/sys/bus/spi/devices/{device}");
    let mut step = match child.rival() {
        Some(driver) => {
            let with: Vec<String> = child.uses.iter().map(used).collect();
            let gone = if with.is_empty() {
                String::new()
            } else {
                format!(" ({} goes until then)", with.join(", "))
            };
            Step::new(format!("lend the chip to spidev in place of {driver}{gone}"))
                .run(format!("echo {device} > /sys/bus/spi/drivers/{driver}/unbind"))
        }
        None => Step::new("give the chip to spidev"),
    };
    step = step
        .run(format!("echo spidev > {of_device}/driver_override"))
        .run(format!("echo {device} > /sys/bus/spi/drivers/spidev/bind"))
        .undone_by(format!("echo {device} > /sys/bus/spi/drivers/spidev/unbind"))
        .undone_by(format!("echo > {of_device}/driver_override"));
    if let Some(driver) = child.rival() {
        step = step.undone_by(format!("echo {device} > /sys/bus/spi/drivers/{driver}/bind"));
    }
    way.steps.push(step);
}
