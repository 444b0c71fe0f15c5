//! Asks chips for their identity, each by a command of its own: an access to a block that does not
//! answer ends that process, not this one.

use std::process::Command;

use super::report::Report;
use crate::shared::failure::Failure;
use crate::shared::output::note;

/// Runs what the report proposes to try on buses that are ready.
pub(super) fn known(report: &Report) -> Result<(), Failure> {
    let ways = report.controllers.iter().flat_map(|controller| &controller.ways);
    let mut asked = false;
    for command in ways.filter(|way| way.ready).flat_map(|way| &way.tries) {
        asked = true;
        ask(command.split_whitespace().skip(1))?;
    }
    if !asked {
        note!(
            "barewire: no chip was asked: no ready bus has one that the device tree names (--probe-anyway CS asks without)"
        );
    }
    Ok(())
}

/// Sends 9F to the chip, without knowing its kind.
pub(super) fn anyway(bus: &str, chip_select: u8) -> Result<(), Failure> {
    let chip_select = chip_select.to_string();
    ask(["flash", "id", "--bus", bus, "--cs", &chip_select].into_iter())
}

fn ask<'a>(arguments: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let program =
        std::env::current_exe().map_err(|error| Failure::io("find this program", &error))?;
    let status = Command::new(program).args(arguments).status();
    let status = status.map_err(|error| Failure::io("run the question", &error))?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Failed(format!("the chip did not answer ({status})"))),
    }
}
