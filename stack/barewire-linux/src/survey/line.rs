//! The place of a chip select's line, and its other users.
//!
//! The kernel gives a GPIO line to one driver. A controller requests all lines of its `cs-gpios` when its driver is
//! bound, so of two controllers that name one line the second gets no driver.

use super::rights::Access;

/// Where a chip select's line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectAt {
    /// A line of the controller.
    Native {
        /// Its number.
        channel: u8,
    },
    /// A line of a GPIO chip of the SoC.
    Gpio {
        /// The address of the chip's registers.
        address: u64,
        /// The line.
        offset: u32,
        /// The chip's node, if the kernel has it: `/dev/gpiochip4`.
        chip: Option<Access>,
    },
    /// A line of another GPIO chip, as one on I2C.
    Elsewhere {
        /// The name of the chip's node in the device tree.
        node: String,
        /// The line.
        offset: u32,
    },
}

/// A line that another controller has as a chip select too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLine {
    /// The chip select here.
    pub chip_select: usize,
    /// The other controller.
    pub other: String,
    /// The chip select there.
    pub other_chip_select: usize,
    /// The kernel driver that holds the line there, if there is one.
    pub held_by: Option<String>,
}
