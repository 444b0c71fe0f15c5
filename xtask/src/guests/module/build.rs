//! Builds the kernel module: its Rust half into one object, and both halves against a kernel's headers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::board::Arch;
use super::super::boot::Files;
use super::super::build::{self, Dirs};
use super::super::packages::Kernel;
use crate::static_build::{KERNEL_ARM64, KERNEL_ARMHF};
use crate::tool;

/// The functions of the Rust half that the C half calls.
const OFFERED: [&str; 9] = [
    "bw_sizes",
    "bw_init",
    "bw_leave",
    "bw_limits",
    "bw_configure",
    "bw_exchange",
    "bw_run",
    "bw_resume",
    "bw_arm",
];
/// The functions of the C half that it calls. The kernel's own are not its affair.
const WANTED: [&str; 4] = ["bw_line_set", "bw_now_ns", "bw_panicked", "bw_wait_ns"];

/// The Rust target of an architecture's kernel, which has no floating point.
fn target(arch: Arch) -> &'static str {
    match arch {
        Arch::Arm64 => KERNEL_ARM64,
        Arch::Armhf => KERNEL_ARMHF,
    }
}

/// The programs that are the same for all kernels, linked statically, and the words of the scripts.
pub(super) fn programs(dirs: &Dirs, arch: Arch) -> Result<Files, String> {
    let abi = "../command/barewire-cli/tests/clients/spidev_abi.c";
    let mut files = vec![
        ("bin/spibench".into(), build::marked(dirs, arch, "spibench")?),
        ("module-lib.sh".into(), dirs.source("module-lib.sh")),
    ];
    for source in ["spimessage.c", "spichecks.c", abi] {
        let source = dirs.source(source);
        let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let out = dirs.made(&format!("static-{}", arch.linux()), &name)?;
        let mut gcc = build::client(arch, &source, &out);
        tool::answer(gcc.arg("-static"))?;
        files.push((format!("bin/{name}"), out));
    }
    Ok(files)
}

/// Builds the Rust half for an architecture, with a feature of that crate if it is not empty.
pub(super) fn rust(dirs: &Dirs, arch: Arch, feature: &str) -> Result<PathBuf, String> {
    let object = dirs.made(&format!("rust{feature}-{}", arch.linux()), "rust.o")?;
    let half = Half {
        root: &dirs.root,
        target: target(arch),
        feature,
        flags: "",
        cross: arch.cross(),
        others: &[],
        cargo: &dirs.work.join("cargo-module"),
        log: &dirs.made("log", "cargo-module.log")?,
    };
    half.build(&object)?;
    Ok(object)
}

/// How the Rust half is built for a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Half<'a> {
    /// The workspace.
    pub(crate) root: &'a Path,
    pub(crate) target: &'a str,
    /// A feature of that crate, if it is not empty.
    pub(crate) feature: &'a str,
    /// Flags of the compiler, beyond the target's.
    pub(crate) flags: &'a str,
    /// What the names of the binutils begin with.
    pub(crate) cross: &'a str,
    /// Functions that it calls beside [`WANTED`].
    pub(crate) others: &'a [&'a str],
    /// The directory of Cargo's builds.
    pub(crate) cargo: &'a Path,
    /// The file that gets Cargo's output.
    pub(crate) log: &'a Path,
}

