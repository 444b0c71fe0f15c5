//! The obstacles between this machine's user space and its SPI controllers.
//!
//! [`Survey::of`] reads `/proc`, `/sys` and the permissions of nodes. It writes nothing, opens no device
//! and maps no registers, so it can be run on a machine that is in use. What it finds are facts; advice
//! is made of them by the command `barewire doctor`.
//!
//! Read first: [`map`](crate::map), on what mapped registers need; Devicetree Specification, section
//! 2.2; the kernel's `Documentation/ABI/testing/sysfs-bus-spi-devices-spi-nor`,
//! `sysfs-class-uio`, and `Documentation/driver-api/pin-control.rst` on debugfs.
//!
//! # Not supported
//! Controllers without a device tree (ACPI), and what only a running message shows: wiring, levels.

mod child;
mod controller;
mod cs_gpios;
mod line;
mod processor;
mod refusal;
mod rights;
mod supplier;
mod system;

pub use child::{Child, RefusedChip, Use};
pub use controller::{Controller, Pins, Select, UioNode};
pub use line::{SelectAt, SharedLine};
pub use processor::{IdleState, Processor};
pub use refusal::{BadEntry, Fault, Refusal};
pub use rights::{Access, Capability, Rights};
pub use system::{Driver, Machine, config_value};

use crate::root::Root;

/// All that was found.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The board and its kernel.
    pub machine: Machine,
    /// The rights of this process.
    pub rights: Rights,
    /// The causes that delay a process beyond its own work.
    pub processor: Processor,
    /// The SPI controllers.
    pub controllers: Vec<Controller>,
}

impl Survey {
    /// Reads everything under `root`.
    #[must_use]
    pub fn of(root: &Root) -> Self {
        let machine = Machine::of(root);
        Self {
            rights: Rights::of(root),
            processor: Processor::of(root),
            controllers: Controller::all(root, machine.version),
            machine,
        }
    }
}
