//! Errors of spidev: where, what, and a remedy.

use std::fmt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::abi::MESSAGE_TRANSFERS_MAX;
use super::ioctl::Setting;
use crate::rights::{Group, Remedy};
use crate::root::Root;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpidevError {
    /// The node does not exist.
    NoSuchDevice {
        /// The node asked for.
        path: PathBuf,
        /// The existing spidev nodes.
        present: Vec<String>,
    },
    /// The file is not a spidev node.
    NotSpidev {
        /// The file.
        path: PathBuf,
    },
    /// This user may not open the node.
    NoPermission {
        /// The node.
        path: PathBuf,
        /// Its group.
        group: Option<Group>,
    },
    /// The kernel refused the setting: the controller or its driver does not support it.
    Setting {
        /// The node.
        path: PathBuf,
        /// The setting.
        setting: Setting,
        /// The kernel's error.
        errno: Errno,
    },
    /// A delay longer than its field in `struct spi_ioc_transfer`.
    Delay {
        /// The delay, by Linux's name.
        what: &'static str,
        /// The delay asked for in microseconds, rounded up.
        asked_us: u64,
        /// The longest delay that the field holds, in microseconds.
        max_us: u32,
    },
    /// More bytes than spidev's buffers hold in one message, and no point at which to split.
    TooLong {
        /// Bytes between two points at which CS is inactive, each transfer rounded up to 128.
        bytes: usize,
        /// spidev's `bufsiz`.
        bufsiz: usize,
    },
    /// More transfers than one ioctl takes, and no point at which to split.
    TooManyTransfers {
        /// Transfers between two points at which CS is inactive.
        transfers: usize,
    },
    /// The kernel found the message too long after it was checked: the real `bufsiz` differs.
    MessageSize {
        /// The node.
        path: PathBuf,
        /// The value of `bufsiz` when the node was opened.
        bufsiz: usize,
    },
    /// The kernel refused the message: it has a word length, a speed or a flag that the controller
    /// does not support.
    Refused {
        /// The node.
        path: PathBuf,
    },
    /// The controller failed within the message.
    Io {
        /// The node.
        path: PathBuf,
        /// The kernel's error.
        errno: Errno,
    },
    /// The device or its controller was removed.
    Gone {
        /// The node.
        path: PathBuf,
        /// The kernel's error.
        errno: Errno,
    },
    /// The kernel reported success, but another length than the message's.
    Short {
        /// The node.
        path: PathBuf,
        /// Bytes of the message.
        expected: usize,
        /// Bytes that the kernel counted.
        actual: usize,
    },
    /// The message ended earlier than its clocks allow at the speed asked for: the controller's
    /// slowest clock is faster.
    TooFast {
        /// The node.
        path: PathBuf,
        /// The speed asked for, in hertz.
        asked_hz: u32,
        /// The least time of the message's clocks at that speed, in nanoseconds.
        least_ns: u64,
        /// The time it took, in nanoseconds.
        took_ns: u64,
    },
    /// Any other error of the kernel.
    Os {
        /// The node.
        path: PathBuf,
        /// The operation that failed.
        what: &'static str,
        /// The kernel's error.
        errno: Errno,
    },
}

impl SpidevError {
    /// The error of opening `path`; its path under the root is `real`.
    pub(super) fn of_open(root: &Root, path: &Path, real: &Path, errno: Errno) -> Self {
        let path = path.to_owned();
        match errno {
            Errno::NOENT => {
                let present = super::nodes(root);
                Self::NoSuchDevice { path, present }
            }
            Errno::ACCESS | Errno::PERM => {
                Self::NoPermission { path, group: Group::of(root, real) }
            }
            // The node exists but not its device: an unbound driver left it behind.
            Errno::NXIO | Errno::NODEV => Self::Gone { path, errno },
            _ => Self::Os { path, what: "opened", errno },
        }
    }

    /// The error of a message.
    pub(super) fn of_message(path: &Path, bufsiz: usize, errno: Errno) -> Self {
        let path = path.to_owned();
        match errno {
            Errno::MSGSIZE => Self::MessageSize { path, bufsiz },
            Errno::INVAL => Self::Refused { path },
            Errno::IO | Errno::TIMEDOUT | Errno::REMOTEIO => Self::Io { path, errno },
            Errno::NODEV | Errno::SHUTDOWN | Errno::NXIO => Self::Gone { path, errno },
            _ => Self::Os { path, what: "sent a message", errno },
        }
    }
}

const RAISE_BUFSIZ: &str = "raise bufsiz: `options spidev bufsiz=65536` in /etc/modprobe.d/spidev.conf and load the module anew, or `spidev.bufsiz=65536` on the kernel's command line";

