//! Builds the command as a static program, for guests and packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tool;

/// Static programs for 64-bit Arm, 32-bit Arm and x86-64.
pub(crate) const ARM64: &str = "aarch64-unknown-linux-musl";
pub(crate) const ARMHF: &str = "armv7-unknown-linux-gnueabihf";
pub(crate) const AMD64: &str = "x86_64-unknown-linux-musl";

/// What the library that `barewire run` loads is built for: it shares the programs' C library.
pub(crate) const LIBRARY_ARM64: &str = "aarch64-unknown-linux-gnu";
pub(crate) const LIBRARY_ARMHF: &str = ARMHF;
pub(crate) const LIBRARY_AMD64: &str = "x86_64-unknown-linux-gnu";

/// Builds that library for `target`, with the linker of its architecture; its file.
pub(crate) fn library(
    root: &Path,
    cargo: &Path,
    target: &str,
    linker: &str,
    profile: &str,
    log: &Path,
) -> Result<PathBuf, String> {
    let mut build = Command::new("cargo");
    build.args(["build", "-p", "barewire-spidev-preload", "--locked", "--profile", profile]);
    build.args(["--target", target, "--target-dir"]).arg(cargo).current_dir(root);
    build.env(linker_variable(target), linker).env("RUSTFLAGS", atomics(target));
    tool::run(&mut build, log)?;
    Ok(cargo.join(target).join(profile).join("libbarewire_spidev.so"))
}

/// The boards' Cortex-A53 have no LSE atomics, which a build for all of aarch64 looks for in a call.
pub(crate) fn atomics(target: &str) -> &'static str {
    match target {
        ARM64 | LIBRARY_ARM64 => "-C target-feature=-outline-atomics",
        _ => "",
    }
}

/// The variable that names a target's linker to Cargo.
pub(crate) fn linker_variable(target: &str) -> String {
    format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"))
}

/// Builds the command for `target` in `profile`, with `cargo` as the directory of its builds; its file.
/// What Cargo says goes to `log`.
pub(crate) fn command(
    root: &Path,
    cargo: &Path,
    target: &str,
    profile: &str,
    log: &Path,
) -> Result<PathBuf, String> {
    let mut build = Command::new("cargo");
    build.args(["build", "-p", "barewire-cli", "--locked", "--profile", profile]);
    build.args(["--target", target, "--target-dir"]).arg(cargo).current_dir(root);
    // The C compiler fails as the linker of musl's self-contained objects.
    let (linker, flags) = match target {
        ARM64 => ("rust-lld", atomics(ARM64)),
        ARMHF => ("arm-linux-gnueabihf-gcc", "-C target-feature=+crt-static"),
        _ => ("rust-lld", ""),
    };
    build.env(linker_variable(target), linker).env("RUSTFLAGS", flags);
    tool::run(&mut build, log)?;
    Ok(cargo.join(target).join(profile).join("barewire"))
}
