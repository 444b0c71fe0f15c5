//! The library as it is built and installed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::context::Context;
use crate::linted;
use crate::tool;

/// The version of the interface, as the loader compares it.
const SONAME: &str = "libbarewire.so.0";

/// How it is compiled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Profile {
    /// Compiled as for users.
    Counted,
    /// Compiled as the other tests of CI.
    Ci,
}

/// The files that cargo built.
#[derive(Debug)]
pub(super) struct Built {
    shared: PathBuf,
    archive: PathBuf,
}

/// Builds both libraries. Without the kind that Rust programs link, which would exclude link-time optimisation.
pub(super) fn build(cx: &Context, profile: Profile) -> Result<Built, String> {
    let dir = cx.root.join(cx.target_dir("c"));
    fs::create_dir_all(&dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    let (name, variables) = match profile {
        // By itself: with the features of the whole workspace the archive would lack what a program for
        // embassy brings.
        Profile::Ci => ("ci", &linted::VARIABLES[..]),
        Profile::Counted => ("counted", &[][..]),
    };
    let mut cargo = Command::new("cargo");
    cargo
        .args(["rustc", "-p", "barewire-c", "--lib", "--profile", name])
        .args(["--crate-type", "cdylib,staticlib"])
        .envs(variables.iter().copied())
        .current_dir(&cx.root);
    tool::run(&mut cargo, &dir.join("build.log"))?;
    let made = cx.root.join(cx.target_dir(name));
    Ok(Built { shared: made.join("libbarewire_c.so"), archive: made.join("libbarewire_c.a") })
}

/// The pkg-config file, which finds its tree by its own place.
///
/// Objects later on the command line need the library; `--as-needed` would drop it before it sees
/// them.
fn pkg_config(version: &str) -> String {
    format!(
        "prefix=${{pcfiledir}}/../..\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\n\
         Name: barewire\nDescription: SPI buses, real and simulated\n\
         URL: https://github.com/barewire/barewire\nVersion: {version}\n\
         Cflags: -I${{includedir}}\n\
         Libs: -L${{libdir}} -Wl,--push-state,--no-as-needed -lbarewire -Wl,--pop-state\n\
         Libs.private: -lgcc_s -lutil -lrt -lpthread -lm -ldl\n"
    )
}

/// Installs what was built below `prefix`. Returns the files.
pub(super) fn install(root: &Path, built: &Built, prefix: &Path) -> Result<Vec<PathBuf>, String> {
    let version = env!("CARGO_PKG_VERSION");
    let lib = prefix.join("lib");
    let full = lib.join(format!("libbarewire.so.{version}"));
    let mut installed =
        vec![copied(&built.shared, &full)?, copied(&built.archive, &lib.join("libbarewire.a"))?];
    for header in ["barewire.h", "barewire.hpp"] {
        let from = root.join("bindings/c/include").join(header);
        installed.push(copied(&from, &prefix.join("include").join(header))?);
    }
    let full_name = format!("libbarewire.so.{version}");
    for (name, to) in [(SONAME, full_name.as_str()), ("libbarewire.so", SONAME)] {
        let link = lib.join(name);
        let _ = fs::remove_file(&link);
        symlink(to, &link).map_err(|e| format!("cannot link {}: {e}", link.display()))?;
        installed.push(link);
    }
    let pc = lib.join("pkgconfig/barewire.pc");
    make_way(&pc)?;
    let written = fs::write(&pc, pkg_config(version));
    written.map_err(|e| format!("cannot write {}: {e}", pc.display()))?;
    installed.push(pc);
    Ok(installed)
}

/// Copies a file. A program may be using the old one, so that is replaced, not written into.
fn copied(from: &Path, to: &Path) -> Result<PathBuf, String> {
    make_way(to)?;
    let _ = fs::remove_file(to);
    let copied = fs::copy(from, to);
    copied.map_err(|e| format!("cannot copy {} to {}: {e}", from.display(), to.display()))?;
    Ok(to.into())
}

fn make_way(path: &Path) -> Result<(), String> {
    let dir = path.parent().unwrap_or(path);
    fs::create_dir_all(dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))
}
