//! The shipped driver of each block, as board code would start it.
//!
//! *Read first*: `barewire::controller`. Only this folder of the crate knows the drivers.
//!
//! # How it works
//! Each block has a file with its [`QemuBlock`]; the rows of the boards name it. GPIO banks are owned:
//! no other code drives the board. A new block is a file here and its `mod` line.

pub(crate) mod bcm2835;
pub(crate) mod cadence;
pub(crate) mod ecspi;
pub(crate) mod pl022;
pub(crate) mod sifive;

use std::fmt;

use barewire::controller::{Controller, CsLine};

use crate::interrupt::QemuInterrupt;
use crate::registers::QemuRegisters;
use crate::timer::QemuTimer;

/// A controller block: its name and the function that starts its driver.
pub struct QemuBlock {
    /// The vendor's name of the controller.
    pub name: &'static str,
    /// The shipped driver on a board, with its chip selects inactive.
    pub start: fn(Lines) -> Box<dyn Controller>,
}

/// The parts of a board that a driver uses.
#[derive(Debug)]
pub struct Lines {
    /// The controller's registers.
    pub registers: QemuRegisters,
    /// The registers of the GPIO block.
    pub gpio: QemuRegisters,
    /// The board's clock.
    pub timer: QemuTimer,
    /// The controller's interrupt line; `None` if every transfer is polled.
    pub interrupt: Option<QemuInterrupt>,
    /// The controller's reference clock, in hertz.
    pub reference_hz: u32,
    /// The chip selects, by number.
    pub chip_selects: [CsLine; 4],
    /// Transfers that take longer on the wire, in nanoseconds, wait for the interrupt.
    pub poll_limit_ns: u32,
}

/// Blocks are the same if their names are.
impl PartialEq for QemuBlock {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for QemuBlock {}

impl fmt::Debug for QemuBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
