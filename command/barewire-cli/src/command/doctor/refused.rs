//! Nodes that the kernel's rules refuse: the reason and the remedy, in one sentence each.

use barewire_linux::survey::{BadEntry, Controller, Fault, Refusal, RefusedChip};

use super::report::{Finding, Level, Way};

const ABOUT: &str = "refused";

/// The controller's fault, or else its chips that are refused.
pub(super) fn findings(controller: &Controller) -> Vec<Finding> {
    let finding = |text| Finding::new(Level::Problem, ABOUT, text);
    match &controller.fault {
        Some(fault) => vec![finding(of_controller(fault))],
        None => controller.refused.iter().map(|refused| finding(of_chip(refused))).collect(),
    }
}

/// Removes the ways that must not be offered. If the kernel refuses one chip, the controller's other chips
/// still work through the kernel. Through registers they do not: barewire must keep every chip of the bus
/// deselected, including the refused one.
pub(super) fn close(controller: &Controller, ways: &mut [Way]) {
    let nodes: Vec<&str> = controller.refused.iter().map(|it| it.node.as_str()).collect();
    let obstacle = match &controller.fault {
        Some(Fault::Target) => "refused: by spi-slave another host drives this bus".into(),
        Some(Fault::CsGpios { .. }) => {
            "refused: by its cs-gpios the lines of its chips are unknown".into()
        }
        None if nodes.is_empty() => return,
        None => format!("refused: barewire could not keep {} deselected", nodes.join(" and ")),
    };
    let served = controller.fault.is_none() && !controller.children.is_empty();
    for way in ways.iter_mut().filter(|way| !served || way.kind != "spidev") {
        *way = Way { obstacles: vec![obstacle.clone()], ..Way::new(way.kind) };
    }
}

/// The nodes of spidev that doctor does not offer, though the kernel has them.
pub(super) fn nodes(controller: &Controller) -> Vec<String> {
    let Some(bus) = controller.bus else { return Vec::new() };
    if controller.fault.is_some() {
        return controller.spidev.iter().map(|node| node.path.clone()).collect();
    }
    let devices = controller.refused.iter().filter_map(|refused| refused.device.as_ref());
    devices.map(|device| format!("/dev/spidev{bus}.{}", device.chip_select)).collect()
}

pub(super) fn of_controller(fault: &Fault) -> String {
    let (entry, why) = match fault {
        Fault::Target => {
            return "spi-slave is in its node: another host drives this bus, and barewire drives a bus only as its host; delete spi-slave if there is no other host".into();
        }
        Fault::CsGpios { entry, why } => (entry, why),
    };
    let why = match why {
        BadEntry::Dangling { phandle } => {
            format!("no node has its phandle {phandle:#x}; name a GPIO chip of this tree")
        }
        BadEntry::NoGpioChip { node } => {
            format!("{node} has no #gpio-cells and is no GPIO chip; name one")
        }
        BadEntry::Disabled { node } => {
            format!(
                "{node} is disabled, so its lines never come; set its status to \"okay\", or name another GPIO chip"
            )
        }
        BadEntry::CutOff => "the property ends within it; write all its cells".into(),
    };
    format!("cs-gpios cannot be followed at entry {entry}: {why} (<0> is a line of the controller)")
}

fn of_chip(refused: &RefusedChip) -> String {
    let RefusedChip { node, compatible, reg, why, .. } = refused;
    let values: Vec<String> = reg.iter().map(|value| format!("{value:#x}")).collect();
    let values = values.join(" ");
    let why = match why {
        Refusal::NoReg => "it has no reg; write its chip select, as reg = <0>".into(),
        Refusal::CutOff { bytes } => format!(
            "reg has {bytes} bytes, which is no whole number of cells; write its chip select, as reg = <0>"
        ),
        Refusal::Several => format!(
            "reg = <{values}> names several chip selects, as stacked or parallel memories do, and barewire selects one line for a chip; leave it to the kernel's driver, or give each memory a node of its own"
        ),
        Refusal::Beyond { selects } => format!(
            "reg = <{values}> is beyond the controller's {selects} chip select{}, counted from 0; correct reg, or add lines to cs-gpios (num-cs adds lines of the controller)",
            if *selects == 1 { "" } else { "s" }
        ),
        Refusal::NoLine { native } => format!(
            "reg = <{values}> has no line: the controller has {native} of its own, from 0, and cs-gpios names no GPIO line for it; add one there"
        ),
        Refusal::Taken { by } => {
            format!("reg = <{values}> is the chip select of {by}; give it one of its own")
        }
        Refusal::NoFrequency => {
            "it has no spi-max-frequency, which Linux before 5.7 requires; add it".into()
        }
    };
    let compatible = compatible.first().map(|name| format!(" ({name})")).unwrap_or_default();
    format!("{node}{compatible}: {why}")
}
