//! What a run needs of ours: the simulated board's server, and the guest's program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tool;

const GUEST: [&str; 6] = ["init.c", "spidev.c", "nor.c", "can.c", "adc.c", "touch.c"];

/// Programs of ours.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    /// Serves a simulated board: bench/barewire-mmio's example.
    pub(super) server: PathBuf,
    /// The guest's `/init`.
    pub(super) init: PathBuf,
}

/// Builds them.
pub(super) fn build(root: &Path, target: &Path, work: &Path) -> Result<Programs, String> {
    let log = work.join("ours.log");
    // Optimised: what is simulated is most of a run.
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args([
        "build",
        "--release",
        "-p",
        "barewire-mmio",
        "--example",
        "serve",
    ]);
    tool::run(cargo.arg("--target-dir").arg(target), &log)?;
    let init = work.join("init");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-Wall", "-Wextra", "-Werror", "-static", "-o"]).arg(&init);
    let sources = root.join("bench/barewire-mmio/linux/checks");
    tool::run(compiler.args(GUEST.map(|name| sources.join(name))), &log)?;
    let server = target.join("release/examples/serve");
    fs::metadata(&server).map_err(|e| format!("cargo built no {}: {e}", server.display()))?;
    Ok(Programs { server, init })
}
