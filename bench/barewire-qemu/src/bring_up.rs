//! The shipped drivers on QEMU's boards.
//!
//! *Read first*: `barewire::controller`. This is the one room of this crate that knows the drivers.
//!
//! # How it works
//! Each driver gets its board's lines and clock as board code would write them, and runs the very
//! same code as on hardware. GPIO banks are owned, because nobody else drives the board.
//!
//! ECSPI's model runs what TXFIFO holds in no time when XCH is written, stops a burst that has run out
//! of words until XCH is written again, and neither counts its FIFOs nor sets RDR: the driver needs
//! none of these. PL022's model has no receive timeout: a transfer that ends with fewer than four
//! frames in the FIFO is found done at its deadline.
//!
//! # Not supported
//! Any other driver over these registers: [`QemuBoard::watch`] takes one.

use std::fmt;
use std::task::Poll;

use barewire::bus::Bus;
use barewire::controller::bcm2835::{Bcm2835, Bcm2835Config};
use barewire::controller::ecspi::{Ecspi, EcspiConfig};
use barewire::controller::gpio::{Bcm2835Gpio, ImxGpio, Ownership, Pl061};
use barewire::controller::pl022::{Pl022, Pl022Config};
use barewire::controller::{ALWAYS_POLL, Controller, Interrupt, NoInterrupt, Program, Unfinished};
use barewire::middleware::Layer;
use barewire::spi::Transfer;

use crate::board::QemuBoard;
use crate::error::QemuError;
use crate::spec::Silicon;
use crate::watched::Watched;

/// A board's controller under the shipped driver, whichever that is.
pub struct QemuController(Box<dyn Controller>);

impl QemuBoard {
    /// The board's controller under the shipped driver, polled, its chip selects inactive.
    ///
    /// Its messages may succeed, with zeros, on a lost connection: ask [`QemuBoard::lost`] after
    /// each, or take [`QemuBoard::bus`].
    #[must_use]
    pub fn bring_up(&self) -> QemuController {
        self.driver(ALWAYS_POLL, NoInterrupt)
    }

    /// [`QemuBoard::bring_up`], with transfers that take longer than `poll_limit_ns` on the wire
    /// waiting by the controller's interrupt.
    ///
    /// # Errors
    /// [`QemuBoard::interrupt`]'s.
    pub fn bring_up_interrupt(&self, poll_limit_ns: u32) -> Result<QemuController, QemuError> {
        Ok(self.driver(poll_limit_ns, self.interrupt()?))
    }

    /// A bus over the shipped driver, polled, on which no message succeeds once the connection is
    /// lost.
    #[must_use]
    pub fn bus(&self) -> Bus<Watched<QemuController>> {
        Bus::new(self.watch(self.bring_up()))
    }

    fn driver(&self, poll_limit_ns: u32, interrupt: impl Interrupt + 'static) -> QemuController {
        let silicon = self.spec().silicon;
        let chip_selects = silicon.chip_selects();
        let (regs, gpio, timer) = (self.controller(), self.gpio(), self.timer());
        QemuController(match silicon {
            Silicon::Bcm2835 { reference_hz, .. } => {
                let config = Bcm2835Config { core_hz: reference_hz, chip_selects, poll_limit_ns };
                let driver = Bcm2835::new(regs, Bcm2835Gpio::new(gpio), timer, config);
                Box::new(driver.with_interrupt(interrupt))
            }
            Silicon::Ecspi { reference_hz, .. } => {
                let config = EcspiConfig { reference_hz, chip_selects, poll_limit_ns };
                let gpio = ImxGpio::new(gpio, Ownership::Exclusive);
                Box::new(Ecspi::new(regs, gpio, timer, config).with_interrupt(interrupt))
            }
            Silicon::Pl022 { reference_hz, .. } => {
                let config = Pl022Config { reference_hz, chip_selects, poll_limit_ns };
                let driver = Pl022::new(regs, Pl061::new(gpio), timer, config);
                Box::new(driver.with_interrupt(interrupt))
            }
        })
    }
}

impl fmt::Debug for QemuController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QemuController").finish_non_exhaustive()
    }
}

impl Layer for QemuController {
    type Inner = dyn Controller;

    fn inner(&self) -> &Self::Inner {
        &*self.0
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut *self.0
    }

    fn run_layer(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        self.0.run(program, message)
    }

    fn start_layer(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        self.0.start(program, message)
    }
}
