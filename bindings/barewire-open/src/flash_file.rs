//! The file that holds a simulated flash chip's content between commands.
//!
//! # How it works
//! The file is as long as the chip. It has an exclusive advisory lock while it is open, because two
//! commands that write would undo each other's work. Each change is written when the chip makes it. So
//! a killed command leaves a mixture of old and new bytes, like a chip that lost power.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{OpenError, files};

/// The erased state.
const ERASED: u8 = 0xff;

/// The open, locked file.
#[derive(Debug)]
pub struct FlashFile {
    path: PathBuf,
    file: File,
    failed: Option<io::Error>,
}

impl FlashFile {
    /// Opens the file and reads its `size` bytes. If there is none, it is created erased, if `make` allows that; `tell`
    /// gets a note for people then: the name may be a slip.
    ///
    /// # Errors
    /// The file cannot be read and written, another process uses it, or it is not as long as the `part`.
    pub fn open(
        path: &Path,
        size: usize,
        part: &str,
        make: bool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(Self, Vec<u8>), OpenError> {
        let doing = |what: &str| format!("{what} flash file {}", path.display());
        // A link that leads nowhere yet: the file is made there.
        let target = files::target(path).map_err(|e| OpenError::io(doing("open"), &e))?;
        let path = target.as_deref().unwrap_or(path);
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let created = match make {
            true => options.clone().create_new(true).open(path),
            false => Err(ErrorKind::AlreadyExists.into()),
        };
        let (file, created) = match created {
            Ok(file) => (file, true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let opened = options.open(path).map_err(|error| match error.kind() {
                    ErrorKind::NotFound => OpenError::Failed(format!(
                        "flash file {} does not exist; a command that changes the chip makes one",
                        path.display()
                    )),
                    _ => OpenError::io(doing("open"), &error),
                });
                (opened?, false)
            }
            Err(error) => return Err(OpenError::io(doing("create"), &error)),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::Failed(format!(
                    "flash file {} is in use by another process: wait for it, or name another file",
                    path.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(OpenError::io(doing("lock"), &error)),
        }
        let mut this = Self { path: path.into(), file, failed: None };
        if created {
            let content = vec![ERASED; size];
            if let Err(error) = this.write_at(0, &content) {
                // Half a chip would be refused next time.
                let _ = fs::remove_file(path);
                return Err(OpenError::io(doing("create"), &error));
            }
            let mib = size >> 20;
            let path = path.display();
            tell(&format!("flash file {path} did not exist: made, an erased {part} of {mib} MiB"));
            return Ok((this, content));
        }
        let len = this.file.metadata().map_err(|e| OpenError::io(doing("read"), &e))?.len();
        if len != size as u64 {
            return Err(OpenError::Failed(format!(
                "flash file {} has {len} bytes, the {part} has {size}: name a file of that size, or a new one",
                path.display()
            )));
        }
        let mut content = vec![0; size];
        this.file.read_exact(&mut content).map_err(|e| OpenError::io(doing("read"), &e))?;
        Ok((this, content))
    }

    /// Writes what the chip holds now from `at` on. An error is kept for [`FlashFile::check`]; nothing is
    /// written after it.
    pub fn keep(&mut self, at: usize, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.write_at(at as u64, bytes).err();
        }
    }

    /// Checks that every change was written.
    ///
    /// # Errors
    /// The first change that could not be written.
    pub fn check(&self) -> Result<(), OpenError> {
        let doing = || format!("write flash file {}", self.path.display());
        self.failed.as_ref().map_or(Ok(()), |error| Err(OpenError::io(doing(), error)))
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(bytes)
    }
}
