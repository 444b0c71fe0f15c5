//! The package `barewire-dkms`: the kernel module's C half as source, and its Rust half built for each architecture.
//! DKMS compiles the one against the kernels of the machine and links the other, so a board needs no Rust.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{copy, copy_all, copyright, documents, package, write};
use crate::kernel_object::{self, Machine};

/// Both architectures' Rust halves are in one package, as the C half is for both.
pub(crate) const MACHINES: [Machine; 2] = [kernel_object::ARM64, kernel_object::ARM];

/// Where a package is made.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    /// The workspace.
    pub(crate) root: &'a Path,
    /// Cargo's directory for the Rust half.
    pub(crate) cargo: &'a Path,
    /// Of intermediate files, and of the log.
    pub(crate) work: &'a Path,
    /// Of the package.
    pub(crate) out: &'a Path,
}

/// Makes the package; its file.
///
/// # Errors
/// A half that does not build, or a file that cannot be read or written.
pub(crate) fn make(place: &Place<'_>, version: &str) -> Result<PathBuf, String> {
    let tree = place.work.join("dkms");
    let sources = tree.join(format!("usr/src/barewire-{version}"));
    let of_kernel = |name: &str| place.root.join("kernel").join(name);
    let _ = std::fs::remove_dir_all(&tree);
    copy_all(&of_kernel("module"), &sources)?;
    copy(&of_kernel("dkms/dkms.conf"), &sources.join("dkms.conf"))?;
    let rules = "60-barewire-dkms.rules";
    copy(&of_kernel("dkms").join(rules), &tree.join("usr/lib/udev/rules.d").join(rules))?;
    for machine in MACHINES {
        let log = place.work.join(format!("cargo-kernel-{}.log", machine.linux));
        let object = sources.join(machine.object());
        machine.half(place.root, place.cargo, &log).build(&object)?;
    }
    let documents = tree.join("usr/share/doc/barewire-dkms");
    copy(&place.root.join("docs/kernel.md"), &documents.join("kernel.md"))?;
    copyright(place.root, &documents.join("copyright"))?;
    for script in ["postinst", "prerm"] {
        let to = tree.join("DEBIAN").join(script);
        copy(&of_kernel("dkms").join(script), &to)?;
        std::fs::set_permissions(&to, PermissionsExt::from_mode(0o755))
            .map_err(|e| format!("cannot make {} a program: {e}", to.display()))?;
    }
    write(&tree.join("DEBIAN/control"), &control(version))?;
    std::fs::create_dir_all(place.out)
        .map_err(|e| format!("cannot make {}: {e}", place.out.display()))?;
    let file = place.out.join(format!("barewire-dkms_{version}_all.deb"));
    package::debian(&tree, &file, documents::time(place.root))?;
    Ok(file)
}

/// Debian Policy, chapter 5.3.
fn control(version: &str) -> String {
    format!(
        "Package: barewire-dkms\nVersion: {version}\nArchitecture: all\n\
         Maintainer: The barewire developers <barewire@users.noreply.github.com>\n\
         Section: kernel\nPriority: optional\nDepends: dkms, passwd\n\
         Suggests: barewire\nHomepage: https://github.com/barewire/barewire\n\
         Description: SPI at the cost of the wire: the kernel module, built by DKMS\n \
         Drives SPI controllers (i.MX's ECSPI, BCM2835, PL022) in place of the kernel's\n \
         drivers, for all clients in the kernel, or gives them to programs of the group spi\n \
         (/dev/barewireN). It takes no controller unless it is bound to one. For Linux 6.1 and later on arm64 and armhf.\n"
    )
}

#[cfg(test)]
mod tests {
    /// The three files that cannot take it from the workspace.
    #[test]
    fn dkms_and_its_scripts_name_the_workspaces_version() {
        let version = env!("CARGO_PKG_VERSION");
        for (file, text, said) in [
            (
                "dkms.conf",
                include_str!("../../../kernel/dkms/dkms.conf"),
                format!("PACKAGE_VERSION=\"{version}\"\n"),
            ),
            (
                "postinst",
                include_str!("../../../kernel/dkms/postinst"),
                format!("module=barewire/{version}\n"),
            ),
            (
                "prerm",
                include_str!("../../../kernel/dkms/prerm"),
                format!("module=barewire/{version}\n"),
            ),
        ] {
            assert!(text.contains(&said), "{file} has not {said}");
        }
    }
}
