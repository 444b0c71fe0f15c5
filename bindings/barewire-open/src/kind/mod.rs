//! The kinds of buses: each opens its controller and provides its backing.
//!
//! How it works: a module's `open` returns the controller, with the layers asked for around it, and a [`Backing`]. Once a
//! bus is open, nothing above this folder asks which kind it is.

mod guard;
pub(crate) mod mapped;
pub(crate) mod qemu;
pub(crate) mod sim;
pub(crate) mod spidev;

use barewire::controller::Controller;
use barewire::controller::null::Null;
use barewire::spi::Mode;
use barewire::time::Timer;
use barewire_linux::Monotonic;
use barewire_linux::shared::{ChipLock, ChipLocks};

use crate::{Layers, OpenError, SimBoard};

/// The backing of a bus's controller: everything that its kind does besides messages.
pub trait Backing {
    /// The mode flags that a device on that chip select needs: `NO_CS` where no line of the
    /// board selects anything, `CS_HIGH` where the line is active high.
    fn mode(&self, chip_select: u8) -> Mode {
        let _ = chip_select;
        Mode::default()
    }

    /// A timer for a chip driver: the board's time.
    fn timer(&self) -> Box<dyn Timer> {
        Box::new(Monotonic::new())
    }

    /// Where the locks of the bus's chips are, if other processes may use them.
    fn chip_locks(&self) -> Option<&ChipLocks> {
        None
    }

    /// The lock of a chip that other processes may use, if there are such.
    ///
    /// # Errors
    /// The lock's file cannot be made or opened.
    fn chip_lock(&self, chip_select: u8) -> Result<Option<ChipLock>, OpenError> {
        let locks = self.chip_locks();
        locks.map(|locks| locks.open(chip_select)).transpose().map_err(OpenError::failed)
    }

    /// The cause of the bus's last error, if more is known than the error says.
    fn cause(&self) -> Option<String> {
        None
    }

    /// Checks that the received data can be trusted.
    ///
    /// # Errors
    /// Another driver took the controller.
    fn check(&self) -> Result<(), OpenError> {
        Ok(())
    }

    /// The error of the last wait for another process, if the user ended it.
    fn stopped(&self) -> Option<OpenError> {
        None
    }

    /// The simulated board, if it is one.
    fn board(&self) -> Option<&SimBoard> {
        None
    }

    /// The complaints of an emulated board's models; `None` for another bus.
    fn misuse(&self) -> Option<Result<Vec<String>, OpenError>> {
        None
    }

    /// Writes back files, such as that of a flash chip, and ends the programs that were started. Called once,
    /// after the last message.
    ///
    /// # Errors
    /// The part that could not be written back or ended in order.
    fn close(&mut self) -> Result<(), OpenError> {
        Ok(())
    }
}

/// The backing of the null controller: no wire, no chip, no time.
pub(crate) struct NoBacking;

impl Backing for NoBacking {
    fn mode(&self, _chip_select: u8) -> Mode {
        Mode::NO_CS
    }
}

/// The null controller as asked.
pub(crate) fn null(layers: Layers) -> Box<dyn Controller + Send> {
    layers.around(Null::new(), Monotonic::new())
}
