//! `embedded-hal` 1.0 and `embedded-hal-async` 1.0, in both directions.
//!
//! # Read first
//! The documentation of [`embedded_hal::spi`], above all "Bus vs Device" and "Flushing".
//!
//! # How it works
//! | this crate's | implements | through |
//! |---|---|---|
//! | a [`Device`](crate::bus::Device) | `SpiDevice`, blocking and async | [`HalDevice`] |
//! | an [`OwnedDevice`](crate::bus::OwnedDevice), which keeps its bus | `SpiDevice`, blocking and async | itself |
//! | only the blocking or the async half of a device | `SpiDevice` | [`Blocking`], [`Async`] |
//! | a device with words of 16 bits | `SpiDevice<u16>`, blocking and async | `HalDevice16` (feature `words16`) |
//! | new settings for a device | embassy's `SetConfig` | [`HalDevice`] (feature `embassy`) |
//! | a [locked](crate::bus::Bus::lock) bus | `SpiBus`, blocking and async | [`HalBus`] |
//! | a [`Timer`](crate::time::Timer) | `DelayNs`, blocking and async | [`Delay`] |
//! | a pin of a [`GpioBank`](crate::controller::gpio::GpioBank) | `OutputPin` | [`BankPin`] |
//! | [`MessageError`](crate::spi::MessageError) and [`Error`](crate::spi::Error) | `spi::Error` | themselves |
//!
//! In the other direction, [`OnSpiDevice`] makes any `SpiDevice` a [`Port`](crate::chip::Port) for
//! the chip drivers of this crate.
//!
//! The guarantees of `embedded-hal`, as kept here:
//! 1. A transaction is one message under one chip select, never interleaved with another.
//! 2. Its operations run in order. A delay is made in its place with CS active, is never shorter
//!    than asked, and is rounded up to the controller's quantum.
//! 3. When a call returns, the wire is idle: flushing does nothing.
//! 4. CS is inactive after every transaction, including a failed one, and the first error is
//!    returned.
//! 5. A transaction whose future is dropped ran completely or not at all: the future waits for its
//!    turn between polls, and transfers inside one poll. Only on a bus of [`Pump::Interrupt`](crate::bus::Pump::Interrupt) is one
//!    above the poll limit in flight between polls: dropped then, it is broken off, and CS is inactive when the drop returns.
//!
//! ```
//! use barewire::bus::Bus;
//! use barewire::controller::null::Null;
//! use barewire::hal::HalDevice;
//! use barewire::spi::Settings;
//! use embedded_hal::spi::{Operation, SpiDevice};
//!
//! let bus = Bus::new(Null::new());
//! let mut device = HalDevice::new(bus.device(&Settings::new(0, 20_000_000))?);
//! let mut id = [0; 3];
//! device.transaction(&mut [Operation::Write(&[0x9f]), Operation::Read(&mut id)])?;
//! # Ok::<(), barewire::spi::Error>(())
//! ```
//!
//! # Not supported
//! Words of 32 bits (`SpiDevice<u32>`). `embedded-hal` 0.2 and `embedded-hal-nb`.

mod bus;
mod delay;
mod device;
#[cfg(feature = "embassy")]
mod embassy;
mod error;
mod owned;
mod pin;
mod port;
mod room;
#[cfg(test)]
mod tests;
#[cfg(feature = "words16")]
mod words16;

pub use bus::HalBus;
pub use delay::Delay;
pub use device::HalDevice;
pub use owned::{Async, Blocking};
pub use pin::BankPin;
pub use port::{NoDelay, OnSpiDevice};
#[cfg(feature = "words16")]
pub use words16::HalDevice16;

use crate::spi::Mode;

impl From<embedded_hal::spi::Mode> for Mode {
    fn from(mode: embedded_hal::spi::Mode) -> Self {
        use embedded_hal::spi::{Phase, Polarity};
        let polarity = match mode.polarity {
            Polarity::IdleLow => Self::default(),
            Polarity::IdleHigh => Self::CPOL,
        };
        let phase = match mode.phase {
            Phase::CaptureOnFirstTransition => Self::default(),
            Phase::CaptureOnSecondTransition => Self::CPHA,
        };
        polarity | phase
    }
}
