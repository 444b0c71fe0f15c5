//! A chip select's line that two controllers name: only one of them can have a driver.

use barewire_linux::survey::{Controller, SharedLine};

use super::facts::line;
use super::report::{Finding, Level, Way};

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