impl fmt::Display for SpidevError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchDevice { path, present } if present.is_empty() => write!(
                f,
                "{}: there is no spidev node on this machine: enable the controller and a device on it in the device tree (Raspberry Pi: `dtparam=spi=on`; elsewhere an overlay whose compatible the kernel's spidev knows, `rohm,dh2228fv` say), and load spidev",
                path.display()
            ),
            Self::NoSuchDevice { path, present } => {
                write!(f, "{}: no such device; there are {}", path.display(), present.join(", "))
            }
            Self::NotSpidev { path } => write!(
                f,
                "{} is not a spidev node: name one as /dev/spidevB.C, bus and chip select",
                path.display()
            ),
            Self::NoPermission { path, group } => {
                let matches = "SUBSYSTEM==\"spidev\"";
                let remedy = Remedy { group: group.as_ref(), matches, wanted: "spi" };
                write!(f, "{}: permission denied; {remedy}", path.display())
            }
            Self::Setting { path, setting, errno } => write!(
                f,
                "{}: the kernel refuses {setting} ({errno}): the controller or its driver does not support it; ask for another",
                path.display()
            ),
            Self::Delay { what, asked_us, max_us } => write!(
                f,
                "{what} of {asked_us} us is more than spidev's field holds, {max_us} us: wait between messages instead"
            ),
            Self::TooLong { bytes, bufsiz } => write!(
                f,
                "{bytes} bytes under one chip select (each transfer rounded up to 128) are more than spidev's bufsiz of {bufsiz}: {RAISE_BUFSIZ}; or send less in one message"
            ),
            Self::TooManyTransfers { transfers } => write!(
                f,
                "{transfers} transfers under one chip select are more than the {MESSAGE_TRANSFERS_MAX} of an ioctl: join neighbours into longer transfers"
            ),
            Self::MessageSize { path, bufsiz } => write!(
                f,
                "{}: the kernel finds the message too long although bufsiz read {bufsiz}: close every user of spidev, check /sys/module/spidev/parameters/bufsiz, or {RAISE_BUFSIZ}",
                path.display()
            ),
            Self::Refused { path } => write!(
                f,
                "{}: the kernel refuses the message: the controller's driver has no such word length, speed or mode; try 8-bit words, mode 0 and a lower clock",
                path.display()
            ),
            Self::Io { path, errno } => write!(
                f,
                "{}: the controller failed in the middle of the message ({errno}); what came in is lost, CS is inactive: look at `dmesg` for what its driver says",
                path.display()
            ),
            Self::Gone { path, errno } => write!(
                f,
                "{}: the device or its controller has gone ({errno}): was its driver unbound, or a USB adapter unplugged? Bring it back and open the node anew",
                path.display()
            ),
            Self::Short { path, expected, actual } => write!(
                f,
                "{}: the kernel counted {actual} of the message's {expected} bytes: look at `dmesg` for what the controller's driver says",
                path.display()
            ),
            Self::TooFast { path, asked_hz, least_ns, took_ns } => write!(
                f,
                "{}: the controller clocked faster than {asked_hz} Hz: the message took {} us, but its clocks take {} us at that speed; the controller's slowest clock is faster (the kernel does not report it): ask for a higher one",
                path.display(),
                took_ns / 1_000,
                least_ns / 1_000
            ),
            Self::Os { path, what, errno } => {
                write!(f, "{}: could not be {what}: {errno}", path.display())
            }
        }
    }
}

impl std::error::Error for SpidevError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_open(errno: Errno) -> SpidevError {
        let path = Path::new("/dev/spidev0.0");
        SpidevError::of_open(&Root::at("/nonexistent"), path, path, errno)
    }

    #[test]
    fn opening_fails_with_a_remedy() {
        for (errno, remedy) in [
            (Errno::NOENT, "dtparam=spi=on"),
            (Errno::ACCESS, "SUBSYSTEM==\"spidev\", GROUP=\"spi\", MODE=\"0660\""),
            (Errno::PERM, "permission denied"),
            (Errno::NXIO, "has gone"),
            (Errno::MFILE, "could not be opened"),
        ] {
            let text = of_open(errno).to_string();
            assert!(text.contains(remedy), "{errno}: {text}");
            assert!(text.starts_with("/dev/spidev0.0: "), "{text}");
        }
    }

    #[test]
    fn the_nodes_there_are_are_listed() {
        let present = vec!["/dev/spidev0.0".to_owned(), "/dev/spidev1.0".to_owned()];
        let error = SpidevError::NoSuchDevice { path: "/dev/spidev9.9".into(), present };
        let expected = "/dev/spidev9.9: no such device; there are /dev/spidev0.0, /dev/spidev1.0";
        assert_eq!(error.to_string(), expected);
    }
}
