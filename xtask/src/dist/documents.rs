//! The command's own documents.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Dirs, write};
use crate::tool;

/// The documents that the command prints about itself: the same for every architecture.
#[derive(Debug)]
pub(super) struct Documents {
    /// The directory with the manual pages.
    pub(super) man: PathBuf,
    /// The directory with `bash`, `zsh` and `fish`.
    pub(super) completions: PathBuf,
}

/// Lets the command in the folder `built` write its manual pages and completions.
pub(super) fn all(dirs: &Dirs, built: &Path) -> Result<Documents, String> {
    let ours = |args: &[&str]| tool::answer(Command::new(built.join("barewire")).args(args));
    let (man, completions) = (dirs.work.join("man"), dirs.work.join("completions"));
    ours(&["man", &man.to_string_lossy()])?;
    for shell in ["bash", "zsh", "fish"] {
        let text = ours(&["completions", shell])?;
        write(&completions.join(shell), &String::from_utf8_lossy(&text))?;
    }
    Ok(Documents { man, completions })
}

/// The time that every file gets: that of the newest commit, in seconds of the epoch.
pub(super) fn time(root: &Path) -> u64 {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]).current_dir(root);
    let said = tool::answer(&mut git).unwrap_or_default();
    String::from_utf8_lossy(&said).trim().parse().unwrap_or(0)
}
