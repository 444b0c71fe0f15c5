//! Why a bus was not opened, or not closed in order.

use std::fmt;
use std::io;

/// Why a bus was not opened, or not closed in order. Its text names the thing and, where there is one, the
/// remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The name is wrong: nothing was opened.
    Name(String),
    /// The name is right, but the bus could not be opened, or it failed later.
    Failed(String),
}

impl OpenError {
    /// What an input or output error ended: `doing` reads "open …".
    pub fn io(doing: impl fmt::Display, error: &io::Error) -> Self {
        OpenError::Failed(format!("cannot {doing}: {error}"))
    }

    /// The error of what could not be done.
    pub(crate) fn failed(error: impl fmt::Display) -> Self {
        OpenError::Failed(error.to_string())
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Name(text) | OpenError::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for OpenError {}
