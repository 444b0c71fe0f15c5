//! Our device as an `embedded-hal` `SpiDevice`: a transaction is a message.

use core::fmt;

use embedded_hal::spi::{ErrorType, Operation, SpiDevice};
use embedded_hal_async::spi::SpiDevice as AsyncSpiDevice;

use super::room::{Room, Shape, operation_index, transfers};
use crate::bus::Device;
use crate::controller::Controller;
use crate::spi::{Error, MessageError};

/// Most transactions are a command and its data: room that is made quickly.
const FEW: usize = 2;

/// A device that drivers for `embedded-hal` run on.
///
/// `TRANSFERS` is the longest transaction, in transfers: an operation is one, a `Transfer` of two
/// lengths two, a delay none, unless a transaction begins with it. A delay above the controller's
/// longest ([`Limits::max_delay_ns`](crate::controller::Limits::max_delay_ns), on spidev 65,535 us) or
/// a second is made in pieces, each a transfer more but the first. A longer transaction is refused with
/// [`Error::TooManyTransfers`]: [`HalDevice::with_room`] makes room.
///
/// A refused transaction clocks nothing. An error's `transfer_index` counts the operations.
///
/// A transaction without bytes (without operations, or of empty ones) selects and deselects the
/// chip, as it does on a bus whose CS is a pin.
///
/// A controller's own line that is active only while bits are clocked cannot keep all of the contract:
/// it stays where it is then, and what is more than one transfer, or has a delay, is refused. Drivers
/// for `embedded-hal` want a GPIO as chip select.
///
/// As a future it waits for its turn between polls and runs inside one, delays included. It holds
/// nothing until it is polled. Dropping it before removes it from the queue, and nothing was
/// clocked; that waits at most for the message on the wire.
///
/// On a thread that has a [`HalBus`](super::HalBus) or a lock of the same bus a transaction fails
/// with [`Error::WouldDeadlock`], where the platform tells threads apart
/// ([`Platform::context`](crate::bus::Platform::context)); else it waits for ever.
pub struct HalDevice<'b, C: ?Sized, const TRANSFERS: usize = 16> {
    device: Device<'b, C>,
    shape: Shape,
}

/// The longest delay that the controller makes after a transfer of `device`, in nanoseconds.
fn longest_delay_ns<C: Controller + ?Sized>(device: &Device<'_, C>) -> u32 {
    let hold_ns = u32::try_from(device.effective().cs_hold_ns).unwrap_or(u32::MAX);
    device.limits().max_delay_ns.saturating_sub(hold_ns)
}

impl<C: ?Sized, const TRANSFERS: usize> fmt::Debug for HalDevice<'_, C, TRANSFERS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HalDevice").field("device", &self.device).finish_non_exhaustive()
    }
}

impl<'b, C: Controller + ?Sized> HalDevice<'b, C> {
    /// `device`, with room for 16 transfers. Whatever its settings say, words have 8 bits here.
    pub fn new(device: Device<'b, C>) -> Self {
        let shape = Shape::new(device.settings().bits_per_word);
        Self::shaped(device, shape)
    }

    pub(super) fn shaped(device: Device<'b, C>, shape: Shape) -> Self {
        Self { device, shape: shape.with_delay_max_ns(longest_delay_ns(&device)) }
    }
}

impl<'b, C: Controller + ?Sized, const TRANSFERS: usize> HalDevice<'b, C, TRANSFERS> {
    /// The same with room for `N` transfers.
    #[must_use]
    pub fn with_room<const N: usize>(self) -> HalDevice<'b, C, N> {
        HalDevice { device: self.device, shape: self.shape }
    }

    /// The same, with delays above `delay_max_ns` nanoseconds made in several pieces, each rounded
    /// up. Without it the pieces are as long as the controller can make them, which is the most there
    /// is: only for a controller that promises more than it does.
    #[must_use]
    pub fn with_delay_max_ns(mut self, delay_max_ns: u32) -> Self {
        let max = longest_delay_ns(&self.device);
        self.shape = self.shape.with_delay_max_ns(delay_max_ns.min(max));
        self
    }

    /// The device below.
    #[must_use]
    pub fn device(&self) -> &Device<'b, C> {
        &self.device
    }

    /// How many transfers it is, if there is room for them.
    fn check(&self, operations: &mut [Operation<'_, u8>]) -> Result<usize, MessageError> {
        let transfers = transfers(operations, self.shape);
        if transfers <= TRANSFERS {
            return Ok(transfers);
        }
        let error = Error::TooManyTransfers { transfers, max: TRANSFERS };
        Err(MessageError::refused(error, operation_index(operations, self.shape, TRANSFERS)))
    }

    /// The error as the caller counts: in operations.
    #[cold]
    fn explain(&self, error: MessageError, operations: &mut [Operation<'_, u8>]) -> MessageError {
        let transfer_index = operation_index(operations, self.shape, error.transfer_index);
        MessageError { transfer_index, ..error }
    }
}

impl<C: Controller + ?Sized, const TRANSFERS: usize> ErrorType for HalDevice<'_, C, TRANSFERS> {
    type Error = MessageError;
}

impl<C: Controller + ?Sized, const TRANSFERS: usize> SpiDevice for HalDevice<'_, C, TRANSFERS> {
    fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), MessageError> {
        let ran = if self.check(operations)? <= FEW {
            self.device.sync(Room::<FEW>::of(operations, self.shape).message())
        } else {
            self.device.sync(Room::<TRANSFERS>::of(operations, self.shape).message())
        };
        ran.map(|_| ()).map_err(|error| self.explain(error, operations))
    }
}

impl<C: Controller + ?Sized, const TRANSFERS: usize> AsyncSpiDevice
    for HalDevice<'_, C, TRANSFERS>
{
    async fn transaction(
        &mut self,
        operations: &mut [Operation<'_, u8>],
    ) -> Result<(), MessageError> {
        let ran = if self.check(operations)? <= FEW {
            self.device.transact(Room::<FEW>::of(operations, self.shape).message()).await
        } else {
            self.device.transact(Room::<TRANSFERS>::of(operations, self.shape).message()).await
        };
        ran.map(|_| ()).map_err(|error| self.explain(error, operations))
    }
}
