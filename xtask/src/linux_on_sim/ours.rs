//! What a run needs of ours: the simulated board's server, and the guest's program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::package;
use crate::tool;

const GUEST: [&str; 8] =
    ["init.c", "module.c", "spidev.c", "mute.c", "nor.c", "can.c", "adc.c", "touch.c"];

/// Programs of ours.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    /// Serves a simulated board: bench/barewire-mmio's example.
    pub(super) server: PathBuf,
    /// The guest's `/init`.
    pub(super) init: PathBuf,
    /// Programs of Debian's, and the C library that they load: each with its name in the guest.
    pub(super) others: Vec<(String, PathBuf)>,
}

/// can-utils' programs that the guest runs.
const CAN_UTILS: [&str; 2] = ["cangen", "candump"];
/// Debian's loader of x86-64 programs, and the C library beside it.
const LOADER: &str = "lib64/ld-linux-x86-64.so.2";
const C_LIBRARY: &str = "lib/x86_64-linux-gnu/libc.so.6";

/// can-utils, which are fetched and not installed, and the machine's own C library.
fn others(work: &Path, say: &dyn Fn(&str)) -> Result<Vec<(String, PathBuf)>, String> {
    let package = package::fetched(work, "can-utils", say)?;
    let folder = package::unpacked(work, &package, "can-utils")?;
    let programs = CAN_UTILS.map(|name| (format!("bin/{name}"), folder.join("usr/bin").join(name)));
    let libraries = [LOADER, C_LIBRARY].map(|name| (name.to_owned(), Path::new("/").join(name)));
    Ok(programs.into_iter().chain(libraries).collect())
}

/// Builds them.
pub(super) fn build(
    root: &Path,
    target: &Path,
    work: &Path,
    say: &dyn Fn(&str),
) -> Result<Programs, String> {
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
    Ok(Programs { server, init, others: others(work, say)? })
}
