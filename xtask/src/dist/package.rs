//! Archives, packages and checksums.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Dirs, run_quietly, write};
use crate::tool;

/// An archive of the tree.
pub(super) fn archive(dirs: &Dirs, tree: &Path, name: &str, time: u64) -> Result<PathBuf, String> {
    let file = dirs.out.join(format!("{name}.tar.gz"));
    let parent = tree.parent().unwrap_or(tree);
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        &format!("--mtime=@{time}"),
    ]);
    // The time in gzip's head would differ from run to run.
    tar.args(["--use-compress-program=gzip -9 -n", "--mode=u=rwX,go=rX", "-cf"]).arg(&file);
    run_quietly(tar.arg("-C").arg(parent).arg(name))?;
    Ok(file)
}

/// A Debian package of the tree, as that file.
pub(super) fn debian(tree: &Path, file: &Path, time: u64) -> Result<(), String> {
    run_quietly(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(tree))?;
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(tree).arg(file);
    run_quietly(build.env("SOURCE_DATE_EPOCH", time.to_string()))
}

/// Makes the database of a root of our own: the machine's is neither read nor changed.
pub(crate) fn database(root: &Path) -> Result<(), String> {
    let database = root.join("var/lib/dpkg");
    for dir in ["info", "updates"] {
        let dir = database.join(dir);
        fs::create_dir_all(&dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    }
    write(&database.join("status"), "")
}

/// dpkg on a root with a database of its own.
pub(crate) fn dpkg(root: &Path) -> Command {
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", root.display())).args(["--force-not-root", "--log=/dev/null"]);
    dpkg
}

/// The checksums of all files, as `sha256sum -c` reads them.
pub(super) fn checksums(dirs: &Dirs, files: &[PathBuf]) -> Result<PathBuf, String> {
    let names = files.iter().filter_map(|file| file.file_name());
    let sums = tool::answer(Command::new("sha256sum").args(names).current_dir(&dirs.out))?;
    let file = dirs.out.join("SHA256SUMS");
    write(&file, &String::from_utf8_lossy(&sums))?;
    Ok(file)
}
