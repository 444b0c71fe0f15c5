//! A locked bus as an `embedded-hal` `SpiBus`: clocks and data without a chip select.

use core::fmt;

use embedded_hal::spi::{ErrorType, Operation, SpiBus};
use embedded_hal_async::spi::SpiBus as AsyncSpiBus;

use super::room::{Room, Shape};
use crate::bus::{AnyPlatform, Device, Locked, Uses};
use crate::controller::Controller;
use crate::spi::{Error, MessageError, Mode, Settings, Transfer};

/// A bus that one `embedded-hal` driver owns for as long as this value lives.
///
/// No chip select moves ([`Mode::NO_CS`]). The driver selects the chip itself, for example by a pin
/// ([`BankPin`](super::BankPin)), or the chip needs no selection.
///
/// The value stays with its thread. That thread must not use a [`HalDevice`](super::HalDevice) of
/// this bus meanwhile: its transaction fails with [`Error::WouldDeadlock`], or waits for ever if
/// the platform does not tell threads apart ([`Platform::context`](crate::bus::Platform::context),
/// [`Bus::new`](crate::bus::Bus::new)).
///
/// Every call returns after its last clock, so flushing does nothing. The async methods wait for
/// nothing but the wire, and are ready at their first poll.
pub struct HalBus<'b, C: Controller + ?Sized, U: Uses = AnyPlatform> {
    lock: Locked<'b, C, U>,
    device: Device<'b, C, U>,
}

impl<C: Controller + ?Sized, U: Uses> fmt::Debug for HalBus<'_, C, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HalBus").field("device", &self.device).finish_non_exhaustive()
    }
}

impl<'b, C: Controller + ?Sized, U: Uses> HalBus<'b, C, U> {
    /// Uses the bus of `lock`, which comes from [`Bus::lock`](crate::bus::Bus::lock) or, without
    /// waiting, [`Bus::try_lock`](crate::bus::Bus::try_lock). The chip select and the word length
    /// of `settings` are ignored: there is no chip select, and words have 8 bits.
    ///
    /// # Errors
    /// [`Error::NoIdleChipSelect`] if the controller cannot clock without moving some chip's select
    /// line; otherwise as [`Bus::device`](crate::bus::Bus::device).
    pub fn new(mut lock: Locked<'b, C, U>, settings: &Settings) -> Result<Self, Error> {
        let mode = settings.mode | Mode::NO_CS;
        let device = lock.device(&settings.with_mode(mode).with_bits_per_word(8))?;
        Ok(Self { lock, device })
    }

    /// Returns the lock.
    #[must_use]
    pub fn into_lock(self) -> Locked<'b, C, U> {
        self.lock
    }

    /// The device without a chip select.
    #[must_use]
    pub fn device(&self) -> &Device<'b, C, U> {
        &self.device
    }

    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.lock.sync(&self.device, message).map(|_| ())
    }
}

impl<C: Controller + ?Sized, U: Uses> ErrorType for HalBus<'_, C, U> {
    type Error = MessageError;
}

impl<C: Controller + ?Sized, U: Uses> SpiBus for HalBus<'_, C, U> {
    fn read(&mut self, words: &mut [u8]) -> Result<(), MessageError> {
        self.run(&mut [Transfer::read(words)])
    }

    fn write(&mut self, words: &[u8]) -> Result<(), MessageError> {
        self.run(&mut [Transfer::write(words)])
    }

    fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), MessageError> {
        let mut operations = [Operation::Transfer(read, write)];
        self.run(Room::<2>::of(&mut operations, Shape::new(8)).message())
    }

    fn transfer_in_place(&mut self, words: &mut [u8]) -> Result<(), MessageError> {
        self.run(&mut [Transfer::in_place(words)])
    }

    fn flush(&mut self) -> Result<(), MessageError> {
        Ok(())
    }
}

impl<C: Controller + ?Sized, U: Uses> AsyncSpiBus for HalBus<'_, C, U> {
    async fn read(&mut self, words: &mut [u8]) -> Result<(), MessageError> {
        SpiBus::read(self, words)
    }

    async fn write(&mut self, words: &[u8]) -> Result<(), MessageError> {
        SpiBus::write(self, words)
    }

    async fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), MessageError> {
        SpiBus::transfer(self, read, write)
    }

    async fn transfer_in_place(&mut self, words: &mut [u8]) -> Result<(), MessageError> {
        SpiBus::transfer_in_place(self, words)
    }

    async fn flush(&mut self) -> Result<(), MessageError> {
        Ok(())
    }
}
