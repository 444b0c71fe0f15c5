//! Why a verb ended, and the exit code that says so.

use std::fmt;
use std::io;

/// Why a verb ended before it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It could not be done.
    Failed(String),
    /// Wrong usage that the argument parser cannot detect.
    Usage(String),
    /// It was done, and shows that a device would fault.
    Fault(String),
    /// Ctrl-C.
    Interrupted,
    /// The reader of stdout closed the pipe (`| head`), so no message is printed.
    BrokenPipe,
}

impl Failure {
    /// The exit code, as `barewire-iommu --help` lists it.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Failed(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Fault(_) => 3,
            Failure::Interrupted => 130,
            Failure::BrokenPipe => 0,
        }
    }

    /// An input or output error while `doing` something.
    pub(crate) fn io(doing: impl fmt::Display, error: &io::Error) -> Self {
        Failure::Failed(format!("cannot {doing}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Failed(text) | Failure::Usage(text) | Failure::Fault(text) => {
                f.write_str(text)
            }
            Failure::Interrupted => f.write_str("stopped as asked"),
            Failure::BrokenPipe => f.write_str("the reader of the output has gone"),
        }
    }
}
