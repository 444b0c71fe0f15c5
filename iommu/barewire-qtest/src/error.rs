//! Errors between this process and QEMU. Every message says how to fix the problem.

use std::fmt;
use std::path::PathBuf;

/// An error of an emulated machine.
///
/// It is `Clone` because the first error of a connection is kept and returned again
/// ([`Qemu::lost`](crate::Qemu::lost)).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QemuError {
    /// The program could not be started.
    Missing {
        /// The program that was tried.
        program: PathBuf,
        /// Debian's package of the machine's program.
        package: &'static str,
        /// The system's error message.
        reason: String,
    },
    /// The program is too old for the machine.
    TooOld {
        /// The program.
        program: PathBuf,
        /// Its version.
        found: Version,
        /// The oldest version that has the machine.
        needed: Version,
        /// Where to get such a version.
        remedy: String,
    },
    /// The program does not print a version in QEMU's format.
    NotQemu {
        /// The program.
        program: PathBuf,
        /// The text it printed instead.
        said: String,
    },
    /// QEMU runs but does not answer on its socket.
    NoConnection {
        /// The time waited, in milliseconds.
        waited_ms: u64,
        /// The last lines of its standard error.
        stderr: String,
    },
    /// QEMU ended by itself.
    Died {
        /// The exit status, in the system's words.
        status: String,
        /// The last lines of its standard error.
        stderr: String,
    },
    /// QEMU runs and was connected, but has stopped answering.
    Silent {
        /// The time waited, in milliseconds.
        waited_ms: u64,
    },
    /// The connection broke while QEMU went on running.
    Broken {
        /// The system's error message.
        reason: String,
    },
    /// QEMU refused a command, or its answer is not in the protocol.
    Protocol {
        /// Its line.
        line: String,
    },
    /// A device of the machine is missing or has the wrong identity.
    Device {
        /// Which.
        device: &'static str,
        /// The fault of the device.
        trouble: String,
    },
    /// A file or directory could not be used.
    File {
        /// Which.
        path: PathBuf,
        /// The operation, for example "open for reading and writing".
        doing: &'static str,
        /// The system's error message.
        reason: String,
    },
}

/// A version of QEMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Before the first point.
    pub major: u32,
    /// After it.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl QemuError {
    /// For `map_err`: an I/O error of `path`.
    pub fn file(
        path: impl Into<PathBuf>,
        doing: &'static str,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |error| QemuError::File { path, doing, reason: error.to_string() }
    }
}

impl fmt::Display for QemuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QemuError::Missing { program, package, reason } => write!(
                f,
                "cannot run {}: {reason}; on Debian it is in the package {package} (sudo apt-get install {package})",
                program.display()
            ),
            QemuError::TooOld { program, found, needed, remedy } => write!(
                f,
                "{} is QEMU {found}, the board needs {needed} or later: {remedy}",
                program.display()
            ),
            QemuError::NotQemu { program, said } => write!(
                f,
                "{} --version does not answer as QEMU does: {}",
                program.display(),
                or_nothing(said)
            ),
            QemuError::NoConnection { waited_ms, stderr } => write!(
                f,
                "QEMU did not answer on its socket within {} s; its standard error: {}",
                *waited_ms as f64 / 1_000.0,
                or_nothing(stderr)
            ),
            QemuError::Died { status, stderr } => {
                write!(f, "QEMU ended ({status}); its standard error: {}", or_nothing(stderr))
            }
            QemuError::Silent { waited_ms } => {
                write!(f, "QEMU stopped answering: nothing for {} s", *waited_ms as f64 / 1_000.0)
            }
            QemuError::Broken { reason } => write!(f, "the connection to QEMU broke: {reason}"),
            QemuError::Protocol { line } => {
                write!(f, "QEMU's qtest answered with something else than OK: {}", or_nothing(line))
            }
            QemuError::Device { device, trouble } => {
                write!(f, "QEMU's device {device}: {trouble}")
            }
            QemuError::File { path, doing, reason } => {
                write!(f, "cannot {doing} {}: {reason}", path.display())
            }
        }
    }
}

impl std::error::Error for QemuError {}

fn or_nothing(text: &str) -> &str {
    if text.is_empty() { "nothing" } else { text }
}
