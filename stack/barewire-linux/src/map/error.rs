//! Errors of mapping registers: where, what, and a remedy.

use std::fmt;
use std::path::PathBuf;

use rustix::io::Errno;

use super::clock_state::{ClockState, KEEP, Rate};
use super::device::{Kind, PlatformDevice};
use super::{Block, SpecError};
use crate::gpio::GpioError;
use crate::rights::{Group, Remedy};
use crate::root::Root;
use crate::shared::{BusUser, SharedError, UserNames};
use crate::soc;

/// Why a device-tree node is not the one wanted. Its path is in all but the first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WrongNode {
    /// The tree gives the address to no node.
    None,
    /// It is something else.
    Other {
        /// The node.
        path: String,
        /// Its `compatible`.
        compatible: Vec<String>,
    },
    /// Its registers begin at another address.
    Within {
        /// The node.
        path: String,
        /// Where they begin.
        first: u64,
    },
    /// It, or a bus above it, is disabled (`status`).
    Disabled {
        /// The node.
        path: String,
    },
    /// `spi-slave`: another host drives its bus.
    Target {
        /// The node.
        path: String,
    },
}

impl WrongNode {
    /// The node's path in the tree.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Other { path, .. }
            | Self::Within { path, .. }
            | Self::Disabled { path }
            | Self::Target { path } => Some(path),
        }
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapError {
    /// The device node does not exist.
    NoSuchDevice {
        /// The node asked for.
        path: String,
        /// The existing nodes of its kind.
        present: Vec<String>,
    },
    /// This user may not open the node.
    NoPermission {
        /// The node.
        path: String,
        /// Its group.
        group: Option<Group>,
    },
    /// The kernel forbids it to every process, or to processes without a capability.
    NotPermitted {
        /// The node.
        path: String,
        /// "opened" or "mapped".
        what: &'static str,
    },
    /// The kernel refuses to map registers of `/dev/mem`.
    RangeNotPermitted {
        /// Their address.
        address: u64,
        /// The owners of the claims, by `/proc/iomem`.
        claimed_by: Vec<String>,
        /// The bus to use instead.
        remedy: Option<String>,
    },
    /// Another program has the kernel module's device.
    Taken {
        /// The node.
        path: String,
    },
    /// The kernel module's device has a block that this version does not know.
    UnknownBlock {
        /// The node.
        path: String,
        /// The block's name.
        name: String,
    },
    /// The page of the registers has another block's too, which the kernel module gives to no program.
    SharedPage {
        /// The node.
        path: String,
        /// Bytes of a page.
        page: usize,
    },
    /// A kernel driver is bound to the controller.
    Bound {
        /// The controller.
        device: Box<PlatformDevice>,
        /// Its driver.
        driver: String,
    },
    /// Another kind of device than the one wanted is at the address.
    OtherDevice {
        /// That device.
        device: Box<PlatformDevice>,
        /// The kind that was wanted.
        wanted: Kind,
    },
    /// The device tree gives the address to another node than the one wanted, to one that cannot be used, or to none.
    OtherNode {
        /// The address asked for.
        address: u64,
        /// The error of the node.
        wrong: WrongNode,
        /// The block that was wanted, or whose family's GPIO bank.
        block: Block,
        /// Which of the two.
        wanted: Kind,
        /// The bus to use instead, for a user who knows that the tree is wrong.
        remedy: String,
    },
    /// According to the device tree, another block than the one wanted is at the address.
    OtherBlock {
        /// The device there.
        device: Box<PlatformDevice>,
        /// The block it is.
        is: Block,
        /// The block that was wanted.
        wanted: Block,
    },
    /// The address is within a device's registers, not at their beginning.
    NotBase {
        /// The address asked for.
        address: u64,
        /// The device whose registers are there.
        device: Box<PlatformDevice>,
        /// Its kind.
        kind: Kind,
        /// The bus to use instead.
        remedy: Option<String>,
    },
    /// The address is a device's as its own bus numbers it, as manuals do; the processor sees the device
    /// elsewhere.
    BusAddress {
        /// The address asked for.
        address: u64,
        /// The device.
        device: Box<PlatformDevice>,
        /// The bus to use instead.
        remedy: Option<String>,
    },
    /// The controller's clock is off, or its state is unknown: its registers may not answer.
    Clock {
        /// The address of its registers.
        address: u64,
        /// The state of the clock.
        state: ClockState,
        /// The bus to use instead, for a user who knows that the clock runs.
        remedy: String,
    },
    /// The controller's reference clock has another rate than specified.
    ClockRate {
        /// The address of its registers.
        address: u64,
        /// The real rate.
        rate: Rate,
        /// The specified rate, in hertz.
        reference_hz: u32,
        /// The bus to use instead.
        remedy: String,
    },
    /// A kernel driver was bound to the controller while this process used it.
    TakenBack {
        /// The controller.
        device: Box<PlatformDevice>,
        /// The driver, if it is still bound.
        driver: Option<String>,
    },
    /// A controller's specification is invalid.
    Spec(SpecError),
    /// The GPIO bank of the chip selects is not a map of the UIO device, and `/dev/mem` cannot be
    /// used instead.
    GpioBank {
        /// The UIO node.
        path: String,
        /// The address of the bank's registers.
        address: u64,
        /// Why `/dev/mem` cannot be used.
        error: Box<MapError>,
    },
    /// A GPIO line cannot be used.
    Gpio(GpioError),
    /// The range is memory, not registers.
    Memory {
        /// Its address.
        address: u64,
        /// Its length in bytes.
        len: u32,
    },
    /// The range is empty, not a multiple of 4, or extends beyond the available bytes.
    Range {
        /// The address, relative to the mapping.
        address: u64,
        /// Its length in bytes.
        len: u32,
        /// The available bytes, if known.
        available: Option<u64>,
    },
    /// The UIO device has no such map.
    NoSuchMap {
        /// The node.
        path: String,
        /// The map asked for.
        index: u32,
        /// How many maps it has.
        count: usize,
    },
    /// The UIO device has no interrupt, or one that cannot be masked.
    NoInterrupt {
        /// The node.
        path: String,
    },
    /// A sysfs file does not have the expected content.
    Malformed {
        /// The file.
        path: String,
    },
    /// The lock between processes.
    Lock(SharedError),
    /// A process has the controller mapped without the lock.
    Stranger {
        /// The controller's address.
        address: u64,
        /// The process.
        user: BusUser,
        /// The lock.
        lock: PathBuf,
    },
    /// Any other error of the kernel.
    Os {
        /// The node.
        path: String,
        /// The operation that failed.
        what: &'static str,
        /// The kernel's error.
        errno: Errno,
    },
}

