//! The file that holds a simulated flash chip's content between commands.
//!
//! # How it works
//! The file is as long as the chip. It is locked (advisory, exclusive) as long as it is open, for
//! two commands that write back would each undo the other's work. Only the parts the chip changed
//! are written back.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::shared::failure::Failure;

/// The erased state.
const ERASED: u8 = 0xff;

/// The open, locked file.
#[derive(Debug)]
pub(super) struct FlashFile {
    path: PathBuf,
    file: File,
}

impl FlashFile {
    /// Opens the file, creating it erased if there is none, and reads its `size` bytes.
    pub(super) fn open(path: &Path, size: usize, part: &str) -> Result<(Self, Vec<u8>), Failure> {
        let doing = |what: &str| format!("{what} flash file {}", path.display());
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let (file, created) = match options.clone().create_new(true).open(path) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                (options.open(path).map_err(|e| Failure::io(doing("open"), &e))?, false)
            }
            Err(error) => return Err(Failure::io(doing("create"), &error)),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::Failed(format!(
                    "flash file {} is in use by another process: wait for it, or name another file",
                    path.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(Failure::io(doing("lock"), &error)),
        }
        let mut this = Self { path: path.into(), file };
        if created {
            let content = vec![ERASED; size];
            if let Err(error) = this.write_at(0, &content) {
                // Half a chip would be refused next time.
                let _ = fs::remove_file(path);
                return Err(Failure::io(doing("create"), &error));
            }
            return Ok((this, content));
        }
        let len = this.file.metadata().map_err(|e| Failure::io(doing("read"), &e))?.len();
        if len != size as u64 {
            return Err(Failure::Failed(format!(
                "flash file {} has {len} bytes, the {part} has {size}: name a file of that size, or a new one",
                path.display()
            )));
        }
        let mut content = vec![0; size];
        this.file.read_exact(&mut content).map_err(|e| Failure::io(doing("read"), &e))?;
        Ok((this, content))
    }

    /// Writes the `ranges` of `content` that changed.
    pub(super) fn write_back(
        &mut self,
        content: &[u8],
        ranges: &[Range<usize>],
    ) -> Result<(), Failure> {
        for range in ranges {
            self.write_at(range.start as u64, &content[range.clone()]).map_err(|error| {
                Failure::io(format_args!("write flash file {}", self.path.display()), &error)
            })?;
        }
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(bytes)
    }
}
