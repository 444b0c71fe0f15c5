//! Files that a bus's name mentions.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::OpenError;

/// A file, and the argument that names it.
#[derive(Clone, Copy, Debug)]
pub struct Named<'p> {
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
