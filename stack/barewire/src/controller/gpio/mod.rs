//! GPIO registers as chip selects, one file per block.
//!
//! A chip select is one pin of one bank; [`Spread`] combines several banks into one. The cost of an
//! edge, and what another program that drives pins of the bank can break, depend on the block:
//!
//! | block | accesses per edge | another writer of the bank |
//! |---|---|---|
//! | [`AtmelPio`] | 1 write | breaks nothing: data and direction have set and clear registers |
//! | [`Bcm2835Gpio`] | 1 write | breaks no data; a function changed at the same moment is lost |
//! | [`OmapGpio`] | 1 write | breaks no data; a direction changed at the same moment is lost |
//! | [`Pl061`] | 1 write | breaks no data; a direction changed at the same moment is lost |
//! | [`Rp1Gpio`] | 1 write | breaks nothing: level and direction have set and clear registers |
//! | [`ZynqGpio`] | 1 write | breaks no data; a direction changed at the same moment is lost |
//! | [`ImxGpio`], [`SiFiveGpio`] | 1 write if the bank is exclusive, else 1 read and 1 write | breaks the chip select, unless it reads before each write and never writes between this driver's read and write |
//!
//! Under Linux the last row always goes wrong: the kernel's drivers write values that they keep in
//! memory, see [`ImxGpio`]. There, use the controller's native line, or a line driven through the
//! kernel (`barewire-linux`, module `gpio`).
//!
//! # Ordering
//! A bank and a controller are two peripherals; only a barrier orders accesses to both. So each
//! edge stands between two barriers ([`Registers::barrier`]). Earlier writes to the controller have
//! reached it before the edge, and the edge has reached the pin before later writes or a delay.

mod atmel_pio;
mod bcm2835;
mod data_register;
mod imx;
mod omap;
mod pl061;
mod rp1;
mod sifive;
mod spread;
mod zynq;

pub use atmel_pio::AtmelPio;
pub use bcm2835::Bcm2835Gpio;
pub use data_register::DataRegister;
pub use imx::ImxGpio;
pub use omap::OmapGpio;
pub use pl061::Pl061;
pub use rp1::Rp1Gpio;
pub use sifive::SiFiveGpio;
pub use spread::{PinAt, Spread};
pub use zynq::ZynqGpio;

use crate::reg::Registers;

/// Drives GPIO lines for a controller.
pub trait GpioBank {
    /// Drives the pins of `mask` high or low, after every earlier access to any block and before
    /// every later one.
    fn drive(&mut self, mask: u32, high: bool);

    /// Makes the pins of `mask` outputs that start at level `high`.
    fn output(&mut self, mask: u32, high: bool);

    /// Whether an edge is a few register accesses, so that a driver may inline it: then it calls
    /// [`GpioBank::drive_short`]. A bank that makes a system call for an edge returns false.
    #[inline(always)]
    fn is_short(&self) -> bool {
        true
    }

    /// [`GpioBank::drive`] for a bank whose [`GpioBank::is_short`] returns true.
    #[inline(always)]
    fn drive_short(&mut self, mask: u32, high: bool) {
        self.drive(mask, high);
    }
}

/// No GPIO: for a controller that uses only its native lines.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoGpio;

/// # Panics
/// On every call: a table without GPIO lines never drives one.
impl GpioBank for NoGpio {
    fn drive(&mut self, _mask: u32, _high: bool) {
        unreachable!("a table of chip selects without GPIO lines drives none");
    }

    fn output(&mut self, _mask: u32, _high: bool) {
        unreachable!("a table of chip selects without GPIO lines drives none");
    }
}

/// Runs `edge` between two barriers: after earlier writes to other blocks, before later ones.
#[inline(always)]
fn in_order<R: Registers>(regs: &mut R, edge: impl FnOnce(&mut R)) {
    regs.barrier();
    edge(regs);
    regs.barrier();
}

/// Which other programs write the bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Ownership {
    /// Another program drives other pins of the bank. It reads the data register before it writes
    /// it, and never writes between a read and a write of this driver. Linux's driver does neither.
    Shared,
    /// No other program writes the bank.
    Exclusive,
}
