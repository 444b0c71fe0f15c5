//! The file behind the emulated flash chip or card.
//!
//! It is QEMU's own backing file, without a snapshot: whatever the driver writes is written to it.
//! QEMU itself would let two instances write one flash file, each with a copy in memory, and the
//! later would undo the writes of the earlier. So the file is locked here against other boards of
//! this crate.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use barewire_qtest::QemuError;

use crate::error::BoardError;
use crate::spec::Storage;

const ERASED: u8 = 0xff;

/// A flash file of the right size.
#[derive(Debug)]
pub(crate) struct FlashFile {
    path: PathBuf,
    /// Created here and not used yet: it is deleted if QEMU does not start.
    provisional: bool,
    /// Holds the lock.
    file: File,
}

impl FlashFile {
    /// Opens the file at `path`, or creates an erased one if there is none.
    pub(crate) fn prepare(path: &Path, part: &Storage) -> Result<Self, BoardError> {
        let created = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let mut this = match created {
            Ok(file) => {
                // Set before the file is filled: a full disk must not leave half a chip behind.
                let mut this = Self { path: path.to_owned(), provisional: true, file };
                this.file
                    .write_all(&vec![ERASED; part.size])
                    .map_err(QemuError::file(path, "fill"))?;
                this
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Self { path: path.to_owned(), provisional: false, file: open(path, part)? }
            }
            Err(error) => return Err(QemuError::file(path, "create")(error).into()),
        };
        match this.file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(BoardError::FlashInUse { path: path.to_owned() });
            }
            // A file system without locks: continue unlocked.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        // QEMU runs in another directory, and takes `x:y` for a protocol unless the path is
        // absolute.
        this.path = path.canonicalize().map_err(QemuError::file(path, "resolve"))?;
        Ok(this)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// QEMU has started with it: keep the file.
    pub(crate) fn keep(&mut self) {
        self.provisional = false;
    }
}

impl Drop for FlashFile {
    fn drop(&mut self) {
        if self.provisional {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn open(path: &Path, part: &Storage) -> Result<File, BoardError> {
    // Before opening, because opening a FIFO would block.
    let metadata = std::fs::metadata(path).map_err(QemuError::file(path, "look at"))?;
    if !metadata.is_file() {
        return Err(BoardError::FlashKind { path: path.to_owned() });
    }
    if metadata.len() != part.size as u64 {
        return Err(BoardError::FlashSize {
            path: path.to_owned(),
            found: metadata.len(),
            needed: part.size as u64,
            part: part.name,
        });
    }
    let opened = OpenOptions::new().read(true).write(true).open(path);
    Ok(opened.map_err(QemuError::file(path, "open for reading and writing"))?)
}
