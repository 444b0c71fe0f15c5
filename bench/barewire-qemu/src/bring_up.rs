//! The shipped drivers on QEMU's boards.
//!
//! *Read first*: [`driver`](crate::driver), which has the driver of each block.
//!
//! # How it works
//! The board's row names its block. The block's driver gets the board's lines and clock, as it would
//! from board code, and runs unchanged.
//!
//! # Not supported
//! Other drivers on these registers: wrap one with [`QemuBoard::watch`].

use barewire::bus::Bus;
use barewire::controller::{ALWAYS_POLL, Controller};
use barewire::middleware::Pointer;

use crate::board::QemuBoard;
use crate::driver::Lines;
use crate::error::BoardError;
use crate::interrupt::QemuInterrupt;
use crate::spec::Silicon;
use crate::watched::WatchedController;

/// A board's controller, driven by the driver of its kind.
pub type QemuController = Pointer<Box<dyn Controller>>;

impl QemuBoard {
    /// The shipped driver on the board's controller, polled, with its chip selects inactive.
    ///
    /// On a lost connection its messages may succeed, with zeros. Check [`QemuBoard::lost`] after
    /// each, or use [`QemuBoard::bus`].
    #[must_use]
    pub fn bring_up(&self) -> QemuController {
        self.driver(ALWAYS_POLL, None)
    }

    /// Like [`QemuBoard::bring_up`], but transfers that take longer than `poll_limit_ns` on the
    /// wire wait for the controller's interrupt.
    ///
    /// # Errors
    /// The errors of [`QemuBoard::interrupt`].
    pub fn bring_up_interrupt(&self, poll_limit_ns: u32) -> Result<QemuController, BoardError> {
        Ok(self.driver(poll_limit_ns, Some(self.interrupt()?)))
    }

    /// A bus over the shipped driver, polled. No message succeeds after the connection is lost.
    #[must_use]
    pub fn bus(&self) -> Bus<WatchedController<QemuController>> {
        Bus::new(self.watch(self.bring_up()))
    }

    fn driver(&self, poll_limit_ns: u32, interrupt: Option<QemuInterrupt>) -> QemuController {
        let Silicon { block, reference_hz, chip_selects, .. } = self.spec().silicon;
        let lines = Lines {
            registers: self.controller(),
            gpio: self.gpio(),
            timer: self.timer(),
            interrupt,
            reference_hz,
            chip_selects,
            poll_limit_ns,
        };
        Pointer((block.start)(lines))
    }
}
