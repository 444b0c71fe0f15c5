//! The parts of a guest: Debian's kernels, their modules, device trees and headers, busybox, and DKMS.
//!
//! 1. apt (see `apt`) fetches lists, and packages into `deb/`.
//! 2. Each is unpacked into a directory of `x/` that is named as the package's file, version included.
//! 3. `chosen` names these directories. While all of them are there nothing is fetched; `--update`
//!    looks again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::apt::Apt;
use super::board::{Arch, Flavour};
use crate::tool;

/// How the names of a 6.1 kernel's packages begin; the number of its ABI follows.
const IMAGE_6_1: &str = "linux-image-6.1.0-";
/// What the flavour of a 6.1 kernel with PREEMPT_RT is called.
const REAL_TIME: &str = "-rt-arm64";
/// The text in the list if apt's sources have no such kernel.
const NO_REAL_TIME: &str = "no real-time kernel";
/// How the names of backports' kernel packages begin; upstream's version and `+deb12` follow.
const IMAGE_6_12: &str = "linux-image-6.12.";
/// Where the kernel's source is unpacked.
const SOURCE: &str = "linux-source-6.1";
/// What is wanted of it: what Debian's kernels are built without.
const UIO_SOURCE: &str = "drivers/uio/uio_pdrv_genirq.c";
const MTD_TESTS: &str = "drivers/mtd/tests";

/// A kernel that guests boot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kernel {
    /// `6.1.0-50-arm64`.
    pub(super) version: String,
    /// Where its image package is unpacked.
    pub(super) image: PathBuf,
    /// The headers that modules are built against, if any are built.
    pub(super) headers: Option<Headers>,
}

/// A kernel's headers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Headers {
    /// Those of its flavour, and the part that all its flavours share.
    pub(super) own: PathBuf,
    pub(super) common: PathBuf,
    /// The programs that build modules.
    pub(super) kbuild: PathBuf,
}

/// DKMS and what it calls, for this machine.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Dkms {
    pub(super) script: PathBuf,
    /// kmod's one program, and the directory of its library.
    pub(super) kmod: PathBuf,
    pub(super) library: PathBuf,
}

impl Kernel {
    /// The file that QEMU boots.
    pub(super) fn boot(&self) -> PathBuf {
        self.image.join("boot").join(format!("vmlinuz-{}", self.version))
    }

    /// Where its modules are.
    pub(super) fn modules(&self) -> PathBuf {
        self.image.join("lib/modules").join(&self.version)
    }

    /// A device tree as Debian ships it.
    pub(super) fn device_tree(&self, name: &str) -> PathBuf {
        self.image.join(format!("usr/lib/linux-image-{}", self.version)).join(name)
    }

    /// `6.1.0-50` of `6.1.0-50-arm64`: what the common headers are called.
    pub(super) fn abi(&self) -> &str {
        self.version.rsplit_once('-').map_or(&self.version, |(abi, _flavour)| abi)
    }
}

/// All that was fetched.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Packages {
    pub(super) arm64: Kernel,
    pub(super) armhf: Kernel,
    /// A newer kernel for arm64, where the machine's sources have one.
    pub(super) newer: Option<Kernel>,
    /// The 6.1 kernel with PREEMPT_RT for arm64, where the machine's sources have it.
    pub(super) real_time: Option<Kernel>,
    busybox: [PathBuf; 2],
    pub(super) dkms: Dkms,
    /// uio_pdrv_genirq.c, and Linux's own tests of mtd.
    pub(super) uio_source: PathBuf,
    pub(super) mtd_tests: PathBuf,
}

impl Packages {
    /// The kernel of an architecture and a flavour, where the machine's sources have it.
    pub(super) fn kernel(&self, arch: Arch, flavour: Flavour) -> Option<&Kernel> {
        match (flavour, arch) {
            (Flavour::Stock, Arch::Arm64) => Some(&self.arm64),
            (Flavour::Stock, Arch::Armhf) => Some(&self.armhf),
            (Flavour::Newer, Arch::Arm64) => self.newer.as_ref(),
            (Flavour::RealTime, Arch::Arm64) => self.real_time.as_ref(),
            // No board of that architecture boots one.
            (Flavour::Newer | Flavour::RealTime, Arch::Armhf) => None,
        }
    }

    /// The static busybox of an architecture.
    pub(super) fn busybox(&self, arch: Arch) -> PathBuf {
        self.busybox[arch as usize].join("bin/busybox")
    }

