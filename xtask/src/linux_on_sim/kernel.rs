//! User-mode Linux from Debian's source, with our file and our configuration: built once.
//!
//! How it works: apt fetches Debian's package `linux-source-6.1` (guests' own apt, so no root and no change
//! to the machine). The files of `bench/barewire-mmio/linux` are put into its `arch/um/drivers`, and our
//! fragment is what `allnoconfig` starts from. The result is kept by the package's version and a sum over our
//! files: after a change of our files, the changed parts are rebuilt in the same tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::package;
use crate::context::Stop;
use crate::tool;

const PACKAGE: &str = "linux-source-6.1";
const UNPACKED: &str = "linux-source-6.1";
/// Our files in the kernel's tree.
const FILES: [&str; 3] = ["barewire_mmio.c", "barewire_mmio_user.c", "barewire_mmio.h"];
const MODULE: &str = "drivers/spi/spi-loopback-test.ko";

/// What the kernel's own files need to know of ours.
const KCONFIG: &str = "\n\
config BAREWIRE_MMIO\n\
\tbool \"Register blocks of a simulated board\"\n\
\tdepends on OF\n\
\tselect UML_IOMEM_EMULATION\n\
\tselect UML_DMA_EMULATION\n\
\tselect IRQ_DOMAIN\n\
\tselect GPIOLIB\n";
const OBJECTS: &str = "obj-$(CONFIG_BAREWIRE_MMIO) += barewire_mmio.o barewire_mmio_user.o\n";
const USER_OBJECTS: &str = "USER_OBJS := ";
/// The room for a task's vector registers, in bytes, as 6.1 has it: it ends before AMX, whose tiles take 8 KiB. On a
/// processor with AMX the host refuses the short area, and no program of the guest starts. Later kernels ask the host.
const VECTORS: &str = "HOST_FP_SIZE, 2696";
const VECTORS_WITH_AMX: &str = "HOST_FP_SIZE, 12288";

/// A kernel that can be booted.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    /// The program.
    pub(super) linux: PathBuf,
    /// spi-loopback-test, which Linux has as a module only.
    pub(super) module: PathBuf,
    /// Where it was built, for modules.
    pub(super) tree: PathBuf,
    /// What it was built from, for people.
    pub(super) version: String,
}

/// Fetches and builds what is not there yet.
pub(super) fn obtain(work: &Path, ours: &Path, say: &dyn Fn(&str)) -> Result<Kernel, Stop> {
    fs::create_dir_all(work).map_err(|e| broke(format!("cannot make {}: {e}", work.display())))?;
    let package = package::fetched(work, PACKAGE, say).map_err(Stop::Lacks)?;
    let sum = sum(ours, &package).map_err(Stop::Broke)?;
    let dir = work.join(format!("kernel-{sum:016x}"));
    let kernel = Kernel {
        linux: dir.join("linux"),
        module: dir.join("spi-loopback-test.ko"),
        tree: work.join(UNPACKED),
        version: package.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    };
    let built = kernel.tree.join(".barewire-built");
    let is_here = fs::read_to_string(&built).is_ok_and(|of| of == format!("{sum:016x}"));
    if !(is_here && kernel.linux.is_file() && kernel.module.is_file()) {
        build(work, ours, &package, say).map_err(Stop::Broke)?;
        let tree = &kernel.tree;
        fs::create_dir_all(&dir)
            .map_err(|e| broke(format!("cannot make {}: {e}", dir.display())))?;
        // The program comes last: its presence says that the rest is there.
        for (from, to) in [(MODULE, &kernel.module), ("linux", &kernel.linux)] {
            fs::copy(tree.join(from), to).map_err(|e| broke(format!("cannot keep {from}: {e}")))?;
        }
        fs::write(&built, format!("{sum:016x}"))
            .map_err(|e| broke(format!("cannot write {}: {e}", built.display())))?;
    }
    Ok(kernel)
}

fn broke(why: String) -> Stop {
    Stop::Broke(why)
}