impl MapError {
    /// The error of opening `path`; `present` lists the nodes of its kind.
    pub(super) fn of_open(
        root: &Root,
        path: &str,
        errno: Errno,
        present: impl FnOnce() -> Vec<String>,
    ) -> Self {
        let path = path.to_owned();
        match errno {
            Errno::NOENT | Errno::NXIO | Errno::NODEV => {
                Self::NoSuchDevice { path, present: present() }
            }
            Errno::ACCESS => {
                let group = Group::of(root, &root.path(&path));
                Self::NoPermission { path, group }
            }
            Errno::PERM => Self::NotPermitted { path, what: "opened" },
            _ => Self::Os { path, what: "opened", errno },
        }
    }

    fn is_memory(path: &str) -> bool {
        path == "/dev/mem"
    }

    fn is_door(path: &str) -> bool {
        path.starts_with("/dev/barewire")
    }
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchDevice { path, .. } if Self::is_memory(path) => write!(
                f,
                "{path}: this kernel has none (CONFIG_DEVMEM is off): map the controller through UIO"
            ),
            Self::NoSuchDevice { path, present } if present.is_empty() && Self::is_door(path) => {
                write!(
                    f,
                    "{path}: no controller is bound to the kernel module's driver barewire-user: `barewire doctor` says how"
                )
            }
            Self::NoSuchDevice { path, present } if present.is_empty() => write!(
                f,
                "{path}: there is no UIO device on this machine: give the controller to UIO by a device-tree overlay and load uio_pdrv_genirq with of_id=generic-uio"
            ),
            Self::NoSuchDevice { path, present } => {
                write!(f, "{path}: no such device; there are {}", present.join(", "))
            }
            Self::NoPermission { path, group } => {
                let (matches, wanted) = if Self::is_memory(path) {
                    ("KERNEL==\"mem\"", "kmem")
                } else if Self::is_door(path) {
                    ("SUBSYSTEM==\"barewire\"", "spi")
                } else {
                    ("SUBSYSTEM==\"uio\"", "uio")
                };
                let remedy = Remedy { group: group.as_ref(), matches, wanted };
                write!(f, "{path}: permission denied; {remedy}")?;
                if Self::is_memory(path) {
                    f.write_str("; it also needs CAP_SYS_RAWIO, which UIO does not")?;
                }
                Ok(())
            }
            Self::NotPermitted { path, what } if Self::is_memory(path) => write!(
                f,
                "{path} may not be {what}: it needs CAP_SYS_RAWIO and a kernel that is not locked down: UIO needs neither (`iomem=relaxed` does not help here)"
            ),
            Self::RangeNotPermitted { address, claimed_by, remedy } => {
                write!(f, "the registers at {address:#x} may not be mapped from /dev/mem")?;
                if !claimed_by.is_empty() {
                    write!(f, ": {} has claimed them", claimed_by.join(", "))?;
                }
                f.write_str(": that needs CAP_SYS_RAWIO, a kernel that is not locked down, and, with CONFIG_IO_STRICT_DEVMEM, a range that no driver has claimed; ")?;
                if let Some(remedy) = remedy {
                    write!(f, "write {remedy}, or ")?;
                }
                f.write_str("use UIO, which needs none of this; `iomem=relaxed` on the kernel's command line allows it to every program of the machine")
            }
            Self::NotPermitted { path, what } => write!(
                f,
                "{path} may not be {what}: the kernel forbids it to this process (a container, a security module?)"
            ),
            Self::Taken { path } => write!(
                f,
                "{path}: another program has it: end that program, or let both open it with `shared`"
            ),
            Self::UnknownBlock { path, name } => write!(
                f,
                "{path} is of a block {name:?}, which this version does not know: take the version that came with the kernel module"
            ),
            Self::SharedPage { path, page } => write!(
                f,
                "{path} may not be mapped: its page of {page} bytes has another block's registers too, which the kernel's log names (dmesg); use spidev"
            ),
            Self::Bound { device, driver } if driver == soc::DOOR_DRIVER => write!(
                f,
                "the controller at {:#x} is the kernel module's, which gives it to programs: use it as barewire:N (`barewire list` has the number)",
                device.address
            ),
            Self::Bound { device, driver } => write!(
                f,
                "the kernel's driver {driver} is bound to the controller at {:#x}: release it with `{}` (its spidev nodes go with it; its clock may stop: see the README)",
                device.address,
                device.unbind_command(driver)
            ),
            Self::OtherDevice { device, wanted } => {
                let wanted = match wanted {
                    Kind::Spi => "SPI controller",
                    Kind::Gpio => "GPIO bank",
                };
                let PlatformDevice { address, name, .. } = &**device;
                write!(
                    f,
                    "at {address:#x} the kernel knows {name}, which is no {wanted}: check the address"
                )
            }
            Self::OtherNode { address, wrong, block, wanted, remedy } => {
                write!(f, "the device tree gives {address:#x} to ")?;
                match wrong {
                    WrongNode::None => f.write_str("no device: check the address"),
                    WrongNode::Other { path, compatible } => {
                        f.write_str(path)?;
                        if !compatible.is_empty() {
                            write!(f, " ({})", compatible.join(", "))?;
                        }
                        match wanted {
                            Kind::Spi => write!(f, ", which is no {block} controller")?,
                            Kind::Gpio => {
                                write!(f, ", which is no GPIO bank that goes with {block}")?
                            }
                        }
                        f.write_str(": check the address")
                    }
                    WrongNode::Within { path, first } => {
                        write!(f, "{path}, whose registers begin at {first:#x}: write that address")
                    }
                    WrongNode::Disabled { path } => {
                        write!(
                            f,
                            "{path}, which is disabled: enable it by a device-tree overlay (status = \"okay\")"
                        )?;
                        match wanted {
                            Kind::Spi => f.write_str(
                                " or, on a Raspberry Pi, by dtparam=spi=on in config.txt",
                            ),
                            Kind::Gpio => Ok(()),
                        }
                    }
                    WrongNode::Target { path } => write!(
                        f,
                        "{path}, which is a target (spi-slave): another host drives its bus; remove the property if the wiring is otherwise"
                    ),
                }?;
                write!(f, ", or, if you know that the tree is wrong, write {remedy}")
            }
            Self::OtherBlock { device, is, wanted } => write!(
                f,
                "at {:#x} the kernel knows {}, which by its device tree is {is}, not {wanted}: write controller={is}",
                device.address, device.name
            ),
            Self::NotBase { address, device, kind, remedy } => {
                let (first, last) = device.range();
                write!(f, "{address:#x} is inside {} ({first:#x} to {last:#x}", device.name)?;
                if let Some(driver) = device.rival().filter(|_| *kind == Kind::Spi) {
                    write!(f, ", which the kernel's driver {driver} has")?;
                }
                write!(f, "), whose registers begin at {:#x}: write ", device.address)?;
                match remedy {
                    Some(remedy) => f.write_str(remedy),
                    None => write!(f, "{:#x}", device.address),
                }
            }
            Self::BusAddress { address, device, remedy } => {
                write!(
                    f,
                    "{address:#x} is how the manual's bus numbers {}; the processor sees it at {:#x}: write ",
                    device.name, device.address
                )?;
                match remedy {
                    Some(remedy) => f.write_str(remedy),
                    None => write!(f, "{:#x}", device.address),
                }
            }
            Self::Clock { address, state: ClockState::Unknown, remedy } => write!(
                f,
                "it is unknown whether the clock of the controller at {address:#x} runs: this process can read neither a clock gate nor the kernel's clocks (root can, with `mount -t debugfs none /sys/kernel/debug`); without its kernel driver it may be off, and touching its registers may hang the machine; {KEEP}, or, if you know that it runs, write {remedy}"
            ),
            Self::Clock { address, state, remedy } => write!(
                f,
                "the clock of the controller at {address:#x} is off ({state}): touching its registers would end in a bus error or hang the machine; {KEEP}, or, if you know that it runs, write {remedy}"
            ),
            Self::ClockRate { address, rate: Rate { name, hz }, reference_hz, remedy } => write!(
                f,
                "the reference clock of the controller at {address:#x} is {hz} Hz (the kernel's clock {name}), not {reference_hz} Hz as reference-hz says, and every bus clock would be wrong by that much: write {remedy}, or, if you know that the kernel's rate is wrong, add ignore-clock to yours"
            ),
            Self::TakenBack { device, driver: Some(driver) } => write!(
                f,
                "the kernel's driver {driver} was bound to {} while it was in use here: what was read or written since may be wrong, in this process and in the kernel; release it with `{}`, and read or verify again",
                device.name,
                device.unbind_command(driver)
            ),
            Self::TakenBack { device, driver: None } => {
                f.write_str("a kernel driver")?;
                if let Some(block) = device.block {
                    write!(f, " ({} by its compatible)", block.facts().linux_driver)?;
                }
                write!(
                    f,
                    " was bound to {}, or tried to be, while it was in use here, and was unbound again: what was read or written since may be wrong, in this process and in the kernel; keep it away, and read or verify again",
                    device.name
                )
            }
            Self::Spec(error) => error.fmt(f),
            Self::Lock(error) => error.fmt(f),
            Self::Stranger { address, user, lock } => write!(
                f,
                "the controller at {address:#x} is in use without the lock {}, by {}: end that process, which may be of another version of barewire, of another container, or no user of barewire at all; two programs on one controller both lose data",
                lock.display(),
                UserNames(std::slice::from_ref(user))
            ),
            Self::GpioBank { path, address, error } => write!(
                f,
                "the GPIO bank at {address:#x} is not a map of {path}, and /dev/mem cannot be used instead ({error}): give the UIO node a second `reg` for it, or use the controller's own chip select"
            ),
            Self::Gpio(error) => error.fmt(f),
            Self::Memory { address, len } => write!(
                f,
                "{len:#x} bytes at {address:#x} are main memory (/proc/iomem: System RAM), not registers: check the address"
            ),
            Self::Range { address, len, available } => {
                write!(f, "{len:#x} bytes at {address:#x} are no register block")?;
                match available {
                    Some(available) => write!(f, ": there are {available:#x} bytes"),
                    None => f.write_str(": both must be multiples of 4, and the length above 0"),
                }
            }
            Self::NoSuchMap { path, index, count } => {
                write!(f, "{path} has no map {index}: it has {count}, counted from 0")
            }
            Self::NoInterrupt { path } if Self::is_door(path) => write!(
                f,
                "{path} has no interrupt to wait for: its node has none, or another driver shares the line (dmesg); leave poll-limit-us out"
            ),
            Self::NoInterrupt { path } => write!(
                f,
                "{path} has no interrupt that can be waited for: give its device-tree node `interrupts` and let uio_pdrv_genirq drive it, or poll"
            ),
            Self::Malformed { path } => {
                write!(f, "{path} does not hold a number: is /sys a sysfs?")
            }
            Self::Os { path, what, errno } => write!(f, "{path} could not be {what}: {errno}"),
        }
    }
}