    /// Returns the unpacked packages, and fetches those that are missing.
    ///
    /// # Errors
    /// A package cannot be fetched.
    pub(super) fn obtain(dir: &Path, update: bool, say: &dyn Fn(&str)) -> Result<Self, String> {
        let chosen = dir.join("chosen");
        if !update {
            let known = fs::read_to_string(&chosen).ok();
            if let Some(packages) = known.and_then(|text| Self::read(dir, &text)) {
                return Ok(packages);
            }
        }
        let text = fetch(dir, say)?;
        let packages = Self::read(dir, &text).ok_or("a package was unpacked and is not there")?;
        fs::write(&chosen, text).map_err(|e| format!("cannot write {}: {e}", chosen.display()))?;
        Ok(packages)
    }

    /// Reads the list of directories; `None` if one is missing.
    fn read(dir: &Path, text: &str) -> Option<Self> {
        let unpacked = dir.join("x");
        let find = |prefix: &str| {
            let name = text.lines().find(|line| line.starts_with(prefix))?;
            let path = unpacked.join(name);
            path.is_dir().then_some(path)
        };
        let image = |version: &str, headers| {
            let image = find(&format!("linux-image-{version}_"))?;
            Some(Kernel { version: version.to_owned(), image, headers: Some(headers) })
        };
        let kernel = |version: &str| {
            let abi = version.rsplit_once('-')?.0;
            let headers = Headers {
                own: find(&format!("linux-headers-{version}_"))?,
                common: find(&format!("{}_", common_headers(abi)))?,
                kbuild: find(&format!("linux-kbuild-{}_", kbuild_release(abi)))?,
            };
            image(version, headers)
        };
        let version = |prefix: &str, flavour: &str| {
            let kernels = text
                .lines()
                .filter_map(|line| Some(line.strip_prefix("linux-image-")?.split_once('_')?.0));
            let mut kernels = kernels.filter(|line| line.starts_with(prefix));
            kernels.find(|version| is_flavour(version, prefix, flavour)).map(str::to_owned)
        };
        let source = unpacked.join(text.lines().find_map(|line| line.strip_prefix("source "))?);
        let (uio_source, mtd_tests) = (source.join(UIO_SOURCE), source.join(MTD_TESTS));
        Some(Self {
            arm64: kernel(&version("6.1.", "-arm64")?)?,
            armhf: kernel(&version("6.1.", "-armmp")?)?,
            newer: match version("6.12.", "-arm64") {
                Some(version) => Some(kernel(&version)?),
                None => None,
            },
            real_time: match version("6.1.0-", REAL_TIME) {
                Some(version) => Some(kernel(&version)?),
                // A list that is older than the first boot of this flavour says nothing about it.
                None => text.lines().any(|line| line == NO_REAL_TIME).then_some(None)?,
            },
            busybox: [
                find_ending(text, &unpacked, "_arm64")?,
                find_ending(text, &unpacked, "_armhf")?,
            ],
            dkms: Dkms {
                script: find("dkms_")?.join("usr/sbin/dkms"),
                kmod: find("kmod_")?.join("bin/kmod"),
                library: library(&find("libkmod2_")?)?,
            },
            uio_source: uio_source.is_file().then_some(uio_source)?,
            mtd_tests: mtd_tests.is_dir().then_some(mtd_tests)?,
        })
    }
}

/// Whether a version is of that flavour, and not of one with a longer name: `6.1.0-50-rt-arm64` is no `-arm64`.
fn is_flavour(version: &str, prefix: &str, flavour: &str) -> bool {
    let inner = version.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(flavour));
    inner.is_some_and(|inner| !inner.ends_with("-rt"))
}

/// The directory of the library in a package, whose name has the machine's in it.
fn library(package: &Path) -> Option<PathBuf> {
    let folders = ["lib", "usr/lib"].map(|lib| fs::read_dir(package.join(lib)));
    let mut folders = folders.into_iter().flatten().flatten().flatten().map(|entry| entry.path());
    folders.find(|folder| folder.join("libkmod.so.2").exists())
}

fn find_ending(text: &str, unpacked: &Path, ending: &str) -> Option<PathBuf> {
    let mut lines = text.lines().filter(|line| line.starts_with("busybox-static_"));
    let path = unpacked.join(lines.find(|line| line.ends_with(ending))?);
    path.is_dir().then_some(path)
}

/// The version in linux-kbuild's name for an ABI: `6.1` for 6.1.0-50, the whole of backports'
/// versions.
fn kbuild_release(abi: &str) -> &str {
    if abi.starts_with("6.1.0-") { "6.1" } else { abi }
}

/// The package of the headers that all flavours of an ABI share; those with PREEMPT_RT have their own.
pub(super) fn common_headers(abi: &str) -> String {
    match abi.strip_suffix("-rt") {
        Some(abi) => format!("linux-headers-{abi}-common-rt"),
        None => format!("linux-headers-{abi}-common"),
    }
}

