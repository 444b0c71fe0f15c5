//! Why a capture cannot be read or understood.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why a capture cannot be read or understood: the file, and what was found in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeError {
    /// The file.
    pub path: PathBuf,
    /// What was found, and what was expected or can be done.
    pub what: String,
}

impl ScopeError {
    /// `what` was found in `path`.
    pub(crate) fn new(path: &Path, what: impl fmt::Display) -> Self {
        Self { path: path.into(), what: what.to_string() }
    }
}

impl fmt::Display for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)
    }
}

impl std::error::Error for ScopeError {}

/// An error of the operating system, as text: readers of formats add no path, [`ScopeError`] has it.
pub(crate) fn io(error: std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "it ends too early: the file is cut".into(),
        _ => error.to_string(),
    }
}
