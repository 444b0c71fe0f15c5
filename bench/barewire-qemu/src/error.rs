//! Errors of a board. Every message says how to fix the problem.

use std::fmt;
use std::path::PathBuf;

use barewire_qtest::QemuError;

/// Why a board cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BoardError {
    /// There is no such board.
    Unknown {
        /// The name asked for.
        name: String,
        /// A known name that is similar, if there is one.
        near: Option<&'static str>,
        /// All known names.
        known: Vec<&'static str>,
    },
    /// QEMU does not show the interrupt line of the board's controller at any known path.
    Interrupt {
        /// The board.
        board: &'static str,
        /// Its answer for the last path.
        said: String,
    },
    /// A file was given, but the board has no chip to store in a file.
    NoStorage {
        /// The board.
        board: &'static str,
    },
    /// The flash file does not have the chip's size.
    FlashSize {
        /// The file.
        path: PathBuf,
        /// Its length, in bytes.
        found: u64,
        /// The chip's size, in bytes.
        needed: u64,
        /// The chip.
        part: &'static str,
    },
    /// The flash file is not a regular file.
    FlashKind {
        /// The file.
        path: PathBuf,
    },
    /// Another board uses the flash file.
    FlashInUse {
        /// The file.
        path: PathBuf,
    },
    /// QEMU itself, the connection to it, or a file.
    Qemu(QemuError),
}

impl From<QemuError> for BoardError {
    fn from(error: QemuError) -> Self {
        BoardError::Qemu(error)
    }
}

impl fmt::Display for BoardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BoardError::Unknown { name, near, known } => {
                write!(f, "no QEMU board `{name}`")?;
                if let Some(near) = near {
                    write!(f, ": did you mean `{near}`?")?;
                }
                write!(f, " (there is: {})", known.join(", "))
            }
            BoardError::Interrupt { board, said } => write!(
                f,
                "this QEMU does not show the interrupt line of {board}'s controller: {}",
                if said.is_empty() { "nothing" } else { said }
            ),
            BoardError::NoStorage { board } => {
                write!(f, "{board} has no chip whose content is a file: leave the file out")
            }
            BoardError::FlashSize { path, found, needed, part } => write!(
                f,
                "{} has {found} bytes, the board's {part} has {needed}: give a file of exactly that size, or none to have one made",
                path.display()
            ),
            BoardError::FlashKind { path } => {
                write!(f, "{} is no regular file: QEMU needs one for its chip", path.display())
            }
            BoardError::FlashInUse { path } => write!(
                f,
                "{} is in use by another QEMU board: close that one, or give each its own file",
                path.display()
            ),
            BoardError::Qemu(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BoardError {}
