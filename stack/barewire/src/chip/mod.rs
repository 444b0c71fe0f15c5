//! Drivers of chips on the bus.
//!
//! A driver uses a [`Port`]: one chip select that runs whole messages. A [`Device`] of any bus is
//! one, and [`OnSpiDevice`](crate::hal::OnSpiDevice) makes one of any `embedded-hal` device. A
//! driver with short exchanges ([`mcp3008`]) also takes an [`AsyncPort`]; both are one too. A
//! driver of a chip with registers has a [`RegMap`](crate::regmap::RegMap), on a prepared exchange
//! or, by [`OnPort`], on any port.
//!
//! A chip behind long wires may need a slower clock for reads: [`ReadSpeed`].
//!
//! If several processes use a chip, its port must exclude the other users for the length of an
//! operation: [`Port::begin`].

pub mod mcp251xfd;
pub mod mcp3008;
pub mod spi_nor;
pub mod tsc2046;

mod on_port;
mod read_speed;
mod shifted;
#[cfg(test)]
mod testing;

pub use on_port::OnPort;
pub use read_speed::ReadSpeed;

use crate::bus::{Device, Uses};
use crate::controller::Controller;
use crate::spi::{MessageError, Transfer};

/// The messages of one chip.
pub trait Port {
    /// Runs a message and waits for it.
    ///
    /// # Errors
    /// The errors of the layer below. CS is inactive in every case.
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError>;

    /// The clock, in hertz.
    fn speed_hz(&self) -> u32;

    /// The longest message between two points at which CS is inactive, in bytes, with each
    /// transfer's length rounded up to [`TRANSFER_ROUNDED_TO`]: [`Limits::max_message_bytes`]. A
    /// driver splits its work accordingly ([`longest_data`]). The provided method is for a port
    /// without a limit.
    ///
    /// [`Limits::max_message_bytes`]: crate::controller::Limits::max_message_bytes
    #[inline]
    fn max_message_bytes(&self) -> usize {
        usize::MAX
    }

    /// Begins an operation: until [`Port::end`], no other user sends messages to the chip. Waits
    /// for another user's operation to end. The provided method is for a port with a single user.
    ///
    /// For driver authors: on a [`Sharing::Shared`] chip, state that outlives a message (a mode, a
    /// latch, work in progress) is known only within an operation. Establish it after `begin`, undo
    /// it before `end`, and call `end` on every path. Operations do not nest.
    ///
    /// # Errors
    /// The reason why the chip cannot be acquired. [`Port::end`] is not called then.
    #[inline]
    fn begin(&mut self) -> Result<Sharing, MessageError> {
        Ok(Sharing::Alone)
    }

    /// Ends the operation.
    #[inline]
    fn end(&mut self) {}
}

/// The users of a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Sharing {
    /// A single driver: the chip is in the state that driver left.
    Alone,
    /// Several users, any of which may have been killed in the middle of an operation.
    Shared,
}

/// The messages of one chip, without blocking the thread.
pub trait AsyncPort {
    /// Runs a message, as [`Port::run`].
    ///
    /// # Errors
    /// As [`Port::run`].
    fn run_async(
        &mut self,
        message: &mut [Transfer<'_>],
    ) -> impl Future<Output = Result<(), MessageError>>;
}

/// The granularity in bytes to which spidev rounds up each transfer on arm64, the largest of all
/// architectures.
pub const TRANSFER_ROUNDED_TO: usize = 128;

/// The longest data that `port` accepts after a command of up to 128 bytes, in bytes. At least 1: a
/// port that accepts none then returns its own error.
#[must_use]
pub fn longest_data<P: Port + ?Sized>(port: &P) -> usize {
    match port.max_message_bytes() {
        usize::MAX => usize::MAX,
        bytes => bytes.saturating_sub(TRANSFER_ROUNDED_TO).max(1),
    }
}

impl<P: Port + ?Sized> Port for &mut P {
    #[inline]
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        (**self).run(message)
    }

    fn speed_hz(&self) -> u32 {
        (**self).speed_hz()
    }

    fn max_message_bytes(&self) -> usize {
        (**self).max_message_bytes()
    }

    #[inline]
    fn begin(&mut self) -> Result<Sharing, MessageError> {
        (**self).begin()
    }

    #[inline]
    fn end(&mut self) {
        (**self).end();
    }
}

impl<C: Controller + ?Sized, U: Uses> Port for Device<'_, C, U> {
    #[inline]
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.sync(message).map(|_| ())
    }

    fn speed_hz(&self) -> u32 {
        self.effective().speed_hz
    }

    fn max_message_bytes(&self) -> usize {
        self.limits().max_message_bytes
    }
}

impl<C: Controller + ?Sized, U: Uses> AsyncPort for Device<'_, C, U> {
    async fn run_async(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.transact(message).await.map(|_| ())
    }
}
