//! The files of one command: an output must not be a file that the command uses otherwise, and stdout is either
//! an output or has what the command prints.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

pub(crate) use barewire_open::files::NamedFile;
use barewire_open::files::{parent, target};
use barewire_open::{OutFile, is_stdout};

use crate::shared::failure::Failure;
use crate::shared::output;

/// The text in a file, all of which has to fit into memory.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    Ok(barewire_open::files::read_text(path)?)
}

/// Writes a file that must not be there yet.
pub(crate) fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let shown = path.display();
    let failed = |error: &io::Error| Failure::io(format!("write {shown}"), error);
    let mut out =
        OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| match error
            .kind()
        {
            ErrorKind::AlreadyExists => {
                Failure::Failed(format!("{shown} is there already: name another file"))
            }
            _ => failed(&error),
        })?;
    out.write_all(text.as_bytes()).map_err(|error| failed(&error))
}

/// An output, which is there only when it is whole.
pub(crate) enum Output {
    File(OutFile),
    /// The command's own text goes to stderr then.
    Stdout(Vec<u8>),
}

impl Output {
    /// Begins it: stdout for `-`, and for whatever else leads there. `json` asks for a result on stdout.
    pub(crate) fn create(output: NamedFile<'_>, json: bool) -> Result<Self, Failure> {
        match has_stdout(output, json)? {
            true => Ok(Self::Stdout(Vec::new())),
            false => Ok(Self::File(OutFile::create(output.path)?)),
        }
    }

    /// Adds bytes.
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::File(file) => file.write_all(bytes)?,
            Self::Stdout(kept) => kept.extend_from_slice(bytes),
        }
        Ok(())
    }

    /// Writes all of it.
    pub(crate) fn write(mut self, text: &str) -> Result<(), Failure> {
        self.write_all(text.as_bytes())?;
        self.commit()
    }

    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout(_))
    }

    /// It is whole.
    pub(crate) fn commit(self) -> Result<(), Failure> {
        match self {
            Self::File(file) => Ok(file.commit()?),
            Self::Stdout(bytes) => output::data(&bytes),
        }
    }
}

/// Whether an output is stdout: then nothing else is printed there.
pub(crate) fn has_stdout(
    NamedFile { by, path }: NamedFile<'_>,
    json: bool,
) -> Result<bool, Failure> {
    if path != Path::new("-") && !is_stdout(path) {
        return Ok(false);
    }
    if json {
        let path = path.display();
        let text = format!("--json and {by} {path} would mix on stdout: name a file");
        return Err(Failure::Usage(text));
    }
    output::keep_stdout_for_data();
    Ok(true)
}

/// Refuses an output that is another file of the command, because it would overwrite that, and two outputs that
/// would mix.
pub(crate) fn check(outputs: &[NamedFile<'_>], inputs: &[NamedFile<'_>]) -> Result<(), Failure> {
    for (nth, output) in outputs.iter().enumerate() {
        let overwrites = |other: &&NamedFile<'_>| is_same(output.path, other.path);
        if let Some(other) = inputs.iter().chain(&outputs[..nth]).find(overwrites) {
            return Err(refused(output, "overwrite", other));
        }
        if let Some(other) = outputs[..nth].iter().find(|other| mix(output.path, other.path)) {
            return Err(refused(output, "mix with", other));
        }
    }
    Ok(())
}

fn refused(output: &NamedFile<'_>, how: &str, other: &NamedFile<'_>) -> Failure {
    let (by, path) = (output.by, output.path.display());
    Failure::Usage(format!("{by} {path} would {how} the file of {}: name another", other.by))
}

/// Whether both lead to one file, by links too. A device, as /dev/null, is not overwritten.
fn is_same(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => {
            one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino())
        }
        // Neither file exists yet: they are the same if name and directory are.
        (Err(_), Err(_)) => place(one).is_some() && place(one) == place(other),
        _ => false,
    }
}

fn place(path: &Path) -> Option<PathBuf> {
    let path = target(path).ok()??;
    Some(fs::canonicalize(parent(&path)).ok()?.join(path.file_name()?))
}

/// Whether both lead to one pipe or socket, which `-` may be too.
fn mix(one: &Path, other: &Path) -> bool {
    let found = |path: &Path| {
        let stdout = path == Path::new("-");
        fs::metadata(if stdout { Path::new("/dev/stdout") } else { path }).ok()
    };
    let (Some(one), Some(other)) = (found(one), found(other)) else { return false };
    !one.file_type().is_char_device() && (one.dev(), one.ino()) == (other.dev(), other.ino())
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
        std::os::unix::fs::symlink("missing", path("dangling")).expect("links");
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
            ("missing", "dangling", true),
            ("none/missing", "none/missing", false),
        ] {
            assert_eq!(is_same(&path(one), &path(other)), same, "{one} {other}");
        }
        assert!(!is_same(Path::new("/dev/null"), Path::new("/dev/null")));
    }
}
