//! The exchange of a register on the wire, and the implementation that is prepared on a bus.

use crate::bus::{AnyPlatform, Device, Prepared, Uses};
use crate::controller::Controller;
use crate::spi::{MessageError, Transfer};

/// Exchanges of `N` bytes with one chip, and occasional longer messages.
pub trait Frames<const N: usize> {
    /// Exchanges `N` bytes under one chip select.
    ///
    /// # Errors
    /// The errors of the layer below. CS is inactive in every case.
    fn exchange(&mut self, tx: [u8; N]) -> Result<&[u8; N], MessageError>;

    /// Runs a message.
    ///
    /// # Errors
    /// As [`Frames::exchange`].
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError>;
}

/// A bus's device with a prepared exchange.
#[derive(Debug)]
pub struct OnDevice<'b, C: ?Sized, const N: usize, U: Uses = AnyPlatform> {
    prepared: Prepared<'b, C, N, U>,
    device: Device<'b, C, U>,
}

impl<'b, C: Controller + ?Sized, U: Uses, const N: usize> OnDevice<'b, C, N, U> {
    /// Prepares the exchange on `device`.
    ///
    /// # Errors
    /// The controller refuses a message of `N` bytes.
    pub fn new(device: Device<'b, C, U>) -> Result<Self, MessageError> {
        Ok(Self { prepared: device.prepare([0; N])?, device })
    }

    /// The device.
    pub fn device(&self) -> &Device<'b, C, U> {
        &self.device
    }
}

impl<C: Controller + ?Sized, U: Uses, const N: usize> Frames<N> for OnDevice<'_, C, N, U> {
    #[inline(always)]
    fn exchange(&mut self, tx: [u8; N]) -> Result<&[u8; N], MessageError> {
        *self.prepared.tx_mut() = tx;
        self.prepared.run()
    }

    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.device.sync(message).map(drop)
    }
}
