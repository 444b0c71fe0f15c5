//! Lines of chip selects: in words, and those that two controllers name, of which only one can have a driver.

use barewire_linux::survey::{Controller, Select, SelectAt, SharedLine};

use super::report::{Finding, Level, Way};

/// Where a chip select's line is, in words.
pub(super) fn line(select: &Select) -> String {
    let active = if select.active_high { ", active high" } else { "" };
    match &select.at {
        SelectAt::Native { channel } => format!("the controller's line {channel}{active}"),
        SelectAt::Gpio { address, offset, chip } => {
            let chip = chip.as_ref().map(|chip| format!(" ({})", chip.path)).unwrap_or_default();
            format!("line {offset} of the GPIO chip at {address:#x}{chip}{active}")
        }
        SelectAt::Elsewhere { node, offset } => {
            format!("line {offset} of {node}, a chip beyond the SoC{active}")
        }
    }
}

pub(super) fn findings(controller: &Controller) -> Vec<Finding> {
    let finding = |shared: &SharedLine| {
        let about = format!("--cs {}", shared.chip_select);
        Finding::new(Level::Problem, &about, text(controller, shared))
    };
    controller.shared.iter().map(finding).collect()
}

/// Why the controller's lines cannot be had, if the kernel's driver of another controller holds one.
pub(crate) fn held(controller: &Controller) -> Option<String> {
    let held = controller.shared.iter().find(|shared| shared.held_by.is_some())?;
    Some(text(controller, held))
}

fn text(controller: &Controller, shared: &SharedLine) -> String {
    let SharedLine { chip_select, other, other_chip_select, held_by } = shared;
    let line = line(&controller.selects[*chip_select]);
    let holder = match held_by {
        Some(driver) => format!(", whose driver {driver} holds it"),
        None => String::new(),
    };
    format!(
        "{line} is also chip select {other_chip_select} of {other}{holder}: a line has one user, so name another line in cs-gpios of one of them"
    )
}

/// Closes the ways to the registers of a controller whose line another's driver holds.
pub(super) fn close(controller: &Controller, ways: &mut [Way]) {
    let Some(why) = held(controller) else { return };
    for way in ways.iter_mut().filter(|way| way.kind != "spidev") {
        *way = Way { obstacles: vec![why.clone()], ..Way::new(way.kind) };
    }
}