/// Fetches and unpacks; the list of directories.
fn fetch(dir: &Path, say: &dyn Fn(&str)) -> Result<String, String> {
    if tool::on_path("apt-get").is_none() || tool::on_path("dpkg-deb").is_none() {
        return Err("this machine has no apt".to_owned());
    }
    let (debs, unpacked, logs) = (dir.join("deb"), dir.join("x"), dir.join("log"));
    for dir in [&debs, &unpacked, &logs] {
        fs::create_dir_all(dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    }
    let apt = Apt::new(&dir.join("apt"))?;
    say("fetching apt's lists for arm64 and armhf");
    let updated = apt.update(&logs.join("apt-update.log"));
    let abi = newest(&apt.names(IMAGE_6_1)?, IMAGE_6_1, &["-arm64", "-armmp"]);
    let Some(abi) = abi else {
        let why = updated.err().unwrap_or_else(|| "the lists have none".to_owned());
        return Err(format!("no Linux 6.1 for arm64 and armhf in apt's sources: {why}"));
    };
    let mut names: Vec<String> = ["arm64", "armmp"]
        .iter()
        .flat_map(|flavour| {
            let arch = if *flavour == "armmp" { "armhf" } else { "arm64" };
            ["image", "headers"].map(|what| format!("linux-{what}-6.1.0-{abi}-{flavour}:{arch}"))
        })
        .collect();
    names.extend(["arm64", "armhf"].map(|arch| format!("busybox-static:{arch}")));
    names.push(format!("linux-headers-6.1.0-{abi}-common"));
    names.push("linux-kbuild-6.1".to_owned());
    names.extend(["dkms", "kmod", "libkmod2"].map(str::to_owned));
    let newer = newest(&apt.names(IMAGE_6_12)?, IMAGE_6_12, &["-arm64"]);
    if let Some(version) = &newer {
        let abi = format!("6.12.{version}");
        names.push(format!("linux-image-{abi}-arm64:arm64"));
        names.push(format!("linux-headers-{abi}-arm64:arm64"));
        names.push(format!("linux-headers-{abi}-common"));
        names.push(format!("linux-kbuild-{abi}"));
    }
    let mut text = String::new();
    match newest(&apt.names(IMAGE_6_1)?, IMAGE_6_1, &[REAL_TIME]) {
        Some(abi) => {
            let of = |what| format!("linux-{what}-6.1.0-{abi}{REAL_TIME}:arm64");
            names.extend(["image", "headers"].map(of));
            names.push(common_headers(&format!("6.1.0-{abi}-rt")));
        }
        None => text += &format!("{NO_REAL_TIME}\n"),
    }
    for name in &names {
        say(&format!("fetching {name}"));
        let folder = unpack(&apt, name, &debs, &unpacked, &logs)?;
        text += &format!("{folder}\n");
    }
    say("fetching a few files of linux-source-6.1 (139 MB)");
    text += &format!("source {}\n", source(&apt, &debs, &unpacked, &logs)?);
    Ok(text)
}

/// Fetches one package and unpacks it. Returns the name of its directory. The archive is deleted.
fn unpack(
    apt: &Apt,
    name: &str,
    debs: &Path,
    unpacked: &Path,
    logs: &Path,
) -> Result<String, String> {
    let deb = download(apt, name, debs, logs)?;
    let folder = deb.file_stem().unwrap_or_default().to_string_lossy().replace("%3a", ".");
    let target = unpacked.join(&folder);
    if !target.is_dir() {
        // Unpacks elsewhere first, so that a directory with that name is whole.
        let partial = unpacked.join("partial");
        let _ = fs::remove_dir_all(&partial);
        tool::answer(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(&partial))?;
        fs::rename(&partial, &target).map_err(|e| format!("cannot unpack {folder}: {e}"))?;
    }
    let _ = fs::remove_file(&deb);
    Ok(folder)
}

/// Fetches one package into an empty directory. Returns its file.
fn download(apt: &Apt, name: &str, debs: &Path, logs: &Path) -> Result<PathBuf, String> {
    let _ = fs::remove_dir_all(debs);
    fs::create_dir_all(debs).map_err(|e| format!("cannot make {}: {e}", debs.display()))?;
    apt.download(&[name.to_owned()], debs, &logs.join("apt-download.log"))?;
    let mut files = fs::read_dir(debs).into_iter().flatten().flatten().map(|entry| entry.path());
    files
        .find(|path| path.extension().is_some_and(|ending| ending == "deb"))
        .ok_or_else(|| format!("apt fetched no file for {name}"))
}

/// Gets what is wanted of the kernel's source; its directory below `unpacked`.
fn source(apt: &Apt, debs: &Path, unpacked: &Path, logs: &Path) -> Result<String, String> {
    let wanted = [UIO_SOURCE, MTD_TESTS].map(|path| format!("{SOURCE}/{path}"));
    if wanted.iter().all(|path| unpacked.join(path).exists()) {
        return Ok(SOURCE.to_owned());
    }
    let deb = download(apt, SOURCE, debs, logs)?;
    let partial = debs.join("partial");
    tool::answer(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(&partial))?;
    let archive = partial.join(format!("usr/src/{SOURCE}.tar.xz"));
    tool::answer(
        Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(unpacked).args(wanted),
    )?;
    let _ = fs::remove_dir_all(debs);
    Ok(SOURCE.to_owned())
}

/// The newest version that all `flavours` have among package `names`: what stands between `prefix`
/// and a flavour. Flavours are whole: `-rt-arm64` is no `-arm64`.
fn newest(names: &[String], prefix: &str, flavours: &[&str]) -> Option<String> {
    let versions = |flavour: &str| -> Vec<&str> {
        let inner = |name: &'_ String| -> Option<usize> {
            let version = name.strip_prefix(prefix)?.strip_suffix(flavour)?;
            (!version.is_empty() && !version.contains('-')).then_some(version.len())
        };
        names
            .iter()
            .filter_map(|name| Some(&name[prefix.len()..prefix.len() + inner(name)?]))
            .collect()
    };
    let (first, others) = flavours.split_first()?;
    versions(first)
        .into_iter()
        .filter(|version| others.iter().all(|flavour| versions(flavour).contains(version)))
        .max_by_key(|version| numbers(version))
        .map(str::to_owned)
}

