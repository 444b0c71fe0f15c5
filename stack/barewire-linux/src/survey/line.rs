//! Where a chip select's line is.

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
