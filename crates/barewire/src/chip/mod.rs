//! Drivers of chips behind the bus.
//!
//! A driver talks through a [`Port`]: one chip select that runs whole messages. A
//! [`Device`] of any bus is one.

pub mod mcp3008;
pub mod spi_nor;

use crate::bus::Device;
use crate::controller::Controller;
use crate::spi::{MessageError, Transfer};

/// One chip's way to the wire.
pub trait Port {
    /// Runs a message and waits for it.
    ///
    /// # Errors
    /// What the path below reports; CS is inactive in every case.
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError>;

    /// The clock, in hertz.
    fn speed_hz(&self) -> u32;
}

impl<C: Controller + ?Sized> Port for Device<'_, C> {
    #[inline]
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.sync(message).map(|_| ())
    }

    fn speed_hz(&self) -> u32 {
        self.effective().speed_hz
    }
}