/// A version as its numbers, which compare as versions do: 9 before 50.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_newest_kernel_is_one_that_both_architectures_have() {
        let names = owned(&[
            "linux-image-6.1.0-9-arm64",
            "linux-image-6.1.0-9-armmp",
            "linux-image-6.1.0-47-arm64",
            "linux-image-6.1.0-47-armmp",
            "linux-image-6.1.0-50-arm64",
            "linux-image-6.1.0-51-rt-arm64",
            "linux-image-6.1.0-51-armmp-lpae",
            "linux-image-6.1.0-52-cloud-arm64",
            "linux-image-6.1.0-52-armmp",
        ]);
        let newest = |flavours: &[&str]| newest(&names, IMAGE_6_1, flavours);
        assert_eq!(newest(&["-arm64", "-armmp"]).as_deref(), Some("47"));
        assert_eq!(newest(&["-arm64"]).as_deref(), Some("50"));
        assert_eq!(newest(&["-arm64", "-i386"]), None);
    }

    #[test]
    fn versions_of_backports_are_compared_by_number() {
        let names = owned(&[
            "linux-image-6.12.9+deb12-arm64",
            "linux-image-6.12.90+deb12-arm64",
            "linux-image-6.12.90+deb12.1-arm64",
            "linux-image-6.12.95+deb12-arm64-unsigned",
            "linux-image-6.12.99+deb12-rt-arm64",
        ]);
        assert_eq!(newest(&names, IMAGE_6_12, &["-arm64"]).as_deref(), Some("90+deb12.1"));
    }

    #[test]
    fn kernels_know_their_files() {
        let here = PathBuf::from("x");
        let kernel = Kernel { version: "6.1.0-50-armmp".into(), image: here, headers: None };
        assert_eq!(kernel.abi(), "6.1.0-50");
        assert_eq!(common_headers("6.1.0-50"), "linux-headers-6.1.0-50-common");
        assert_eq!(common_headers("6.1.0-50-rt"), "linux-headers-6.1.0-50-common-rt");
        assert_eq!(kernel.boot(), Path::new("x/boot/vmlinuz-6.1.0-50-armmp"));
        assert_eq!(
            kernel.device_tree("highbank.dtb"),
            Path::new("x/usr/lib/linux-image-6.1.0-50-armmp/highbank.dtb")
        );
        assert_eq!(kbuild_release("6.1.0-50"), "6.1");
        assert_eq!(kbuild_release("6.12.95+deb12"), "6.12.95+deb12");
    }

    #[test]
    fn the_real_time_flavour_is_no_other() {
        assert!(is_flavour("6.1.0-50-rt-arm64", "6.1.0-", REAL_TIME));
        assert!(!is_flavour("6.1.0-50-rt-arm64", "6.1.", "-arm64"));
        assert!(is_flavour("6.1.0-50-arm64", "6.1.", "-arm64"));
        assert!(!is_flavour("6.1.0-50-arm64", "6.1.0-", REAL_TIME));
        let names = owned(&["linux-image-6.1.0-50-arm64", "linux-image-6.1.0-47-rt-arm64"]);
        assert_eq!(newest(&names, IMAGE_6_1, &[REAL_TIME]).as_deref(), Some("47"));
    }

    #[test]
    fn a_list_whose_directories_are_gone_is_fetched_again() {
        let text = "linux-image-6.1.0-50-arm64_6.1.176-1_arm64\nsource x.c\n";
        assert_eq!(Packages::read(Path::new("barewire-no-such-directory"), text), None);
    }
}
