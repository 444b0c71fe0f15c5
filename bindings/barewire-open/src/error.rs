//! Why a bus was not opened, or not closed in order.

use std::fmt;
use std::io;

use barewire_linux::Errno;
use barewire_linux::shared::SharedError;

/// Why a bus was not opened, or not closed in order. Its text names the thing and, where there is one, the
/// remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The name is wrong: nothing was opened.
    Name(String),
    /// The name is right, but the bus could not be opened, or it failed later.
    Failed(String),
    /// The user ended the wait for another process, as the [`Console`](crate::Console) says.
    Stopped(String),
}

impl OpenError {
    /// An input or output error. `doing` names the action that it ended: "open …".
    pub fn io(doing: impl fmt::Display, error: &io::Error) -> Self {
        OpenError::Failed(format!("cannot {doing}: {error}"))
    }

    /// The error of a wait that the user ended.
    pub(crate) fn stopped() -> Self {
        OpenError::Stopped("stopped as asked, while another process had the bus".into())
    }

    /// The error of a lock between processes.
    pub(crate) fn of_sharing(error: SharedError) -> Self {
        match error {
            SharedError::Mutex { errno: Errno::INTR, .. } => OpenError::stopped(),
            error => OpenError::failed(error),
        }
    }

    /// The error of an action that failed.
    pub(crate) fn failed(error: impl fmt::Display) -> Self {
        OpenError::Failed(error.to_string())
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Name(text) | OpenError::Failed(text) | OpenError::Stopped(text) => {
                f.write_str(text)
            }
        }
    }
}

impl std::error::Error for OpenError {}
