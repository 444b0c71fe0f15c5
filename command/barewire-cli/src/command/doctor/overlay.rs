//! `barewire doctor --overlay`: a device-tree overlay with the running tree's own phandles.
//!
//! Read first: Devicetree Specification, sections 2.3 and 6; the kernel's
//! `Documentation/devicetree/overlay-notes.rst`; `simple-pm-bus.yaml` of its bindings.
//!
//! Distributions build trees without symbols, to which an overlay that refers to labels cannot be
//! applied. This overlay names its target by path, and its clocks, pins and lines by their numbers in
//! this tree. So it fits this tree only. Their properties are copied from the controller's own node.
//!
//! A block whose clock is never off keeps its node, with another `compatible`. Any other gets a
//! `simple-pm-bus` above it, which from Linux 6.3 switches the clocks on while `/dev/uioN` is open.

use std::fmt::Write as _;

use barewire_linux::Root;
use barewire_linux::map::clock::ClockState;
use barewire_linux::survey::{Controller, Machine};

use super::board::Board;
use super::refused;
use crate::shared::failure::Failure;

/// Properties that go where the clocks are kept.
const OF_BUS: [&str; 5] = [
    "clocks",
    "assigned-clocks",
    "assigned-clock-parents",
    "assigned-clock-rates",
    "power-domains",
];
/// Properties of the controller's own node that the UIO node copies.
const OF_NODE: [&str; 5] =
    ["reg", "interrupt-parent", "interrupts", "interrupts-extended", "cs-gpios"];
const PINS: [&str; 1] = ["pinctrl-0"];

/// The overlay's name, and its bus's. Of two with one name the second would replace the first: as a file, and in the tree.
pub(super) fn name(controller: &Controller) -> String {
    format!("barewire-uio-{:x}", controller.device.address)
}

/// The overlay for the controller, as source for `dtc`.
pub(super) fn text(
    root: &Root,
    machine: &Machine,
    controller: &Controller,
) -> Result<String, Failure> {
    let name = &controller.device.name;
    let node = &controller.node;
    let Some(block) = controller.block() else {
        return Err(Failure::Failed(format!(
            "{name} is not a controller that barewire drives by its registers"
        )));
    };
    if let Some(fault) = &controller.fault {
        return Err(Failure::Failed(format!("{name}: {}", refused::of_controller(fault))));
    }
    if let Some(uio) = &controller.uio {
        return Err(Failure::Failed(format!(
            "{name} is {} already, by its node {node}: start without the overlay that made it, and ask again",
            uio.access.path
        )));
    }
    let Some((parent, own)) = node.rsplit_once('/') else {
        return Err(Failure::Failed(format!("the path of {name} in the device tree is unknown")));
    };
    let always = controller.clock.as_ref().is_some_and(|clock| clock.state == ClockState::Always);
    let mut text = String::new();
    let _ = writeln!(
        text,
        "/* {name} of {} for UIO, written by `barewire doctor --overlay`.",
        machine.model
    );
    text += " * Its numbers are phandles of this machine's tree, and of no other's. */\n/dts-v1/;\n/plugin/;\n\n/ {\n";
    if let Some(compatible) =
        machine.compatible.first().filter(|_| Board::of(machine) == Board::RaspberryPi)
    {
        let _ = writeln!(text, "\tcompatible = \"{compatible}\";\n");
    }
    let tree = Tree { root, node };
    let compatible = format!("compatible = \"generic-uio\", \"barewire,{block}\";");
    if always {
        let _ =
            writeln!(text, "\tfragment@0 {{\n\t\ttarget-path = \"{node}\";\n\t\t__overlay__ {{");
        let _ = writeln!(text, "\t\t\t{compatible}\n\t\t\tstatus = \"okay\";\n\t\t}};\n\t}};\n}};");
        return Ok(text);
    }
    let parent = if parent.is_empty() { "/" } else { parent };
    let _ = writeln!(
        text,
        "\tfragment@0 {{\n\t\ttarget-path = \"{node}\";\n\t\t__overlay__ {{\n\t\t\tstatus = \"disabled\";\n\t\t}};\n\t}};\n"
    );
    let _ = writeln!(
        text,
        "\tfragment@1 {{\n\t\ttarget-path = \"{parent}\";\n\t\t__overlay__ {{\n\t\t\t{} {{",
        self::name(controller)
    );
    text += "\t\t\t\tcompatible = \"simple-pm-bus\";\n";
    for name in ["#address-cells", "#size-cells"] {
        tree.copy_from(&mut text, "\t\t\t\t", name, "/..");
    }
    text += "\t\t\t\tranges;\n";
    tree.copy(&mut text, "\t\t\t\t", &OF_BUS);
    let _ = writeln!(text, "\n\t\t\t\t{own} {{\n\t\t\t\t\t{compatible}");
    tree.copy(&mut text, "\t\t\t\t\t", &OF_NODE);
    if tree.copy(&mut text, "\t\t\t\t\t", &PINS) > 0 {
        text += "\t\t\t\t\tpinctrl-names = \"default\";\n";
    }
    text += "\t\t\t\t};\n\t\t\t};\n\t\t};\n\t};\n};\n";
    Ok(text)
}

/// The controller's node in the running tree.
struct Tree<'a> {
    root: &'a Root,
    node: &'a str,
}

impl Tree<'_> {
    /// Writes the properties of these names that the node has; returns their number.
    fn copy(&self, text: &mut String, indent: &str, names: &[&str]) -> usize {
        names.iter().filter(|name| self.copy_from(text, indent, name, "")).count()
    }

    fn copy_from(&self, text: &mut String, indent: &str, name: &str, above: &str) -> bool {
        let path = format!("/proc/device-tree{}{above}/{name}", self.node);
        let Ok(bytes) = std::fs::read(self.root.path(path)) else { return false };
        let cells: Vec<String> = bytes
            .chunks_exact(4)
            .map(|cell| format!("{:#x}", u32::from_be_bytes([cell[0], cell[1], cell[2], cell[3]])))
            .collect();
        let _ = writeln!(text, "{indent}{name} = <{}>;", cells.join(" "));
        true
    }
}
