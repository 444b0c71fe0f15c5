//! `embedded-hal` on a device that keeps its bus, and on only one half of a type that is both
//! blocking and async.

use core::ops::Deref;

use embedded_hal::spi::{ErrorType, Operation, SpiDevice};
use embedded_hal_async::spi::SpiDevice as AsyncSpiDevice;

use super::HalDevice;
use crate::bus::{Bus, OwnedDevice, Uses};
use crate::controller::Controller;
use crate::spi::MessageError;

impl<B, C, U> ErrorType for OwnedDevice<B>
where
    B: Deref<Target = Bus<C, U>>,
    C: Controller + ?Sized,
    U: Uses,
{
    type Error = MessageError;
}

/// As [`HalDevice`], with room for 16 transfers.
impl<B, C, U> SpiDevice for OwnedDevice<B>
where
    B: Deref<Target = Bus<C, U>>,
    C: Controller + ?Sized,
    U: Uses,
{
    fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), MessageError> {
        SpiDevice::transaction(&mut HalDevice::new(self.device()), operations)
    }
}

/// As [`HalDevice`], with room for 16 transfers.
impl<B, C, U> AsyncSpiDevice for OwnedDevice<B>
where
    B: Deref<Target = Bus<C, U>>,
    C: Controller + ?Sized,
    U: Uses,
{
    async fn transaction(
        &mut self,
        operations: &mut [Operation<'_, u8>],
    ) -> Result<(), MessageError> {
        AsyncSpiDevice::transaction(&mut HalDevice::new(self.device()), operations).await
    }
}

/// Only the blocking half of a device.
///
/// [`HalDevice`] and [`OwnedDevice`] are blocking and async. If both `SpiDevice` traits are in
/// scope, `device.write(…)` is ambiguous (error E0034). On this type it is not.
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

/// Only the async half of a device; see [`Blocking`].
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
