//! Blocks of pins, and what a board asks of one.

pub mod atmel_pio;
pub mod bcm2835;
pub mod imx;
pub mod pl061;
pub mod rp1;

use std::fmt::Debug;

/// A block of pins.
pub trait GpioBlock: Debug {
    /// Reads a register.
    ///
    /// # Errors
    /// If the offset names none.
    fn read(&self, offset: u32) -> Result<u32, NoRegister>;

    /// Writes a register.
    ///
    /// # Errors
    /// If the offset names none.
    fn write(&mut self, offset: u32, value: u32) -> Result<(), NoRegister>;

    /// The level of every pad, a bit each.
    fn pads(&self) -> u64;

    /// What the surroundings give pin `bit` while it does not drive.
    fn set_outside(&mut self, bit: u8, level: bool);
}

/// The offset names no register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRegister;
