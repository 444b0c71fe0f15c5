//! Errors of GPIO lines, with the line and a remedy.

use std::fmt;

use rustix::io::Errno;

use super::line::GpioChip;
use crate::rights::{Group, Remedy};

/// A line that is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineUser {
    /// The number of the line.
    pub offset: u32,
    /// Its name; often empty.
    pub name: String,
    /// Its user; empty if the kernel does not say.
    pub consumer: String,
}

impl fmt::Display for LineUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.offset)?;
        match (self.name.as_str(), self.consumer.as_str()) {
            ("", "") => Ok(()),
            ("", consumer) => write!(f, " ({consumer})"),
            (name, "") => write!(f, " {name}"),
            (name, consumer) => write!(f, " {name} ({consumer})"),
        }
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GpioError {
    /// The kernel has no such chip.
    NoChip {
        /// The chip asked for.
        chip: GpioChip,
        /// The labels of the existing chips.
        labels: Vec<String>,
    },
    /// Several chips match.
    SeveralChips {
        /// The chip asked for.
        chip: GpioChip,
        /// The chips that match.
        names: Vec<String>,
    },
    /// The chip exists in sysfs, but has no node.
    NoNode {
        /// The node that is missing.
        path: String,
    },
    /// This user may not open the node.
    NoPermission {
        /// The node.
        path: String,
        /// Its group.
        group: Option<Group>,
    },
    /// The kernel does not support version 2 of the interface.
    TooOld {
        /// The node.
        path: String,
    },
    /// The chip has no such line.
    NoLine {
        /// Its node.
        path: String,
        /// The line asked for.
        offset: u32,
        /// How many lines it has, counted from 0.
        lines: u32,
    },
    /// The line is in use.
    InUse {
        /// The chip's node.
        path: String,
        /// The line, and its user.
        user: LineUser,
    },
    /// Lines of a bank whose registers would be written directly are in use, and the bank's kernel
    /// driver writes all lines at once.
    BankInUse {
        /// The address of the bank's registers.
        address: u64,
        /// The chip's node.
        path: String,
        /// The lines in use.
        users: Vec<LineUser>,
    },
    /// It is unknown whether lines of a bank are in use.
    BankUnknown {
        /// The address of the bank's registers.
        address: u64,
        /// Why it is unknown.
        why: &'static str,
    },
    /// One bank would be driven both through its registers and through the kernel, which writes all
    /// lines at once.
    BothWays {
        /// The address of the bank's registers.
        address: u64,
    },
    /// Any other error of the kernel.
    Os {
        /// The chip's node.
        path: String,
        /// The operation that failed.
        what: &'static str,
        /// The kernel's error.
        errno: Errno,
    },
}

impl GpioError {
    /// The error of a call on the open chip at `path`.
    pub(super) fn of_call(path: &str, what: &'static str, errno: Errno) -> Self {
        let path = path.to_owned();
        match errno {
            Errno::NOTTY => Self::TooOld { path },
            _ => Self::Os { path, what, errno },
        }
    }
}

/// The alternatives for a chip select whose bank may not be written.
struct Remedies(u64);

impl fmt::Display for Remedies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "use the controller's own line (native0), or a line through the kernel (gpio@{:#x}:PIN, with a colon); or add unsafe-shared if no other program drives the other lines while the bus is open",
            self.0
        )
    }
}

impl fmt::Display for GpioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoChip { chip, labels } => {
                match chip {
                    GpioChip::At(address) => {
                        write!(
                            f,
                            "the kernel has no GPIO chip whose registers are at {address:#x}"
                        )?;
                    }
                    GpioChip::Labelled(label) => write!(f, "no GPIO chip has the label {label:?}")?,
                }
                match labels.as_slice() {
                    [] => f.write_str(
                        "; there are none that can be opened: load the bank's driver, and see that the kernel has CONFIG_GPIO_CDEV",
                    ),
                    labels => write!(f, "; there are {}", labels.join(", ")),
                }
            }
            Self::SeveralChips { chip: GpioChip::At(address), names } => write!(
                f,
                "the device at {address:#x} has several GPIO chips ({}): name one by its label, as `gpiodetect` prints it",
                names.join(", ")
            ),
            Self::SeveralChips { chip: GpioChip::Labelled(label), names } => write!(
                f,
                "several GPIO chips have the label {label:?} ({}): name one by the address of its registers, as gpio@0x30240000:9",
                names.join(", ")
            ),
            Self::NoNode { path } => write!(
                f,
                "{path}: no such device, though the kernel has the chip: it needs CONFIG_GPIO_CDEV, and udev or devtmpfs to make the node"
            ),
            Self::NoPermission { path, group } => {
                let matches = "SUBSYSTEM==\"gpio\"";
                let remedy = Remedy { group: group.as_ref(), matches, wanted: "gpio" };
                write!(f, "{path}: permission denied; {remedy}")
            }
            Self::TooOld { path } => write!(
                f,
                "{path} does not support version 2 of the GPIO interface: it needs Linux 5.10 or later, and a node that is a GPIO chip"
            ),
            Self::NoLine { path, offset, lines } => {
                write!(f, "{path} has no line {offset}: it has {lines}, counted from 0")
            }
            Self::InUse { path, user } => write!(
                f,
                "line {user} of {path} is in use: it belongs to one user at a time; stop that one (`gpioinfo` shows them all), or choose another line"
            ),
            Self::BankInUse { address, path, users } => {
                let users: Vec<_> = users.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "other lines of the GPIO bank at {address:#x} ({path}) are in use: {}; their driver writes all 32 from values it remembers, which would move the chip select in the middle of a message: {}",
                    users.join(", "),
                    Remedies(*address)
                )
            }
            Self::BankUnknown { address, why } => write!(
                f,
                "it is unknown whether other lines of the GPIO bank at {address:#x} are in use ({why}): {}",
                Remedies(*address)
            ),
            Self::BothWays { address } => write!(
                f,
                "chip selects of the GPIO bank at {address:#x} are requested both through its registers and through the kernel, which writes all 32 lines at once: write all of them with a colon (gpio@{address:#x}:PIN), or all with a dot"
            ),
            Self::Os { path, what, errno } => write!(f, "{path} could not be {what}: {errno}"),
        }
    }
}

impl std::error::Error for GpioError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_bank_names_its_users_and_both_remedies() {
        let user = |offset, name: &str, consumer: &str| LineUser {
            offset,
            name: name.into(),
            consumer: consumer.into(),
        };
        let users = vec![user(3, "LED", "heartbeat"), user(5, "", "reset"), user(7, "", "")];
        let path = "/dev/gpiochip4".to_owned();
        let text = GpioError::BankInUse { address: 0x3024_0000, path, users }.to_string();
        for part in [
            "3 LED (heartbeat), 5 (reset), 7;",
            "native0",
            "gpio@0x30240000:PIN",
            "unsafe-shared",
            "/dev/gpiochip4",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn who_may_not_open_a_chip_learns_how_to() {
        let error = GpioError::NoPermission { path: "/dev/gpiochip0".into(), group: None };
        assert!(error.to_string().contains("SUBSYSTEM==\"gpio\", GROUP=\"gpio\""), "{error}");
    }
}
