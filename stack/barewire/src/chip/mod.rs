//! Drivers of chips behind the bus.
//!
//! A driver talks through a [`Port`]: one chip select that runs whole messages. A
//! [`Device`] of any bus is one, and [`OnSpiDevice`](crate::hal::OnSpiDevice) makes one of any
//! `embedded-hal` device. A driver of short exchanges ([`mcp3008`]) takes an [`AsyncPort`] too, which
//! both are as well. A driver of a chip with registers has a [`RegMap`](crate::regmap::RegMap), on a
//! prepared exchange or, by [`OnPort`], on any port.
//!
//! A chip that several processes use wants a port that keeps the others out for the length of an
//! operation: [`Port::begin`].

pub mod mcp251xfd;
pub mod mcp3008;
pub mod spi_nor;
pub mod tsc2046;

mod on_port;
#[cfg(test)]
mod testing;

pub use on_port::OnPort;

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

    /// The longest message between two points at which CS is inactive, in bytes, each transfer counted
    /// as its length rounded up to [`TRANSFER_ROUNDED_TO`]: [`Limits::max_message_bytes`]. A driver cuts its work by it
    /// ([`longest_data`]). The default is for a port that takes any.
    ///
    /// [`Limits::max_message_bytes`]: crate::controller::Limits::max_message_bytes
    #[inline]
    fn max_message_bytes(&self) -> usize {
        usize::MAX
    }

    /// Begins an operation: until [`Port::end`], no other user sends messages to the chip. Waits for
    /// another user's operation to end. The default is for a port whose user has the chip alone.
    ///
    /// For driver authors: a state of the chip that outlives a message (a mode, a latch, work in
    /// progress) is known only within an operation of a [`Sharing::Shared`] chip. Establish it after
    /// `begin`, undo it before `end`, and call `end` on every path. Operations do not nest.
    ///
    /// # Errors
    /// Why the chip cannot be had; then [`Port::end`] is not called.
    #[inline]
    fn begin(&mut self) -> Result<Sharing, MessageError> {
        Ok(Sharing::Alone)
    }

    /// Ends the operation.
    #[inline]
    fn end(&mut self) {}
}

/// Who uses a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// One driver: the chip is as that driver left it.
    Alone,
    /// Others too, who may also have died in the middle of an operation.
    Shared,
}

/// One chip's way to the wire that does not block the thread.
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

/// What spidev rounds each transfer up to on arm64, the most of all architectures, in bytes.
pub const TRANSFER_ROUNDED_TO: usize = 128;

/// The longest data that `port` takes behind a command of up to 128 bytes, in bytes; 1 if it takes
/// none, so that the port says why.
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

impl<C: Controller + ?Sized> Port for Device<'_, C> {
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

impl<C: Controller + ?Sized> AsyncPort for Device<'_, C> {
    async fn run_async(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.transact(message).await.map(|_| ())
    }
}
