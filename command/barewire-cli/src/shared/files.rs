//! The files of one command: an output must not be a file that the command uses otherwise.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub(crate) use barewire_open::files::Named;

use crate::shared::failure::Failure;

/// The text in a file, all of which has to fit into memory.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    Ok(barewire_open::files::read_text(path)?)
}

/// Refuses an output that is another file of the command, because it would overwrite that.
pub(crate) fn check(outputs: &[Named<'_>], inputs: &[Named<'_>]) -> Result<(), Failure> {
    for (nth, output) in outputs.iter().enumerate() {
        let mut others = inputs.iter().chain(&outputs[..nth]);
        if let Some(other) = others.find(|other| is_same(output.path, other.path)) {
            return Err(Failure::Usage(format!(
                "{} {} would overwrite the file of {}: name another",
                output.by,
                output.path.display(),
                other.by
            )));
        }
    }
    Ok(())
}

/// Whether both lead to one file, by links too. A device, as /dev/null, is not overwritten.
fn is_same(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => {
            one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino())
        }
        // Neither is there yet: the same name in the same directory.
        (Err(_), Err(_)) => place(one).is_some() && place(one) == place(other),
        _ => false,
    }
}

fn place(path: &Path) -> Option<PathBuf> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    Some(fs::canonicalize(parent.unwrap_or(Path::new("."))).ok()?.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_under_two_names_is_seen() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("sub")).expect("makes it");
        fs::write(path("there"), "x").expect("writes");
        fs::write(path("other"), "x").expect("writes");
        std::os::unix::fs::symlink(path("there"), path("link")).expect("links");
        fs::hard_link(path("there"), path("hard")).expect("links");
        for (one, other, same) in [
            ("there", "there", true),
            ("there", "link", true),
            ("there", "hard", true),
            ("there", "sub/../there", true),
            ("there", "other", false),
            ("there", "missing", false),
            ("missing", "sub/../missing", true),
            ("missing", "sub/missing", false),
            ("none/missing", "none/missing", false),
        ] {
            assert_eq!(is_same(&path(one), &path(other)), same, "{one} {other}");
        }
        assert!(!is_same(Path::new("/dev/null"), Path::new("/dev/null")));
    }
}
