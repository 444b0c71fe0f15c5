//! An output file that exists under its name only when it is whole.
//!
//! # How it works
//! Bytes go to a file beside it, which takes its name in [`OutFile::commit`] and is removed if
//! that is never reached. What is not a regular file (`/dev/null`, a pipe) cannot be renamed
//! over: its bytes are kept and written at the end.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;

use crate::OpenError;

/// The output in the making.
#[derive(Debug)]
pub struct OutFile {
    path: PathBuf,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    /// A file beside it, and the permissions of the one it replaces.
    Beside {
        file: File,
        partial: PathBuf,
        permissions: Option<Permissions>,
    },
    /// Kept until the end.
    Kept {
        file: File,
        bytes: Vec<u8>,
    },
    Done,
}

impl OutFile {
    /// Begins `path`. That it can be written is known from here on, disk space aside.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &Path) -> Result<Self, OpenError> {
        Self::try_create(path)
            .map_err(|error| OpenError::io(format_args!("write {}", path.display()), &error))
    }

    fn try_create(path: &Path) -> io::Result<Self> {
        // Where it is a link, the file it leads to is replaced, not the link.
        let (path, permissions) = match fs::canonicalize(path) {
            Ok(path) => {
                let file = OpenOptions::new().write(true).open(&path)?;
                let metadata = file.metadata()?;
                if !metadata.is_file() {
                    return Ok(Self { path, sink: Sink::Kept { file, bytes: Vec::new() } });
                }
                (path, Some(metadata.permissions()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => (path.to_path_buf(), None),
            Err(error) => return Err(error),
        };
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_string_lossy();
        let partial = path.with_file_name(format!(".{name}.partial-{}", process::id()));
        let file = File::create(&partial)?;
        Ok(Self { path, sink: Sink::Beside { file, partial, permissions } })
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<(), OpenError> {
        let written = match &mut self.sink {
            Sink::Beside { file, .. } => file.write_all(bytes),
            Sink::Kept { bytes: kept, .. } => {
                kept.extend_from_slice(bytes);
                Ok(())
            }
            Sink::Done => Ok(()),
        };
        written.map_err(|error| self.error(&error))
    }

    /// It is whole: gives it its name.
    ///
    /// # Errors
    /// It cannot be written, or have that name; no file is left then.
    pub fn commit(mut self) -> Result<(), OpenError> {
        let done = match &mut self.sink {
            Sink::Beside { partial, permissions, .. } => match permissions.take() {
                Some(permissions) => fs::set_permissions(&*partial, permissions),
                None => Ok(()),
            }
            .and_then(|()| fs::rename(partial, &self.path)),
            Sink::Kept { file, bytes } => file.write_all(bytes),
            Sink::Done => Ok(()),
        };
        done.map_err(|error| self.error(&error))?;
        self.sink = Sink::Done;
        Ok(())
    }

    fn error(&self, error: &io::Error) -> OpenError {
        OpenError::io(format_args!("write {}", self.path.display()), error)
    }
}

impl Drop for OutFile {
    fn drop(&mut self) {
        if let Sink::Beside { partial, .. } = &self.sink {
            let _ = fs::remove_file(partial);
        }
    }
}