/// FNV-1a over what the kernel is built from.
fn sum(ours: &Path, package: &Path) -> Result<u64, String> {
    let mut all =
        package.file_name().unwrap_or_default().to_string_lossy().into_owned().into_bytes();
    for name in FILES.into_iter().chain(["config"]) {
        let path = ours.join(name);
        all.extend(fs::read(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?);
    }
    all.extend_from_slice(KCONFIG.as_bytes());
    all.extend_from_slice(VECTORS_WITH_AMX.as_bytes());
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    Ok(all.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

fn build(work: &Path, ours: &Path, package: &Path, say: &dyn Fn(&str)) -> Result<(), String> {
    let tree = work.join(UNPACKED);
    let log = work.join("build.log");
    let of = tree.join(".barewire-package");
    let name = package.file_name().unwrap_or_default().to_string_lossy();
    let edited = format!("{name}, {VECTORS_WITH_AMX}");
    if fs::read_to_string(&of).is_ok_and(|of| of == edited) {
        say("the kernel's tree is there; building what changed");
    } else {
        say("unpacking the kernel's source");
        _ = fs::remove_dir_all(&tree);
        let debian = package::unpacked(work, package, "debian")?;
        let archive = debian.join(format!("usr/src/{UNPACKED}.tar.xz"));
        tool::run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(work), &log)?;
        _ = fs::remove_dir_all(&debian);
        told_of_ours(&tree)?;
        fs::write(&of, &edited).map_err(|e| format!("cannot write {}: {e}", of.display()))?;
    }
    let drivers = tree.join("arch/um/drivers");
    for name in FILES {
        let (from, to) = (ours.join(name), drivers.join(name));
        let same = fs::read(&from).ok() == fs::read(&to).ok();
        if !same {
            fs::copy(&from, &to).map_err(|e| format!("cannot copy {}: {e}", from.display()))?;
        }
    }
    let fragment = ours.join("config");
    let before = fs::read(tree.join(".config")).ok();
    let config = format!("KCONFIG_ALLCONFIG={}", fragment.display());
    tool::run(make(&tree).args([&config, "allnoconfig"]), &log)?;
    let taken = fs::read_to_string(tree.join(".config"))
        .map_err(|e| format!("cannot read the kernel's configuration: {e}"))?;
    let wanted = fs::read_to_string(&fragment)
        .map_err(|e| format!("cannot read {}: {e}", fragment.display()))?;
    let missing = not_taken(&wanted, &taken);
    if !missing.is_empty() {
        return Err(format!("the kernel does not take {}", missing.join(", ")));
    }
    if before.is_none() {
        say("building user-mode Linux, once: two minutes on two quiet cores");
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = format!("-j{processors}");
    tool::run(make(&tree).args([&jobs, "linux", "modules"]), &log)
}

fn make(tree: &Path) -> Command {
    let mut make = Command::new("make");
    make.arg("-C").arg(tree).arg("ARCH=um").env("LC_ALL", "C");
    make
}

/// Tells the kernel's Kconfig and Makefile of our files, and makes room for [`VECTORS_WITH_AMX`].
fn told_of_ours(tree: &Path) -> Result<(), String> {
    let edit = |name: &str, edit: &dyn Fn(String) -> String| {
        let path = tree.join(name);
        let text = fs::read_to_string(&path);
        let text = text.map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        fs::write(&path, edit(text)).map_err(|e| format!("cannot write {}: {e}", path.display()))
    };
    edit("arch/um/drivers/Kconfig", &|text| text + KCONFIG)?;
    edit("arch/um/drivers/Makefile", &|text| {
        text.replacen(USER_OBJECTS, &format!("{OBJECTS}\n{USER_OBJECTS}barewire_mmio_user.o "), 1)
    })?;
    edit("arch/x86/um/user-offsets.c", &|text| text.replacen(VECTORS, VECTORS_WITH_AMX, 1))
}

/// Options of the fragment that the configuration does not have.
fn not_taken<'t>(wanted: &'t str, taken: &str) -> Vec<&'t str> {
    let lines: Vec<&str> = taken.lines().collect();
    let is_missing = |line: &&str| {
        let off = line.strip_suffix("=n").map(|name| format!("# {name} is not set"));
        match off {
            // An option that depends on a disabled option is not mentioned at all.
            Some(_) => lines.contains(&line.replace("=n", "=y").as_str()),
            None => !lines.contains(line),
        }
    };
    wanted.lines().filter(|line| line.starts_with("CONFIG_")).filter(is_missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_not_taken_are_named() {
        let wanted = "# a\nCONFIG_A=y\nCONFIG_B=m\nCONFIG_C=n\nCONFIG_D=n\n";
        let taken = "CONFIG_A=y\nCONFIG_B=y\n# CONFIG_C is not set\nCONFIG_D=y\n";
        assert_eq!(not_taken(wanted, taken), ["CONFIG_B=m", "CONFIG_D=n"]);
    }
}