impl Half<'_> {
    /// Builds it into one object, without symbols that are not the C half's.
    pub(crate) fn build(&self, object: &Path) -> Result<(), String> {
        let mut build = Command::new("cargo");
        build.args(["build", "--release", "--locked", "--target", self.target]);
        build
            .args(["--features", self.feature])
            .arg("--target-dir")
            .arg(self.cargo)
            .current_dir(self.root.join("kernel"))
            .env("RUSTFLAGS", self.flags);
        tool::run(&mut build, self.log)?;
        let archive = self.cargo.join(self.target).join("release/libbarewire_kernel.a");
        let tool = |name: &str| Command::new(format!("{}{name}", self.cross));
        // Everything that the C half's calls reach, and nothing else.
        let mut link = tool("ld");
        link.args(["-r", "-S", "--gc-sections", "-e", "bw_run"]);
        link.args(OFFERED.iter().flat_map(|name| ["-u", name])).arg("-o").arg(object).arg(&archive);
        tool::answer(&mut link)?;
        let mut strip = tool("objcopy");
        strip.args(
            [".debug*", ".llvm*", ".comment", ".eh_frame*", ".ARM.exidx*", ".ARM.extab*"]
                .map(|of| format!("--remove-section={of}")),
        );
        tool::answer(strip.arg(object))?;
        let undefined = tool::answer(tool("nm").arg("-u").arg(object))?;
        let undefined = String::from_utf8_lossy(&undefined).into_owned();
        match stranger(&undefined, self.others) {
            None => Ok(()),
            Some(name) => {
                Err(format!("the Rust half of the module needs {name}, which the C half has not"))
            }
        }
    }
}

/// The first undefined symbol of nm's that is neither the C half's nor one of the others.
fn stranger<'t>(undefined: &'t str, others: &[&str]) -> Option<&'t str> {
    let mut names = undefined.lines().filter_map(|line| line.split_whitespace().last());
    names.find(|name| !WANTED.contains(name) && !others.contains(name))
}

/// Builds both halves for a kernel. The feature is that of the Rust half.
pub(super) fn module(
    dirs: &Dirs,
    kernel: &Kernel,
    arch: Arch,
    feature: &str,
    rust: &Path,
) -> Result<PathBuf, String> {
    let sources = dirs.root.join("kernel/module");
    let folder = format!("barewire{feature}-{}", kernel.version);
    made(dirs, kernel, arch, (&folder, "barewire"), &sources, &[("rust.o_shipped", rust)])
}

/// Builds the client that counts what messages in the kernel cost.
pub(super) fn counter(dirs: &Dirs, kernel: &Kernel, arch: Arch) -> Result<PathBuf, String> {
    let folder = format!("spicount-{}", kernel.version);
    made(dirs, kernel, arch, (&folder, "spicount"), &dirs.source("spicount"), &[])
}

/// Builds the module `name` in `folder` from a folder of sources and other files.
fn made(
    dirs: &Dirs,
    kernel: &Kernel,
    arch: Arch,
    (folder, name): (&str, &str),
    sources: &Path,
    others: &[(&str, &Path)],
) -> Result<PathBuf, String> {
    let module = dirs.made(folder, &format!("{name}.ko"))?;
    let place = module.parent().unwrap_or(&module);
    copied(sources, others, place)?;
    build::make_module(dirs, kernel, arch, module)
}

/// Copies a folder of sources and other files to a place where a module is built.
pub(crate) fn copied(sources: &Path, others: &[(&str, &Path)], place: &Path) -> Result<(), String> {
    let listed =
        fs::read_dir(sources).map_err(|e| format!("cannot read {}: {e}", sources.display()))?;
    let mut files: Vec<(String, PathBuf)> = listed
        .flatten()
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .collect();
    files.extend(others.iter().map(|&(name, path)| (name.to_owned(), path.to_owned())));
    for (name, from) in files {
        let to = place.join(&name);
        // A file that is the same keeps its time, and is not compiled again.
        let content = build::read(&from)?;
        if fs::read(&to).ok().as_ref() != Some(&content) {
            fs::write(&to, content).map_err(|e| format!("cannot write {}: {e}", to.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_that_the_c_half_lacks_is_named() {
        assert_eq!(
            stranger("                 U bw_line_set\n                 U bw_now_ns\n", &[]),
            None
        );
        let copies = "         U bw_line_set\n         U memcpy\n";
        assert_eq!(stranger(copies, &[]), Some("memcpy"));
        assert_eq!(stranger(copies, &["memcpy"]), None);
    }

    #[test]
    fn the_header_declares_every_function_of_both_halves() {
        let header = include_str!("../../../../kernel/module/barewire.h");
        for name in OFFERED.iter().chain(&WANTED) {
            assert!(header.contains(&format!(" {name}(")), "{name}");
        }
    }
}
