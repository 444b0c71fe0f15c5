//! Checks the built files as a user would: compares the sums, installs the package into a scratch
//! directory with its own database, runs the installed programs, and removes the package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Dirs, package, run_quietly};
use crate::tool;

/// The files of an installed package, below the root.
const INSTALLED: [&str; 10] = [
    "usr/bin/barewire",
    "usr/share/man/man1/barewire.1.gz",
    "usr/share/man/man1/barewire-flash-write.1.gz",
    "usr/share/bash-completion/completions/barewire",
    "usr/share/zsh/vendor-completions/_barewire",
    "usr/share/fish/vendor_completions.d/barewire.fish",
    "usr/lib/udev/rules.d/60-barewire.rules",
    "usr/lib/systemd/system/barewire@.service",
    "usr/share/barewire/overlays/raspberrypi-spi0-uio.dtso",
    "usr/lib/barewire/libbarewire_spidev.so",
];
/// The one file that stays until the package is purged.
const CONFIGURATION: &str = "etc/security/limits.d/60-barewire.conf";

/// Runs every check. Returns what passed, in words.
pub(super) fn all(dirs: &Dirs, made: &[PathBuf]) -> Result<Vec<&'static str>, String> {
    let package = with_ending(made, ".deb")?;
    let mut sums = Command::new("sha256sum");
    run_quietly(sums.args(["--quiet", "-c", "SHA256SUMS"]).current_dir(&dirs.out))?;
    let root = dirs.work.join("installed");
    package::database(&root)?;
    dpkg(&root, &["--install"], package)?;
    for path in INSTALLED.into_iter().chain([CONFIGURATION]) {
        if !root.join(path).is_file() {
            return Err(format!("the installed package has no /{path}"));
        }
    }
    let binary = root.join("usr/bin/barewire");
    let said = tool::answer(Command::new(&binary).arg("--version"))?;
    if !String::from_utf8_lossy(&said).starts_with("barewire ") {
        return Err("the installed command does not say its version".into());
    }
    run_quietly(Command::new(&binary).args(["flash", "id", "--bus", "sim:imx8mp"]))?;
    serves(&binary)?;
    is_static(&binary)?;
    has_completions(&root)?;
    is_a_page(&root)?;
    dpkg(&root, &["--remove"], Path::new("barewire"))?;
    if let Some(path) = INSTALLED.into_iter().find(|path| root.join(path).exists()) {
        return Err(format!("the removed package left /{path}"));
    }
    if !root.join(CONFIGURATION).exists() {
        return Err("removing the package took the user's configuration".into());
    }
    dpkg(&root, &["--purge"], Path::new("barewire"))?;
    if root.join(CONFIGURATION).exists() {
        return Err(format!("the purged package left /{CONFIGURATION}"));
    }
    archive_runs(dirs, with_ending(made, ".tar.gz")?)?;
    Ok(vec![
        "the checksums hold",
        "the package installs its files",
        "the installed command runs",
        "it serves an unmodified program",
        "it needs no shared library",
        "completions know every command",
        "a manual page for each command",
        "the package is removed, its configuration stays",
        "the package is purged",
        "the archive's command runs",
    ])
}

fn with_ending<'m>(made: &'m [PathBuf], ending: &str) -> Result<&'m Path, String> {
    let found = made.iter().find(|path| path.to_string_lossy().ends_with(ending));
    found.map(PathBuf::as_path).ok_or_else(|| format!("no file with {ending} was made"))
}

/// dpkg on the scratch directory.
fn dpkg(root: &Path, action: &[&str], what: &Path) -> Result<(), String> {
    run_quietly(package::dpkg(root).args(action).arg(what))
}

/// An unmodified program sees the mapped node, by the installed library.
fn serves(binary: &Path) -> Result<(), String> {
    let map = ["run", "--quiet", "--map", "/dev/spidev7.0=sim:rpi3", "--"];
    let listing = ["ls", "/sys/bus/spi/devices/spi7.0/modalias"];
    let said = tool::answer(Command::new(binary).args(map).args(listing))?;
    match String::from_utf8_lossy(&said).contains("modalias") {
        true => Ok(()),
        false => Err("the installed library shows no node".into()),
    }
}

/// A static program has no interpreter (`PT_INTERP`, 3, among its program headers).
fn is_static(binary: &Path) -> Result<(), String> {
    let bytes = super::read(binary)?;
    let number = |at: usize, length: usize| {
        let field = bytes.get(at..at + length).unwrap_or_default();
        field.iter().rev().fold(0_u64, |high, &byte| high << 8 | u64::from(byte))
    };
    if bytes.get(..5) != Some(b"\x7fELF\x02") {
        return Err("the command is no 64-bit ELF file".into());
    }
    // ELF-64: e_phoff, e_phentsize, e_phnum.
    let (first, size, count) = (number(0x20, 8), number(0x36, 2), number(0x38, 2));
    let kind = |index: u64| number((first + index * size) as usize, 4);
    match (0..count).any(|index| kind(index) == 3) {
        true => Err("the command needs a dynamic loader".into()),
        false => Ok(()),
    }
}

fn has_completions(root: &Path) -> Result<(), String> {
    for path in &INSTALLED[3..6] {
        let text = super::read(&root.join(path))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        for word in ["doctor", "selftest", "serprog", "lab"] {
            if !text.contains(word) {
                return Err(format!("/{path} does not know {word}"));
            }
        }
    }
    Ok(())
}

/// The first page names itself and the others.
fn is_a_page(root: &Path) -> Result<(), String> {
    let page = tool::answer(Command::new("gzip").arg("-dc").arg(root.join(INSTALLED[1])))?;
    let page = String::from_utf8_lossy(&page).into_owned();
    match page.contains(".TH barewire 1") && page.contains("doctor") {
        true => Ok(()),
        false => Err("barewire.1 is no manual page of the command".into()),
    }
}

fn archive_runs(dirs: &Dirs, archive: &Path) -> Result<(), String> {
    let place = dirs.work.join("unpacked");
    fs::create_dir_all(&place).map_err(|e| format!("cannot make {}: {e}", place.display()))?;
    run_quietly(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(&place))?;
    let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let directory = place.join(name.trim_end_matches(".tar.gz"));
    run_quietly(Command::new(directory.join("barewire")).arg("--version"))
}
