//! `embedded-hal` on a device that keeps its bus, and on one half of a type that is both blocking
//! and async.

use core::ops::Deref;

use embedded_hal::spi::{ErrorType, Operation, SpiDevice};
use embedded_hal_async::spi::SpiDevice as AsyncSpiDevice;

use super::HalDevice;
use crate::bus::{Bus, OwnedDevice};
use crate::controller::Controller;
use crate::spi::MessageError;

impl<B, C> ErrorType for OwnedDevice<B>
where
    B: Deref<Target = Bus<C>>,
    C: Controller + ?Sized,
{
    type Error = MessageError;
}

/// As [`HalDevice`], with its room for 16 transfers.
impl<B, C> SpiDevice for OwnedDevice<B>
where
    B: Deref<Target = Bus<C>>,
    C: Controller + ?Sized,
{
    fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), MessageError> {
        SpiDevice::transaction(&mut HalDevice::new(self.device()), operations)
    }
}

/// As [`HalDevice`], with its room for 16 transfers.
impl<B, C> AsyncSpiDevice for OwnedDevice<B>
where
    B: Deref<Target = Bus<C>>,
    C: Controller + ?Sized,
{
    async fn transaction(
        &mut self,
        operations: &mut [Operation<'_, u8>],
    ) -> Result<(), MessageError> {
        AsyncSpiDevice::transaction(&mut HalDevice::new(self.device()), operations).await
    }
}

/// A device's blocking half alone.
///
/// [`HalDevice`] and [`OwnedDevice`] are blocking and async. Where both `SpiDevice` traits are in
/// scope, `device.write(…)` on them names two methods (error E0034). On this one it names one.
///
/// ```
/// use barewire::bus::Bus;
/// use barewire::controller::null::Null;
/// use barewire::hal::{Blocking, HalDevice};
/// use barewire::spi::Settings;
/// use embedded_hal::spi::SpiDevice;
/// use embedded_hal_async::spi::SpiDevice as _;
///
/// let bus = Bus::new(Null::new());
/// let mut device = Blocking(HalDevice::new(bus.device(&Settings::new(0, 1_000_000))?));
/// device.write(&[0x06])?;
/// # Ok::<(), barewire::spi::Error>(())
/// ```
#[derive(Debug)]
pub struct Blocking<D>(pub D);

impl<D: ErrorType> ErrorType for Blocking<D> {
    type Error = D::Error;
}

impl<D: SpiDevice> SpiDevice for Blocking<D> {
    fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), D::Error> {
        self.0.transaction(operations)
    }
}

/// A device's async half alone: see [`Blocking`].
#[derive(Debug)]
pub struct Async<D>(pub D);

impl<D: ErrorType> ErrorType for Async<D> {
    type Error = D::Error;
}

impl<D: AsyncSpiDevice> AsyncSpiDevice for Async<D> {
    async fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), D::Error> {
        self.0.transaction(operations).await
    }
}
