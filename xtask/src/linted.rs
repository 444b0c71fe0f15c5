//! Builds that lint: clippy's compiler in the place of rustc, for the crates of this workspace.
//!
//! `cargo clippy` reads every crate a second time, with metadata of every dependency that is built for it alone:
//! a quarter of all the time that `cargo xtask test` took. clippy-driver is rustc with lints, so what it builds is
//! what the tests run, and each crate is read once. All steps that share a target directory must build so, since
//! cargo keeps what different compilers made apart.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::context::Context;
use crate::tool;

/// The environment of such a build: the compiler, and that a warning is an error.
pub(crate) const VARIABLES: [(&str, &str); 2] = [
    ("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"),
    // As `cargo clippy -- -D warnings` hands it over.
    ("CLIPPY_ARGS", "-Dwarnings__CLIPPY_HACKERY__"),
];

/// What the steps use that run programs of this workspace: the libraries, the command, and programs by others that are
/// built here.
const USED: [&str; 7] =
    ["--lib", "--bin", "barewire", "--example", "spidev_client", "--example", "display_client"];

/// Builds [`USED`], of which the step `test` has left nothing to do; the directory in which they are.
///
/// By `--workspace`: a package alone has fewer features of its dependencies, so cargo would build the core,
/// the simulator and all that is above them once more for each choice of packages.
///
/// # Errors
/// If it does not build: the end of what cargo said.
pub(crate) fn build(cx: &Context, log: &Path) -> Result<PathBuf, String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--workspace", "--profile", "ci"]).args(USED).envs(VARIABLES);
    tool::run(cargo.current_dir(&cx.root), log)?;
    Ok(cx.root.join(cx.target_dir("ci")))
}
