//! Debian's packages, fetched and not installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::guests::apt::Apt;
use crate::tool;

/// The package's file in `work`, fetched if none is there.
///
/// # Errors
/// apt has no such package.
pub(super) fn fetched(work: &Path, name: &str, say: &dyn Fn(&str)) -> Result<PathBuf, String> {
    let here = || {
        let files = fs::read_dir(work).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        let is_it = |path: &PathBuf| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            file.starts_with(&format!("{name}_")) && file.ends_with(".deb")
        };
        files.filter(is_it).max()
    };
    if let Some(package) = here() {
        return Ok(package);
    }
    say(&format!("fetching {name}"));
    let log = work.join("fetch.log");
    // The machine's own lists first: they are mostly there.
    let mut plain = Command::new("apt-get");
    plain.args(["download", name]).current_dir(work);
    if tool::run(&mut plain, &log).is_err() {
        let dir = work.join("apt");
        fs::create_dir_all(&dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
        let apt = Apt::new(&dir)?;
        apt.update(&log)?;
        apt.download(&[name.to_owned()], work, &log)?;
    }
    here().ok_or_else(|| format!("apt fetched no {name}"))
}

/// The package's content, unpacked anew into a folder of `work`.
pub(super) fn unpacked(work: &Path, package: &Path, into: &str) -> Result<PathBuf, String> {
    let folder = work.join(into);
    _ = fs::remove_dir_all(&folder);
    let mut dpkg = Command::new("dpkg-deb");
    tool::run(dpkg.arg("-x").arg(package).arg(&folder), &work.join("unpack.log"))?;
    Ok(folder)
}
