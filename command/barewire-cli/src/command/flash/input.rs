//! The file that is written to the chip or compared with it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::shared::failure::Failure;
use crate::shared::text::figure;

/// The open input, checked for reading before the chip is touched.
pub(super) struct Input {
    path: PathBuf,
    /// The length, if the input is a file.
    len: Option<u64>,
    reader: Box<dyn Read>,
}

impl Input {
    /// Opens `path`; `-` is stdin.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self { path: "stdin".into(), len: None, reader: Box::new(io::stdin()) });
        }
        let doing = || format!("read {}", path.display());
        let file = File::open(path).map_err(|error| Failure::io(doing(), &error))?;
        let metadata = file.metadata().map_err(|error| Failure::io(doing(), &error))?;
        if metadata.is_dir() {
            return Err(Failure::Failed(format!("cannot {}: it is a directory", doing())));
        }
        let len = metadata.is_file().then_some(metadata.len());
        Ok(Self { path: path.into(), len, reader: Box::new(file) })
    }

    /// All of it, which has to fit on a chip of `size` bytes from `offset`.
    pub(super) fn read(self, size: u64, offset: u64) -> Result<Vec<u8>, Failure> {
        let room = size.saturating_sub(offset);
        let mut bytes = Vec::new();
        // Reads one byte more than fits, so that an endless input is refused.
        self.reader
            .take(room + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::io(format_args!("read {}", self.path.display()), &error))?;
        if bytes.len() as u64 <= room && offset <= size {
            return Ok(bytes);
        }
        let path = self.path.display();
        let len = match self.len {
            Some(len) => format!("{len} bytes"),
            None => format!("more than {room} bytes"),
        };
        let holds = format!("the chip holds {size} ({})", figure::size(size));
        Err(Failure::Failed(match offset {
            0 => format!("{path} has {len}, {holds}"),
            _ => format!("{path} has {len}, {holds}: there is room for {room} at {offset:#x}"),
        }))
    }
}
