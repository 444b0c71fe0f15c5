//! Builds the kernel module: its Rust half into one object, and both halves against a kernel's headers.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::board::Arch;
use super::super::boot::Files;
use super::super::build::{self, Dirs};
use super::super::packages::Kernel;
use crate::kernel_object::Half;
use crate::tool;

/// The programs that are the same for all kernels, linked statically, and the words of the scripts.
pub(super) fn programs(dirs: &Dirs, arch: Arch) -> Result<Files, String> {
    let abi = "../command/barewire-cli/tests/clients/spidev_abi.c";
    let mut files = vec![
        ("bin/spibench".into(), build::marked(dirs, arch, "spibench")?),
        ("module-lib.sh".into(), dirs.source("module-lib.sh")),
        ("module-api.sh".into(), dirs.source("module-api.sh")),
        ("module-door.sh".into(), dirs.source("module-door.sh")),
    ];
    for source in ["spimessage.c", "spichecks.c", "mtdpart.c", "doorcheck.c", abi] {
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
    let (cargo, log) = (dirs.work.join("cargo-module"), dirs.made("log", "cargo-module.log")?);
    let half = Half { feature, ..arch.machine().half(&dirs.root, &cargo, &log) };
    half.build(&object)?;
    Ok(object)
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
    let object = arch.machine().object();
    made(dirs, kernel, arch, (&folder, "barewire"), &sources, &[(&object, rust)])
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
    clients_of(dirs, kernel, arch, module, "spicount", &CLIENTS)
}

/// Builds the clients whose operations are priced.
pub(super) fn priced(
    dirs: &Dirs,
    kernel: &Kernel,
    arch: Arch,
    module: &Path,
) -> Result<Files, String> {
    clients_of(dirs, kernel, arch, module, "priced", &["spipriced_sync", "spipriced_run"])
}

/// Builds the clients of a folder of `guests`, against the symbols of `module`.
fn clients_of(
    dirs: &Dirs,
    kernel: &Kernel,
    arch: Arch,
    module: &Path,
    place: &str,
    names: &[&str],
) -> Result<Files, String> {
    let folder = format!("{place}-{}", kernel.version);
    let (name, sources) = (names[0], dirs.source(place));
    let others = [
        ("barewire_spi.h", &*dirs.root.join("kernel/module/barewire_spi.h")),
        // Kbuild looks for it by this name, with the symbols of other modules.
        ("barewire.symvers", &*module.with_file_name("Module.symvers")),
    ];
    let first = made(dirs, kernel, arch, (&folder, name), &sources, &others)?;
    let files = names
        .iter()
        .map(|name| (format!("m/{name}.ko"), first.with_file_name(format!("{name}.ko"))));
    Ok(files.collect())
}

/// Linux's own tests of mtd.
const MTD_TESTS: [&str; 3] = ["mtd_readtest", "mtd_speedtest", "mtd_stresstest"];

/// Builds them from the kernel's source.
pub(super) fn mtd_tests(
    dirs: &Dirs,
    kernel: &Kernel,
    arch: Arch,
    source: &Path,
) -> Result<Files, String> {
    let names = ["mtd_test.h", "mtd_test.c", "readtest.c", "speedtest.c", "stresstest.c"];
    let paths = names.map(|name| source.join(name));
    let others: Vec<(&str, &Path)> =
        names.into_iter().zip(paths.iter().map(|path| &**path)).collect();
    let folder = format!("mtdtests-{}", kernel.version);
    let first =
        made(dirs, kernel, arch, (&folder, MTD_TESTS[0]), &dirs.source("mtdtests"), &others)?;
    let files =
        MTD_TESTS.map(|name| (format!("m/{name}.ko"), first.with_file_name(format!("{name}.ko"))));
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
