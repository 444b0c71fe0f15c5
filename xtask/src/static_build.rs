//! Builds the command as a static program, for guests and packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tool;

/// Static programs for 64-bit Arm, 32-bit Arm and x86-64.
pub(crate) const ARM64: &str = "aarch64-unknown-linux-musl";
pub(crate) const ARMHF: &str = "armv7-unknown-linux-gnueabihf";
pub(crate) const AMD64: &str = "x86_64-unknown-linux-musl";

/// The targets of the library that `barewire run` loads: it shares the programs' C library.
pub(crate) const LIBRARY_ARM64: &str = "aarch64-unknown-linux-gnu";
pub(crate) const LIBRARY_ARMHF: &str = ARMHF;
pub(crate) const LIBRARY_AMD64: &str = "x86_64-unknown-linux-gnu";

/// Code for kernels, which have no floating point.
pub(crate) const KERNEL_ARM64: &str = "aarch64-unknown-none-softfloat";
pub(crate) const KERNEL_ARMHF: &str = "armv7a-none-eabi";

/// The environment of a build.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// The workspace.
    pub(crate) root: &'a Path,
    /// The directory of Cargo's builds.
    pub(crate) cargo: &'a Path,
    pub(crate) profile: &'a str,
    /// Settings of Cargo for this build. They override those in its files.
    pub(crate) config: &'a [&'a str],
    /// The file that gets Cargo's output.
    pub(crate) log: &'a Path,
}

impl Place<'_> {
    /// Builds that library for each target, with the linker of its architecture. Returns the files.
    pub(crate) fn libraries(&self, targets: &[(&str, &str)]) -> Result<Vec<PathBuf>, String> {
        let targets: Vec<_> =
            targets.iter().map(|&(target, linker)| (target, linker, atomics(target))).collect();
        self.build("barewire-spidev-preload", &targets, "libbarewire_spidev.so")
    }

    /// Builds the command for each target; the files.
    pub(crate) fn commands(&self, targets: &[&str]) -> Result<Vec<PathBuf>, String> {
        let targets: Vec<_> = targets.iter().copied().map(alone).collect();
        self.build("barewire-cli", &targets, "barewire")
    }

    /// Builds an example of `barewire-linux` for a target. Returns the file.
    pub(crate) fn example(&self, name: &str, target: &str) -> Result<PathBuf, String> {
        self.run("barewire-linux", &["--example", name], &[alone(target)])?;
        Ok(self.cargo.join(target).join(self.profile).join("examples").join(name))
    }

    /// All in one run of Cargo: the largest crate is one unit of code, so each target keeps one processor busy.
    fn build(
        &self,
        package: &str,
        targets: &[(&str, &str, &str)],
        made: &str,
    ) -> Result<Vec<PathBuf>, String> {
        self.run(package, &[], targets)?;
        let file =
            |(target, ..): &(&str, _, _)| self.cargo.join(target).join(self.profile).join(made);
        Ok(targets.iter().map(file).collect())
    }

    fn run(
        &self,
        package: &str,
        what: &[&str],
        targets: &[(&str, &str, &str)],
    ) -> Result<(), String> {
        let mut build = Command::new("cargo");
        build.args(["build", "-p", package, "--locked", "--profile", self.profile]).args(what);
        build.arg("--target-dir").arg(self.cargo).current_dir(self.root);
        build.args(self.config.iter().flat_map(|setting| ["--config", setting]));
        // It would replace the flags of each target.
        build.env_remove("RUSTFLAGS");
        for (target, linker, flags) in targets {
            build.args(["--target", target]).env(variable(target, "LINKER"), linker);
            build.env(variable(target, "RUSTFLAGS"), flags);
        }
        tool::run(&mut build, self.log)
    }
}

/// A target with the linker and the flags of a static program.
fn alone(target: &str) -> (&str, &'static str, &'static str) {
    match target {
        // The C compiler fails as the linker of musl's self-contained objects.
        ARMHF => (target, "arm-linux-gnueabihf-gcc", "-C target-feature=+crt-static"),
        _ => (target, "rust-lld", atomics(target)),
    }
}

/// The boards' Cortex-A53 have no LSE atomics, which a build for all of aarch64 looks for in a call.
pub(crate) fn atomics(target: &str) -> &'static str {
    match target {
        ARM64 | LIBRARY_ARM64 => "-C target-feature=-outline-atomics",
        _ => "",
    }
}

/// The variable that tells Cargo a target's `LINKER` or `RUSTFLAGS`.
pub(crate) fn variable(target: &str, what: &str) -> String {
    format!("CARGO_TARGET_{}_{what}", target.to_uppercase().replace('-', "_"))
}
