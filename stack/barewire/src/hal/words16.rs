//! `SpiDevice<u16>`: a device with words of 16 bits.

use core::array;
use core::fmt;

use bytemuck::{cast_slice, cast_slice_mut};
use embedded_hal::spi::{ErrorType, Operation, SpiDevice};
use embedded_hal_async::spi::SpiDevice as AsyncSpiDevice;

use super::HalDevice;
use super::room::Shape;
use crate::bus::{AnyPlatform, Device, Uses};
use crate::controller::Controller;
use crate::spi::{Error, MessageError};

/// A device on which `embedded-hal` drivers with words of 16 bits run: `SpiDevice<u16>`, blocking and
/// async. Needs the feature `words16`.
///
/// A type of its own beside [`HalDevice`]: with both traits on one type, the compiler could not tell
/// which words `device.write(&[0x9f])` means.
///
/// The rules of [`HalDevice`] on transactions hold here too. `TRANSFERS` limits the operations as
/// well. Each word is sent with its most significant bit first, whichever byte order the processor
/// has.
///
/// ```
/// use barewire::bus::Bus;
/// use barewire::controller::null::Null;
/// use barewire::hal::HalDevice16;
/// use barewire::spi::Settings;
/// use embedded_hal::spi::SpiDevice;
///
/// let bus = Bus::new(Null::new());
/// let settings = Settings::new(0, 20_000_000).with_bits_per_word(16);
/// let mut display = HalDevice16::new(bus.device(&settings)?)?;
/// // Two pixels, red and green, of 5, 6 and 5 bits.
/// display.write(&[0xf800, 0x07e0])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct HalDevice16<'b, C: ?Sized, const TRANSFERS: usize = 16, U: Uses = AnyPlatform> {
    bytes: HalDevice<'b, C, TRANSFERS, U>,
}

impl<C: ?Sized, U: Uses, const TRANSFERS: usize> fmt::Debug for HalDevice16<'_, C, TRANSFERS, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HalDevice16").field("bytes", &self.bytes).finish()
    }
}

impl<'b, C: Controller + ?Sized, U: Uses> HalDevice16<'b, C, 16, U> {
    /// Wraps `device`, with room for 16 transfers and as many operations.
    ///
    /// # Errors
    /// [`Error::BitsPerWord`] unless the device's settings have words of 16 bits.
    pub fn new(device: Device<'b, C, U>) -> Result<Self, Error> {
        match device.settings().bits_per_word {
            16 => Ok(Self { bytes: HalDevice::shaped(device, Shape::of_device()) }),
            bits => Err(Error::BitsPerWord { bits }),
        }
    }
}

impl<'b, C: Controller + ?Sized, U: Uses, const TRANSFERS: usize> HalDevice16<'b, C, TRANSFERS, U> {
    /// Makes room for `N` transfers and as many operations.
    #[must_use]
    pub fn with_room<const N: usize>(self) -> HalDevice16<'b, C, N, U> {
        HalDevice16 { bytes: self.bytes.with_room() }
    }

    /// The wrapped device.
    #[must_use]
    pub fn device(&self) -> &Device<'b, C, U> {
        self.bytes.device()
    }
}

/// Turns operations on words into operations on the words' bytes in memory.
fn on_bytes<'o, const N: usize>(
    operations: &'o mut [Operation<'_, u16>],
) -> Result<[Operation<'o, u8>; N], MessageError> {
    if operations.len() > N {
        let error = Error::TooManyTransfers { transfers: operations.len(), max: N };
        return Err(MessageError::refused(error, N));
    }
    let mut operations = operations.iter_mut();
    Ok(array::from_fn(|_| match operations.next() {
        Some(Operation::Read(read)) => Operation::Read(cast_slice_mut(read)),
        Some(Operation::Write(write)) => Operation::Write(cast_slice(write)),
        Some(Operation::Transfer(read, write)) => {
            Operation::Transfer(cast_slice_mut(read), cast_slice(write))
        }
        Some(Operation::TransferInPlace(both)) => Operation::TransferInPlace(cast_slice_mut(both)),
        Some(Operation::DelayNs(ns)) => Operation::DelayNs(*ns),
        None => Operation::DelayNs(0),
    }))
}

impl<C: Controller + ?Sized, U: Uses, const TRANSFERS: usize> ErrorType
    for HalDevice16<'_, C, TRANSFERS, U>
{
    type Error = MessageError;
}

impl<C: Controller + ?Sized, U: Uses, const TRANSFERS: usize> SpiDevice<u16>
    for HalDevice16<'_, C, TRANSFERS, U>
{
    fn transaction(&mut self, operations: &mut [Operation<'_, u16>]) -> Result<(), MessageError> {
        let count = operations.len();
        let mut operations = on_bytes::<TRANSFERS>(operations)?;
        SpiDevice::transaction(&mut self.bytes, &mut operations[..count])
    }
}

impl<C: Controller + ?Sized, U: Uses, const TRANSFERS: usize> AsyncSpiDevice<u16>
    for HalDevice16<'_, C, TRANSFERS, U>
{
    async fn transaction(
        &mut self,
        operations: &mut [Operation<'_, u16>],
    ) -> Result<(), MessageError> {
        let count = operations.len();
        let mut operations = on_bytes::<TRANSFERS>(operations)?;
        AsyncSpiDevice::transaction(&mut self.bytes, &mut operations[..count]).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::Bus;
    use crate::controller::null::Null;
    use crate::spi::Settings;

    fn settings(bits_per_word: u8) -> Settings {
        Settings::new(0, 1_000_000).with_bits_per_word(bits_per_word)
    }

    #[test]
    fn a_device_of_other_words_is_refused() {
        let bus = Bus::new(Null::new());
        for bits in [8, 32] {
            let refused = HalDevice16::new(bus.device(&settings(bits)).expect("it has them"));
            assert_eq!(refused.err(), Some(Error::BitsPerWord { bits }));
        }
    }

    #[test]
    fn more_operations_than_there_is_room_for_are_refused() {
        let bus = Bus::new(Null::new());
        let device = HalDevice16::new(bus.device(&settings(16)).expect("it has them"));
        let mut device = device.expect("16 bits").with_room::<2>();
        let mut operations =
            [Operation::Write(&[1]), Operation::DelayNs(10), Operation::Write(&[2])];
        let error = SpiDevice::transaction(&mut device, &mut operations).expect_err("one too many");
        assert_eq!(error.error, Error::TooManyTransfers { transfers: 3, max: 2 });
        assert_eq!(bus.into_inner().bytes(), 0);
    }

    #[test]
    fn operations_are_of_the_same_bytes() {
        let (mut read, mut both) = ([0u16; 2], [0x1234u16]);
        let mut operations = [
            Operation::Transfer(&mut read, &[0x0102]),
            Operation::TransferInPlace(&mut both),
            Operation::DelayNs(7),
        ];
        let bytes: [_; 4] = on_bytes(&mut operations).expect("there is room");
        let [Operation::Transfer(read, write), Operation::TransferInPlace(both), delay, none] =
            bytes
        else {
            panic!("the kinds stay");
        };
        assert_eq!((read.len(), write), (4, &0x0102u16.to_ne_bytes()[..]));
        assert_eq!(both, 0x1234u16.to_ne_bytes());
        assert_eq!((delay, none), (Operation::DelayNs(7), Operation::DelayNs(0)));
    }
}
