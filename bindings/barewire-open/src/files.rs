//! Files that a bus's name mentions.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::OpenError;

/// A file, and the argument that names it.
#[derive(Clone, Copy, Debug)]
pub struct NamedFile<'p> {
    /// The argument, as `--vcd`.
    pub by: &'static str,
    /// The file.
    pub path: &'p Path,
}

/// The longest text file that is read whole, in bytes: a log of a million frames.
const TEXT_MAX: u64 = 64 << 20;

/// The text in a file, all of which has to fit into memory.
///
/// # Errors
/// The file cannot be read, has more than 64 MiB, or is no text.
pub fn read_text(path: &Path) -> Result<String, OpenError> {
    let doing = || format!("read {}", path.display());
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(TEXT_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| OpenError::io(doing(), &error))?;
    if bytes.len() as u64 > TEXT_MAX {
        return Err(OpenError::Failed(format!("cannot {}: it has more than 64 MiB", doing())));
    }
    String::from_utf8(bytes)
        .map_err(|_| OpenError::Failed(format!("cannot {}: it is no text", doing())))
}

/// More links than these lead round, as for the kernel.
const LINKS_MAX: usize = 40;

/// Follows the links of `path`'s last component, one after the other. The target need not exist. `None` if one of
/// them is a link of procfs to an open file, whose text is not a path.
///
/// # Errors
/// The links form a loop.
pub fn target(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let Ok(link) = fs::read_link(&path) else { return Ok(Some(path)) };
        let parent = parent(&path);
        if device(parent) == device(Path::new("/proc/self")) {
            return Ok(None);
        }
        path = parent.join(link);
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

/// The directory that a path's last component is in.
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."))
}

fn device(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|found| found.dev())
}
