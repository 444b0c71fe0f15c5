//! The shipped drivers on QEMU's boards.
//!
//! *Read first*: `barewire::controller`. Only this file of the crate knows the drivers.
//!
//! # How it works
//! Each driver gets its board's lines and clock as from board code, and runs unchanged. GPIO banks
//! are owned: no other code drives the board.
//!
//! ECSPI's model sends the contents of TXFIFO at once when XCH is written. A burst that runs out of
//! words stops until XCH is written again. The model does not count its FIFOs and never sets RDR.
//! The driver needs none of these. PL022's model has no receive timeout: a transfer that ends with
//! fewer than four frames in the FIFO is found complete at its deadline.
//!
//! # Not supported
//! Other drivers on these registers: wrap one with [`QemuBoard::watch`].

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

/// A board's controller, driven by the driver of its kind.
pub struct QemuController(Box<dyn Controller>);

impl QemuBoard {
    /// The shipped driver on the board's controller, polled, with its chip selects inactive.
    ///
    /// On a lost connection its messages may succeed, with zeros. Check [`QemuBoard::lost`] after
    /// each, or use [`QemuBoard::bus`].
    #[must_use]
    pub fn bring_up(&self) -> QemuController {
        self.driver(ALWAYS_POLL, NoInterrupt)
    }

    /// Like [`QemuBoard::bring_up`], but transfers that take longer than `poll_limit_ns` on the
    /// wire wait for the controller's interrupt.
    ///
    /// # Errors
    /// Those of [`QemuBoard::interrupt`].
    pub fn bring_up_interrupt(&self, poll_limit_ns: u32) -> Result<QemuController, QemuError> {
        Ok(self.driver(poll_limit_ns, self.interrupt()?))
    }

    /// A bus over the shipped driver, polled. No message succeeds after the connection is lost.
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
