//! An output file that exists under its name only when it is whole.
//!
//! # How it works
//! Bytes go to a temporary file beside the output. [`OutFile::commit`] renames that file to the output's
//! name; without a commit it is removed. If the name is a link, the link stays, and the file that it leads
//! to is replaced, or made if there is none. A pipe, a terminal or another file that is not regular is never
//! replaced: its bytes are kept in memory and written at the end. The same holds for a file that a process
//! has open (`/dev/stdout`, `/dev/fd/5`): if it is regular, the bytes are appended to it.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process;

use crate::{OpenError, files};

/// The output in the making.
#[derive(Debug)]
pub struct OutFile {
    path: PathBuf,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    /// A file beside the output, and the permissions of the file that it will replace.
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
    /// Begins the output `path`. If this succeeds, only a full disk can keep the file from being written.
    ///
    /// # Errors
    /// It cannot be written, it is a socket, or its links form a loop.
    pub fn create(path: &Path) -> Result<Self, OpenError> {
        Self::try_create(path).map_err(|error| {
            let link = match fs::read_link(path) {
                Ok(target) => format!(" (a link to {})", target.display()),
                Err(_) => String::new(),
            };
            OpenError::io(format_args!("write {}{link}", path.display()), &error)
        })
    }

    fn try_create(path: &Path) -> io::Result<Self> {
        let there = match fs::metadata(path) {
            Ok(there) => there,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Self::beside(files::target(path)?.ok_or(error)?, None);
            }
            Err(error) => return Err(error),
        };
        // These are used as they are: opened again, a file would be written from its beginning, and a
        // socket not at all.
        for own in [io::stdout().as_fd(), io::stderr().as_fd()] {
            let file = File::from(own.try_clone_to_owned()?);
            if is_open_as(&there, &file)? {
                return Ok(Self::kept(path, file));
            }
        }
        if there.file_type().is_socket() {
            let why = "it is a socket, which cannot be opened: name a file or a pipe";
            return Err(io::Error::other(why));
        }
        match files::target(path)? {
            Some(target) if there.is_file() => {
                OpenOptions::new().write(true).open(&target)?;
                Self::beside(target, Some(there.permissions()))
            }
            Some(_) => Ok(Self::kept(path, OpenOptions::new().write(true).open(path)?)),
            None => Ok(Self::kept(path, OpenOptions::new().append(true).open(path)?)),
        }
    }

    fn beside(path: PathBuf, permissions: Option<Permissions>) -> io::Result<Self> {
        let name = path.file_name().ok_or(ErrorKind::IsADirectory)?.to_string_lossy();
        let partial = path.with_file_name(format!(".{name}.partial-{}", process::id()));
        // A killed process may have left one, and a link of that name is not followed.
        let _ = fs::remove_file(&partial);
        let file = File::create_new(&partial)?;
        Ok(Self { path, sink: Sink::Beside { file, partial, permissions } })
    }

    fn kept(path: &Path, file: File) -> Self {
        Self { path: path.to_path_buf(), sink: Sink::Kept { file, bytes: Vec::new() } }
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

    /// The output is whole: gives it its name.
    ///
    /// # Errors
    /// The file cannot be written or renamed. Then no file is left.
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

/// Whether a path leads to this process's standard output, by whatever name.
pub fn is_stdout(path: &Path) -> bool {
    let is_open =
        |there| is_open_as(&there, &File::from(io::stdout().as_fd().try_clone_to_owned()?));
    fs::metadata(path).and_then(is_open).unwrap_or(false)
}

/// Whether `file` is the file described by `there`. Any number of descriptors may have the same device open,
/// so the only device that counts is a terminal.
fn is_open_as(there: &Metadata, file: &File) -> io::Result<bool> {
    let open = file.metadata()?;
    let is_same = (there.dev(), there.ino()) == (open.dev(), open.ino());
    Ok(is_same && (!there.file_type().is_char_device() || file.is_terminal()))
}
