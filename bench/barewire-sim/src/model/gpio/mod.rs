//! GPIO blocks, and their interface to a board.

pub mod atmel_pio;
pub mod bcm2835;
pub mod imx;
pub mod pl061;
pub mod rp1;

use std::fmt::Debug;

/// A GPIO block.
pub trait GpioBlock: Debug {
    /// Reads a register.
    ///
    /// # Errors
    /// If there is no register at the offset.
    fn read(&self, offset: u32) -> Result<u32, NoRegister>;

    /// Writes a register.
    ///
    /// # Errors
    /// If there is no register at the offset.
    fn write(&mut self, offset: u32, value: u32) -> Result<(), NoRegister>;

    /// How many pins it has: bits 0 to one less.
    fn pins(&self) -> u8 {
        32
    }

    /// The level of every pad, a bit each.
    fn pads(&self) -> u64;

    /// The level that the surroundings give pin `bit` while the block does not drive it.
    fn set_outside(&mut self, bit: u8, level: bool);
}

/// There is no register at the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRegister;
