//! A device as an `embedded-hal` `SpiDevice`: a transaction is a message.

use core::fmt;

use embedded_hal::spi::{ErrorType, Operation, SpiDevice};
use embedded_hal_async::spi::SpiDevice as AsyncSpiDevice;

use super::room::{Room, Shape, operation_index, transfers};
use crate::bus::{AnyPlatform, Device, Uses};
use crate::controller::Controller;
use crate::spi::{Error, MessageError};

/// Most transactions are a command and its data: a small array is initialized quickly.
const FEW: usize = 2;

/// A device on which `embedded-hal` drivers run.
///
/// `TRANSFERS` is the longest transaction, in transfers. An operation is one transfer, a `Transfer`
/// of two lengths is two, a delay is none unless the transaction begins with it. A delay above one
/// second, or above the controller's longest
/// ([`Limits::max_delay_ns`](crate::controller::Limits::max_delay_ns); 65,535 µs on spidev), is
/// made in pieces; each piece but the first is one more transfer. A longer transaction is refused
/// with [`Error::TooManyTransfers`]: [`HalDevice::with_room`] makes room.
///
/// A refused transaction clocks nothing. The `transfer_index` of an error counts operations.
///
/// A transaction without bytes (no operations, or only empty ones) selects and deselects the chip,
/// as it does on a bus whose CS is a pin.
///
/// A native chip select that is active only while bits are clocked cannot keep the whole contract.
/// It does not move in a transaction without bytes, and a transaction with a delay, or of several
/// transfers that cannot be joined into one, is refused. Use a GPIO as chip select for
/// `embedded-hal` drivers.
///
/// The async form waits for its turn between polls. It transfers inside one poll, delays included, unless the bus is one of
/// [`Pump::Interrupt`](crate::bus::Pump::Interrupt) and a transfer takes longer than the device's poll limit: then it is
/// pending while that is on the wire ([`Device::transact`]). It owns nothing before it is polled. Dropping it before its turn
/// removes it from the queue, with nothing clocked; that waits at most for the message on the wire.
///
/// On a thread that has a [`HalBus`](super::HalBus) or a lock of this bus, a transaction fails with
/// [`Error::WouldDeadlock`], or waits for ever if the platform does not tell threads apart
/// ([`Platform::context`](crate::bus::Platform::context)).
pub struct HalDevice<'b, C: ?Sized, const TRANSFERS: usize = 16, U: Uses = AnyPlatform> {
    device: Device<'b, C, U>,
    shape: Shape,
}

/// The longest delay that the controller can make after a transfer of `device`, in nanoseconds.
fn longest_delay_ns<C: Controller + ?Sized, U: Uses>(device: &Device<'_, C, U>) -> u32 {
    let hold_ns = u32::try_from(device.effective().cs_hold_ns).unwrap_or(u32::MAX);
    device.limits().max_delay_ns.saturating_sub(hold_ns)
}

impl<C: ?Sized, U: Uses, const TRANSFERS: usize> fmt::Debug for HalDevice<'_, C, TRANSFERS, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HalDevice").field("device", &self.device).finish_non_exhaustive()
    }
}

impl<'b, C: Controller + ?Sized, U: Uses> HalDevice<'b, C, 16, U> {
    /// Wraps `device`, with room for 16 transfers. Words have 8 bits, whatever its settings say.
    pub fn new(device: Device<'b, C, U>) -> Self {
        let shape = Shape::new(device.settings().bits_per_word);
        Self::shaped(device, shape)
    }

    pub(super) fn shaped(device: Device<'b, C, U>, shape: Shape) -> Self {
        Self { device, shape: shape.with_delay_max_ns(longest_delay_ns(&device)) }
    }
}

impl<'b, C: Controller + ?Sized, U: Uses, const TRANSFERS: usize> HalDevice<'b, C, TRANSFERS, U> {
    /// Makes room for `N` transfers.
    #[must_use]
    pub fn with_room<const N: usize>(self) -> HalDevice<'b, C, N, U> {
        HalDevice { device: self.device, shape: self.shape }
    }

    /// Makes delays above `delay_max_ns` nanoseconds in several pieces, each rounded up. By default
    /// the pieces are as long as the controller can make them. Only for a controller whose
    /// [`Limits`](crate::controller::Limits) promise too much.
    #[must_use]
    pub fn with_delay_max_ns(mut self, delay_max_ns: u32) -> Self {
        let max = longest_delay_ns(&self.device);
        self.shape = self.shape.with_delay_max_ns(delay_max_ns.min(max));
        self
    }

    /// The wrapped device.
    #[must_use]
    pub fn device(&self) -> &Device<'b, C, U> {
        &self.device
    }

    /// How many transfers the operations need, if there is room for them.
    fn check(&self, operations: &mut [Operation<'_, u8>]) -> Result<usize, MessageError> {
        let transfers = transfers(operations, self.shape);
        if transfers <= TRANSFERS {
            return Ok(transfers);
        }
        let error = Error::TooManyTransfers { transfers, max: TRANSFERS };
        Err(MessageError::refused(error, operation_index(operations, self.shape, TRANSFERS)))
    }

    /// The error with its index counted in operations.
    #[cold]
    fn explain(&self, error: MessageError, operations: &mut [Operation<'_, u8>]) -> MessageError {
        let transfer_index = operation_index(operations, self.shape, error.transfer_index);
        MessageError { transfer_index, ..error }
    }
}

impl<C: Controller + ?Sized, U: Uses, const TRANSFERS: usize> ErrorType
    for HalDevice<'_, C, TRANSFERS, U>
{
    type Error = MessageError;
}

impl<C: Controller + ?Sized, U: Uses, const TRANSFERS: usize> SpiDevice
    for HalDevice<'_, C, TRANSFERS, U>
{
    fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), MessageError> {
        let transfers = self.check(operations)?;
        let ran = if transfers <= FEW && !cfg!(feature = "small") {
            self.device.sync(Room::<FEW>::of(operations, self.shape).message())
        } else {
            self.device.sync(Room::<TRANSFERS>::of(operations, self.shape).message())
        };
        ran.map(|_| ()).map_err(|error| self.explain(error, operations))
    }
}

impl<C: Controller + ?Sized, U: Uses, const TRANSFERS: usize> AsyncSpiDevice
    for HalDevice<'_, C, TRANSFERS, U>
{
    async fn transaction(
        &mut self,
        operations: &mut [Operation<'_, u8>],
    ) -> Result<(), MessageError> {
        let transfers = self.check(operations)?;
        let ran = if transfers <= FEW && !cfg!(feature = "small") {
            self.device.transact(Room::<FEW>::of(operations, self.shape).message()).await
        } else {
            self.device.transact(Room::<TRANSFERS>::of(operations, self.shape).message()).await
        };
        ran.map(|_| ()).map_err(|error| self.explain(error, operations))
    }
}
