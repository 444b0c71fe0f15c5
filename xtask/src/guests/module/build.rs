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
const OFFERED: [&str; 14] = [
    "bw_sizes",
    "bw_init",
    "bw_leave",
    "bw_limits",
    "bw_configure",
    "bw_exchange",
    "bw_run",
    "bw_resume",
    "bw_arm",
    "bw_takes_selected",
    "bw_exchange_ecspi",
    "bw_exchange_bcm2835",
    "bw_exchange_pl022",
    "bw_reclaim",
];
/// Those of [`OFFERED`] that a message or a prepared access calls: no panic is reachable from them.
const MESSAGE_PATH: [&str; 11] = [
    "bw_configure",
    "bw_exchange",
    "bw_run",
    "bw_resume",
    "bw_arm",
    "bw_takes_selected",
    "bw_exchange_ecspi",
    "bw_exchange_bcm2835",
    "bw_exchange_pl022",
    "bw_reclaim",
    "bw_leave",
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
        ("module-api.sh".into(), dirs.source("module-api.sh")),
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

/// Builds the Rust half for an architecture: one object without symbols that are not the C half's. With a feature of
/// that crate if it is not empty.
pub(super) fn rust(dirs: &Dirs, arch: Arch, feature: &str) -> Result<PathBuf, String> {
    let (cargo, log) = (dirs.work.join("cargo-module"), dirs.made("log", "cargo-module.log")?);
    let mut build = Command::new("cargo");
    build.args(["build", "--release", "--locked", "--target", target(arch)]);
    build
        .args(["--features", feature])
        .arg("--target-dir")
        .arg(&cargo)
        .current_dir(dirs.root.join("kernel"));
    build.env_remove("RUSTFLAGS");
    tool::run(&mut build, &log)?;
    let archive = cargo.join(target(arch)).join("release/libbarewire_kernel.a");
    let object = dirs.made(&format!("rust{feature}-{}", arch.linux()), "rust.o")?;
    let tool = |name: &str| Command::new(format!("{}{name}", arch.cross()));
    // Everything that these reach, and nothing else. With the compiler's bitcode nm would see no symbols.
    let linked = |names: &[&str], object: &Path| {
        let mut link = tool("ld");
        link.args(["-r", "-S", "--gc-sections", "-e", "bw_run"]);
        link.args(names.iter().flat_map(|name| ["-u", name])).arg("-o").arg(object).arg(&archive);
        tool::answer(&mut link)?;
        let mut strip = tool("objcopy");
        strip.args(
            [".debug*", ".llvm*", ".comment", ".eh_frame*", ".ARM.exidx*", ".ARM.extab*"]
                .map(|of| format!("--remove-section={of}")),
        );
        tool::answer(strip.arg(object))
    };
    linked(&OFFERED, &object)?;
    // The feature is for panics.
    if feature.is_empty() {
        let messages = object.with_file_name("messages.o");
        linked(&MESSAGE_PATH, &messages)?;
        let names = tool::answer(tool("nm").arg(&messages))?;
        if let Some(wrong) = panic(&String::from_utf8_lossy(&names)) {
            return Err(format!("{wrong}: {}", messages.display()));
        }
    }
    let undefined = tool::answer(tool("nm").arg("-u").arg(&object))?;
    let undefined = String::from_utf8_lossy(&undefined).into_owned();
    match stranger(&undefined) {
        None => Ok(object),
        Some(name) => {
            Err(format!("the Rust half of the module needs {name}, which the C half has not"))
        }
    }
}

/// What is wrong with nm's symbols of the message path: one that belongs to a panic, or a function of the path that is not there.
/// Undefined ones stay in the table whether or not they are called: the panic handler would call `bw_panicked`.
fn panic(names: &str) -> Option<String> {
    let defined = names.lines().filter(|line| !line.contains(" U "));
    let names: Vec<&str> = defined.filter_map(|line| line.split_whitespace().last()).collect();
    if let Some(missing) = MESSAGE_PATH.iter().find(|name| !names.contains(name)) {
        return Some(format!("nm does not show {missing}"));
    }
    let belongs = |name: &&&str| {
        ["panicking", "begin_unwind", "slice_index"].iter().any(|of| name.contains(of))
    };
    let found = names.iter().find(belongs)?;
    Some(format!("a message can panic: it reaches {found}; objdump -dr shows who calls it"))
}

/// The first undefined symbol of nm's that the C half does not have.
fn stranger(undefined: &str) -> Option<&str> {
    let mut names = undefined.lines().filter_map(|line| line.split_whitespace().last());
    names.find(|name| !WANTED.contains(name))
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

/// The clients in the kernel: what messages cost, prepared accesses, and registers through either bus of regmap.
const CLIENTS: [&str; 4] = ["spicount", "spiapi", "spiregmap", "spiregmap_barewire"];

/// Builds the clients, against the symbols of `module`.
pub(super) fn clients(
    dirs: &Dirs,
    kernel: &Kernel,
    arch: Arch,
    module: &Path,
) -> Result<Files, String> {
    let folder = format!("spicount-{}", kernel.version);
    let (name, sources) = (CLIENTS[0], dirs.source("spicount"));
    let others = [
        ("barewire_spi.h", &*dirs.root.join("kernel/module/barewire_spi.h")),
        // Kbuild looks for it by this name, with the symbols of other modules.
        ("barewire.symvers", &*module.with_file_name("Module.symvers")),
    ];
    let first = made(dirs, kernel, arch, (&folder, name), &sources, &others)?;
    let files =
        CLIENTS.map(|name| (format!("m/{name}.ko"), first.with_file_name(format!("{name}.ko"))));
    Ok(files.into())
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
    build::make_module(dirs, kernel, arch, module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_that_the_c_half_lacks_is_named() {
        assert_eq!(
            stranger("                 U bw_line_set\n                 U bw_now_ns\n"),
            None
        );
        assert_eq!(stranger("         U bw_line_set\n         U memcpy\n"), Some("memcpy"));
    }

    #[test]
    fn a_panic_that_a_message_reaches_is_found() {
        let clean = MESSAGE_PATH.map(|name| format!("0000 T {name}\n")).concat();
        assert_eq!(panic(&clean), None);
        assert_eq!(panic(&format!("{clean}     U bw_panicked\n")), None);
        assert!(panic(&format!("{clean}0000 t _RN7___rustc17rust_begin_unwind\n")).is_some());
        let called = "0000 t _RNvNtCs3g5_4core9panicking5panic\n";
        assert!(panic(&format!("{clean}{called}")).is_some_and(|why| why.contains("5panic")));
        // A tool that shows nothing proves nothing.
        assert!(panic("").is_some_and(|why| why.contains("does not show")));
        assert!(MESSAGE_PATH.iter().all(|name| OFFERED.contains(name)));
    }

    #[test]
    fn the_header_declares_every_function_of_both_halves() {
        let header = include_str!("../../../../kernel/module/barewire.h");
        for name in OFFERED.iter().chain(&WANTED) {
            assert!(header.contains(&format!(" {name}(")), "{name}");
        }
    }
}
