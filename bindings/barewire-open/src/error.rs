//! Why a bus was not opened, or not closed in order.

use std::fmt;
use std::io;

use barewire_linux::Errno;
use barewire_linux::map::MapError;
use barewire_linux::shared::SharedError;
use barewire_linux::spidev::SpidevError;

/// Why a bus was not opened, or not closed in order. Its text names the thing and, where there is one, the
/// remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The name is wrong: nothing was opened.
    Name(String),
    /// The name is right, but the bus could not be opened, or it failed later.
    Failed(String),
    /// The same, with the system's error number.
    Os {
        /// What happened, and the remedy.
        text: String,
        /// The error number: `ENOENT` for a node or file that does not exist.
        errno: i32,
    },
    /// The user ended the wait for another process, as the [`Console`](crate::Console) says.
    Stopped(String),
}

impl OpenError {
    /// An input or output error. `doing` names the action that it ended: "open …".
    pub fn io(doing: impl fmt::Display, error: &io::Error) -> Self {
        OpenError::os(format!("cannot {doing}: {error}"), error.raw_os_error())
    }

    /// An error with the system's number, where there is one.
    fn os(text: String, errno: Option<i32>) -> Self {
        match errno {
            Some(errno) => OpenError::Os { text, errno },
            None => OpenError::Failed(text),
        }
    }

    /// A spidev node's error.
    pub(crate) fn of_spidev(error: SpidevError) -> Self {
        let errno = match &error {
            SpidevError::NoSuchDevice { .. } => Some(Errno::NOENT),
            SpidevError::NoPermission { .. } => Some(Errno::ACCESS),
            SpidevError::Gone { errno, .. } | SpidevError::Os { errno, .. } => Some(*errno),
            _ => None,
        };
        OpenError::os(error.to_string(), errno.map(Errno::raw_os_error))
    }

    /// A mapped controller's error.
    pub(crate) fn of_map(error: MapError) -> Self {
        let errno = match &error {
            MapError::NoSuchDevice { .. } => Some(Errno::NOENT),
            MapError::NoPermission { .. } => Some(Errno::ACCESS),
            MapError::NotPermitted { .. } | MapError::RangeNotPermitted { .. } => Some(Errno::PERM),
            MapError::Os { errno, .. } => Some(*errno),
            _ => None,
        };
        OpenError::os(error.to_string(), errno.map(Errno::raw_os_error))
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
            OpenError::Name(text)
            | OpenError::Failed(text)
            | OpenError::Os { text, .. }
            | OpenError::Stopped(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for OpenError {}
