//! Programs of this workspace, as the step `test` built them, for steps that run them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::context::Context;
use crate::linted;
use crate::tool;

/// The libraries, the command, and programs by others that are built here.
const USED: [&str; 11] = [
    "--lib",
    "--bin",
    "barewire",
    "--example",
    "spidev_client",
    "--example",
    "display_client",
    "--example",
    "rppal_client",
    "--example",
    "flash_client",
];

/// Builds [`USED`], which the step `test` has mostly built already. Returns their directory.
///
/// By `--workspace`: a package alone has fewer features of its dependencies, so cargo would build the core,
/// the simulator and all that is above them once more for each choice of packages.
///
/// # Errors
/// If it does not build: the end of cargo's output.
pub(crate) fn build(cx: &Context, log: &Path) -> Result<PathBuf, String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--workspace", "--profile", "ci"]).args(USED).envs(linted::VARIABLES);
    tool::run(cargo.current_dir(&cx.root), log)?;
    Ok(cx.root.join(cx.target_dir("ci")))
}
