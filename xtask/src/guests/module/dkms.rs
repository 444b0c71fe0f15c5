//! The module as a board gets it: from the package `barewire-dkms`, installed below a root of its own, built there by
//! Debian's DKMS against a kernel's headers, and removed again. What it built is what the guests load.
//!
//! DKMS is a script that knows its directories by their names, so a copy of it has others in their place. A compiler and
//! kmod's programs stand where it looks for them, for the architecture of the kernel.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::board::Arch;
use super::super::build::{self, Dirs};
use super::super::packages::{Kernel, Packages};
use crate::dist::{self, package, write};
use crate::tool;

/// The name of the package and of the module.
const MODULE: &str = "barewire";

/// Makes the package.
pub(super) fn packed(dirs: &Dirs) -> Result<PathBuf, String> {
    let (work, cargo) = (dirs.work.join("dkms"), dirs.work.join("cargo-module"));
    fs::create_dir_all(&work).map_err(|e| format!("cannot make {}: {e}", work.display()))?;
    let place = dist::dkms::Place { root: &dirs.root, cargo: &cargo, work: &work, out: &work };
    dist::dkms::make(&place, &dist::version(&dirs.root)?)
}

/// The module that DKMS builds for a kernel when the package is installed, kept from the installation, which is removed
/// again. Kept from an earlier run if the package is the same.
///
/// # Errors
/// A package that cannot be installed or that leaves something behind, or a module that does not build.
pub(super) fn module(
    dirs: &Dirs,
    packages: &Packages,
    kernel: &Kernel,
    arch: Arch,
    package: &Path,
) -> Result<PathBuf, String> {
    let folder = format!("dkms-{}", kernel.version);
    let kept = dirs.made(&folder, &format!("{MODULE}.ko"))?;
    let of = kept.with_file_name("of.deb");
    let content = build::read(package)?;
    if kept.is_file() && fs::read(&of).is_ok_and(|earlier| earlier == content) {
        return Ok(kept);
    }
    let _ = fs::remove_file(&of);
    let place = kept.parent().unwrap_or(&kept);
    let root = Root::new(place, packages, kernel, arch)?;
    let log = dirs.made("log", &format!("{folder}.log"))?;
    root.dpkg(&["--install"], package, &log)?;
    let installed = root.modules.join("updates/dkms/barewire.ko");
    if !installed.is_file() {
        return Err(format!("DKMS built no module for {}: {}", kernel.version, log.display()));
    }
    let rule = root.path.join("usr/lib/udev/rules.d/60-barewire-dkms.rules");
    if !rule.is_file() {
        return Err("the package has no rule for udev".into());
    }
    fs::copy(&installed, &kept).map_err(|e| format!("cannot write {}: {e}", kept.display()))?;
    root.is_licensed(&kept)?;
    root.dpkg(&["--purge"], Path::new("barewire-dkms"), &log)?;
    let sources = root.path.join("usr/src");
    for left in [&installed, &rule, &root.path.join("var/lib/dkms").join(MODULE)] {
        if left.exists() {
            return Err(format!("the removed package left {}", left.display()));
        }
    }
    match fs::read_dir(&sources).is_ok_and(|mut sources| sources.next().is_some()) {
        true => Err(format!("the removed package left something in {}", sources.display())),
        false => fs::write(&of, content).map_err(|e| format!("cannot write {}: {e}", of.display())),
    }?;
    Ok(kept)
}

/// A root with a kernel, its headers and DKMS.
struct Root {
    path: PathBuf,
    /// The kernel's modules.
    modules: PathBuf,
    /// DKMS and the programs that it calls.
    programs: PathBuf,
    /// Where kmod's library is.
    library: PathBuf,
}

impl Root {
    fn new(place: &Path, packages: &Packages, kernel: &Kernel, arch: Arch) -> Result<Self, String> {
        let (path, programs) = (place.join("root"), place.join("bin"));
        let modules = path.join("lib/modules").join(&kernel.version);
        for old in [&path, &programs] {
            let _ = fs::remove_dir_all(old);
        }
        for dir in [&modules, &programs, &path.join("usr/src"), &path.join("var/lib/dkms")] {
            fs::create_dir_all(dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
        }
        package::database(&path)?;
        link(&build::headers(kernel)?, &modules.join("build"))?;
        let dkms = build::read(&packages.dkms.script)?;
        let mut dkms = String::from_utf8_lossy(&dkms).into_owned();
        for its in ["/var/lib/dkms", "/etc/dkms", "/usr/src", "/lib/modules"] {
            dkms = dkms.replace(its, &format!("{}{its}", path.display()));
        }
        program(&programs.join("dkms.here"), &dkms)?;
        let (linux, cross, machine) = (arch.linux(), arch.cross(), arch.machine_name());
        let here = programs.display();
        let own = [
            (
                "dkms",
                format!("export ARCH={linux} CROSS_COMPILE={cross}\nexec {here}/dkms.here \"$@\""),
            ),
            ("uname", format!("[ \"$1\" = -m ] && exec echo {machine}\nexec /bin/uname \"$@\"")),
            ("strip", format!("exec {cross}strip \"$@\"")),
            // It looks below /.
            ("depmod", format!("exec -a depmod {here}/kmod -b {} \"$@\"", path.display())),
        ];
        for (name, script) in own {
            program(&programs.join(name), &format!("#!/bin/bash\n{script}\n"))?;
        }
        link(&programs.join("kmod"), &programs.join("modinfo"))?;
        link(&packages.dkms.kmod, &programs.join("kmod"))?;
        Ok(Self { path, modules, programs, library: packages.dkms.library.clone() })
    }

    /// With DKMS and kmod in front of what this machine has.
    fn equip<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let mut path = self.programs.clone().into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command.env("PATH", path).env("LD_LIBRARY_PATH", &self.library).env("LC_ALL", "C")
    }

    /// dpkg on this root. Scripts run outside of it, with its name in `DPKG_ROOT`.
    fn dpkg(&self, action: &[&str], what: &Path, log: &Path) -> Result<(), String> {
        let mut dpkg = package::dpkg(&self.path);
        // DKMS itself is not installed there.
        self.equip(&mut dpkg).args(["--force-script-chrootless", "--force-depends"]);
        tool::run(dpkg.args(action).arg(what), log)
    }

    /// What a kernel reads before it lets a module use its symbols.
    fn is_licensed(&self, module: &Path) -> Result<(), String> {
        let mut modinfo = Command::new(self.programs.join("modinfo"));
        let said = tool::answer(self.equip(&mut modinfo).args(["-F", "license"]).arg(module))?;
        match String::from_utf8_lossy(&said).trim() {
            "Dual MIT/GPL" => Ok(()),
            other => Err(format!("the module's license is `{other}`")),
        }
    }
}

fn program(path: &Path, text: &str) -> Result<(), String> {
    write(path, text)?;
    fs::set_permissions(path, PermissionsExt::from_mode(0o755))
        .map_err(|e| format!("cannot make {} a program: {e}", path.display()))
}

fn link(to: &Path, path: &Path) -> Result<(), String> {
    symlink(to, path).map_err(|e| format!("cannot link {}: {e}", path.display()))
}
