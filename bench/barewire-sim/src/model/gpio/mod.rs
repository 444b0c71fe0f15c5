//! GPIO blocks, and their interface to a board.

/// The default of a block: as [`new`](Bcm2835Gpio::new) makes it, at reset.
macro_rules! default_is_new {
    ($block:ty) => {
        impl Default for $block {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}
use default_is_new;

pub mod atmel_pio;
pub mod bcm2835;
pub mod imx;
pub mod omap;
pub mod pl061;
pub mod rp1;
pub mod sifive;
pub mod zynq;

use std::fmt::{self, Debug};

use super::{BlockOptions, RegisterNames};

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

    /// How many pins it has, from bit 0 on.
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

/// A kind of GPIO block, as data: each model has one, `KIND`, which the rows of boards name.
pub struct GpioKind {
    /// The vendor's name.
    pub name: &'static str,
    /// The bytes of its register block, as the SoCs' memory maps and Linux's device trees have it.
    pub bytes: u32,
    /// Its registers by offset, with the manual's names.
    pub registers: RegisterNames,
    /// The block at reset, with what its manual leaves open.
    pub model: fn(&BlockOptions) -> Box<dyn GpioBlock>,
    /// Makes pins outputs by the manual, as a boot loader would: the function writes a register, the
    /// masks are the pins (below 32) and those of them that are to be high.
    pub drive: fn(&mut dyn FnMut(u32, u32), u32, u32),
}

/// Kinds are the same if their names are.
impl PartialEq for GpioKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for GpioKind {}

impl Debug for GpioKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
