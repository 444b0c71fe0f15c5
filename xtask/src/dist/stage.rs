//! The files as they are installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::documents::Documents;
use super::{Arch, Dirs, copy, copy_all, copyright, run_quietly, write};

/// The files to lay out.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    pub(super) dirs: &'a Dirs,
    pub(super) documents: &'a Documents,
    pub(super) command: &'a Path,
    /// The library that `barewire run` loads.
    pub(super) library: &'a Path,
    pub(super) version: &'a str,
}

/// Files of the workspace, and where a package installs them.
const INSTALLED: [(&str, &str); 8] = [
    ("contrib/udev/60-barewire.rules", "usr/lib/udev/rules.d/60-barewire.rules"),
    ("contrib/limits.d/60-barewire.conf", "etc/security/limits.d/60-barewire.conf"),
    ("contrib/modprobe.d/barewire.conf", "usr/share/doc/barewire/modprobe.d/barewire.conf"),
    ("contrib/modules-load.d/barewire.conf", "usr/share/doc/barewire/modules-load.d/barewire.conf"),
    ("contrib/systemd/barewire@.service", "usr/lib/systemd/system/barewire@.service"),
    ("contrib/sysusers.d/barewire.conf", "usr/lib/sysusers.d/barewire.conf"),
    ("contrib/README.md", "usr/share/doc/barewire/contrib.md"),
    ("README.md", "usr/share/doc/barewire/README.md"),
];

/// The library's file, where the command looks for it: beside itself, or in `../lib/barewire`.
const LIBRARY: &str = "libbarewire_spidev.so";

/// The sources of the installed files.
#[cfg(test)]
pub(super) fn sources() -> impl Iterator<Item = &'static str> {
    INSTALLED.iter().map(|(source, _)| *source)
}

/// The installed files that a user may have changed.
const CONFIGURATION: &str = "/etc/security/limits.d/60-barewire.conf\n";

impl Layout<'_> {
    /// The tree of an archive: all in one directory.
    pub(super) fn archive(&self, name: &str) -> Result<PathBuf, String> {
        let tree = self.dirs.work.join("archive").join(name);
        copy(self.command, &tree.join("barewire"))?;
        copy(self.library, &tree.join(LIBRARY))?;
        copy_all(&self.documents.man, &tree.join("man"))?;
        copy_all(&self.documents.completions, &tree.join("completions"))?;
        copy_all(&self.dirs.root.join("contrib"), &tree.join("contrib"))?;
        for file in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            copy(&self.dirs.root.join(file), &tree.join(file))?;
        }
        Ok(tree)
    }

    /// The tree of a Debian package.
    pub(super) fn debian(&self, arch: Arch) -> Result<PathBuf, String> {
        let tree = self.dirs.work.join("debian").join(arch.debian());
        copy(self.command, &tree.join("usr/bin/barewire"))?;
        copy(self.library, &tree.join("usr/lib/barewire").join(LIBRARY))?;
        copy_all(&self.documents.man, &tree.join("usr/share/man/man1"))?;
        for (shell, place) in [
            ("bash", "bash-completion/completions/barewire"),
            ("zsh", "zsh/vendor-completions/_barewire"),
            ("fish", "fish/vendor_completions.d/barewire.fish"),
        ] {
            copy(&self.documents.completions.join(shell), &tree.join("usr/share").join(place))?;
        }
        for (source, place) in INSTALLED {
            copy(&self.dirs.root.join(source), &tree.join(place))?;
        }
        copy_all(
            &self.dirs.root.join("contrib/overlays"),
            &tree.join("usr/share/barewire/overlays"),
        )?;
        copy(&self.dirs.root.join("CHANGELOG.md"), &tree.join("usr/share/doc/barewire/changelog"))?;
        copyright(&self.dirs.root, &tree.join("usr/share/doc/barewire/copyright"))?;
        let pages = fs::read_dir(tree.join("usr/share/man/man1")).into_iter().flatten().flatten();
        let mut pages: Vec<PathBuf> = pages.map(|entry| entry.path()).collect();
        pages.push(tree.join("usr/share/doc/barewire/changelog"));
        run_quietly(Command::new("gzip").args(["-9", "-n"]).args(&pages))?;
        write(&tree.join("DEBIAN/conffiles"), CONFIGURATION)?;
        write(&tree.join("DEBIAN/control"), &self.control(&tree, arch)?)?;
        Ok(tree)
    }

    /// Debian Policy, chapter 5.3.
    fn control(&self, tree: &Path, arch: Arch) -> Result<String, String> {
        let (version, arch) = (self.version, arch.debian());
        let kib = bytes_below(tree)?.div_ceil(1024);
        Ok(format!(
            "Package: barewire\nVersion: {version}\nArchitecture: {arch}\n\
             Maintainer: The barewire developers <barewire@users.noreply.github.com>\n\
             Installed-Size: {kib}\nSection: utils\nPriority: optional\n\
             Suggests: device-tree-compiler\nHomepage: https://github.com/barewire/barewire\n\
             Description: SPI at the cost of the wire\n \
             Reads and writes flash chips, streams converters and talks CAN over SPI, through\n \
             the kernel's spidev or a controller's own registers. `barewire doctor` says what\n \
             stands between this machine and a working bus.\n"
        ))
    }
}

fn bytes_below(tree: &Path) -> Result<u64, String> {
    let entries = fs::read_dir(tree).map_err(|e| format!("cannot read {}: {e}", tree.display()))?;
    entries.flatten().try_fold(0, |sum, entry| {
        let path = entry.path();
        let own = if path.is_dir() {
            bytes_below(&path)?
        } else {
            entry.metadata().map_or(0, |m| m.len())
        };
        Ok(sum + own)
    })
}