impl std::error::Error for MapError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, errno: Errno, present: &[&str]) -> String {
        let present = present.iter().map(|name| (*name).to_owned()).collect();
        MapError::of_open(&Root::at("/nonexistent"), path, errno, || present).to_string()
    }

    #[test]
    fn opening_fails_with_a_remedy() {
        let cases = [
            ("/dev/mem", Errno::NOENT, "through UIO"),
            ("/dev/mem", Errno::ACCESS, "KERNEL==\"mem\", GROUP=\"kmem\""),
            ("/dev/mem", Errno::ACCESS, "CAP_SYS_RAWIO"),
            ("/dev/mem", Errno::PERM, "CAP_SYS_RAWIO"),
            ("/dev/uio0", Errno::NOENT, "of_id=generic-uio"),
            ("/dev/uio0", Errno::ACCESS, "SUBSYSTEM==\"uio\", GROUP=\"uio\""),
            ("/dev/uio0", Errno::PERM, "container"),
            ("/dev/barewire0", Errno::NOENT, "barewire-user"),
            ("/dev/barewire0", Errno::ACCESS, "SUBSYSTEM==\"barewire\", GROUP=\"spi\""),
            ("/dev/uio0", Errno::MFILE, "could not be opened"),
        ];
        for (path, errno, remedy) in cases {
            let text = of(path, errno, &[]);
            assert!(text.contains(remedy) && text.contains(path), "{path} {errno}: {text}");
        }
        let text = of("/dev/uio7", Errno::NOENT, &["/dev/uio0", "/dev/uio1"]);
        assert!(text.ends_with("there are /dev/uio0, /dev/uio1"), "{text}");
    }
}
