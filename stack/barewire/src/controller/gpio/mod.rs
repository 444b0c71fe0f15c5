//! GPIO registers as chip selects, one room a block.
//!
//! A chip select is one pin of one bank; [`Spread`] makes one bank of several. What an edge costs, and
//! what another program that drives pins of the same bank can break, depends on the block:
//!
//! | block | accesses an edge | another writer of the bank |
//! |---|---|---|
//! | [`AtmelPio`] | 1 write | breaks nothing: data and direction have set and clear registers |
//! | [`Bcm2835Gpio`] | 1 write | breaks no data; a function changed at the same moment is lost |
//! | [`Pl061`] | 1 write | breaks no data; a direction changed at the same moment is lost |
//! | [`Rp1Gpio`] | 1 write | breaks nothing: level and direction have set and clear registers |
//! | [`ImxGpio`] | 1 write with the bank to oneself, else 1 read and 1 write | breaks the chip select, unless it reads before each write and never at the same moment |
//!
//! Beside Linux the last row is not a matter of luck: its driver writes values that it keeps in memory,
//! see [`ImxGpio`]. There a chip select is the controller's own line, or a line driven through the kernel
//! (`barewire-linux`, module `gpio`).
//!
//! # Ordering
//! A bank and a controller are two peripherals, whose accesses nothing orders but a barrier. So each
//! edge stands between two ([`Registers::barrier`]): what the
//! controller was told before has reached it, and the edge has reached the pin before the controller
//! is told more, or a delay begins.

mod atmel_pio;
mod bcm2835;
mod imx;
mod pl061;
mod rp1;
mod spread;

pub use atmel_pio::AtmelPio;
pub use bcm2835::Bcm2835Gpio;
pub use imx::ImxGpio;
pub use pl061::Pl061;
pub use rp1::Rp1Gpio;
pub use spread::{PinAt, Spread};

use crate::reg::Registers;

/// Drives GPIO lines for a controller.
pub trait GpioBank {
    /// Drives the pins of `mask` high or low, after every access before to any block, and before
    /// any after.
    fn drive(&mut self, mask: u32, high: bool);

    /// Makes the pins of `mask` outputs, already at `high`.
    fn output(&mut self, mask: u32, high: bool);

    /// Whether an edge is a few register accesses, which a driver may have compiled into its messages:
    /// then they call [`GpioBank::drive_short`]. A bank that calls something for an edge says no.
    #[inline(always)]
    fn is_short(&self) -> bool {
        true
    }

    /// [`GpioBank::drive`] of a bank that has said [so](GpioBank::is_short).
    #[inline(always)]
    fn drive_short(&mut self, mask: u32, high: bool) {
        self.drive(mask, high);
    }
}

/// No GPIO: for a controller whose lines are all its own.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoGpio;

/// # Panics
/// On every call: a table without GPIO lines makes none.
impl GpioBank for NoGpio {
    fn drive(&mut self, _mask: u32, _high: bool) {
        unreachable!("a table of chip selects without GPIO lines drives none");
    }

    fn output(&mut self, _mask: u32, _high: bool) {
        unreachable!("a table of chip selects without GPIO lines drives none");
    }
}

/// `edge` between two barriers: after what was written to other blocks, before what will be.
#[inline(always)]
fn in_order<R: Registers>(regs: &mut R, edge: impl FnOnce(&mut R)) {
    regs.barrier();
    edge(regs);
    regs.barrier();
}

/// Who else writes the bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Ownership {
    /// Another program drives other pins of the bank. It reads the data register before it writes it,
    /// and never between a read and a write here. Linux's driver does neither.
    Shared,
    /// The whole bank is ours.
    Exclusive,
}
